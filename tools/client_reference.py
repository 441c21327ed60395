"""The reference of the clients, made from their signatures and docstrings: one part for each public name.

``python tools/client_reference.py`` writes ``docs/client/reference.md``; a test fails when it is not current. The
example at the top of a part is run by the test of the pages.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "docs" / "client" / "reference.md"

EXAMPLES = {
    "Producer": """\
async def produce():
    async with Producer(ProducerSettings(bootstrap_servers=(servers,), linger_ms=10)) as producer:
        where = await producer.send("reference", b"one", key=b"k", headers={"a": b"b"})
        assert (where.topic, where.offset) == ("reference", 0)
        assert len(await producer.send_many("reference", [(None, b"two"), (b"k", b"three")])) == 2

asyncio.run(produce())""",
    "Consumer": """\
async def consume():
    settings = ConsumerSettings(bootstrap_servers=(servers,), group_id="reference", auto_offset_reset="earliest")
    async with Consumer(settings) as consumer:
        await consumer.subscribe(["reference"])
        seen = []
        while len(seen) < 3:
            seen += await consumer.poll(timeout_ms=1_000)
        await consumer.commit()
        place = consumer.assignment[0]
        assert consumer.position(place) == (await consumer.committed())[place].offset
        await consumer.seek_to({place: Start.before_last(1)})

asyncio.run(consume())""",
    "Admin": """\
async def administer():
    async with Admin(Settings(bootstrap_servers=(servers,))) as admin:
        await admin.create_topic(NewTopic("made", partition_count=3, configs={"retention.ms": "60000"}))
        await admin.create_partitions({"made": 5})
        described = (await admin.describe_topics(["made"]))["made"]
        assert len(described.partitions) == 5
        assert "reference" in [group.group_id for group in await admin.list_groups()]
        await admin.delete_topic("made")

asyncio.run(administer())""",
    "Topic": """\
table = asyncio.run(Topic("reference", ConsumerSettings(bootstrap_servers=(servers,))).to_arrow(Start.at(0)))
assert table.num_rows == 3""",
}

HEAD = """\
# Reference

*Made by `make docs` from the signatures and docstrings; edit those.* The classes for asyncio are described; in
`barnabas.blocking` the same methods wait instead of being awaited. Settings are at the end.

```python
import asyncio
from barnabas import (
    Admin, Consumer, ConsumerSettings, NewTopic, Producer, ProducerSettings, Settings, Start, Topic,
)
```
"""


def reference() -> str:
    return HEAD + "".join(f"\n{line}" for line in _lines()).rstrip() + "\n"


def _lines() -> Iterator[str]:
    import barnabas
    from barnabas.client.produce.batch import Delivery
    from barnabas.client.serdes.registry import Registry

    for kind in (
        barnabas.Producer,
        Delivery,
        barnabas.Consumer,
        barnabas.ConsumerRecord,
        barnabas.RebalanceListener,
        barnabas.Start,
        barnabas.Topic,
        barnabas.Admin,
        barnabas.NewTopic,
        Registry,
    ):
        yield from _part(kind)
    yield "## read\n"
    yield f"`{_signature('read', barnabas.read)}`\n"
    yield f"{_doc(barnabas.read)}\n"
    shared = {setting.name for setting in barnabas.Settings.table()}
    for title, kind, left_out in (
        ("Settings of every client", barnabas.Settings, set()),
        ("Settings of producers", barnabas.ProducerSettings, shared),
        ("Settings of consumers", barnabas.ConsumerSettings, shared),
    ):
        yield f"## {title}\n"
        yield "| setting | default | |\n|---|---|---|"
        for setting in kind.table():
            if setting.name not in left_out:
                default = f"`{setting.text(setting.default)}`" if setting.default not in (None, "") else "–"
                yield f"| `{setting.name}` | {default} | {setting.doc} |"
        yield ""
    yield from _without_effect()


def _without_effect() -> Iterator[str]:
    from barnabas.client.settings.unused import unoffered_settings, unused_settings

    for title, said, settings in (
        ("Settings without effect", "They may be given, and the log says so.", unused_settings()),
        ("Settings for what is not offered", "They may be left out, or say what is so anyway.", unoffered_settings()),
    ):
        yield f"## {title}\n"
        yield f"{said}\n"
        yield "| setting | |\n|---|---|"
        for setting in settings:
            note = " Producers have it." if setting.name == "retries" else ""
            yield f"| `{setting.name}` | {setting.doc}{note} |"
        yield ""


def _part(kind: Any) -> Iterator[str]:
    name = kind.__name__
    yield f"## {name}\n"
    # A class without a docstring of its own has its module's or that of dataclasses and named tuples.
    said = kind.__doc__ or ""
    if said and not said.startswith((f"{name}(", "Create new")):
        yield f"{_doc(kind)}\n"
    if name in EXAMPLES:
        yield f"```python\n{EXAMPLES[name]}\n```\n"
    for attribute in _names(kind):
        member = inspect.getattr_static(kind, attribute)
        if isinstance(member, property):
            yield f"- **`{attribute}`**{_dash(member)}"
        elif isinstance(member, staticmethod | classmethod) or inspect.isfunction(member):
            function = member.__func__ if isinstance(member, staticmethod | classmethod) else member
            awaited = "await " if inspect.iscoroutinefunction(function) else ""
            yield f"- **`{awaited}{_signature(attribute, function)}`**{_dash(function)}"
    yield ""


def _names(kind: Any) -> list[str]:
    """In the order of their definition, those of base classes last."""
    found: dict[str, None] = {}
    for owner in kind.__mro__:
        if owner.__module__.startswith("barnabas"):
            found |= {name: None for name in vars(owner) if not name.startswith("_")}
    return [name for name in found if callable(getattr(kind, name)) or isinstance(getattr(kind, name), property)]


def _signature(name: str, function: Any) -> str:
    signature = inspect.signature(function)
    parameters = [each for each in signature.parameters.values() if each.name not in ("self", "cls")]
    text = str(signature.replace(parameters=parameters))
    text = re.sub(r"(?<![\w.])(?:[a-z_]+\.)+(?=[A-Z])", "", text.replace("'", ""))
    text = re.sub(r"<[^>]*object at 0x[0-9a-f]+>", "…", text)
    return f"{name}{text}"


def _dash(member: Any) -> str:
    said = _doc(member)
    return f"<br>{said}" if said else ""


def _doc(member: Any) -> str:
    text = inspect.cleandoc(getattr(member, "__doc__", None) or "")
    text = re.sub(r":\w+:`~?([^`]+)`", lambda match: f"`{match[1].rpartition('.')[2]}`", text).replace("``", "`")
    return " ".join(line.strip() for line in text.splitlines() if line.strip())


if __name__ == "__main__":
    PAGE.write_text(reference())
