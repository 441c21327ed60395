"""``kafka-console-consumer.sh``: records on standard output, as Kafka's ConsoleConsumer prints them.

Without ``--group`` nothing is committed; Kafka's own would make a group with a random name and leave it behind.
"""

from __future__ import annotations

import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from typing import Any, Final

from barnabas.cli.shims.shim import carry_out, client_values, parser_of
from barnabas.cli.terminal.connection import attend, pairs
from barnabas.client.consumer import Consumer
from barnabas.client.offsets import EARLIEST, LATEST, Start
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.model.ids import TopicPartition
from barnabas.model.settings import InvalidSetting
from barnabas.ops.failure import Failure

FORMATTER: Final = {
    "print.timestamp": "false",
    "print.partition": "false",
    "print.offset": "false",
    "print.headers": "false",
    "print.key": "false",
    "print.value": "true",
    "key.separator": "\t",
    "line.separator": "\n",
    "headers.separator": ",",
    "null.literal": "null",
}
DESERIALIZERS: Final = ("StringDeserializer", "ByteArrayDeserializer")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("kafka-console-consumer.sh", "Print records of topics.")
    _configure(parser)
    return carry_out(parser, _run, arguments)


def _configure(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--topic")
    add("--include", metavar="REGEX", help="topics by a regular expression")
    add("--partition", type=int)
    add("--offset", metavar="N|earliest|latest")
    add("--from-beginning", action="store_true")
    add("--group")
    add("--max-messages", type=int)
    add("--timeout-ms", type=int, help="stop if nothing comes for so long")
    add("--isolation-level", choices=("read_committed", "read_uncommitted"), default="read_uncommitted")
    for name in ("--formatter-property", "--property"):
        add(
            name, dest="formatter", action="append", default=[], metavar="PROP=VALUE", help=f"of {', '.join(FORMATTER)}"
        )
    for name in ("--command-property", "--consumer-property"):
        add(name, dest="properties", action="append", default=[], metavar="PROP=VALUE", help="a consumer setting")
    add("--consumer.config", dest="command_config", metavar="FILE")
    for name in ("--key-deserializer", "--value-deserializer"):
        add(name, type=_deserializer, help=f"one of {', '.join(DESERIALIZERS)}: bytes are printed as they are")


def _deserializer(name: str) -> str:
    if name.rpartition(".")[2] not in DESERIALIZERS:
        raise Failure(f"{name}: there are no Java classes here; say one of {', '.join(DESERIALIZERS)}")
    return name


def _run(arguments: Namespace) -> None:
    if (arguments.topic is None) == (arguments.include is None):
        raise Failure("Exactly one of --include/--topic is required.")
    if arguments.partition is not None and arguments.group is not None:
        raise Failure("Options --group and --partition cannot be specified together.")
    show = formatter(pairs(arguments.formatter))
    values = client_values(arguments, arguments.properties)
    group = arguments.group or values.pop("group.id", None)
    if group is not None:
        values["group.id"] = group
    values["isolation.level"] = arguments.isolation_level
    values.setdefault("auto.offset.reset", "earliest" if arguments.from_beginning else "latest")
    try:
        settings = ConsumerSettings.of(values)
    except InvalidSetting as error:
        raise Failure(str(error)) from error
    count = attend(_read(arguments, settings, show, is_member=group is not None), is_long=True)
    print(f"Processed a total of {count} messages", file=sys.stderr)


def _start(arguments: Namespace) -> Start:
    text = arguments.offset or ("earliest" if arguments.from_beginning else "latest")
    if text in ("earliest", "latest"):
        return EARLIEST if text == "earliest" else LATEST
    try:
        number = int(text)
    except ValueError:
        raise Failure(f"--offset {text!r}: say a number, earliest or latest") from None
    return Start.at(number) if number >= 0 else Start.before_last(-number)


async def _read(
    arguments: Namespace, settings: ConsumerSettings, show: Callable[[Any], bytes], *, is_member: bool
) -> int:
    count = 0
    out = sys.stdout.buffer
    async with Consumer(settings) as consumer:
        await consumer.cluster.open()
        if is_member:
            await consumer.subscribe(re.compile(arguments.include) if arguments.include else arguments.topic)
        else:
            await consumer.assign(dict.fromkeys(await _places(consumer, arguments), _start(arguments)))
        while arguments.max_messages is None or count < arguments.max_messages:
            left = None if arguments.max_messages is None else arguments.max_messages - count
            records = await consumer.poll(left, timeout_ms=arguments.timeout_ms)
            if not records:
                break
            out.write(b"".join([show(record) for record in records]))
            out.flush()
            count += len(records)
    return count


async def _places(consumer: Consumer, arguments: Namespace) -> list[TopicPartition]:
    if arguments.include is not None:
        pattern = re.compile(arguments.include)
        topics = [topic for topic in await consumer.cluster.all_topics() if pattern.fullmatch(topic.name)]
    else:
        topics = [await consumer.cluster.topic(arguments.topic, timeout_ms=0)]
    return [
        TopicPartition(topic.name, part.partition)
        for topic in topics
        for part in topic.partitions
        if arguments.partition in (None, part.partition)
    ]


def formatter(given: dict[str, str]) -> Callable[[Any], bytes]:
    """A record as Kafka's default formatter prints it."""
    for name in given:
        if name not in FORMATTER:
            raise Failure(f"there is no formatter property {name!r}; there are {', '.join(FORMATTER)}")
    options = {**FORMATTER, **given}
    null, key_separator = options["null.literal"].encode(), options["key.separator"].encode()
    line_separator, header_separator = options["line.separator"].encode(), options["headers.separator"].encode()

    def headers(record: Any) -> bytes:
        pairs_ = [name.encode() + b":" + (null if value is None else value) for name, value in record.headers]
        return header_separator.join(pairs_) or b"NO_HEADERS"

    pieces: list[Callable[[Any], bytes]] = [
        piece
        for name, piece in (
            ("print.timestamp", lambda record: b"CreateTime:%d" % record.timestamp_ms),
            ("print.partition", lambda record: b"Partition:%d" % record.partition),
            ("print.offset", lambda record: b"Offset:%d" % record.offset),
            ("print.headers", headers),
            ("print.key", lambda record: null if record.key is None else record.key),
            ("print.value", lambda record: null if record.value is None else record.value),
        )
        if options[name] == "true"
    ]
    return lambda record: key_separator.join([piece(record) for piece in pieces]) + line_separator
