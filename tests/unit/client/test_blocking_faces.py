"""The blocking clients have what the asyncio clients have, under the same names and with the same types."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.client import blocking, consumer, producer, topic
from barnabas.client.admin import client as admin
from barnabas.client.blocking import admin as blocking_admin

# What has no meaning without a loop, or is there under another name.
ASYNC_ONLY = {
    "Producer": {"cluster", "settings", "begin_transaction", "commit_transaction", "abort_transaction"}
    | {"intake", "is_plain", "tell_sender"},
    "Consumer": {"cluster", "settings", "give_back"},
    "Topic": {"name", "settings"},
    "Admin": {"cluster"},
}
PAIRS = [
    (producer.Producer, blocking.Producer),
    (consumer.Consumer, blocking.Consumer),
    (admin.Admin, blocking.Admin),
    (topic.Topic, blocking.Topic),
]

TYPED = """
from barnabas import Consumer, Producer, blocking
from barnabas.client.serdes import STR, Struct
import msgspec

class Order(msgspec.Struct):
    id: int

async def work() -> None:
    async with Producer(key=STR, value=Struct(Order)) as producer:
        reveal_type(producer)
        await producer.send("orders", Order(1), key="ada")
        await producer.send("orders", "no order", key="ada")
        await producer.send("orders", Order(1), key=b"ada")
    async with Consumer(value=Struct(Order)) as consumer:
        async for record in consumer:
            reveal_type(record.key)
            reveal_type(record.value)
    async with Consumer() as plain:
        reveal_type(await plain.poll())

with blocking.Consumer(key=STR) as waiting:
    for each in waiting:
        reveal_type(each.key)
with blocking.Admin() as admin:
    reveal_type(admin.delete_topic("t"))
    reveal_type(admin.group_offsets("g"))
    admin.create_topics(7)
"""

REVEALED = [
    'reveal "Producer[str, Order]"',
    'error "str"; expected "Order | None"',
    'error "bytes"; expected "str | None"',
    'reveal "bytes | None"',
    'reveal "Order | None"',
    'reveal "list[ConsumerRecord[bytes, bytes]]"',
    'reveal "str | None"',
    'reveal "None"',
    'reveal "dict[TopicPartition, OffsetAndMetadata]"',
    'error "int"; expected "Iterable[NewTopic]"',
]


@pytest.mark.parametrize(("asynchronous", "waiting"), PAIRS, ids=lambda kind: kind.__module__)
def test_nothing_is_missing_without_async(asynchronous: type, waiting: type) -> None:
    wanted = {name for name in dir(asynchronous) if not name.startswith("_")} - ASYNC_ONLY[asynchronous.__name__]
    assert wanted <= {name for name in dir(waiting) if not name.startswith("_")}


@pytest.mark.parametrize(("asynchronous", "waiting"), PAIRS[:2], ids=lambda kind: kind.__module__)
def test_arguments_have_the_same_names(asynchronous: type, waiting: type) -> None:
    for name in sorted(set(dir(asynchronous)) & set(dir(waiting))):
        if name.startswith("_") or not inspect.isfunction(getattr(waiting, name)):
            continue
        ours = list(inspect.signature(getattr(waiting, name)).parameters)
        assert ours == list(inspect.signature(getattr(asynchronous, name)).parameters), name


def test_the_waiting_admin_is_made_of_the_other_ones_methods() -> None:
    for name, method in inspect.getmembers(admin.Admin, inspect.iscoroutinefunction):
        if not name.startswith("_") and name != "close":
            assert inspect.signature(getattr(blocking_admin.Admin, name)) == inspect.signature(method)


def _short(revealed: str) -> str:
    """Without modules, and a named tuple by its name instead of by its fields."""
    revealed = re.sub(r"[a-z_]+\.(?=[a-zA-Z])", "", revealed)
    while (again := re.sub(r"tuple\[[^=]*?, fallback=([^\[\]]+(\[[^\[\]]*\])?)\]", r"\1", revealed)) != revealed:
        revealed = again
    return revealed


@pytest.mark.slow
def test_type_checkers_know_keys_and_values(tmp_path: Path) -> None:
    path = tmp_path / "typed.py"
    path.write_text(TYPED)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", str(path)]
    # In a directory of its own: what this project tells mypy must not be what makes it pass.
    ran = subprocess.run(
        [*command, "--cache-dir", str(tmp_path / "cache")], capture_output=True, text=True, cwd=tmp_path
    )
    found = []
    for line in ran.stdout.splitlines():
        if "Revealed type is" in line:
            found.append("reveal " + _short(line.partition("Revealed type is ")[2]))
        elif "incompatible type" in line:
            found.append("error " + line.partition("incompatible type ")[2].partition("  [")[0])
        else:
            assert "note:" in line, ran.stdout
    assert found == REVEALED, ran.stdout
