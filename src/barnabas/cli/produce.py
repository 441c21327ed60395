"""``barnabas produce``: each line of standard input becomes a record.

Lines are read in a thread, because a pipe or a terminal may be slow and batches must leave meanwhile; the queue
between the two is short, so a fast input waits for the broker.
"""

from __future__ import annotations

import asyncio
import os
import sys
from argparse import ArgumentParser, Namespace
from collections import deque
from collections.abc import AsyncIterator, Callable
from threading import Thread
from typing import Final

from barnabas.cli import record_format, record_input
from barnabas.cli.connection import add_connection, attend, settings_of
from barnabas.cli.failure import Failure
from barnabas.cli.record_format import Line
from barnabas.cli.record_input import Input
from barnabas.client.batch import Delivery
from barnabas.client.producer import Producer
from barnabas.client.producer_settings import ProducerSettings

CHUNK_BYTES: Final = 64 * 1024
CHUNKS_WAITING_MAX: Final = 4
UNPRINTED_MAX: Final = 10_000
ACKNOWLEDGED: Final = "partition %p at offset %o\\n"


def configure(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("topic", metavar="TOPIC")
    add("-k", "--key", help="the key of every record")
    add("-H", "--header", action="append", default=[], metavar="KEY:VALUE", help="a header of every record; repeatable")
    add("-p", "--partition", type=int, metavar="N", help="instead of the partition that the key says")
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")
    add("-z", "--compression", choices=codecs, default="none", help="how batches are compressed")
    add("--acks", choices=("0", "1", "-1", "all"), default="all", help="who must have a record before it counts")
    add("-Z", "--tombstone", action="store_true", help="an empty value means null: delete the key")
    add("-f", "--format", default="%v", metavar="FORMAT", help=record_input.HELP)
    add(
        "-o",
        "--output",
        default=ACKNOWLEDGED,
        metavar="FORMAT",
        help="what to print for each record that was acknowledged: a format as in consume, 'count' or 'none'",
    )
    add_connection(parser)


def run(arguments: Namespace) -> None:
    read = record_input.compile_input(arguments.format)
    is_each = arguments.output not in ("count", "none")
    show = record_format.compile_output(arguments.output) if is_each else None
    headers = tuple(_header(text) for text in arguments.header)
    acks = 1 if arguments.acks == "1" else 0 if arguments.acks == "0" else -1
    settings = settings_of(ProducerSettings, arguments, acks=acks, compression_type=arguments.compression)
    count = attend(_produce(arguments, settings, read, show, headers), is_long=True)
    if arguments.output == "count":
        print(count)


def _header(text: str) -> tuple[str, bytes | None]:
    name, separator, value = text.partition(":")
    if not separator:
        raise Failure(f"-H {text!r}: say KEY:VALUE")
    return name, value.encode()


async def _produce(
    arguments: Namespace,
    settings: ProducerSettings,
    read: Callable[[bytes], Input],
    show: Callable[[Line], bytes] | None,
    headers: tuple[tuple[str, bytes | None], ...],
) -> int:
    unprinted: deque[tuple[Delivery, Input]] = deque()
    count = 0
    async with Producer(settings) as producer:
        await producer.cluster.open()
        async for line in _lines():
            try:
                record = _completed(read(line), arguments, headers)
            except Failure:
                await producer.flush()  # the lines before the bad one are good
                await _print_done(arguments.topic, unprinted, show, wait=True)
                raise
            delivery = await producer.send_soon(
                arguments.topic,
                record.value,
                key=record.key,
                headers=record.headers,
                partition=record.partition,
                timestamp_ms=record.timestamp_ms,
            )
            count += 1
            if show is not None:
                unprinted.append((delivery, record))
                await _print_done(arguments.topic, unprinted, show, wait=len(unprinted) >= UNPRINTED_MAX)
        await producer.flush()
        await _print_done(arguments.topic, unprinted, show, wait=True)
    return count


def _completed(record: Input, arguments: Namespace, headers: tuple[tuple[str, bytes | None], ...]) -> Input:
    key = record.key if record.key is not None or arguments.key is None else arguments.key.encode()
    value = None if arguments.tombstone and not record.value else record.value
    partition = record.partition if arguments.partition is None else arguments.partition
    return record._replace(key=key, value=value, partition=partition, headers=(*record.headers, *headers))


async def _print_done(
    topic: str, unprinted: deque[tuple[Delivery, Input]], show: Callable[[Line], bytes] | None, *, wait: bool
) -> None:
    """Print what is acknowledged, in the order in which it was read; all of it if ``wait`` says so."""
    out = []
    while show is not None and unprinted and (wait or unprinted[0][0].is_done):
        delivery, record = unprinted.popleft()
        done = await delivery
        headers = tuple(record.headers)
        out.append(show(Line(topic, done.partition, done.offset, done.timestamp_ms, record.key, record.value, headers)))
    if out:
        sys.stdout.buffer.write(b"".join(out))
        sys.stdout.buffer.flush()


async def _lines() -> AsyncIterator[bytes]:
    """The lines of standard input without their ends; the last one may lack its end."""
    loop = asyncio.get_running_loop()
    chunks: asyncio.Queue[bytes] = asyncio.Queue(CHUNKS_WAITING_MAX)
    source = sys.stdin.fileno()

    def pump() -> None:
        while True:
            chunk = os.read(source, CHUNK_BYTES)
            try:
                asyncio.run_coroutine_threadsafe(chunks.put(chunk), loop).result()
            except (RuntimeError, asyncio.CancelledError):
                return  # the loop is gone: the command ended before its input did
            if not chunk:
                return

    # A daemon, so that Ctrl-C does not wait for input that never comes.
    Thread(target=pump, name="stdin", daemon=True).start()
    rest = b""
    while chunk := await chunks.get():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r")
    if rest:
        yield rest
