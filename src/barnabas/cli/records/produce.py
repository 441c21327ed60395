"""``barnabas produce``: each line of standard input or of files becomes a record.

Lines are read in a thread, because a pipe or a terminal may be slow and batches must leave meanwhile; the queue
between the two is short, so a fast input waits for the broker. What a line means is ``record_input.py``'s.
"""

from __future__ import annotations

import asyncio
import os
import sys
from argparse import ArgumentParser, Namespace
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from threading import Thread
from typing import Final

from barnabas.cli.records import record_input
from barnabas.cli.records.progress import Progress
from barnabas.cli.records.record_frames import FrameReader, Part, has_lengths
from barnabas.cli.records.record_input import Input
from barnabas.cli.records.schema_registry import add_registry, needed_registry
from barnabas.cli.terminal.connection import add_connection, attend, settings_of
from barnabas.client.produce.batch import Delivery
from barnabas.client.producer import Producer
from barnabas.client.settings.producer import ProducerSettings
from barnabas.ops.failure import Failure
from barnabas.ops.records import format as record_format
from barnabas.ops.records.encoding import Encoder, add_schemas, wanted, wants_schemas
from barnabas.ops.records.format import Line

CHUNK_BYTES: Final = 64 * 1024
CHUNKS_WAITING_MAX: Final = 4
UNPRINTED_MAX: Final = 10_000
ACKNOWLEDGED: Final = "partition %p at offset %o\\n"
SILENT: Final = ("count", "none")


def configure(parser: ArgumentParser) -> None:
    parser.epilog = "Example: echo '{\"id\": 1}' | barnabas produce orders --schema order.avsc"
    add = parser.add_argument
    add("topic", metavar="TOPIC", nargs="?", help="may be left out where the format has %%t")
    add(
        "-v", "--value", dest="values", action="append", metavar="TEXT", help="instead of input: one record; repeatable"
    )
    add("-i", "--input", dest="files", action="append", metavar="FILE", help="instead of standard input; repeatable")
    add("-k", "--key", help="the key of every record")
    add("-H", "--header", action="append", default=[], metavar="KEY:VALUE", help="a header of every record; repeatable")
    add("-p", "--partition", type=int, metavar="N", help="instead of the partition that the key says")
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")
    add("-z", "--compression", choices=codecs, default="none", help="how batches are compressed")
    add("--acks", choices=("0", "1", "-1", "all"), default="all", help="who must have a record before it counts")
    add("-Z", "--tombstone", action="store_true", help="an empty value means null: delete the key")
    add("-f", "--format", "--input-format", default="%v", metavar="FORMAT", help=record_input.HELP)
    add_schemas(parser)
    add("--rate", type=float, metavar="N", help="no more than so many records a second")
    add("--txn", metavar="ID", help="all of it in one transaction, under this transactional id")
    add(
        "-o",
        "--output",
        default=ACKNOWLEDGED,
        metavar="FORMAT",
        help="what to print for each record that was acknowledged: a format as in consume, 'count' or 'none'",
    )
    add_registry(parser)
    add_connection(parser)


def run(arguments: Namespace) -> None:
    if arguments.topic is None and "%t" not in arguments.format.replace("%%", ""):
        raise Failure("name a topic")
    read = None if has_lengths(arguments.format) else record_input.compile_input(arguments.format)
    show = None if arguments.output in SILENT else record_format.compile_output(arguments.output)
    headers = tuple(_header(text) for text in arguments.header)
    acks = 1 if arguments.acks == "1" else 0 if arguments.acks == "0" else -1
    if arguments.rate is not None and arguments.rate <= 0:
        raise Failure("--rate must be more than 0")
    more = {} if arguments.txn is None else {"transactional_id": arguments.txn}
    settings = settings_of(ProducerSettings, arguments, acks=acks, compression_type=arguments.compression, **more)
    work = _Run(arguments, read, show, headers, _encoder(arguments))
    count = attend(work.produce(settings), is_long=True)
    if arguments.output == "count":
        print(count)


def _encoder(arguments: Namespace) -> Encoder | None:
    """None if what was read is sent as it is."""
    if not wants_schemas(arguments):
        return None
    key = wanted(arguments.schema_key_id, arguments.schema_key_type)
    value = wanted(arguments.schema_id, arguments.schema_type, arguments.schema)
    why = "--schema" if arguments.schema else "--schema-id" if value else "--schema-key-id"
    registry = needed_registry(arguments, why=why)
    from barnabas.ops.records.schemas import Schemas

    return Encoder(Schemas(registry), key=key, value=value)


def _header(text: str) -> tuple[str, bytes | None]:
    name, separator, value = text.partition(":")
    if not separator:
        raise Failure(f"-H {text!r}: say KEY:VALUE")
    return name, value.encode()


class _Run:
    def __init__(
        self,
        arguments: Namespace,
        read: Callable[[bytes], Input | None] | None,
        show: Callable[[Line], bytes] | None,
        headers: tuple[tuple[str, bytes | None], ...],
        encoder: Encoder | None,
    ) -> None:
        self._arguments = arguments
        self._encoder = encoder
        self._read = read
        self._show = show
        self._headers = headers
        self._unprinted: deque[tuple[Delivery, Input]] = deque()
        self._progress = Progress("records sent", is_wanted=show is None or not sys.stdout.isatty())
        self._count = 0

    async def produce(self, settings: ProducerSettings) -> int:
        async with Producer(settings) as producer, AsyncExitStack() as stack:
            await producer.cluster.open()
            if self._arguments.txn is not None:
                await stack.enter_async_context(producer.transaction())
            try:
                await self._send_all(producer)
            except Failure:
                if self._arguments.txn is None:
                    await self._finish(producer)  # the lines before the bad one are good
                raise
            await self._finish(producer)
        return self._count

    async def _send_all(self, producer: Producer) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        async for record in self._records():
            if self._arguments.rate is not None:
                await asyncio.sleep(started + self._count / self._arguments.rate - loop.time())
            record = self._completed(record)
            topic = record.topic or self._arguments.topic
            key, value = record.key, record.value
            if self._encoder is not None:
                key, value = await self._encoder.encode(topic, key, value)
            delivery = await producer.send_soon(
                topic,
                value,
                key=key,
                headers=record.headers,
                partition=record.partition,
                timestamp_ms=record.timestamp_ms,
            )
            self._count += 1
            self._progress.at(self._count)
            if self._show is not None:
                self._unprinted.append((delivery, record))
                await self._print_done(wait=len(self._unprinted) >= UNPRINTED_MAX)

    async def _records(self) -> AsyncIterator[Input]:
        if self._read is None:
            async for record in _all_frames(self._arguments):
                yield record
            return
        async for line in _all_lines(self._arguments):
            found = self._read(line)
            if found is not None:  # a line may only say how others are read
                yield found

    async def _finish(self, producer: Producer) -> None:
        await producer.flush()
        await self._print_done(wait=True)
        self._progress.clear()

    def _completed(self, record: Input) -> Input:
        arguments = self._arguments
        key = record.key if record.key is not None or arguments.key is None else arguments.key.encode()
        value = None if arguments.tombstone and not record.value else record.value
        partition = record.partition if arguments.partition is None else arguments.partition
        return record._replace(key=key, value=value, partition=partition, headers=(*record.headers, *self._headers))

    async def _print_done(self, *, wait: bool) -> None:
        """Print what is acknowledged, in the order in which it was read; all of it if ``wait`` says so."""
        out = []
        while self._show is not None and self._unprinted and (wait or self._unprinted[0][0].is_done):
            delivery, record = self._unprinted.popleft()
            done = await delivery
            place = (record.topic or self._arguments.topic, done.partition, done.offset, done.timestamp_ms)
            out.append(self._show(Line(*place, record.key, record.value, tuple(record.headers))))
        if out:
            self._progress.clear()
            sys.stdout.buffer.write(b"".join(out))
            sys.stdout.buffer.flush()


async def _all_frames(arguments: Namespace) -> AsyncIterator[Input]:
    """Records that say how long they are, whatever lines they are in."""
    if arguments.values is not None:
        raise Failure("--value is one record as it is: the format cannot ask for lengths")
    parts = [
        part
        for verb, modifier, literal in record_input.parse_format(arguments.format, "kvKV")
        for part in ((Part(verb, modifier, b""),) if verb else ()) + ((Part("", "", literal),) if literal else ())
    ]
    for descriptor in (sys.stdin.fileno(),) if arguments.files is None else _opened(arguments.files):
        reader = FrameReader(parts, arguments.format)
        async for chunk in _chunks(descriptor):
            for record in reader.feed(chunk):
                yield record
        reader.end()


async def _all_lines(arguments: Namespace) -> AsyncIterator[bytes]:
    if arguments.values is not None and arguments.files is not None:
        raise Failure("--value and --input do not go together")
    if arguments.values is not None:
        for text in arguments.values:
            yield text.encode(errors="surrogateescape")
    elif arguments.files is None:
        async for line in standard_input():
            yield line
    else:
        for descriptor in _opened(arguments.files):
            async for line in _lines(descriptor):
                yield line


def standard_input() -> AsyncIterator[bytes]:
    return _lines(sys.stdin.fileno())


def _opened(paths: list[str]) -> Iterator[int]:
    for path in paths:
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except OSError as error:
            raise Failure(f"--input {path}: {error.strerror}") from error
        try:
            yield descriptor
        finally:
            os.close(descriptor)


async def _lines(source: int) -> AsyncIterator[bytes]:
    """The lines of an input without their ends; the last one may lack its end."""
    rest = b""
    async for chunk in _chunks(source):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r")
    if rest:
        yield rest


async def _chunks(source: int) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    chunks: asyncio.Queue[bytes] = asyncio.Queue(CHUNKS_WAITING_MAX)

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
    Thread(target=pump, name="input", daemon=True).start()
    while chunk := await chunks.get():
        yield chunk
