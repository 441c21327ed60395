"""``barnabas consume``: records of topics on standard output, by default one value a line, until Ctrl-C.

Nothing is committed anywhere. How a record is printed is in ``record_format.py``, how a start is written in
``moments.py``.
"""

from __future__ import annotations

import re
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import BinaryIO

from barnabas.cli import moments, record_format
from barnabas.cli.connection import add_connection, attend, settings_of
from barnabas.cli.failure import Failure
from barnabas.cli.moments import Window
from barnabas.cli.record_format import Line
from barnabas.cli.verbs import join_offsets
from barnabas.client.consumer import Consumer, ConsumerRecord
from barnabas.client.consumer_settings import ConsumerSettings
from barnabas.client.offsets import resolve
from barnabas.model.ids import TopicPartition


def configure(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("topics", nargs="+", metavar="TOPIC")
    add("-o", "--offset", default="start", metavar="WHERE", help=moments.HELP)
    add("-p", "--partition", type=int, action="append", metavar="N", help="only this one; repeatable")
    add("-n", "--num", type=int, metavar="N", help="stop after so many records")
    add("-e", "--exit", action="store_true", help="stop at the end that the partitions have now")
    add("--follow", action="store_true", help="go on when the end is reached (the default)")
    add("-r", "--regex", action="store_true", help="topics are regular expressions")
    add("-f", "--format", default="text", metavar="FORMAT", help=f"text, json, or a {record_format.HELP}")
    add("--json", dest="format", action="store_const", const="json", help="the same as --format json")
    add("--read-committed", action="store_true", help="leave out records of open and aborted transactions")
    add_connection(parser)


def prepare(words: list[str]) -> list[str]:
    return join_offsets(words)


def run(arguments: Namespace) -> None:
    if arguments.exit and arguments.follow:
        raise Failure("--exit and --follow say the opposite")
    show = record_format.compile_output(arguments.format)
    window = moments.parse_window(arguments.offset, now_ms=time.time_ns() // 1_000_000)
    isolation = "read_committed" if arguments.read_committed else "read_uncommitted"
    settings = settings_of(ConsumerSettings, arguments, isolation_level=isolation, auto_offset_reset="earliest")
    attend(_consume(arguments, settings, window, show), is_long=True)


async def _consume(
    arguments: Namespace, settings: ConsumerSettings, window: Window, show: Callable[[Line], bytes]
) -> None:
    left = arguments.num
    number = 0
    async with Consumer(settings) as consumer:
        places = await _places(consumer, arguments)
        ends = None
        if window.end is not None:
            wanted = dict.fromkeys(places, window.end)
            ends = await resolve(consumer.cluster, wanted, isolation_level=settings.isolation_level)
        await consumer.assign(dict.fromkeys(places, window.start), ends=ends, until_end=arguments.exit)
        while left is None or left > 0:
            count_max = settings.max_poll_records if left is None else min(left, settings.max_poll_records)
            records = await consumer.poll(count_max=count_max)
            if not records:
                return
            _print(sys.stdout.buffer, records, show, number)
            number += len(records)
            left = None if left is None else left - len(records)


def _print(out: BinaryIO, records: list[ConsumerRecord], show: Callable[[Line], bytes], number: int) -> None:
    out.write(b"".join([show(Line(*record, index)) for index, record in enumerate(records, number + 1)]))
    out.flush()


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
            if index >= len(topic.partitions):
                raise Failure(f"{name} has partitions 0 to {len(topic.partitions) - 1}, and no {index}")
            places.append(TopicPartition(name, index))
    return places
