"""``barnabas txn``: list, describe, why, abort.

``why`` answers the question that people really have: what a read_committed reader of a topic is waiting for.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.cli.failure import Failure
from barnabas.cli.terminal.connection import attend
from barnabas.cli.terminal.output import duration, is_table, print_facts, print_table, print_value
from barnabas.cli.terminal.verbs import (
    Outcome,
    Verb,
    add_yes,
    admin_of,
    complain,
    configure_verbs,
    confirm,
    now_ms,
    outcomes_of,
    partition_of,
    report,
    run_verb,
)
from barnabas.model.errors import ApiError
from barnabas.model.ids import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.admin.client import Admin
    from barnabas.client.admin.transactions import ActiveProducer, ListedTransaction, TransactionDescription

OPEN_STATES: Final = ("Ongoing", "PrepareCommit", "PrepareAbort")


def configure(parser: ArgumentParser) -> None:
    configure_verbs(parser, VERBS)


def run(arguments: Namespace) -> None:
    run_verb(arguments)


# --- list -------------------------------------------------------------------------------------------------------------


def _configure_list(parser: ArgumentParser) -> None:
    parser.add_argument("pattern", nargs="?", metavar="PATTERN", help="a regular expression that ids must match")
    parser.add_argument("-s", "--state", dest="states", action="append", default=[], help="only these; repeatable")
    parser.add_argument("--open", action="store_true", help="only those that are not over")


def _list(arguments: Namespace) -> None:
    states = [*arguments.states, *(OPEN_STATES if arguments.open else ())]

    async def work() -> list[ListedTransaction]:
        async with admin_of(arguments) as admin:
            return await admin.list_transactions(states=states, pattern=arguments.pattern)

    found = attend(work())
    if not is_table(arguments):
        print_value(arguments, [each._asdict() for each in found])
    else:
        rows = [(each.transactional_id, each.state, each.producer_id, each.coordinator) for each in found]
        columns = ("TRANSACTIONAL-ID", "STATE", "PRODUCER", "COORDINATOR")
        print_table(columns, rows, right=("PRODUCER", "COORDINATOR"), arguments=arguments)


# --- describe ---------------------------------------------------------------------------------------------------------


def _configure_describe(parser: ArgumentParser) -> None:
    parser.add_argument("ids", nargs="+", metavar="TRANSACTIONAL-ID")


def _describe(arguments: Namespace) -> None:
    async def work() -> dict[str, TransactionDescription | ApiError]:
        async with admin_of(arguments) as admin:
            return await admin.describe_transactions(arguments.ids)

    answers = attend(work())
    found = [each for each in answers.values() if not isinstance(each, ApiError)]
    if not is_table(arguments):
        values = [{**each._asdict(), "partitions": [str(place) for place in each.partitions]} for each in found]
        print_value(arguments, values)
    else:
        for index, each in enumerate(found):
            if index:
                print()
            print_facts(_facts(each))
    complain(Outcome(name, answer) for name, answer in answers.items() if isinstance(answer, ApiError))


def _facts(each: TransactionDescription) -> dict[str, object]:
    facts: dict[str, object] = {
        "transactional id": each.transactional_id,
        "state": each.state,
        "producer": f"{each.producer_id}, epoch {each.producer_epoch}",
        "coordinator": f"broker {each.coordinator}",
        "time-out": duration(each.timeout_ms),
    }
    if each.state in OPEN_STATES:
        facts["open for"] = duration(now_ms() - each.started_ms)
        facts["partitions"] = ", ".join(str(place) for place in each.partitions) or "none"
    return facts


# --- why --------------------------------------------------------------------------------------------------------------


class Waiting(NamedTuple):
    """The oldest open transaction of a partition: readers of committed records see nothing behind its start."""

    partition: TopicPartition
    producer: ActiveProducer
    description: TransactionDescription | None  # None: no coordinator knows the producer

    def as_value(self) -> dict[str, object]:
        return {
            "topic": self.partition.topic,
            "partition": self.partition.partition,
            **self.producer._asdict(),
            "transactional_id": None if self.description is None else self.description.transactional_id,
        }


def _configure_why(parser: ArgumentParser) -> None:
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("-p", "--partition", type=int, action="append", metavar="N", help="only this one; repeatable")


def _why(arguments: Namespace) -> None:
    async def work() -> list[Waiting]:
        async with admin_of(arguments) as admin:
            return await find_waiting(admin, arguments.topic, arguments.partition)

    found = attend(work())
    if not is_table(arguments):
        print_value(arguments, [waiting.as_value() for waiting in found])
        return
    for waiting in found:
        print(explain(waiting, now_ms=now_ms()))
    if not found:
        print(f"{arguments.topic}: no transaction is open; readers of committed records see everything")


async def find_waiting(admin: Admin, topic: str, chosen: list[int] | None) -> list[Waiting]:
    """The oldest open transaction of each partition that has one."""
    known = await admin.cluster.topic(topic, timeout_ms=0)
    found = []
    for index in chosen or range(len(known.partitions)):
        partition = TopicPartition(topic, index)
        producers = [each for each in await admin.describe_producers(partition) if each.transaction_start_offset >= 0]
        if producers:
            oldest = min(producers, key=lambda each: each.transaction_start_offset)
            found.append(Waiting(partition, oldest, await _owner(admin, partition, oldest)))
    return found


async def _owner(admin: Admin, partition: TopicPartition, producer: ActiveProducer) -> TransactionDescription | None:
    """The transaction that the producer's partition belongs to, if any coordinator knows of one."""
    for listed in await admin.list_transactions(producer_ids=[producer.producer_id]):
        description = await admin.describe_transaction(listed.transactional_id)
        if partition in description.partitions:
            return description
    return None


def explain(waiting: Waiting, *, now_ms: int) -> str:
    partition, producer, description = waiting
    start = f"{partition}: readers of committed records wait at offset {producer.transaction_start_offset}"
    who = f"producer {producer.producer_id}, epoch {producer.producer_epoch}"
    if description is None:
        return (
            f"{start} for a transaction of {who}, which no coordinator knows: nobody will end it; "
            f"`barnabas txn abort --partition {partition} --producer {producer.producer_id}` does"
        )
    left_ms = description.started_ms + description.timeout_ms - now_ms
    end = f"aborted in {duration(left_ms)}" if left_ms > 0 else "its time is up: aborted at the next look"
    if description.state != "Ongoing":
        end = "its markers are on the way"
    return (
        f"{start} for {description.transactional_id!r} ({who}): {description.state} for "
        f"{duration(now_ms - description.started_ms)}, {end}"
    )


# --- abort ------------------------------------------------------------------------------------------------------------


def _configure_abort(parser: ArgumentParser) -> None:
    parser.add_argument("ids", nargs="*", metavar="TRANSACTIONAL-ID", help="shuts its producer out, too")
    parser.add_argument("-p", "--partition", metavar="TOPIC-N", help="end it here only, past its coordinator")
    parser.add_argument("--producer", type=int, metavar="ID", help="with --partition: whose transaction")
    add_yes(parser)


def _abort(arguments: Namespace) -> None:
    if bool(arguments.ids) == bool(arguments.partition) or (arguments.producer is None) != (not arguments.partition):
        raise Failure("say transactional ids, or --partition TOPIC-N and --producer ID")
    partition = None if arguments.ids else partition_of(arguments.partition)
    whose = ", ".join(arguments.ids) or f"producer {arguments.producer} in {partition}"
    confirm(f"Abort what {whose} has open? Nobody will see what was written in it.", arguments)
    if partition is None:
        outcomes = attend(_fence(arguments))
        report(arguments, outcomes_of(outcomes, done="aborted, and its producer is fenced"))
        return
    attend(_abort_in_partition(arguments, partition))
    done = f"the transaction of producer {arguments.producer} is aborted"
    report(arguments, [Outcome(arguments.partition, done=done)])


async def _fence(arguments: Namespace) -> dict[str, ApiError | None]:
    outcomes: dict[str, ApiError | None] = {}
    async with admin_of(arguments) as admin:
        for transactional_id in arguments.ids:
            try:
                await admin.describe_transaction(transactional_id)  # an id that nobody uses is a mistake, not a new one
                await admin.fence_producer(transactional_id)
                outcomes[transactional_id] = None
            except ApiError as error:
                outcomes[transactional_id] = error
    return outcomes


async def _abort_in_partition(arguments: Namespace, partition: TopicPartition) -> None:
    async with admin_of(arguments) as admin:
        for producer in await admin.describe_producers(partition):
            if producer.producer_id == arguments.producer and producer.transaction_start_offset >= 0:
                await admin.abort_in_partition(partition, producer)
                return
    raise Failure(f"{partition}: producer {arguments.producer} has no transaction open there")


# --- what they share --------------------------------------------------------------------------------------------------


VERBS: Final = {
    "list": Verb(_configure_list, _list, "list transactional ids"),
    "describe": Verb(_configure_describe, _describe, "show the state of transactional ids"),
    "why": Verb(_configure_why, _why, "say what readers of committed records of a topic are waiting for"),
    "abort": Verb(_configure_abort, _abort, "abort transactions"),
}
