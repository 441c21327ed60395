"""Members of groups with Kafka's own Java client, with the face of those in `group_members.py`.

Each is a process (`java/GroupMember.java`) that tells what happens to it, and that can be killed.
"""

from __future__ import annotations

import json
from typing import Any

from consumer_members import java_classes
from group_members import COMMITTED, GIVEN, HEARTBEAT_MS, LEFT, READ, Event
from member_process import ProcessMember
from tools.kafka_jars import java_command

SESSION_MS_MIN = 4000  # a virtual machine that starts beside others may be silent for a while
_ASSIGNORS = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "roundrobin": "org.apache.kafka.clients.consumer.RoundRobinAssignor",
    "sticky": "org.apache.kafka.clients.consumer.StickyAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}


class JavaMember(ProcessMember):
    name = "java"

    def command(self) -> list[str]:
        settings: dict[str, Any] = {"group.protocol": self.protocol}
        if self.protocol == "consumer":
            settings["group.remote.assignor"] = self.assignor
        else:
            settings |= {
                "session.timeout.ms": max(self.session_ms, SESSION_MS_MIN),
                "heartbeat.interval.ms": HEARTBEAT_MS,
                "partition.assignment.strategy": _ASSIGNORS[self.assignor],
            }
        if self.instance is not None:
            settings["group.instance.id"] = self.instance
        words = [f"{name}={value}" for name, value in settings.items()]
        return java_command(
            "GroupMember",
            *(self.bootstrap, self.group, self.topic, *words),
            options=("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256M"),
            classes=str(java_classes()),
        )

    def event(self, line: str) -> Event:
        row = json.loads(line)
        match row["event"]:
            case "record":
                return Event(row["at"], READ, [(row["partition"], row["offset"], row["value"].encode())])
            case "committed":
                return Event(row["at"], COMMITTED, [(partition, offset) for _, partition, offset in row["offsets"]])
            case "assigned":
                return Event(row["at"], GIVEN, sorted(self.assigned.union(_named(row))))
            case _:
                return Event(row["at"], LEFT, sorted(self.assigned.difference(_named(row))))


def _named(row: dict[str, Any]) -> list[int]:
    return [partition for _, partition in row["partitions"]]
