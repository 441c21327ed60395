"""What a task tells the driver, and how the driver ends the transactions of all tasks when they are through.

The process that Spark keeps for this imports no more than it needs. ``writing.py`` is the tasks' part.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from pyspark.sql.datasource import WriterCommitMessage

from barnabas.client.errors import ProducerFenced
from barnabas.client.settings.producer import ProducerSettings
from barnabas.client.transactions import OpenTransaction, end_transaction
from barnabas.model.errors import ApiError, BarnabasError
from barnabas.spark.connector.decisions import Decision, store_decision
from barnabas.spark.connector.link import Link, link
from barnabas.spark.connector.markers import Content
from barnabas.spark.connector.sink_options import SinkOptions

log = logging.getLogger("barnabas.spark")

ENDS_AT_ONCE_MAX: Final = 16  # transactions that the driver ends side by side


class Written(WriterCommitMessage):
    """What a task tells the driver: how much it wrote, and the transaction to end, if there is one."""

    def __init__(
        self, content: Content, transaction: OpenTransaction | None = None, sink_id: str = "", task: int = 0
    ) -> None:
        self.content = content
        self.transaction = transaction
        self.sink_id = sink_id
        self.task = task


def end(
    messages: Sequence[WriterCommitMessage | None],
    options: SinkOptions,
    *,
    commit: bool,
    batch_id: int | None = None,
) -> None:
    """End the transactions of all tasks. Who is told twice is told the same, so a batch may come again."""
    written = [each for each in messages if isinstance(each, Written) and each.transaction is not None]
    open_ones = [each.transaction for each in written if each.transaction is not None]
    if not open_ones:
        return
    connection = link(ProducerSettings, options.settings)
    if commit and options.is_decided and batch_id is not None and len(open_ones) > 1:
        assert options.application_id is not None
        transactions = {each.task: OpenTransaction(*each.transaction) for each in written if each.transaction}
        decision = Decision(written[0].sink_id, batch_id, transactions)
        connection.run(store_decision(connection.cluster, options.application_id, decision))
    failures = connection.run(_end_all(connection, open_ones, commit=commit))
    if failures and commit:
        raise failures[0]
    for failure in failures:
        log.warning("a transaction was not aborted and will be when its time is up: %s", failure)


async def _end_all(connection: Link, open_ones: list[OpenTransaction], *, commit: bool) -> list[BarnabasError]:
    room = asyncio.Semaphore(ENDS_AT_ONCE_MAX)

    async def end_one(transaction: OpenTransaction) -> BarnabasError | None:
        async with room:
            try:
                await end_transaction(connection.cluster, OpenTransaction(*transaction), commit=commit)
            except ProducerFenced as error:
                return _fenced(transaction, error) if commit else None  # whoever has the id now has aborted it
            except BarnabasError as error:
                return error
        return None

    outcomes = await asyncio.gather(*map(end_one, open_ones))
    return [each for each in outcomes if each is not None]


def _fenced(transaction: OpenTransaction, error: ProducerFenced) -> BarnabasError:
    return ApiError(
        error.error,
        f"the transaction {transaction.transactional_id!r} was ended before all tasks were through: it took "
        f"longer than kafka.transaction.timeout.ms, or the same query runs twice. Start it again: nothing is lost.",
    )
