"""``barnabas consume``: records of topics on standard output, by default one value a line, until Ctrl-C.

Without a group nothing is committed anywhere. How a record is printed is in ``record_format.py``, how a start is
written in ``moments.py``, which records are shown in ``record_filter.py``.
"""

from __future__ import annotations

import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from barnabas.cli.records.progress import Progress
from barnabas.cli.records.schema_registry import add_registry, is_guess, needed_registry, registry_of
from barnabas.cli.terminal.connection import add_connection, attend, settings_of
from barnabas.cli.terminal.verbs import join_offsets, now_ms
from barnabas.client.consumer import Consumer
from barnabas.client.offsets import EARLIEST, LATEST, resolve
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.model.ids import TopicPartition
from barnabas.ops.failure import Failure
from barnabas.ops.records import filter as record_filter
from barnabas.ops.records import format as record_format
from barnabas.ops.records import moments
from barnabas.ops.records.format import Decoded, Line

if TYPE_CHECKING:
    from barnabas.client.record import ConsumerRecord
    from barnabas.ops.records.decoding import Decoder
    from barnabas.ops.records.moments import Window

RESETS: Final = {EARLIEST: "earliest", LATEST: "latest"}
FORMS: Final = ("auto", "avro", "proto", "json", "msgpack", "hex", "base64", "string")
GUESSES_MAX: Final = 1000
OF_REGISTRY: Final = ("avro", "proto")
IDLE_MS: Final = 500  # how long a group that has read everything waits for more before --exit ends it


def configure(parser: ArgumentParser) -> None:
    parser.epilog = "Example: barnabas consume orders -o start --exit --decode auto"
    add = parser.add_argument
    add("topics", nargs="+", metavar="TOPIC")
    add("-o", "--offset", default="start", metavar="WHERE", help=moments.HELP)
    add("--from-beginning", dest="offset", action="store_const", const="start", help="the same as -o start")
    add("-p", "--partition", type=int, action="append", metavar="N", help="only this one; repeatable")
    add("-g", "--group", metavar="GROUP", help="as a member of this group, which commits what was printed")
    add("-n", "--num", type=int, metavar="N", help="stop after so many records")
    add("-e", "--exit", action="store_true", help="stop at the end that the partitions have now")
    add("--follow", action="store_true", help="go on when the end is reached (the default)")
    add("-r", "--regex", action="store_true", help="topics are regular expressions")
    add("-f", "--format", default="text", metavar="FORMAT", help=f"text, json, pretty, meta, or a {record_format.HELP}")
    add("--json", dest="format", action="store_const", const="json", help="the same as --format json")
    add("--pretty", dest="format", action="store_const", const="pretty", help="the same as --format pretty")
    add("--meta-only", dest="format", action="store_const", const="meta", help="the same as --format meta")
    add("--kcat", action="store_true", help="the format is written as kcat has it: %%s %%S %%k %%K %%T and so on")
    add("--print-control", action="store_true", help="show the markers that end transactions too")
    add("--rack", metavar="NAME", help="where we are: replicas in the same rack are read if there are any")
    add("--read-committed", action="store_true", help="leave out records of open and aborted transactions")
    forms = ", ".join(FORMS)
    add(
        "--decode",
        choices=FORMS,
        metavar="FORM",
        help=f"what values are, before they are filtered and printed: {forms}; avro and proto are what a schema "
        "registry says, in Confluent's wire format; auto looks at each one",
    )
    add("--decode-key", choices=FORMS, metavar="FORM", help="the same for keys")
    record_filter.add_filters(parser)
    add_registry(parser)
    add_connection(parser)


def prepare(words: list[str]) -> list[str]:
    return join_offsets(words)


def run(arguments: Namespace) -> int:
    if arguments.exit and arguments.follow:
        raise Failure("--exit and --follow say the opposite")
    if arguments.group is not None and arguments.partition is not None:
        raise Failure("--group and --partition do not go together: a group shares the partitions out itself")
    text = record_format.from_kcat(arguments.format) if arguments.kcat else arguments.format
    window = moments.parse_window(arguments.offset, now_ms=now_ms())
    settings = settings_of(
        ConsumerSettings,
        arguments,
        isolation_level="read_committed" if arguments.read_committed else "read_uncommitted",
        auto_offset_reset=_reset(arguments, window),
        **({} if arguments.rack is None else {"client_rack": arguments.rack}),
        **({} if arguments.group is None else {"group_id": arguments.group, "enable_auto_commit": False}),
    )
    arguments.by_batches = arguments.print_control or record_format.needs_batches(text)
    if arguments.by_batches and arguments.group is not None:
        raise Failure("--group reads records, not batches: leave out --print-control, %e, %x, %y, %[, %| and %]")
    arguments.decoder = _decoder(arguments)
    printer = _Printer(
        arguments.num,
        record_format.compile_output(text),
        record_filter.compile_filter(arguments),
        has_errors=record_format.shows_errors(text),
    )
    try:
        attend(_consume(arguments, settings, window, printer), is_long=True)
    finally:
        printer.progress.clear()
    return int(printer.has_failed)


def _decoder(arguments: Namespace) -> Decoder | None:
    """None if bytes are to stay as they are."""
    forms = (arguments.decode_key, arguments.decode)
    if forms == (None, None):
        return None
    from barnabas.client.errors import MissingDependency
    from barnabas.ops.records.decoding import Decoder

    asks = [form for form in forms if form in OF_REGISTRY]
    registry = needed_registry(arguments, why=f"--decode {asks[0]}") if asks else registry_of(arguments)
    schemas = None
    if registry is not None:
        from barnabas.ops.records.schemas import Schemas

        schemas = Schemas(registry, is_guess=is_guess(arguments))
    try:
        return Decoder(*forms, schemas)
    except MissingDependency as error:
        raise Failure(str(error)) from error


async def _read(arguments: Namespace, records: list[Any]) -> list[Any]:
    return records if arguments.decoder is None else await arguments.decoder.decode(records)


def _reset(arguments: Namespace, window: Window) -> str:
    """Where a group begins that has committed nothing; without one, where a reader goes on whose place is gone."""
    if arguments.group is None:
        return "earliest"
    if window.end is not None or window.start not in RESETS:
        raise Failure("a group goes on where it is: with --group, --offset is start or end, for a group that is new")
    return RESETS[window.start]


class _Printer:
    """Shows what holds, and knows when it is enough."""

    def __init__(
        self,
        count_max: int | None,
        show: Callable[[Line], bytes],
        holds: Callable[[Line], bool] | None,
        *,
        has_errors: bool,
    ) -> None:
        """``has_errors``: whether what is shown says itself why something could not be decoded."""
        self._count_max = count_max
        self._has_errors = has_errors
        self._said: set[str] = set()
        self._show = show
        self._holds = holds
        self.progress = Progress("records", is_wanted=holds is not None or not sys.stdout.isatty())
        self.read = 0
        self.shown = 0
        self.has_failed = False

    @property
    def is_done(self) -> bool:
        return self._count_max is not None and self.shown >= self._count_max

    def print(self, records: Iterable[ConsumerRecord] | Iterable[Line]) -> int:
        """How many were read; those behind the last that was wanted are not."""
        out: list[bytes] = []
        count = 0
        for record in records:
            if self.is_done:
                break
            count += 1
            number = self.shown + 1
            line = record._replace(number=number) if isinstance(record, Line) else Line(*record, number)
            if self._holds is None or self._holds(line):
                out.append(self._show(line))
                self.shown += 1
                if isinstance(line.value, Decoded) or isinstance(line.key, Decoded):
                    self._complain(line)
        self.read += count
        self.progress.clear()
        sys.stdout.buffer.write(b"".join(out))
        sys.stdout.buffer.flush()
        self.progress.at(self.read, found=self.shown if self._holds else None)
        return count

    def _complain(self, line: Line) -> None:
        """Of what was to be decoded and could not be. A guess that was wrong is no failure, and said once."""
        for name, data in (("key", line.key), ("value", line.value)):
            if not isinstance(data, Decoded) or data.error is None:
                continue
            self.has_failed = self.has_failed or not data.form
            guess = f"{line.topic} {name} {data.error}"
            if not self._has_errors and not (data.form and guess in self._said):
                self.progress.clear()
                place = f"{line.topic}-{line.partition} at offset {line.offset}"
                print(f"barnabas: {place}: the {name} cannot be decoded: {data.error}", file=sys.stderr)
            if data.form and len(self._said) < GUESSES_MAX:
                self._said.add(guess)


async def _consume(arguments: Namespace, settings: ConsumerSettings, window: Window, printer: _Printer) -> None:
    async with Consumer(settings) as consumer:
        if arguments.group is not None:
            await _consume_as_member(consumer, arguments, printer)
            return
        places = await _places(consumer, arguments)
        if arguments.by_batches:
            await _consume_batches(consumer, arguments, window, places, printer)
            return
        ends = None
        if window.end is not None:
            wanted = dict.fromkeys(places, window.end)
            ends = await resolve(consumer.cluster, wanted, isolation_level=settings.isolation_level)
        # What is decoded before it is filtered need not contain the bytes of the filter.
        probe = record_filter.probe_of(arguments) if arguments.decoder is None else None
        await consumer.assign(dict.fromkeys(places, window.start), ends=ends, until_end=arguments.exit, probe=probe)
        while not printer.is_done:
            records = await consumer.poll()
            if not records:
                return
            printer.print(await _read(arguments, records))


async def _consume_batches(
    consumer: Consumer, arguments: Namespace, window: Window, places: list[TopicPartition], printer: _Printer
) -> None:
    from barnabas.cli.records.consume_batches import print_batches
    from barnabas.ops.records.batch_reader import BatchReader

    level = "read_committed" if arguments.read_committed else "read_uncommitted"
    starts = await resolve(consumer.cluster, dict.fromkeys(places, window.start), isolation_level=level)
    ends = None
    if window.end is not None:
        ends = await resolve(consumer.cluster, dict.fromkeys(places, window.end), isolation_level=level)
    reader = BatchReader(
        consumer.cluster,
        starts,
        ends=ends,
        until_end=arguments.exit,
        isolation_level=level,
        with_control=arguments.print_control,
    )

    async def print_lines(lines: list[Line]) -> bool:
        printer.print(await _read(arguments, lines))
        return printer.is_done

    await print_batches(reader, starts, ends, print_lines)


async def _consume_as_member(consumer: Consumer, arguments: Namespace, printer: _Printer) -> None:
    await consumer.cluster.open()
    if arguments.regex:
        await consumer.subscribe(re.compile("|".join(arguments.topics)))
    else:
        await consumer.subscribe(arguments.topics)
    while not printer.is_done:
        records = await consumer.poll(timeout_ms=IDLE_MS if arguments.exit else None)
        if not records and arguments.exit and _has_read_all(consumer):
            return
        if not records:
            continue
        count = printer.print(await _read(arguments, records))
        consumer.give_back(records[count:])
        await consumer.commit()


def _has_read_all(consumer: Consumer) -> bool:
    assigned = consumer.assignment
    return bool(assigned) and all(consumer.lag(place) == 0 for place in assigned)


async def _places(consumer: Consumer, arguments: Namespace) -> list[TopicPartition]:
    names = list(arguments.topics)
    if arguments.regex:
        patterns = [re.compile(name) for name in names]
        known = await consumer.cluster.all_topics()
        names = [topic.name for topic in known if any(pattern.search(topic.name) for pattern in patterns)]
        if not names:
            raise Failure("no topic matches")
    places: list[TopicPartition] = []
    for name in names:
        topic = await consumer.cluster.topic(name, timeout_ms=0)
        for index in arguments.partition or range(len(topic.partitions)):
            if not 0 <= index < len(topic.partitions):
                raise Failure(f"{name} has partitions 0 to {len(topic.partitions) - 1}, and no {index}")
            places.append(TopicPartition(name, index))
    return places
