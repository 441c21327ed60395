"""What a doctor concludes from facts: each finding has what shows it and what mends it."""

from __future__ import annotations

from typing import Any

from barnabas.client.admin.brokers import ClusterDescription, LogDirectory, ReplicaOnDisk
from barnabas.client.admin.groups import GroupDescription, GroupMember
from barnabas.client.admin.quorum import QuorumDescription, QuorumReplica
from barnabas.client.admin.transactions import ActiveProducer, TransactionDescription
from barnabas.client.cluster.metadata import Broker, PartitionMetadata, TopicMetadata
from barnabas.client.group.lag import Lag
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import ZERO_UUID, TopicPartition
from barnabas.ops.doctor.cluster import cluster_findings, harmless_death
from barnabas.ops.doctor.facts import DiskFacts, Facts, GroupFacts
from barnabas.ops.doctor.finding import BAD, NOTE, WARNING, Finding
from barnabas.ops.doctor.groups import group_findings, producer_findings
from barnabas.ops.transactions import Waiting

GIB = 1 << 30
PLACE = TopicPartition("t", 0)
NOW_MS = 1_000_000


def cluster(*ids: int, fenced: tuple[int, ...] = ()) -> ClusterDescription:
    return ClusterDescription("c", 1, tuple(Broker(each, "h", 9000 + each) for each in ids), frozenset(fenced))


def quorum(*voters: int) -> QuorumDescription:
    replicas = tuple(QuorumReplica(each, ZERO_UUID, 10, -1, -1) for each in voters)
    return QuorumDescription(voters[0], 1, 10, replicas, ())


def topic(name: str, *parts: tuple[int, tuple[int, ...], tuple[int, ...]]) -> TopicMetadata:
    """From leader, replicas and isr of each partition."""
    partitions = tuple(
        PartitionMetadata(index, leader, 0, replicas, isr, (), errors.NONE)
        for index, (leader, replicas, isr) in enumerate(parts)
    )
    return TopicMetadata(name, ZERO_UUID, False, partitions, errors.NONE)


def found(facts: Facts) -> list[Finding]:
    findings = [*cluster_findings(facts), *group_findings(facts)]
    assert all(each.evidence and each.mend for each in findings)
    return findings


def said(facts: Facts) -> list[tuple[str, str]]:
    return [(each.severity, each.about) for each in found(facts)]


def facts(*topics: TopicMetadata, brokers: tuple[int, ...] = (1, 2, 3), **more: Any) -> Facts:
    settings = more.pop("settings", {each.name: {"min.insync.replicas": "2"} for each in topics})
    described = cluster(*brokers, fenced=more.pop("fenced", ()))
    return Facts(
        described,
        more.pop("unreachable", {}),
        more.pop("quorum", quorum(1, 2, 3)),
        topics=topics,
        settings=settings,
        seconds=1.0,
        **more,
    )


# --- brokers and partitions -------------------------------------------------------------------------------------------


def test_a_healthy_cluster_has_nothing_to_hear() -> None:
    assert found(facts(topic("t", (1, (1, 2, 3), (1, 2, 3)), (2, (2, 3, 1), (1, 2, 3))))) == []


def test_an_address_that_does_not_answer_is_all_that_is_said() -> None:
    (finding,) = found(Facts(cluster(1), {1: "Connection refused"}, quorum(1)))
    assert finding.severity == BAD
    assert "h:9001" in finding.what
    assert "Connection refused" in finding.evidence
    assert "advertised.listeners" in finding.mend


def test_a_broker_that_is_fenced_and_what_it_took_with_it() -> None:
    bad = [each for each in found(facts(topic("t", (-1, (3,), (3,))), fenced=(3,))) if each.severity == BAD]
    assert [each.about for each in bad] == ["broker 3", "1 partition"]
    assert "start broker 3" in bad[1].mend


def test_too_few_in_sync_is_bad_and_merely_fewer_is_a_warning() -> None:
    short = topic("short", (1, (1, 2, 3), (1, 2)))
    refused = topic("refused", (1, (1, 2, 3), (1,)))
    findings = found(facts(short, refused))
    assert [(each.severity, each.evidence) for each in findings[:2]] == [
        (BAD, "refused-0 (1 of 2)"),
        (WARNING, "short-0 (in sync 1,2 of 1,2,3)"),
    ]


def test_what_dies_with_a_broker() -> None:
    findings = found(facts(topic("t", (1, (1, 2, 3), (1,)), (2, (2, 3), (2, 3)))))
    deaths = {each.about: each for each in findings if each.about.startswith("if broker")}
    assert "1 partition cannot be read" in deaths["if broker 1 dies now"].what
    assert "t-0" in deaths["if broker 1 dies now"].evidence
    assert "would refuse producers" in deaths["if broker 2 dies now"].what
    assert "nothing would be lost" in deaths["if broker 3 dies now"].what


def test_a_broker_whose_death_harms_nobody_is_said_to_be_so() -> None:
    finding = harmless_death(facts(topic("t", (2, (2, 3, 1), (1, 2, 3)), (1, (1, 2, 3), (1, 2, 3)))), 2)
    assert (finding.severity, finding.about) == (NOTE, "if broker 2 dies now")
    assert finding.what.startswith("nothing is lost")
    assert finding.evidence.startswith("2 partitions of its have replicas in sync on 1,3; 1 that it leads")


def test_what_would_be_lost_comes_with_the_commands_that_prevent_it() -> None:
    findings = found(facts(topic("t", (1, (1,), (1,))), topic("u", (2, (2, 3), (2, 3)))))
    mends = {each.about: each.mend for each in findings if each.about.startswith("if broker")}
    assert (
        "barnabas reassign plan t -r 3 -f plan.json, then barnabas reassign run plan.json"
        in mends["if broker 1 dies now"]
    )
    assert "barnabas reassign plan u -r 3" in mends["if broker 2 dies now"]
    (two,) = [
        each.mend
        for each in found(facts(topic("u", (1, (1, 2), (1, 2))), brokers=(1, 2), quorum=quorum(1, 2)))
        if each.about == "if broker 1 dies now"
    ]
    assert "add brokers first: 3 replicas need as many" in two


def test_a_broker_alone_is_a_note() -> None:
    assert said(facts(topic("t", (1, (1,), (1,))), brokers=(1,))) == [(NOTE, "if broker 1 dies now")]


def test_one_replica_among_several_brokers_and_unclean_elections_are_warnings() -> None:
    lone = topic("lone", (1, (1,), (1,)))
    findings = found(facts(lone, settings={"lone": {"unclean.leader.election.enable": "true"}}))
    assert any("have one replica" in each.what for each in findings)
    assert any("unclean.leader.election.enable=false" in each.mend for each in findings)


def test_a_quorum_that_can_lose_nobody_is_a_warning_and_one_that_is_lost_is_bad() -> None:
    assert said(facts(quorum=quorum(1, 2))) == [(WARNING, "the controllers")]
    assert said(facts(quorum=quorum(1))) == []
    (lost,) = found(facts(quorum="nobody answers for it within 5 s"))
    assert (lost.severity, "no controller is active" in lost.what) == (BAD, True)
    findings = found(facts(fenced=(3,)))
    assert "if one more of them dies" in findings[1].what


def test_where_one_of_several_does_not_answer_the_rest_is_still_looked_at() -> None:
    short = topic("t", (1, (1, 2, 3), (1, 2)))
    findings = found(facts(short, unreachable={3: "Connection refused"}))
    assert [each.about for each in findings[:3]] == ["broker 3", "the controllers", "1 partition"]
    assert "if it does not run, start it" in findings[0].mend


# --- disks ------------------------------------------------------------------------------------------------------------


def disk(usable: int, *, earlier: int = GIB, now: int = GIB, error: ApiError | None = None) -> DiskFacts:
    return DiskFacts(1, LogDirectory("/d", error, 100 * GIB, usable, {PLACE: ReplicaOnDisk(now, 0, False)}), earlier)


def test_a_disk_with_room_is_no_finding() -> None:
    assert found(facts(disks=(disk(50 * GIB),))) == []


def test_a_disk_that_is_nearly_full_names_what_fills_it() -> None:
    (finding,) = found(facts(disks=(disk(4 * GIB),)))
    assert finding.severity == BAD
    assert "4.0 GiB of 100.0 GiB are free (4%)" in finding.evidence
    assert "t-0 with 1.0 GiB" in finding.evidence
    assert "barnabas config set topic t retention.bytes" in finding.mend
    assert said(facts(disks=(disk(10 * GIB),)))[0][0] == WARNING


def test_a_disk_that_fills_fast_is_bad_while_it_has_room() -> None:
    (finding,) = found(facts(disks=(disk(30 * GIB, earlier=GIB, now=GIB + 100 * 1024 * 1024),)))
    assert finding.severity == BAD
    assert "full in 5 min" in finding.evidence


def test_a_directory_that_is_offline_is_bad() -> None:
    assert said(facts(disks=(disk(50 * GIB, error=ApiError(errors.KAFKA_STORAGE_ERROR)),)))[0][0] == BAD


# --- groups -----------------------------------------------------------------------------------------------------------


def member(name: str, *places: TopicPartition) -> GroupMember:
    return GroupMember(name, None, name, "/10.0.0.1", places)


def group(
    *members: GroupMember,
    state: str = "Stable",
    earlier_state: str = "",
    lag: Lag | None = None,
    earlier: Lag | None = None,
    start: int = 0,
) -> GroupFacts:
    description = GroupDescription("g", state, "classic", "range", 1, members)
    now = {PLACE: lag} if lag else {}
    before = {PLACE: earlier} if earlier else {}
    return GroupFacts(description, earlier_state or state, now, before, {PLACE: start} if lag else {})


def test_a_group_that_shares_out_for_ever_is_stuck() -> None:
    stuck = group(member("a"), member("b"), state="PreparingRebalance")
    (finding,) = found(facts(groups=(stuck,)))
    assert finding.severity == BAD
    assert "PreparingRebalance" in finding.evidence
    assert "a at 10.0.0.1, b at 10.0.0.1" in finding.evidence
    moving = group(member("a"), state="PreparingRebalance", earlier_state="Stable")
    assert found(facts(groups=(moving,))) == []


def test_a_group_without_members_and_with_lag() -> None:
    (finding,) = found(facts(groups=(group(state="Empty", lag=Lag(10, 110, 60_000)),)))
    assert finding.severity == WARNING
    assert "100 records" in finding.what
    assert "60 s" in finding.evidence


def test_a_group_that_keeps_up_is_no_finding() -> None:
    assert found(facts(groups=(group(member("a", PLACE), lag=Lag(10, 10, 0), earlier=Lag(9, 9, 0)),))) == []


def test_a_reader_that_stands_still_is_told_from_one_that_falls_behind() -> None:
    standing = group(member("a", PLACE), lag=Lag(10, 110, 1), earlier=Lag(10, 100, 1))
    (finding,) = found(facts(groups=(standing,)))
    assert "committed nothing" in finding.what
    assert finding.severity == WARNING  # one second is no proof
    (sure,) = found(facts(groups=(standing,))._replace(seconds=15.0))
    assert sure.severity == BAD
    assert "barnabas consume t -p 0 -o 10 -n 1" in sure.mend
    slow = group(member("a", PLACE), lag=Lag(20, 220, 1), earlier=Lag(10, 100, 1))
    (finding,) = found(facts(groups=(slow,)))
    assert (finding.severity, "falls further behind" in finding.what) == (WARNING, True)
    catching_up = group(member("a", PLACE), lag=Lag(90, 110, 1), earlier=Lag(10, 100, 1))
    assert said(facts(groups=(catching_up,))) == [(NOTE, "group g")]


def test_a_reader_that_waits_for_a_transaction_is_told_so() -> None:
    standing = group(member("a", PLACE), lag=Lag(10, 110, 1), earlier=Lag(10, 100, 1))
    waiting = Waiting(PLACE, ActiveProducer(7, 0, 0, 0, 10), None)
    (finding,) = found(facts(groups=(standing,), waiting=(waiting,)))
    assert finding.severity == BAD
    assert "waits for a transaction" in finding.what
    assert "txn" in finding.mend


def test_offsets_that_point_nowhere_are_bad() -> None:
    deleted = group(member("a", PLACE), lag=Lag(10, 110, 1), earlier=Lag(9, 110, 1), start=50)
    findings = found(facts(groups=(deleted,)))
    assert "40 records were deleted" in findings[0].what
    beyond = group(member("a", PLACE), lag=Lag(500, 10, 0), earlier=Lag(500, 10, 0))
    assert "does not exist" in found(facts(groups=(beyond,)))[0].what


def test_batch_markers_of_a_spark_sink_are_not_offsets_of_records() -> None:
    markers = TopicPartition("__barnabas_sinks", 0)
    description = GroupDescription("spark-sink-1", "Empty", "classic", "", 1, ())
    seen = GroupFacts(description, "Empty", {markers: Lag(4, 0, None)}, {}, {markers: 0})
    assert said(facts(groups=(seen,))) == []


def test_members_without_partitions_are_a_note() -> None:
    assert said(facts(groups=(group(member("a", PLACE), member("b")),))) == [(NOTE, "group g")]


# --- transactions -----------------------------------------------------------------------------------------------------


def transaction(state: str, age_ms: int, *, epoch: int = 3) -> TransactionDescription:
    return TransactionDescription("id", 1, state, 7, epoch, 900_000, NOW_MS - age_ms, (PLACE,))


def test_transactions_that_stay_open_and_those_that_cannot_end() -> None:
    assert said(facts(transactions=(transaction("Ongoing", 5_000),), now_ms=NOW_MS)) == []
    (late,) = found(facts(transactions=(transaction("Ongoing", 300_000),), now_ms=NOW_MS))
    assert (late.severity, late.mend.startswith("barnabas txn abort id")) == (WARNING, True)
    assert said(facts(transactions=(transaction("PrepareCommit", 20_000),), now_ms=NOW_MS)) == [(BAD, "transaction id")]


def test_why_a_producer_is_fenced() -> None:
    (aborted,) = producer_findings(transaction("CompleteAbort", 1000), now_ms=NOW_MS)
    assert "epoch below 3 are fenced" in aborted.what
    assert "transaction.timeout.ms" in aborted.mend
    (never,) = producer_findings(transaction("Ongoing", 1000, epoch=0), now_ms=NOW_MS)
    assert never.severity == NOTE
