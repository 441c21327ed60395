"""What is wrong, or would be, with brokers, partitions and disks. Pure: facts in, findings out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from barnabas.client.cluster.metadata import PartitionMetadata
from barnabas.model.ids import TopicPartition
from barnabas.ops.doctor.facts import DiskFacts, Facts
from barnabas.ops.doctor.finding import BAD, NAMES_MAX, NOTE, WARNING, Finding, count, some
from barnabas.ops.units import duration, size

FREE_BAD: Final = 0.05
FREE_WARNING: Final = 0.15
RUNWAY_BAD_SECONDS: Final = 3600
RUNWAY_WARNING_SECONDS: Final = 86_400
REPLICAS_WANTED: Final = 3
GROWTH_BYTES_MIN: Final = 1024 * 1024  # in a second; less says nothing about a day


def cluster_findings(facts: Facts) -> Iterator[Finding]:
    yield from _listeners(facts)
    yield from _quorum(facts)
    yield from _partitions(facts)
    yield from _deaths(facts)
    yield from _durability(facts)
    for disk in facts.disks:
        yield from _disk(disk, facts.seconds)
        yield from _faults(disk)


def _listeners(facts: Facts) -> Iterator[Finding]:
    for broker in facts.cluster.brokers:
        if broker.id in facts.unreachable:
            address = f"{broker.host}:{broker.port}"
            yield Finding(
                "unreachable",
                BAD,
                f"broker {broker.id}",
                f"clients are told to connect to {address}, and nobody answers there",
                f"a connection from here fails: {facts.unreachable[broker.id]}",
                "if it does not run, start it; if it does, tell clients an address that they can reach: "
                "--set advertised.listeners=PLAINTEXT://HOST:PORT",
            )
    for broker_id in sorted(facts.cluster.fenced):
        yield Finding(
            "fenced",
            BAD,
            f"broker {broker_id}",
            "it is fenced: it does not run, or the controller has not heard of it",
            "DescribeCluster lists it as fenced",
            f"start it; or, if it is gone for good, barnabas broker forget {broker_id}",
        )


def _quorum(facts: Facts) -> Iterator[Finding]:
    """Whether there is a majority of controllers, and whether there still is one without any of them."""
    if isinstance(facts.quorum, str):
        yield Finding(
            "no-controller",
            BAD,
            "the controllers",
            "no controller is active: no leader is elected, and nothing about topics, users or settings can change",
            facts.quorum,
            "start enough controllers for a majority of the voters; barnabas cluster quorum lists them",
        )
        return
    voters = [voter.id for voter in facts.quorum.voters]
    gone = [voter for voter in voters if voter in facts.unreachable or voter in facts.cluster.fenced]
    majority = len(voters) // 2 + 1
    if len(voters) > 1 and len(voters) - len(gone) == majority:
        yield Finding(
            "thin-quorum",
            WARNING,
            "the controllers",
            "if one more of them dies, none is active: no leader is elected, and nothing can be changed",
            f"of the voters {', '.join(map(str, voters))} a majority of {majority} is needed"
            + (f", and {', '.join(map(str, gone))} are gone" if gone else ""),
            "start those that are gone, or let more join: an odd number of voters, three or five, is best",
        )


class _Part(NamedTuple):
    place: TopicPartition
    part: PartitionMetadata
    min_isr: int

    @property
    def needed(self) -> int:
        """More in-sync replicas than there are replicas are never asked for."""
        return min(self.min_isr, len(self.part.replicas))


def _parts(facts: Facts) -> list[_Part]:
    return [
        _Part(
            TopicPartition(topic.name, part.partition),
            part,
            int(facts.settings.get(topic.name, {}).get("min.insync.replicas") or 1),
        )
        for topic in facts.topics
        for part in topic.partitions
    ]


def _partitions(facts: Facts) -> Iterator[Finding]:
    parts = _parts(facts)
    leaderless = [each for each in parts if each.part.leader < 0]
    if leaderless:
        holders = sorted({replica for each in leaderless for replica in each.part.replicas})
        yield Finding(
            "leaderless",
            BAD,
            count(len(leaderless), "partition"),
            "nobody leads them: they can be neither written nor read",
            some(each.place for each in leaderless),
            f"start broker {', '.join(map(str, holders))}, which has their replicas",
        )
    led = [each for each in parts if each.part.leader >= 0]
    refused = [each for each in led if len(each.part.isr) < each.needed]
    if refused:
        yield Finding(
            "under-min-isr",
            BAD,
            count(len(refused), "partition"),
            "fewer replicas are in sync than min.insync.replicas asks: producers with acks=all are refused",
            some(f"{each.place} ({len(each.part.isr)} of {each.needed})" for each in refused),
            f"start broker {', '.join(map(str, _missing(refused)))}, or wait until it has caught up",
        )
    short = [each for each in led if len(each.part.isr) < len(each.part.replicas) and each not in refused]
    if short:
        yield Finding(
            "out-of-sync",
            WARNING,
            count(len(short), "partition"),
            "not all replicas are in sync",
            some(f"{each.place} (in sync {_ids(each.part.isr)} of {_ids(each.part.replicas)})" for each in short),
            f"start broker {', '.join(map(str, _missing(short)))}, or wait until it has caught up",
        )


def _missing(parts: list[_Part]) -> list[int]:
    return sorted({replica for each in parts for replica in each.part.replicas if replica not in each.part.isr})


def _ids(brokers: tuple[int, ...]) -> str:
    return ",".join(map(str, sorted(brokers)))


def _deaths(facts: Facts) -> Iterator[Finding]:
    """What each broker would take with it if it died now, and never came back."""
    parts = _parts(facts)
    for broker in facts.cluster.brokers:
        if broker.id in facts.cluster.fenced or broker.id in facts.unreachable:
            continue
        lost = [each for each in parts if each.part.isr == (broker.id,)]
        lost.sort(key=lambda each: each.place.topic.startswith("__"))  # what people made comes first
        stopped = [
            each
            for each in parts
            if broker.id in each.part.isr and each not in lost and len(each.part.isr) - 1 < each.needed
        ]
        if lost:
            alone = len(facts.cluster.brokers) == 1
            yield Finding(
                "death-loses",
                NOTE if alone else WARNING,
                f"if broker {broker.id} dies now",
                f"{count(len(lost), 'partition')} cannot be read any more, and their records are lost with its disk",
                f"no other replica is in sync: {some(each.place for each in lost)}",
                "nothing else can hold them while there is one broker: barnabas up --brokers 3 is a cluster"
                if alone
                else f"give them more replicas: {_more_replicas(lost, facts)}",
            )
        if stopped:
            yield Finding(
                "death-stops-writes",
                WARNING,
                f"if broker {broker.id} dies now",
                f"{count(len(stopped), 'partition')} would refuse producers with acks=all; nothing would be lost",
                f"in sync would be one less than min.insync.replicas asks: {some(each.place for each in stopped)}",
                f"give them more replicas than min.insync.replicas: {_more_replicas(stopped, facts)}",
            )


def harmless_death(facts: Facts, broker: int) -> Finding:
    """For who asks about one broker: nothing of the above happens if it dies."""
    held = [each for each in _parts(facts) if broker in each.part.isr]
    led = sum(each.part.leader == broker for each in held)
    others = sorted({replica for each in held for replica in each.part.isr} - {broker})
    return Finding(
        "death-harmless",
        NOTE,
        f"if broker {broker} dies now",
        "nothing is lost, and producers with acks=all go on",
        f"{count(len(held), 'partition')} of its have replicas in sync on {_ids(tuple(others)) or 'no other broker'}; "
        f"{led} that it leads are led by them within a moment",
        f"nothing needs to be done; before a planned stop: barnabas broker decommission {broker}, or just stop it",
    )


def _more_replicas(parts: list[_Part], facts: Facts) -> str:
    """The commands that give the topics of these partitions one replica more than they need."""
    wanted = max(each.needed for each in parts) + 1
    topics = list(dict.fromkeys(each.place.topic for each in parts))
    if wanted > len(facts.cluster.brokers):
        return f"add brokers first: {wanted} replicas need as many"
    return _plan(topics, max(wanted, min(len(facts.cluster.brokers), REPLICAS_WANTED)))


def _plan(topics: list[str], replicas: int) -> str:
    names = " ".join(topics[:NAMES_MAX]) + (" ..." if len(topics) > NAMES_MAX else "")
    return f"barnabas reassign plan {names} -r {replicas} -f plan.json, then barnabas reassign run plan.json"


def _durability(facts: Facts) -> Iterator[Finding]:
    if len(facts.cluster.brokers) < 2:
        return
    alone = [topic.name for topic in facts.topics if all(len(part.replicas) == 1 for part in topic.partitions)]
    if alone:
        yield Finding(
            "one-replica",
            WARNING,
            count(len(alone), "topic"),
            "there are several brokers, and these topics have one replica",
            some(alone),
            f"{_plan(alone, min(len(facts.cluster.brokers), REPLICAS_WANTED))}; `-r 3` does it for new ones",
        )
    unclean = [
        name for name, values in facts.settings.items() if values.get("unclean.leader.election.enable") == "true"
    ]
    if unclean:
        yield Finding(
            "unclean-election",
            WARNING,
            count(len(unclean), "topic"),
            "a replica that is not in sync may lead them, and acknowledged records be lost",
            f"unclean.leader.election.enable=true: {some(unclean)}",
            f"barnabas config set topic {unclean[0]} unclean.leader.election.enable=false",
        )


def _faults(disk: DiskFacts) -> Iterator[Finding]:
    """Logs that are damaged or have lost files, while their directory is online."""
    for partition, replica in disk.directory.replicas.items():
        about = f"broker {disk.broker}, {partition}"
        if replica.fault is not None and replica.is_offline:
            yield Finding(
                "log-offline",
                BAD,
                about,
                "the log of this replica is offline: its files are gone or cannot be used",
                replica.fault,
                f"restore {disk.directory.path}/{partition} and start the broker again; if it is not restored, the "
                "broker copies the log from the leader, if there is another replica",
            )
        elif replica.fault is not None:
            yield Finding(
                "log-damaged",
                BAD,
                about,
                "the log of this replica is damaged: some of its records cannot be read, expired or compacted",
                replica.fault,
                f"if other replicas are in sync, stop the broker, remove {disk.directory.path}/{partition} and start "
                "the broker again: it copies the log from the leader; otherwise restore the files from a backup",
            )


def _disk(disk: DiskFacts, seconds: float) -> Iterator[Finding]:
    about = f"broker {disk.broker}, {disk.directory.path}"
    if disk.directory.error is not None:
        yield Finding(
            "disk-offline",
            BAD,
            about,
            "the directory is offline, and all its partitions with it",
            disk.directory.error.message,
            "replace the disk and start the broker again; what other brokers have is copied back",
        )
        return
    total, usable = disk.directory.total_bytes, disk.directory.usable_bytes
    if total <= 0 or usable < 0:
        return
    growth = (disk.bytes - disk.earlier_bytes) / seconds if seconds else 0.0
    runway = usable / growth if growth >= GROWTH_BYTES_MIN else None
    is_bad = usable / total < FREE_BAD or (runway is not None and runway < RUNWAY_BAD_SECONDS)
    is_warning = usable / total < FREE_WARNING or (runway is not None and runway < RUNWAY_WARNING_SECONDS)
    if not is_bad and not is_warning:
        return
    evidence = f"{size(usable)} of {size(total)} are free ({usable / total:.0%})"
    if runway is not None:
        evidence += f"; {size(round(growth))}/s were written while we looked: full in {duration(round(runway * 1000))}"
    largest = max(disk.directory.replicas.items(), key=lambda item: item[1].size_bytes, default=None)
    mend = "make room on the disk, or add one to log.dirs"
    if largest is not None:
        name, replica = largest
        evidence += f"; the largest is {name} with {size(replica.size_bytes)}"
        mend = f"barnabas config set topic {name.topic} retention.bytes=BYTES, or add a disk to log.dirs"
    yield Finding("disk-filling", BAD if is_bad else WARNING, about, "the disk is about to fill", evidence, mend)
