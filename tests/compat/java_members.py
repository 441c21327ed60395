"""Members of classic groups with Kafka's own Java client, with the face of those in `group_members.py`.

Each is a process (`java/GroupMember.java`) that tells what happens to it, and that can be killed.
"""

from __future__ import annotations

import json
import subprocess
import threading
from typing import Any

from consumer_members import java_classes
from group_members import DEADLINE_SECONDS, Member
from tools.kafka_jars import java_command

SESSION_MS_MIN = 4000  # a virtual machine that starts beside others may be silent for a while
_ASSIGNORS = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "roundrobin": "org.apache.kafka.clients.consumer.RoundRobinAssignor",
    "sticky": "org.apache.kafka.clients.consumer.StickyAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}


class JavaMember(Member):
    name = "java"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        settings = {
            "group.protocol": "classic",
            "session.timeout.ms": max(self.session_ms, SESSION_MS_MIN),
            "heartbeat.interval.ms": self.session_ms // 5,
            "partition.assignment.strategy": _ASSIGNORS[self.assignor],
        }
        if self.instance is not None:
            settings["group.instance.id"] = self.instance
        words = [f"{name}={value}" for name, value in settings.items()]
        self._command = java_command(
            "GroupMember",
            *(self.bootstrap, self.group, self.topic, *words),
            options=("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256M"),
            classes=str(java_classes()),
        )
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> Member:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(self._command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        return super().start()

    def stop(self) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()
        super().stop()

    def kill(self) -> None:
        """Without a chance to say goodbye."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.kill()
        self._process.stdin.close()
        self._thread.join(DEADLINE_SECONDS)

    def _run(self) -> None:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        assert process.stderr is not None
        said: list[str] = []
        listener = threading.Thread(target=lambda: said.extend(process.stderr or ()), daemon=True)
        listener.start()
        for line in process.stdout:
            row = json.loads(line)
            if row["event"] == "record":
                self.seen.append((row["partition"], row["offset"], row["value"].encode()))
                continue
            partitions = frozenset(partition for _, partition in row["partitions"])
            if row["event"] == "assigned":
                self.rebalances += 1
                self.assigned |= partitions
            else:
                self.assigned -= partitions
        code = process.wait(DEADLINE_SECONDS)
        listener.join(DEADLINE_SECONDS)
        process.stdout.close()
        process.stderr.close()
        if code > 0:
            raise AssertionError(f"Java's member ended with {code}:\n{''.join(said)[-2000:]}")
