"""What a shard of the transaction coordinator is asked, what it answers, and what it sends.

Handlers translate the wire's messages into these and back, so the machine knows nothing of versions of requests: a
request says only which version of transactions its sender speaks. No decision is made here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from barnabas.coordinator.runtime.effects import ProducerIdEpoch, Question
from barnabas.coordinator.transactions.state import Transaction
from barnabas.model import errors
from barnabas.model.errors import WireError
from barnabas.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, TopicPartition


class Outcome(NamedTuple):
    error: WireError = errors.NONE
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


class NeedsProducerId(NamedTuple):
    """Nothing was decided, because a producer id is needed that only the cluster can give: ask again with one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InitProducer(Question[Outcome | NeedsProducerId]):
    """Begin under this id, or begin again; whoever used it before is shut out. Answered with an Outcome."""

    transactional_id: str
    timeout_ms: int
    expected: ProducerIdEpoch | None = None  # who the producer believes to be, if it was someone before
    fresh_producer_id: int = NO_PRODUCER_ID  # to be used if one is needed


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitions(Question[Outcome]):
    """Make partitions a part of the transaction, which begins with the first one. Answered with an Outcome."""

    transactional_id: str
    producer: ProducerIdEpoch
    partitions: frozenset[TopicPartition]
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyPartitions(Question[dict[TopicPartition, WireError]]):
    """Ask whether partitions are a part of the transaction. Answered with Verified."""

    transactional_id: str
    producer: ProducerIdEpoch
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTransaction(Question[Outcome | NeedsProducerId]):
    """Commit or abort. Answered with an Outcome as soon as the decision is committed; the markers follow."""

    transactional_id: str
    producer: ProducerIdEpoch
    is_commit: bool
    version: int
    fresh_producer_id: int = NO_PRODUCER_ID


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkersWritten:
    """Every partition of a decided transaction has its marker. Nobody waits for an answer."""

    transactional_id: str
    producer: ProducerIdEpoch  # as in the markers


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortTimedOut:
    """Abort a transaction whose time is up, with the producer id that follows its last epoch. It is not answered."""

    transactional_id: str
    fresh_producer_id: int


@dataclass(frozen=True, slots=True)
class Describe(Question[Transaction | None]):
    """The state of one transactional id. Answered with a Transaction, or None if there is none."""

    transactional_id: str


@dataclass(frozen=True, slots=True)
class ListAll(Question[list[Transaction]]):
    """Every transaction of the shard. Answered with a list of them."""


Request: TypeAlias = (
    InitProducer
    | AddPartitions
    | VerifyPartitions
    | EndTransaction
    | MarkersWritten
    | AbortTimedOut
    | Describe
    | ListAll
)


Verified: TypeAlias = Mapping[TopicPartition, WireError]


@dataclass(frozen=True, slots=True)
class FetchProducerId:
    """Sent when a time-out needs a producer id that only the cluster can give. Answered with AbortTimedOut."""

    transactional_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteMarkers:
    """Sent when a decision is committed: end the transaction in each of these partitions, until that is done."""

    transactional_id: str
    producer: ProducerIdEpoch
    is_commit: bool
    partitions: tuple[TopicPartition, ...]
    version: int
