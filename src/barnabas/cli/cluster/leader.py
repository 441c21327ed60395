"""``barnabas leader``: give partitions back their preferred leaders, another leader or, at the price of records, any.

``transfer`` makes a replica the first of its partition, by a reassignment that moves nothing, and has it elected; so it
is the preferred leader from then on, too.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from barnabas.cli.terminal.connection import attend
from barnabas.cli.terminal.verbs import (
    Outcome,
    Verb,
    add_yes,
    admin_of,
    configure_verbs,
    confirm,
    partition_of,
    report,
    run_verb,
)
from barnabas.model import errors
from barnabas.model.ids import TopicPartition
from barnabas.ops.failure import Failure

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
    partitions = [partition_of(text) for text in arguments.partitions] or None
    if arguments.unclean:
        confirm("Records that were acknowledged may be lost for good. Elect all the same?", arguments)

    async def work() -> dict[TopicPartition, ApiError | None]:
        async with admin_of(arguments) as admin:
            return await admin.elect_leaders(partitions, kind="unclean" if arguments.unclean else "preferred")

    outcomes = _elected(attend(work()), done="elected")
    if not outcomes:
        print("every partition has the leader that it prefers")
    report(arguments, outcomes)


def _configure_transfer(parser: ArgumentParser) -> None:
    parser.add_argument("partitions", metavar="TOPIC-PARTITION", nargs="+", help="such as orders-0")
    parser.add_argument("--to", type=int, required=True, metavar="BROKER", help="who is to lead; one of the replicas")


def _transfer(arguments: Namespace) -> None:
    partitions = [partition_of(text) for text in arguments.partitions]

    async def work() -> dict[TopicPartition, ApiError | None]:
        async with admin_of(arguments) as admin:
            orders = {}
            for place in partitions:
                topic = await admin.cluster.topic(place.topic, timeout_ms=0)
                if place.partition >= len(topic.partitions):
                    raise Failure(f"{place.topic} has partitions 0 to {len(topic.partitions) - 1}")
                part = topic.partitions[place.partition]
                if arguments.to not in part.isr:
                    raise Failure(f"{place}: broker {arguments.to} is not in sync; those that are: {_ids(part.isr)}")
                orders[place] = [arguments.to, *(each for each in part.replicas if each != arguments.to)]
            answers = await admin.alter_reassignments(orders)
            ready = [place for place, error in answers.items() if error is None]
            return answers | (await admin.elect_leaders(ready) if ready else {})

    report(arguments, _elected(attend(work()), done=f"led by broker {arguments.to}"))


def _ids(brokers: tuple[int, ...]) -> str:
    return ", ".join(map(str, brokers))


def _elected(answers: dict[TopicPartition, ApiError | None], *, done: str) -> list[Outcome]:
    """Who leads already is no failure."""
    return [
        Outcome(key, None, done if error is None else "leads already")
        if error is None or error.error is errors.ELECTION_NOT_NEEDED
        else Outcome(key, error)
        for key, error in sorted(answers.items())
    ]


VERBS = {
    "elect": Verb(_configure_elect, _elect, "elect leaders for partitions"),
    "transfer": Verb(_configure_transfer, _transfer, "let another replica lead partitions"),
}
