"""Setting and describing quotas: what is refused, what is written, what a filter finds."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.metadata.image import EMPTY, ClusterImage
from barnabas.metadata.image_builder import ImageBuilder
from barnabas.metadata.quotas import alter_client_quotas, describe_client_quotas
from barnabas.model.errors import ApiError
from barnabas.wire.messages.alter_client_quotas import AlterClientQuotasRequest
from barnabas.wire.messages.describe_client_quotas import DescribeClientQuotasRequest

Entry = AlterClientQuotasRequest.EntryData
Part = AlterClientQuotasRequest.EntityData
EXACT, DEFAULT, SPECIFIED = range(3)


def entry(entity: dict[str, str | None], *ops: tuple[str, float | None]) -> Entry:
    return Entry(
        entity=[Part(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[AlterClientQuotasRequest.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in ops],
    )


def altered(image: ClusterImage, *entries: Entry, validate_only: bool = False) -> tuple[ClusterImage, list[Any], int]:
    request = AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only)
    decision = alter_client_quotas(image, request)
    builder = ImageBuilder(image)
    for offset, record in enumerate(decision.records, image.offset + 1):
        builder.apply(record, offset)
    return builder.build(epoch=1), decision.response.entries, len(decision.records)


def described(image: ClusterImage, *components: tuple[str, int, str | None], strict: bool = False) -> dict[Any, Any]:
    request = DescribeClientQuotasRequest(
        components=[
            DescribeClientQuotasRequest.ComponentData(entity_type=kind, match_type=how, match=name)
            for kind, how, name in components
        ],
        strict=strict,
    )
    return {
        tuple((part.entity_type, part.entity_name) for part in row.entity): {
            value.key: value.value for value in row.values
        }
        for row in describe_client_quotas(image.client_quotas, request).entries or ()
    }


def test_what_is_set_is_described_and_what_is_removed_is_not() -> None:
    alice = {"user": "alice", "client-id": None}
    image, rows, _ = altered(
        EMPTY,
        entry(alice, ("producer_byte_rate", 1024), ("request_percentage", 12.5)),
        entry({"ip": None}, ("connection_creation_rate", 10)),
    )
    assert [row.error_code for row in rows] == [0, 0]
    key = (("client-id", None), ("user", "alice"))
    assert described(image) == {
        key: {"producer_byte_rate": 1024, "request_percentage": 12.5},
        (("ip", None),): {"connection_creation_rate": 10},
    }
    image, _, count = altered(image, entry(alice, ("producer_byte_rate", 1024), ("consumer_byte_rate", None)))
    assert count == 0, "nothing has changed"
    image, _, _ = altered(image, entry(alice, ("producer_byte_rate", None), ("request_percentage", None)))
    assert key not in described(image)


def test_a_filter_finds_names_defaults_and_types() -> None:
    image, _, _ = altered(
        EMPTY,
        *(
            entry(entity, ("producer_byte_rate", number))
            for number, entity in enumerate(
                ({"user": "a"}, {"user": None}, {"user": "a", "client-id": "c"}, {"client-id": "c"}), 1
            )
        ),
    )

    def numbers(*components: tuple[str, int, str | None], strict: bool = False) -> set[float]:
        return {row["producer_byte_rate"] for row in described(image, *components, strict=strict).values()}

    assert numbers(("user", EXACT, "a")) == {1, 3}
    assert numbers(("user", EXACT, "a"), strict=True) == {1}
    assert numbers(("user", DEFAULT, None)) == {2}
    assert numbers(("user", SPECIFIED, None)) == {1, 2, 3}
    assert numbers(("user", SPECIFIED, None), ("client-id", EXACT, "c"), strict=True) == {3}
    assert numbers(("client-id", SPECIFIED, None), strict=True) == {4}
    assert numbers() == {1, 2, 3, 4}


@pytest.mark.parametrize(
    ("entity", "ops", "sentence"),
    [
        ({}, [("producer_byte_rate", 1)], "no parts"),
        ({"user": ""}, [("producer_byte_rate", 1)], "user has an empty name"),
        ({"team": "x"}, [("producer_byte_rate", 1)], "not for 'team'"),
        ({"ip": "10.0.0.1", "user": "a"}, [("connection_creation_rate", 1)], "leave the other parts out"),
        ({"ip": "not-an-address"}, [("connection_creation_rate", 1)], "no IP address"),
        ({"ip": "10.0.0.1"}, [("producer_byte_rate", 1)], "there is no quota"),
        ({"user": "a"}, [("connection_creation_rate", 1)], "there is no quota"),
        ({"user": "a"}, [("nonsense", 1)], "there is no quota"),
        ({"user": "a"}, [("producer_byte_rate", 0)], "above 0"),
        ({"user": "a"}, [("producer_byte_rate", -5)], "above 0"),
        ({"user": "a"}, [("producer_byte_rate", float("nan"))], "above 0"),
        ({"user": "a"}, [("request_percentage", float("inf"))], "above 0"),
        ({"user": "a"}, [("producer_byte_rate", 1.5)], "whole number"),
        ({"user": "a"}, [("producer_byte_rate", 1e30)], "at most"),
        ({"user": "a"}, [("producer_byte_rate", 1), ("producer_byte_rate", 2)], "twice"),
    ],
)
def test_a_quota_that_makes_no_sense_is_refused_alone(
    entity: dict[str, str | None], ops: list[tuple[str, float | None]], sentence: str
) -> None:
    image, rows, count = altered(EMPTY, entry(entity, *ops), entry({"user": "good"}, ("producer_byte_rate", 7)))
    assert [row.error_code for row in rows] == [42, 0]
    assert sentence in rows[0].error_message
    assert count == 1
    assert list(described(image)) == [(("user", "good"),)]


def test_an_entity_named_twice_is_changed_once() -> None:
    image, rows, _ = altered(
        EMPTY, entry({"user": "a"}, ("producer_byte_rate", 1)), entry({"user": "a"}, ("producer_byte_rate", 2))
    )
    assert [row.error_code for row in rows] == [0, 42]
    assert described(image) == {(("user", "a"),): {"producer_byte_rate": 1}}


def test_what_is_only_checked_is_not_written() -> None:
    image, rows, count = altered(EMPTY, entry({"user": "a"}, ("producer_byte_rate", 1)), validate_only=True)
    assert (count, rows[0].error_code, described(image)) == (0, 0, {})


@pytest.mark.parametrize(
    "components",
    [
        [("", EXACT, "a")],
        [("user", EXACT, None)],
        [("user", DEFAULT, "a")],
        [("user", SPECIFIED, "a")],
        [("user", 7, None)],
        [("user", EXACT, "a"), ("user", EXACT, "b")],
        [("ip", SPECIFIED, None), ("user", EXACT, "a")],
        [("team", SPECIFIED, None)],
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(components: list[tuple[str, int, str | None]]) -> None:
    with pytest.raises(ApiError):
        described(EMPTY, *components)
