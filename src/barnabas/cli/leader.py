"""``barnabas leader elect``: give partitions back their preferred leaders or, at the price of records, any leader."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from barnabas.cli.connection import attend
from barnabas.cli.failure import Failure
from barnabas.cli.verbs import Outcome, Verb, add_yes, admin_of, configure_verbs, confirm, report, run_verb
from barnabas.model import errors
from barnabas.model.ids import TopicPartition

if TYPE_CHECKING:
    from barnabas.model.errors import ApiError


def configure(parser: ArgumentParser) -> None:
    configure_verbs(parser, VERBS)


def run(arguments: Namespace) -> None:
    run_verb(arguments)


def _configure_elect(parser: ArgumentParser) -> None:
    parser.add_argument(
        "partitions", metavar="TOPIC-PARTITION", nargs="*", help="such as orders-0; all partitions if none is named"
    )
    parser.add_argument(
        "--unclean",
        action="store_true",
        help="take any replica that is left, even if it lacks records that were acknowledged; they are lost then",
    )
    add_yes(parser)


def _elect(arguments: Namespace) -> None:
    partitions = [_partition(text) for text in arguments.partitions] or None
    if arguments.unclean:
        confirm("Records that were acknowledged may be lost for good. Elect all the same?", arguments)

    async def work() -> dict[TopicPartition, ApiError | None]:
        async with admin_of(arguments) as admin:
            return await admin.elect_leaders(partitions, kind="unclean" if arguments.unclean else "preferred")

    answers = attend(work())
    outcomes = [
        Outcome(key, None, "leads already" if error else "elected")
        if error is None or error.error is errors.ELECTION_NOT_NEEDED
        else Outcome(key, error)
        for key, error in sorted(answers.items())
    ]
    if not outcomes:
        print("every partition has the leader that it prefers")
    report(arguments, outcomes)


def _partition(text: str) -> TopicPartition:
    topic, dash, index = text.rpartition("-")
    if not (topic and dash and index.isascii() and index.isdigit()):
        raise Failure(f"{text!r} names no partition; write it like orders-0")
    return TopicPartition(topic, int(index))


VERBS = {"elect": Verb(_configure_elect, _elect, "elect leaders for partitions")}
