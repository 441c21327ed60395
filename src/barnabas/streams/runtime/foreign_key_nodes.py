"""Functions of the nodes of a foreign-key join."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Any, Final

from barnabas.client.serdes.serde import Place
from barnabas.streams.functions import accepts, with_key, with_key_first
from barnabas.streams.runtime.subscription_store import Subscription, SubscriptionStore
from barnabas.streams.runtime.table_nodes import row_getter
from barnabas.streams.runtime.wiring import Forward, Wiring
from barnabas.streams.serdes import SerdeLike, codec_of
from barnabas.streams.topology.node import Node
from barnabas.streams.topology.table_operators import (
    ForeignTableJoin,
    ResponseJoin,
    SubscriptionJoin,
    SubscriptionReceive,
    SubscriptionSend,
)

# What the right side does with a subscription.
DELETE_AND_ANSWER: Final = 0
DELETE: Final = 1
ANSWER_ALWAYS: Final = 2  # with null if the right row does not exist
ANSWER_IF_FOUND: Final = 3

_DIGEST_BYTES: Final = 16


def _hasher(wiring: Wiring, serde: SerdeLike[Any] | None) -> Callable[[Any], bytes | None]:
    """Return the hash of a left value: an answer counts only if the left row is still the one that asked."""
    pack = codec_of(serde, Place(wiring.task.topology.application_id)).pack

    def digest(value: Any) -> bytes | None:
        return None if value is None else blake2b(pack(value), digest_size=_DIGEST_BYTES).digest()

    return digest


def build_subscription_send(wiring: Wiring, node: Node, operator: SubscriptionSend) -> Forward:
    """Subscribe left rows to right rows."""
    forward, fail = wiring.forward(node), wiring.fail(node)
    task, name = wiring.task, node.name
    extract = operator.extractor if not accepts(operator.extractor, 2) else None
    extract_with_key = with_key(operator.extractor)
    digest = _hasher(wiring, operator.left_value)
    is_left, is_versioned = operator.is_left, operator.is_versioned
    always = is_left or task.is_chained
    partition = task.partition

    def instructions(new: Any, new_key: Any, old_key: Any) -> list[tuple[Any, int]]:
        is_moved = old_key is not None and old_key != new_key
        if always:
            left = [(old_key, DELETE)] if is_moved else []
            return [*left, (new_key, ANSWER_ALWAYS)]
        if new is None or new_key is None:
            if new is not None:
                task.drop(name)
            return [] if old_key is None else [(old_key, DELETE_AND_ANSWER)]
        return [(old_key, DELETE), (new_key, ANSWER_ALWAYS)] if is_moved else [(new_key, ANSWER_IF_FOUND)]

    def send(key: Any, new: Any, old: Any, timestamp: int, headers: Any, latest: bool) -> None:
        if (is_versioned and not latest) or (new is None and old is None):
            return
        try:
            if extract is not None:
                old_key, new_key = None if old is None else extract(old), None if new is None else extract(new)
            else:
                old_key = None if old is None else extract_with_key(key, old)
                new_key = None if new is None else extract_with_key(key, new)
            hashed = digest(new)
        except Exception as error:  # noqa: BLE001 - a function of the user
            fail(error)
            return
        for foreign_key, instruction in instructions(new, new_key, old_key):
            forward(foreign_key, (instruction, key, hashed, partition), timestamp, headers)

    return send


def build_subscription_receive(wiring: Wiring, node: Node, operator: SubscriptionReceive) -> Forward:
    """Keep or delete a subscription, and pass it on to be answered."""
    forward = wiring.forward(node)
    store: SubscriptionStore = wiring.store(operator.store)
    task, name = wiring.task, node.name

    def receive(foreign_key: Any, message: tuple[int, Any, bytes | None, int], timestamp: int, headers: Any) -> None:
        instruction, primary_key, digest, partition = message
        if foreign_key is None:
            if instruction != ANSWER_ALWAYS:
                task.drop(name)
                return
        elif instruction in (DELETE_AND_ANSWER, DELETE):
            store.put(foreign_key, primary_key, None)
        else:
            store.put(foreign_key, primary_key, Subscription(digest, partition))
        forward(foreign_key, message, timestamp, headers)

    return receive


def build_subscription_join(wiring: Wiring, node: Node, operator: SubscriptionJoin) -> Forward:
    """Answer a subscription with the right row."""
    forward, fail = wiring.forward(node), wiring.fail(node)
    row_of = row_getter(wiring, operator.right)

    def answer(foreign_key: Any, message: tuple[int, Any, bytes | None, int], timestamp: int, headers: Any) -> None:
        instruction, primary_key, digest, partition = message
        if instruction == DELETE:
            return
        try:
            row = None if foreign_key is None else row_of(foreign_key)
        except Exception as error:  # noqa: BLE001 - rows may be computed by functions of the user
            fail(error)
            return
        if row is None and instruction == ANSWER_IF_FOUND:
            return
        if row is not None and row[1] > timestamp:
            timestamp = row[1]
        right = None if row is None or instruction == DELETE_AND_ANSWER else row[0]
        forward(primary_key, (digest, right, partition), timestamp, headers)

    return answer


def build_foreign_table_join(wiring: Wiring, node: Node, operator: ForeignTableJoin) -> Forward:
    """Answer all subscriptions of a right row that changed."""
    forward = wiring.forward(node)
    store: SubscriptionStore = wiring.store(operator.store)
    is_versioned = operator.is_versioned

    def answer_all(key: Any, new: Any, old: Any, timestamp: int, headers: Any, latest: bool) -> None:
        if key is None or (is_versioned and not latest):
            return
        for primary_key, subscription in store.of(key):
            forward(primary_key, (subscription.digest, new, subscription.partition), timestamp, headers)

    return answer_all


def build_response_join(wiring: Wiring, node: Node, operator: ResponseJoin) -> Forward:
    """Join an answer with the left row if the row is still the one that asked."""
    forward, fail = wiring.forward(node), wiring.fail(node)
    row_of = row_getter(wiring, operator.left)
    digest = _hasher(wiring, operator.left_value)
    joiner, is_left = with_key_first(operator.joiner), operator.is_left

    def join(key: Any, message: tuple[bytes | None, Any], timestamp: int, headers: Any) -> None:
        asked, right = message
        try:
            row = row_of(key)
            left = None if row is None else row[0]
            if digest(left) != asked:
                return
            is_deleted = right is None and (not is_left or left is None)
            joined = None if is_deleted else joiner(key, left, right)
        except Exception as error:  # noqa: BLE001 - a function of the user
            fail(error)
            return
        forward(key, joined, timestamp, headers)

    return join
