"""One member of a classic group: who it is, which protocols it speaks, and which of its requests wait.

The group (:mod:`barnabas.coordinator.classic.group`) keeps members and decides among them; nothing here decides.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from barnabas.coordinator.groups.records import GroupMetadataValue

Protocols = tuple[tuple[str, bytes], ...]  # name and metadata, in the member's order of preference


@dataclass(slots=True, kw_only=True, eq=False)
class ClassicMember:
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    assignment: bytes = b""
    join_request: int | None = None  # the id of the JoinGroup that waits for the others
    sync_request: int | None = None  # the id of the SyncGroup that waits for the leader
    is_new: bool = False  # it has never had an answer to a join, so it cannot send heartbeats

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def is_known_alive(self) -> bool:
        """Whoever waits for an answer sends no heartbeats; a new member's wait is limited all the same."""
        return not self.is_new and (self.join_request is not None or self.sync_request is not None)

    def metadata(self, protocol: str) -> bytes:
        return next(metadata for name, metadata in self.protocols if name == protocol)

    def vote(self, candidates: Collection[str]) -> str:
        """The protocol it likes best of those that everybody speaks."""
        return next(name for name, _ in self.protocols if name in candidates)

    def as_record(self, protocol: str, assignment: bytes) -> GroupMetadataValue.MemberMetadata:
        return GroupMetadataValue.MemberMetadata(
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout=self.rebalance_timeout_ms,
            session_timeout=self.session_timeout_ms,
            subscription=self.metadata(protocol),
            assignment=assignment,
        )

    @classmethod
    def of_record(
        cls, record: GroupMetadataValue.MemberMetadata, *, protocol_type: str, protocol: str | None
    ) -> ClassicMember:
        rebalance_timeout_ms = record.rebalance_timeout if record.rebalance_timeout >= 0 else record.session_timeout
        return cls(
            member_id=record.member_id,
            instance_id=record.group_instance_id,
            client_id=record.client_id,
            client_host=record.client_host,
            rebalance_timeout_ms=rebalance_timeout_ms,
            session_timeout_ms=record.session_timeout,
            protocol_type=protocol_type,
            protocols=((protocol or "", record.subscription),),
            assignment=record.assignment,
        )


def largest_metadata_bytes(protocols: Protocols) -> int:
    """What a group's line has to hold of a member, whichever protocol is chosen."""
    return max((len(metadata) for _, metadata in protocols), default=0)
