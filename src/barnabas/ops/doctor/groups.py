"""Why groups are stuck, readers behind and producers shut out. Pure: facts in, findings out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from barnabas.client.admin.transactions import TransactionDescription
from barnabas.client.group.lag import Lag
from barnabas.model.ids import TopicPartition
from barnabas.ops.doctor.facts import Facts, GroupFacts
from barnabas.ops.doctor.finding import BAD, NOTE, WARNING, Finding, count, some
from barnabas.ops.transactions import explain
from barnabas.ops.units import duration
from barnabas.spark.connector.markers import TOPIC as MARKERS

EMPTY: Final = "Empty"
MOVING: Final = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")
OPEN_MS_WARNING: Final = 60_000
ENDING_MS_BAD: Final = 10_000
SURE_SECONDS: Final = 15  # three times as long as consumers usually wait between two commits


def group_findings(facts: Facts) -> Iterator[Finding]:
    held = {waiting.partition: explain(waiting, now_ms=facts.now_ms) for waiting in facts.waiting}
    for each in facts.groups:
        yield from _stuck(each, facts.seconds)
        yield from _misplaced(each)
        yield from _behind(each, held, facts.seconds)
        yield from _idle(each)
    for transaction in facts.transactions:
        yield from _open(transaction, now_ms=facts.now_ms)


def _stuck(facts: GroupFacts, seconds: float) -> Iterator[Finding]:
    group = facts.group
    if group.state in MOVING and facts.earlier_state in MOVING:
        members = some(f"{member.client_id} at {member.host.lstrip('/')}" for member in group.members) or "none"
        yield Finding(
            "group-stuck",
            BAD,
            f"group {group.group_id}",
            "it is stuck: it shares its partitions out, and not all members take part",
            f"{facts.earlier_state} and, {seconds:g} s later, {group.state}; "
            f"{count(len(group.members), 'member')}: {members}",
            "a member that does not poll holds the others up until its max.poll.interval.ms is over: restart the one "
            f"that hangs; barnabas group describe {group.group_id} --watch shows who is left",
        )


def _misplaced(facts: GroupFacts) -> Iterator[Finding]:
    name = facts.group.group_id
    gone = {
        place: facts.starts[place] for place, lag in facts.lags.items() if lag.committed < facts.starts.get(place, 0)
    }
    if gone:
        lost = sum(start - facts.lags[place].committed for place, start in gone.items())
        yield Finding(
            "unread-deleted",
            BAD,
            f"group {name}",
            f"{count(lost, 'record')} were deleted before the group read them",
            some(
                f"{place}: committed {facts.lags[place].committed}, begins at {start}" for place, start in gone.items()
            ),
            f"read faster, or keep longer: barnabas config set topic {next(iter(gone)).topic} retention.ms=MS",
        )
    # Offsets of the markers' topic are batch numbers of Spark sinks: that topic has no records.
    beyond = [place for place, lag in facts.lags.items() if lag.committed > lag.end and place.topic != MARKERS]
    if beyond:
        yield Finding(
            "committed-beyond-end",
            BAD,
            f"group {name}",
            "it has committed what does not exist: the topic was deleted and made again, or records were lost",
            some(
                f"{place}: committed {facts.lags[place].committed}, ends at {facts.lags[place].end}" for place in beyond
            ),
            f"stop its members, then barnabas group seek {name} --to start --execute",
        )


def _behind(facts: GroupFacts, held: dict[TopicPartition, str], seconds: float) -> Iterator[Finding]:
    group = facts.group
    late = {place: lag for place, lag in facts.lags.items() if lag.records}
    if not late:
        return
    total = sum(lag.records for lag in late.values())
    behind_ms = max((lag.behind_ms for lag in late.values() if lag.behind_ms is not None), default=None)
    size = f"{count(total, 'record')} behind" + ("" if behind_ms is None else f", {duration(behind_ms)}")
    if group.state == EMPTY or not group.members:
        yield Finding(
            "nobody-reads",
            WARNING,
            f"group {group.group_id}",
            f"nobody reads: {count(total, 'record')} waiting",
            f"the group is {group.state}, {size}: {_worst(late)}",
            f"start its consumers; or, if it is not needed, barnabas group delete {group.group_id}",
        )
        return
    standing = [place for place in late if _has_not_moved(facts, place)]
    blocked = [held[place] for place in standing if place in held]
    if blocked:
        yield Finding(
            "waits-for-transaction",
            BAD,
            f"group {group.group_id}",
            f"it is {size}, and waits for a transaction",
            blocked[0],
            f"barnabas txn why {standing[0].topic}; barnabas txn abort ends one that nobody ends",
        )
    elif standing:
        owners = {place: member for member in group.members for place in member.partitions}
        who = some(
            f"{place} ({owners[place].client_id})" if place in owners else f"{place} (nobody's)" for place in standing
        )
        first = standing[0]
        place = f"-p {first.partition} -o {late[first].committed} -n 1 -f pretty"
        yield Finding(
            "stands-still",
            # Consumers commit every few seconds; who has not done so in a moment may be quite well.
            BAD if seconds >= SURE_SECONDS else WARNING,
            f"group {group.group_id}",
            f"it is {size}, and has committed nothing while we looked",
            f"over {seconds:g} s no commit on {who}",
            f"look longer: barnabas doctor -g {group.group_id} --seconds {SURE_SECONDS}"
            if seconds < SURE_SECONDS
            else f"the member hangs, or cannot process this record: barnabas consume {first.topic} {place}",
        )
    else:
        growing = sum(
            facts.lags[place].records - facts.earlier_lags[place].records
            for place in late
            if place in facts.earlier_lags
        )
        yield Finding(
            "falls-behind" if growing > 0 else "catches-up",
            WARNING if growing > 0 else NOTE,
            f"group {group.group_id}",
            f"it is {size}, and " + ("falls further behind" if growing > 0 else "is catching up"),
            f"over {seconds:g} s the lag changed by {growing:+,}: {_worst(late)}",
            f"add members, up to one for each partition; barnabas group describe {group.group_id} --watch",
        )


def _has_not_moved(facts: GroupFacts, place: TopicPartition) -> bool:
    earlier = facts.earlier_lags.get(place)
    return earlier is not None and earlier.committed == facts.lags[place].committed


def _worst(late: Mapping[TopicPartition, Lag]) -> str:
    ordered = sorted(late.items(), key=lambda item: -item[1].records)
    return some(f"{place} {lag.records:,}" for place, lag in ordered)


def _idle(facts: GroupFacts) -> Iterator[Finding]:
    group = facts.group
    idle = [member for member in group.members if not member.partitions]
    if idle and group.state == "Stable" and facts.earlier_state == "Stable":
        yield Finding(
            "idle-members",
            NOTE,
            f"group {group.group_id}",
            f"{count(len(idle), 'member')} have nothing to do: there are more members than partitions",
            some(f"{member.client_id} at {member.host.lstrip('/')}" for member in idle),
            "stop them, or barnabas topic add-partitions TOPIC -p N",
        )


def _open(transaction: TransactionDescription, *, now_ms: int) -> Iterator[Finding]:
    age_ms = now_ms - transaction.started_ms
    name = transaction.transactional_id
    where = some(transaction.partitions) or "no partition yet"
    if transaction.state != "Ongoing" and age_ms >= ENDING_MS_BAD:
        yield Finding(
            "transaction-ending",
            BAD,
            f"transaction {name}",
            "it is decided, and its markers do not reach all partitions",
            f"{transaction.state} for {duration(age_ms)}: {where}",
            "start the brokers that lead these partitions",
        )
    elif transaction.state == "Ongoing" and age_ms >= OPEN_MS_WARNING:
        left_ms = transaction.timeout_ms - age_ms
        yield Finding(
            "transaction-open",
            WARNING,
            f"transaction {name}",
            "it is open for long; readers of committed records wait behind it",
            f"Ongoing for {duration(age_ms)}, aborted in {duration(max(left_ms, 0))}: {where}",
            f"barnabas txn abort {name}, which shuts its producer out",
        )


def producer_findings(transaction: TransactionDescription, *, now_ms: int) -> Iterator[Finding]:
    """Why a producer with this transactional id may have been fenced."""
    name, epoch = transaction.transactional_id, transaction.producer_epoch
    who = f"producer id {transaction.producer_id}, epoch {epoch}, {transaction.state}"
    if epoch == 0:
        yield Finding(
            "producer-not-fenced",
            NOTE,
            f"producer {name}",
            "nobody was ever fenced: its epoch is the first",
            who,
            "another producer id than the one above belongs to another life of this transactional id",
        )
        return
    causes = "a second producer was started with the same transactional id"
    if transaction.state in ("CompleteAbort", "PrepareAbort"):
        causes = (
            f"its transaction was aborted from outside: it stayed open longer than its transaction.timeout.ms "
            f"({duration(transaction.timeout_ms)}), or {causes}"
        )
    yield Finding(
        "producer-fenced",
        WARNING,
        f"producer {name}",
        f"producers with an epoch below {epoch} are fenced",
        f"{who}; the last change was {duration(now_ms - transaction.started_ms)} ago"
        if transaction.started_ms >= 0
        else who,
        f"{causes}: give each producer an id of its own, or a longer time-out, and restart the one that was fenced",
    )
