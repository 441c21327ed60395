"""What goes wrong between a client and a cluster that no broker has a code for.

Each says by ``retriable`` whether the same call may succeed later, like every error of Barnabas. What a broker
answers is an :class:`~barnabas.model.errors.ApiError`; a lost connection is ``transport.channel.PeerGone``.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.model.errors import ApiError, BarnabasError, Malformed
from barnabas.model.ids import TopicPartition
from barnabas.transport.channel import PeerGone, Unreachable


class TimedOut(BarnabasError):
    """No answer came in time; whether the request was carried out is not known."""

    retriable = True


class Garbled(PeerGone, Malformed):
    """What a broker sent is no answer, so the connection was given up; the request may have been carried out."""


class ClusterUnreachable(BarnabasError):
    """None of the known or configured brokers could be talked to; ``reasons`` has why not, one for each."""

    retriable = True

    def __init__(self, reasons: Sequence[BarnabasError]) -> None:
        super().__init__("; ".join(dict.fromkeys(map(str, reasons))))
        self.reasons = tuple(reasons)

    @property
    def is_nobody_there(self) -> bool:
        """No connection could be made to any of them."""
        return all(isinstance(reason, Unreachable) for reason in self.reasons)


class RecordTooLarge(BarnabasError):
    """One record alone is larger than max.request.size or buffer.memory allows."""


class ProducerClosed(BarnabasError):
    """The producer was closed, so the record was not sent."""


class LostSequence(BarnabasError):
    """A batch may have been written; an earlier one failed for good or the broker does not know it any more, so to send
    it again might write it twice."""


class OffsetGone(BarnabasError):
    """The position is outside of the log and auto.offset.reset is none."""


class LogTruncated(OffsetGone):
    """Records that were read are not in the log any more, others may have their offsets, and auto.offset.reset is none.

    A replica that did not have them was made the leader. What was read below ``divergent_offset`` is still there;
    it is None if the leader cannot tell. Whoever wants to go on seeks.
    """

    def __init__(
        self, partition: TopicPartition, position: int, divergent_offset: int | None, leader_epoch: int | None
    ) -> None:
        where = "" if divergent_offset is None else f"; from {divergent_offset} on it is another log"
        super().__init__(f"{partition}: the log was truncated below the position {position}{where}")
        self.partition = partition
        self.position = position
        self.divergent_offset = divergent_offset
        self.leader_epoch = leader_epoch  # of the record before the divergent offset


class GroupRefused(ApiError):
    """The group will not have this member: it was fenced, or speaks another protocol, or is not allowed in."""


class CommitFailed(BarnabasError):
    """The group has given the partitions to others meanwhile, so the offsets were not stored."""


class NoGroup(BarnabasError):
    """This needs ``group.id``, or a subscription."""


class NoTransaction(BarnabasError):
    """No transaction is open, or one is that should not be, or the producer has no transactional.id."""


class TransactionAborted(BarnabasError):
    """The transaction cannot be committed, or the record went down with it."""


class ProducerFenced(ApiError):
    """Another producer has taken the transactional id; this one can do nothing more."""


class Unencodable(BarnabasError):
    """The object cannot become the bytes that its serde makes."""


class Undecodable(BarnabasError):
    """The bytes are not what the serde expects. A consumer stays before the record; ``seek`` goes past it.

    ``partition`` and ``offset`` say which record, when a consumer raised it.
    """

    partition: TopicPartition | None = None
    offset: int | None = None


class CannotEncode(BarnabasError):
    """Rows that cannot be made into records; none of them was sent."""


class CannotPartition(BarnabasError):
    """The function that chooses partitions failed, or chose one that there is not; the record was not sent."""


class NoToken(BarnabasError):
    """No token to sign in with could be had; the sentence says why."""


class IssuerUnreachable(NoToken):
    """Who gives out tokens cannot be asked at the moment."""

    retriable = True


class MissingDependency(BarnabasError):
    """An optional package is not installed; the message has the command that installs it."""


class RegistryUnreachable(BarnabasError):
    """The schema registry did not answer, or not as one."""

    retriable = True


class RegistryRefused(BarnabasError):
    """The schema registry answered with an error; ``code`` is its number for it."""

    def __init__(self, message: str, *, status: int, code: int) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class InvalidExpression(BarnabasError):
    """A condition on records that cannot be understood, with the place and the reason."""
