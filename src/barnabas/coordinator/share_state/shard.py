"""The state of all share-partitions of one partition of ``__share_group_state``.

Share-partition leaders read and write it, the group coordinator creates and deletes it. A change is an update record;
after a number of them comes a snapshot, which makes all earlier records of the share-partition redundant. Partitions
without changes get a snapshot from time to time, so that the log can be pruned up to the oldest one that is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any, Final

from barnabas.coordinator.runtime.effects import Answer, Effects, ProducerIdEpoch, nothing_to_undo
from barnabas.coordinator.share_state.batches import merged
from barnabas.coordinator.share_state.records import (
    SNAPSHOT,
    UPDATE,
    SharePartitionKey,
    ShareSnapshotValue,
    ShareUpdateValue,
    batches_of,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
    record_type,
)
from barnabas.coordinator.share_state.requests import (
    NO_STATE_EPOCH,
    UNINITIALIZED_OFFSET,
    Delete,
    Initialize,
    Prune,
    Read,
    ReadSummary,
    ShareState,
    StateTopicsDeleted,
    Write,
)
from barnabas.coordinator.share_state.settings import ShareStateSettings
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import NO_LEADER_EPOCH

PRUNE: Final = "share-prune"
COLD: Final = "share-cold-snapshots"
COLD_SNAPSHOTS_PER_STEP_MAX: Final = 100


class ShareStateShard:
    def __init__(
        self, settings: Callable[[], ShareStateSettings], partition_exists: Callable[[SharePartitionKey], bool]
    ) -> None:
        """``partition_exists`` tells whether the topic of a share-partition has the partition now."""
        self._settings = settings
        self._partition_exists = partition_exists
        self.states: dict[SharePartitionKey, ShareState] = {}
        self._pruned_offset = 0
        self._handlers: dict[type, Callable[[int, Any, int], Effects]] = {
            Initialize: self._initialize,
            Read: self._read,
            ReadSummary: self._read_summary,
            Write: self._write,
            Delete: self._delete,
            StateTopicsDeleted: self._delete_topics,
        }

    # --- requests -------------------------------------------------------------------------------------------------

    def handle(self, request_id: int, request: Any, now_ms: int) -> Effects:
        effects = self._handlers[type(request)](request_id, request, now_ms)
        effects.rescue = nothing_to_undo  # memory changes only when records are replayed
        return effects

    def _initialize(self, request_id: int, request: Initialize, now_ms: int) -> Effects:
        key, known = request.key, self.states.get(request.key)
        self._check_partition(key)
        if known is not None and request.state_epoch != NO_STATE_EPOCH and known.state_epoch > request.state_epoch:
            raise ApiError(errors.FENCED_STATE_EPOCH)
        state = ShareState(
            snapshot_epoch=0 if known is None else known.snapshot_epoch + 1,
            state_epoch=request.state_epoch,
            start_offset=request.start_offset,
            create_timestamp=now_ms,
            write_timestamp=now_ms,
        )
        return _snapshot(Effects(), key, state).answer(request_id, None)

    def _read(self, request_id: int, request: Read, now_ms: int) -> Effects:
        """The state; a new leader epoch is written down first, so that writes of earlier leaders are fenced."""
        state = self._known(request.key, "Read")
        if request.leader_epoch != NO_LEADER_EPOCH and request.leader_epoch < state.leader_epoch:
            raise ApiError(errors.FENCED_LEADER_EPOCH)
        self._check_partition(request.key)
        effects = Effects().answer(request_id, state)
        if request.leader_epoch not in (NO_LEADER_EPOCH, state.leader_epoch):
            self._change(
                effects,
                Write(
                    request.key,
                    state.state_epoch,
                    request.leader_epoch,
                    state.start_offset,
                    state.delivery_complete_count,
                    (),
                ),
                state,
                now_ms,
            )
        return effects

    def _read_summary(self, request_id: int, request: ReadSummary, now_ms: int) -> Effects:
        """The state, or a state without a start offset if there is none."""
        return Effects().answer(request_id, self.states.get(request.key, ShareState()))

    def _write(self, request_id: int, request: Write, now_ms: int) -> Effects:
        state = self._known(request.key, "Write")
        if request.leader_epoch != NO_LEADER_EPOCH and request.leader_epoch < state.leader_epoch:
            raise ApiError(errors.FENCED_LEADER_EPOCH)
        if request.state_epoch != NO_STATE_EPOCH and request.state_epoch < state.state_epoch:
            raise ApiError(errors.FENCED_STATE_EPOCH)
        self._check_partition(request.key)
        return self._change(Effects(), request, state, now_ms).answer(request_id, None)

    def _delete(self, request_id: int, request: Delete, now_ms: int) -> Effects:
        effects = Effects()
        if request.key in self.states:
            effects.record(encode_key(SNAPSHOT, request.key), None)
        return effects.answer(request_id, None)

    def _delete_topics(self, request_id: int, request: StateTopicsDeleted, now_ms: int) -> Effects:
        effects = Effects()
        effects.is_atomic = False
        for key in self.states:
            if key.topic_id in request.topic_ids:
                effects.record(encode_key(SNAPSHOT, key), None)
        return effects

    def _known(self, key: SharePartitionKey, operation: str) -> ShareState:
        state = self.states.get(key)
        if state is None:
            raise ApiError(
                errors.INVALID_REQUEST, f"{operation} operation on uninitialized share partition not allowed."
            )
        return state

    def _check_partition(self, key: SharePartitionKey) -> None:
        if not self._partition_exists(key):
            raise ApiError(errors.UNKNOWN_TOPIC_OR_PARTITION)

    def _change(self, effects: Effects, write: Write, state: ShareState, now_ms: int) -> Effects:
        leader_epoch = state.leader_epoch if write.leader_epoch == NO_LEADER_EPOCH else write.leader_epoch
        if state.update_count >= self._settings().updates_per_snapshot:
            start = state.start_offset if write.start_offset == UNINITIALIZED_OFFSET else write.start_offset
            snapshot = replace(
                state,
                snapshot_epoch=state.snapshot_epoch + 1,
                leader_epoch=leader_epoch,
                start_offset=start,
                delivery_complete_count=write.delivery_complete_count,
                create_timestamp=now_ms,
                write_timestamp=now_ms,
                batches=tuple(merged(state.batches, write.batches, start_offset=start)),
            )
            return _snapshot(effects, write.key, snapshot)
        update = ShareUpdateValue(
            snapshot_epoch=state.snapshot_epoch,
            leader_epoch=leader_epoch,
            start_offset=write.start_offset,
            delivery_complete_count=write.delivery_complete_count,
            state_batches=[
                ShareUpdateValue.StateBatch(**batch._asdict())
                for batch in merged((), write.batches, start_offset=write.start_offset)
            ],
        )
        return effects.record(encode_key(UPDATE, write.key), encode_value(update))

    # --- records --------------------------------------------------------------------------------------------------

    def replay(
        self, key: bytes, value: bytes | None, *, offset: int, producer: ProducerIdEpoch | None, timestamp_ms: int
    ) -> None:
        kind = record_type(key)
        if kind not in (SNAPSHOT, UPDATE):
            return  # a record of a newer version
        about = decode_key(key)
        if value is None:
            self.states.pop(about, None)
            return
        decoded = decode_value(kind, value)
        if isinstance(decoded, ShareSnapshotValue):
            self.states[about] = ShareState(
                snapshot_epoch=decoded.snapshot_epoch,
                state_epoch=decoded.state_epoch,
                leader_epoch=decoded.leader_epoch,
                start_offset=decoded.start_offset,
                delivery_complete_count=decoded.delivery_complete_count,
                create_timestamp=decoded.create_timestamp,
                write_timestamp=decoded.write_timestamp,
                batches=tuple(batches_of(decoded)),
                snapshot_offset=offset,
            )
            return
        state = self.states.get(about)
        if state is not None:  # else the snapshot was pruned, because the state was deleted afterwards
            self.states[about] = _updated(state, decoded)

    def replay_marker(self, producer_id: int, producer_epoch: int, *, is_commit: bool) -> None:
        """No transaction writes here."""

    # --- time -----------------------------------------------------------------------------------------------------

    def loaded(self, now_ms: int) -> Effects:
        settings = self._settings()
        return (
            Effects()
            .timer((PRUNE,), now_ms + settings.prune_interval_ms)
            .timer((COLD,), now_ms + settings.cold_snapshot_interval_ms)
        )

    def unloaded(self) -> list[Answer]:
        return []

    def on_timer(self, key: Hashable, now_ms: int) -> Effects:
        settings = self._settings()
        if key == (COLD,):
            return self._snapshot_cold(now_ms, settings)
        effects = Effects().timer((PRUNE,), now_ms + settings.prune_interval_ms)
        needed = min((state.snapshot_offset for state in self.states.values()), default=self._pruned_offset)
        if needed > self._pruned_offset:
            self._pruned_offset = needed
            effects.send(Prune(needed))
        return effects

    def _snapshot_cold(self, now_ms: int, settings: ShareStateSettings) -> Effects:
        """Snapshots of the share-partitions that had none for a while, as many as one step may write."""
        effects = Effects()
        effects.is_atomic = False
        effects.rescue = nothing_to_undo
        due_ms = now_ms - settings.cold_snapshot_interval_ms
        cold = [
            key
            for key, state in self.states.items()
            if state.write_timestamp <= due_ms
            and (state.update_count or state.create_timestamp == state.write_timestamp)
        ]
        for key in cold[:COLD_SNAPSHOTS_PER_STEP_MAX]:
            state = self.states[key]
            _snapshot(effects, key, replace(state, snapshot_epoch=state.snapshot_epoch + 1, write_timestamp=now_ms))
        is_rest = len(cold) > COLD_SNAPSHOTS_PER_STEP_MAX
        return effects.timer((COLD,), now_ms if is_rest else now_ms + settings.cold_snapshot_interval_ms)


def _snapshot(effects: Effects, key: SharePartitionKey, state: ShareState) -> Effects:
    value = ShareSnapshotValue(
        snapshot_epoch=state.snapshot_epoch,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
        create_timestamp=state.create_timestamp,
        write_timestamp=state.write_timestamp,
        state_batches=[ShareSnapshotValue.StateBatch(**batch._asdict()) for batch in state.batches],
    )
    return effects.record(encode_key(SNAPSHOT, key), encode_value(value))


def _updated(state: ShareState, update: ShareUpdateValue) -> ShareState:
    start = max(state.start_offset, update.start_offset)
    return replace(
        state,
        leader_epoch=max(state.leader_epoch, update.leader_epoch),
        start_offset=start,
        delivery_complete_count=update.delivery_complete_count,
        batches=tuple(merged(state.batches, batches_of(update), start_offset=start)),
        update_count=state.update_count + 1,
    )
