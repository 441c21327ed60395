"""Permission checks that handler modules declare as ``needs``, and the function that runs them.

A check is called before the handler, only on brokers with an authorizer. It returns None if the handler may run, a
message if that is the whole response, or raises ApiError. A check for a request of many rows removes the rows that are
denied and adds them to the response later, so the response does not reveal whether a denied resource exists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

from barnabas.broker.access import audit
from barnabas.broker.access.guarded_request import ERRORS, GuardedRequest
from barnabas.broker.requests.amended_request import AmendedRequest
from barnabas.broker.requests.api import Check
from barnabas.broker.requests.request import Request
from barnabas.metadata.image import ClusterImage
from barnabas.model import errors
from barnabas.model.errors import ApiError, WireError
from barnabas.model.ids import ZERO_UUID
from barnabas.security.acl import CLUSTER_NAME, Operation, ResourceType
from barnabas.wire.message import Message

T = TypeVar("T")
RefuseRow: TypeAlias = "Callable[[Any, WireError], Message]"

DENIED: Final = ApiError(errors.TOPIC_AUTHORIZATION_FAILED)


def check(needs: Check, request: Request, message: Message) -> Message | None:
    """Run the check of an API and write denied accesses to the audit log. None: the handler may run."""
    assert isinstance(request, GuardedRequest)
    try:
        return needs(request, message)
    finally:
        if request.asker.denied:
            audit.refused(request, request.asker)


# --- checks of a whole request ----------------------------------------------------------------------------------------


def anyone(request: GuardedRequest, message: Any) -> None:
    """No permission is needed."""


def cluster(*any_of: Operation) -> Check:
    """One of these operations on the cluster."""

    def needs(request: GuardedRequest, message: Any) -> None:
        if not request.asker.may_cluster(*any_of):
            raise ApiError(errors.CLUSTER_AUTHORIZATION_FAILED)

    return needs


def group(operation: Operation) -> Check:
    """An operation on the group that the request names."""

    def needs(request: GuardedRequest, message: Any) -> None:
        request.require(operation, ResourceType.GROUP, message.group_id)

    return needs


def transactional_id(operation: Operation) -> Check:
    """An operation on the transactional id that the request names."""

    def needs(request: GuardedRequest, message: Any) -> None:
        request.require(operation, ResourceType.TRANSACTIONAL_ID, message.transactional_id)

    return needs


def all_of(*checks: Check) -> Check:
    """Every one of these checks, in this order."""

    def needs(request: GuardedRequest, message: Any) -> Message | None:
        for each in checks:
            answer = each(request, message)
            if answer is not None:
                return answer
        return None

    return needs


def listed(answers: str, name: str, kind: ResourceType) -> Check:
    """DESCRIBE on each row of the response; rows without it are left out of the list."""

    def needs(request: GuardedRequest, message: Any) -> None:
        def amend(answer: Any) -> None:
            if kind is ResourceType.GROUP and request.asker.may_cluster(Operation.DESCRIBE):
                return
            found = getattr(answer, answers)
            may = request.asker.may
            setattr(answer, answers, [row for row in found if may(Operation.DESCRIBE, kind, getattr(row, name))])

        request.when_answered(amend)

    return needs


def denial(request: GuardedRequest, operation: Operation, kind: ResourceType, name: str) -> WireError | None:
    """The error for an operation that is denied, None if it is allowed."""
    return None if request.asker.may(operation, kind, name) else ERRORS[kind]


# --- checks of each row -----------------------------------------------------------------------------------------------


def topic_name(row: Any, image: ClusterImage) -> str | None:
    """The name of a row's topic; None for an id that no topic has: there is nothing to hide."""
    topic_id = getattr(row, "topic_id", ZERO_UUID)
    if topic_id == ZERO_UUID:
        name: str | None = row.topic if hasattr(row, "topic") else row.name
        return name or ""
    found = image.topics.by_id.get(topic_id)
    return None if found is None else found.name


def may_describe_topic(request: GuardedRequest, name: str) -> bool:
    return request.asker.may(Operation.DESCRIBE, ResourceType.TOPIC, name)


def may_create_topic(request: GuardedRequest, name: str) -> bool:
    """CREATE on the cluster or on the topic."""
    return request.asker.may_one_of(
        (Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME), (Operation.CREATE, ResourceType.TOPIC, name)
    )


def itself(row: Any, _: ClusterImage) -> str:
    """The name of a row that is a name."""
    return str(row)


@dataclass(frozen=True, slots=True)
class Rows:
    """An operation on the resource of each row; denied rows are answered one by one. Use ``check`` as ``needs``."""

    field: str  # field of the request with the rows
    operation: Operation
    kind: ResourceType
    response: type[Message]
    answers: str  # field of the response with the rows
    refuse: RefuseRow
    name_of: Callable[[Any, ClusterImage], str | None] = topic_name

    def check(self, request: GuardedRequest, message: Any) -> Message | None:
        return self.apply(request, message, None)

    def apply(self, request: GuardedRequest, message: Any, whole: WireError | None) -> Message | None:
        """As ``check``; if ``whole`` is an error, every row is denied with it."""
        asker, image = request.asker, request.image
        allowed, refused = [], []
        for row in getattr(message, self.field):
            name = self.name_of(row, image)
            if whole is not None:
                refused.append(self.refuse(row, whole))
            elif name is None or asker.may(self.operation, self.kind, name):
                allowed.append(row)
            else:
                refused.append(self.refuse(row, ERRORS[self.kind]))
        return split(request, message, self.field, allowed, refused, self.response, self.answers)


def parted(rows: Iterable[T], is_allowed: Callable[[T], bool]) -> tuple[list[T], list[T]]:
    """The rows that are allowed, and the rows that are not."""
    allowed: list[T] = []
    refused: list[T] = []
    for row in rows:
        (allowed if is_allowed(row) else refused).append(row)
    return allowed, refused


def split(
    request: AmendedRequest,
    message: Any,
    field: str,
    allowed: list[Any],
    refused: list[Any],
    response: type[Message],
    answers: str,
) -> Message | None:
    """Leave the allowed rows in the request and add the refused ones to the response; a message is the response."""
    if not refused:
        return None
    if not allowed:
        answer = response()
        setattr(answer, answers, refused)
        return answer
    kept = {id(row) for row in allowed}
    is_kept = [id(row) in kept for row in getattr(message, field)]
    setattr(message, field, allowed)
    request.when_answered(lambda answer: _put_back(getattr(answer, answers), refused, is_kept))
    return None


def _put_back(answers: list[Any], refused: list[Any], is_kept: list[bool]) -> None:
    """Put the refused rows where the request has them; the handler answers the rows that were kept in their order."""
    answered, denied = iter(list(answers)), iter(refused)
    found = [next(answered if kept else denied, None) for kept in is_kept]
    answers[:] = [*(row for row in found if row is not None), *answered, *denied]


def partitions(
    row_class: Any,
    part_class: Any,
    *,
    name: str = "name",
    parts: str = "partitions",
    index: str = "partition_index",
    answer_parts: str = "partitions",
    **values: Any,
) -> RefuseRow:
    """Refuses a topic by refusing each of its partitions."""

    def refuse(row: Any, error: WireError) -> Message:
        found = [
            part_class(
                **{index: part if isinstance(part, int) else getattr(part, index)}, error_code=error.code, **values
            )
            for part in getattr(row, parts)
        ]
        same = {name: getattr(row, name)}
        if hasattr(row, "topic_id") and hasattr(row_class, "topic_id"):
            same["topic_id"] = row.topic_id
        answer: Message = row_class(**same, **{answer_parts: found})
        return answer

    return refuse
