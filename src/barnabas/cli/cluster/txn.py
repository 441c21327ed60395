"""``barnabas txn``: list, describe, why, abort.

``why`` answers the question that people really have: what a read_committed reader of a topic is waiting for.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Final

from barnabas.cli.terminal.connection import attend
from barnabas.cli.terminal.output import is_table, print_facts, print_table, print_value
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
from barnabas.ops.failure import Failure
from barnabas.ops.transactions import OPEN_STATES, Waiting, explain, find_waiting
from barnabas.ops.units import duration

if TYPE_CHECKING:
    from barnabas.client.admin.transactions import ListedTransaction, TransactionDescription


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
