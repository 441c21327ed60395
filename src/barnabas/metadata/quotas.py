"""AlterClientQuotas and DescribeClientQuotas: what users, client ids and addresses may have, in the metadata log.

Whose quota applies to whom, and what happens to those above it, is decided where requests are counted
(``broker/quotas/quotas.py``); here a quota is only a name with a number.
"""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Mapping
from typing import Final, TypeAlias

from immutables import Map

from barnabas.metadata.decision import Decision, check_size
from barnabas.metadata.image import ClusterImage
from barnabas.metadata.quotas_image import ClientQuotasImage, QuotaEntity
from barnabas.metadata.records import ClientQuotaRecord
from barnabas.model.errors import INVALID_REQUEST, UNSUPPORTED_VERSION, ApiError
from barnabas.wire.message import Message
from barnabas.wire.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from barnabas.wire.messages.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse

Entry: TypeAlias = AlterClientQuotasRequest.EntryData

USER: Final = "user"
CLIENT_ID: Final = "client-id"
ADDRESS: Final = "ip"
PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"
ENTITY_PARTS_MAX: Final = 100  # an entity has a user, a client id or both, or an address
INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
# The largest value of those that must be whole numbers; None where a fraction makes sense.
_OF_CLIENTS: Final[dict[str, int | None]] = {
    PRODUCER_BYTE_RATE: LONG_MAX,
    CONSUMER_BYTE_RATE: LONG_MAX,
    REQUEST_PERCENTAGE: None,
    CONTROLLER_MUTATION_RATE: None,
}
_OF_ADDRESSES: Final[dict[str, int | None]] = {CONNECTION_CREATION_RATE: INT_MAX}
_FRACTION_MAX: Final = 1e-6
_NO_QUOTAS: Final[Map[str, float]] = Map()
_EXACT, _DEFAULT, _SPECIFIED = range(3)  # how a filter matches


def alter_client_quotas(image: ClusterImage, request: AlterClientQuotasRequest) -> Decision[AlterClientQuotasResponse]:
    """Each entity succeeds or fails alone; one that is named twice fails the second time."""
    records: list[Message] = []
    response = AlterClientQuotasResponse()
    done: set[QuotaEntity] = set()
    for entry in request.entries:
        row = AlterClientQuotasResponse.EntryData(
            error_message=None,
            entity=[
                AlterClientQuotasResponse.EntityData(entity_type=part.entity_type, entity_name=part.entity_name)
                for part in entry.entity
            ],
        )
        response.entries.append(row)
        try:
            entity = _entity(entry)
            if entity in done:
                raise ApiError(INVALID_REQUEST, f"the request names {_text(entity)} twice")
            done.add(entity)
            records += _records(image.client_quotas, entity, entry)
        except ApiError as error:
            row.error_code, row.error_message = error.error.code, error.message
    check_size(len(records))
    return Decision([] if request.validate_only else records, response)


def _entity(entry: Entry) -> QuotaEntity:
    found: dict[str, str | None] = {}
    if len(entry.entity) > ENTITY_PARTS_MAX:
        raise ApiError(INVALID_REQUEST, f"the entity has {len(entry.entity)} parts")
    for part in entry.entity:
        if part.entity_type in found:
            raise ApiError(INVALID_REQUEST, f"the entity has two parts of type {part.entity_type}")
        if part.entity_type not in (USER, CLIENT_ID, ADDRESS):
            raise ApiError(INVALID_REQUEST, _no_type(part.entity_type))
        if part.entity_name == "":
            raise ApiError(INVALID_REQUEST, f"the {part.entity_type} has an empty name")
        found[part.entity_type] = part.entity_name
    if not found:
        raise ApiError(INVALID_REQUEST, "a quota is for somebody, and the entity has no parts")
    if ADDRESS in found:
        if len(found) > 1:
            raise ApiError(INVALID_REQUEST, f"a quota of an {ADDRESS} is for nobody else: leave the other parts out")
        _check_address(found[ADDRESS])
    return tuple((kind, found[kind]) for kind in sorted(found))


def _check_address(name: str | None) -> None:
    """An address, and no host name: what a name stands for is not asked here, and may change."""
    if name is None:
        return
    try:
        ipaddress.ip_address(name)
    except ValueError:
        raise ApiError(INVALID_REQUEST, f"{name!r} is no IP address") from None


def _records(quotas: ClientQuotasImage, entity: QuotaEntity, entry: Entry) -> list[Message]:
    known = _OF_ADDRESSES if entity[0][0] == ADDRESS else _OF_CLIENTS
    current: Mapping[str, float] = quotas.by_entity.get(entity, _NO_QUOTAS)
    records: list[Message] = []
    seen: set[str] = set()
    for change in entry.ops:
        if change.key in seen:
            raise ApiError(INVALID_REQUEST, f"the request names {change.key} of {_text(entity)} twice")
        seen.add(change.key)
        parts = [ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
        if change.remove:
            if change.key in current:
                records.append(ClientQuotaRecord(entity=parts, key=change.key, remove=True))
            continue
        _check_value(known, change.key, change.value)
        if current.get(change.key) != change.value:
            records.append(ClientQuotaRecord(entity=parts, key=change.key, value=change.value))
    return records


def _check_value(known: dict[str, int | None], key: str, value: float) -> None:
    if key not in known:
        raise ApiError(INVALID_REQUEST, f"there is no quota {key!r} here, but {', '.join(known)}")
    if not value > 0 or math.isinf(value):
        raise ApiError(INVALID_REQUEST, f"{key}={value} must be above 0, and finite")
    highest = known[key]
    if highest is None:
        return
    if value > highest:
        raise ApiError(INVALID_REQUEST, f"{key}={value} must be at most {highest}")
    if value % 1 > _FRACTION_MAX:
        raise ApiError(INVALID_REQUEST, f"{key}={value} must be a whole number")


def _no_type(name: str) -> str:
    return f"quotas are for {USER}, {CLIENT_ID} and {ADDRESS}, not for {name!r}"


def _text(entity: QuotaEntity) -> str:
    return ", ".join(f"{kind} {'<default>' if name is None else name}" for kind, name in entity)


# --- describing -------------------------------------------------------------------------------------------------------


def describe_client_quotas(
    quotas: ClientQuotasImage, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    exact, of_type = _filter(request)
    row = DescribeClientQuotasResponse
    found = sorted(
        (entity for entity in quotas.by_entity if _matches(entity, exact, of_type, is_strict=request.strict)),
        key=lambda entity: [(kind, name or "", name is None) for kind, name in entity],
    )
    return DescribeClientQuotasResponse(
        error_message=None,
        entries=[
            row.EntryData(
                entity=[row.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                values=[row.ValueData(key=key, value=value) for key, value in sorted(quotas.by_entity[entity].items())],
            )
            for entity in found
        ],
    )


def _filter(request: DescribeClientQuotasRequest) -> tuple[dict[str, str | None], set[str]]:
    """The names that an entity must have, and the types of which it must have one."""
    exact: dict[str, str | None] = {}
    of_type: set[str] = set()
    for component in request.components:
        kind = component.entity_type
        if not kind:
            raise ApiError(INVALID_REQUEST, "a part of the filter has no type")
        if kind in exact or kind in of_type:
            raise ApiError(INVALID_REQUEST, f"the filter names {kind} twice")
        if kind not in (USER, CLIENT_ID, ADDRESS):
            raise ApiError(UNSUPPORTED_VERSION, _no_type(kind))
        if component.match_type not in (_EXACT, _DEFAULT, _SPECIFIED):
            raise ApiError(INVALID_REQUEST, f"a match is exact (0), default (1) or any (2), not {component.match_type}")
        if (component.match is None) == (component.match_type == _EXACT):
            raise ApiError(INVALID_REQUEST, "a name goes with an exact match, and with no other")
        if component.match_type == _SPECIFIED:
            of_type.add(kind)
        else:
            exact[kind] = component.match
    asked = exact.keys() | of_type
    if ADDRESS in asked and len(asked) > 1:
        raise ApiError(INVALID_REQUEST, f"a filter that names {ADDRESS} names nothing else")
    return exact, of_type


def _matches(entity: QuotaEntity, exact: dict[str, str | None], of_type: set[str], *, is_strict: bool) -> bool:
    parts = dict(entity)
    if is_strict and len(parts) != len(exact) + len(of_type):
        return False
    return all(kind in parts and parts[kind] == name for kind, name in exact.items()) and of_type <= parts.keys()
