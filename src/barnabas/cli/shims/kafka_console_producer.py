"""``kafka-console-producer.sh``: each line of standard input becomes a record, as Kafka's ConsoleProducer does it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from typing import Final

from barnabas.cli.records.produce import standard_input
from barnabas.cli.records.record_input import Input
from barnabas.cli.shims.shim import carry_out, client_values, parser_of
from barnabas.cli.terminal.connection import attend, pairs
from barnabas.client.producer import Producer
from barnabas.client.settings.producer import ProducerSettings
from barnabas.model.settings import InvalidSetting
from barnabas.ops.failure import Failure

READER: Final = {
    "parse.key": "false",
    "key.separator": "\t",
    "parse.headers": "false",
    "headers.delimiter": "\t",
    "headers.separator": ",",
    "headers.key.separator": ":",
    "null.marker": None,
    "ignore.error": "false",
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("kafka-console-producer.sh", "Read records from standard input and send them to a topic.")
    _configure(parser)
    return carry_out(parser, _run, arguments)


def _configure(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--topic", required=True)
    for name in ("--reader-property", "--property"):
        add(name, dest="reader", action="append", default=[], metavar="PROP=VALUE", help=f"of {', '.join(READER)}")
    for name in ("--command-property", "--producer-property"):
        add(name, dest="properties", action="append", default=[], metavar="PROP=VALUE", help="a producer setting")
    add("--producer.config", dest="command_config", metavar="FILE")
    add("--compression-codec", nargs="?", const="gzip", choices=("none", "gzip", "snappy", "lz4", "zstd"))
    add("--request-required-acks", choices=("0", "1", "-1", "all"))
    add("--batch-size", type=int)
    add("--timeout", type=int, metavar="MS", help="how long records wait for company")
    add("--sync", action="store_true", help="wait for each record")


def _run(arguments: Namespace) -> None:
    read = reader(pairs(arguments.reader))
    values = client_values(arguments, arguments.properties)
    for name, value in (
        ("compression.type", arguments.compression_codec),
        ("acks", arguments.request_required_acks),
        ("batch.size", arguments.batch_size),
        ("linger.ms", arguments.timeout),
    ):
        if value is not None:
            values[name] = value
    try:
        settings = ProducerSettings.of(values)
    except InvalidSetting as error:
        raise Failure(str(error)) from error
    attend(_send(arguments, settings, read), is_long=True)


async def _send(arguments: Namespace, settings: ProducerSettings, read: Callable[[bytes], Input]) -> None:
    async with Producer(settings) as producer:
        await producer.cluster.open()
        async for line in standard_input():
            record = read(line)
            delivery = await producer.send_soon(arguments.topic, record.value, key=record.key, headers=record.headers)
            if arguments.sync:
                await delivery
        await producer.flush()


def reader(given: dict[str, str]) -> Callable[[bytes], Input]:
    """How a line is taken apart: headers, then the key, then the value."""
    for name in given:
        if name not in READER:
            raise Failure(f"there is no reader property {name!r}; there are {', '.join(READER)}")
    options = {**READER, **given}
    is_lenient = options["ignore.error"] == "true"
    marker = None if options["null.marker"] is None else options["null.marker"].encode()
    delimiter, separator, of_header = (
        (options[name] or "").encode() for name in ("headers.delimiter", "headers.separator", "headers.key.separator")
    )
    of_key = (options["key.separator"] or "").encode()

    def value_of(data: bytes) -> bytes | None:
        return None if marker is not None and data == marker else data

    def split(line: bytes, mark: bytes, what: str) -> tuple[bytes | None, bytes]:
        first, found, rest = line.partition(mark)
        if found:
            return first, rest
        if is_lenient:
            return None, line
        raise Failure(f"No {what} found on line: {line.decode(errors='replace')}")

    def read(line: bytes) -> Input:
        headers: list[tuple[str, bytes | None]] = []
        if options["parse.headers"] == "true":
            text, line = split(line, delimiter, "headers delimiter")
            for part in text.split(separator) if text else ():
                name, data = split(part, of_header, "header key separator")
                headers.append(((name or b"").decode(), value_of(data)))
        key: bytes | None = None
        if options["parse.key"] == "true":
            key, line = split(line, of_key, "key separator")
            key = None if key is None else value_of(key)
        return Input(key=key, value=value_of(line), headers=tuple(headers))

    return read
