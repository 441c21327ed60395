"""A driver without Spark for tests of the worker: it says that connectors run, and fails those whose topic says so."""

from __future__ import annotations

import json
import sys


def say(**event: object) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def main() -> None:
    json.loads(sys.stdin.readline())
    for line in sys.stdin:
        command = json.loads(line)
        if command["op"] == "stop":
            say(event="stopped", name=command["name"], epoch=command["epoch"])
        if command["op"] != "start":
            continue
        name, epoch, config = command["name"], command["epoch"], command["config"]
        topic = config.get("topic", "")
        if topic.startswith("fails"):
            say(event="failed", name=name, epoch=epoch, trace="boom", retriable=False)
            continue
        say(event="running", name=name, epoch=epoch)
        if topic:
            say(event="topics", name=name, topics=[topic])
            say(event="details", name=name, details={"slot": "shop", "slot_wal_bytes": 4096})
        if topic and not command["entries"]:
            say(event="offsets", name=name, entries=[[{"filename": config["file"]}, {"position": 6}]])
        if topic == "dies":
            sys.exit(3)


main()
