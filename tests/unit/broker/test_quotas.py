"""Whose quota counts, who shares it, and what is remembered of whom."""

from __future__ import annotations

from typing import Any

import pytest
from hand_clock import HandClock

from barnabas.broker.quotas import quotas
from barnabas.broker.quotas.quotas import Quotas
from barnabas.broker.settings.quotas import QuotaSettings
from barnabas.metadata.quotas_image import ClientQuotasImage
from barnabas.metadata.records import ClientQuotaRecord


def make(clock: HandClock | None = None, **settings: Any) -> Quotas:
    return Quotas(clock or HandClock(), QuotaSettings.of_values(settings))


def image(*entities: tuple[dict[str, str | None], str, float]) -> ClientQuotasImage:
    found = ClientQuotasImage()
    for entity, key, value in entities:
        parts = [ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()]
        found = found.with_quota(ClientQuotaRecord(entity=parts, key=key, value=value))
    return found


PRECEDENCE: list[dict[str, str | None]] = [
    {"user": "alice", "client-id": "c1"},
    {"user": "alice", "client-id": None},
    {"user": "alice"},
    {"user": None, "client-id": "c1"},
    {"user": None, "client-id": None},
    {"user": None},
    {"client-id": "c1"},
    {"client-id": None},
]


@pytest.mark.parametrize("first", range(len(PRECEDENCE)))
def test_the_most_specific_quota_counts(first: int) -> None:
    found = make()
    found.follow(image(*((PRECEDENCE[n], "producer_byte_rate", n + 1) for n in range(first, len(PRECEDENCE)))))
    limit = found.produce.limit("alice", "c1")
    assert limit is not None
    assert limit.value == first + 1


def test_each_kind_of_quota_is_looked_up_on_its_own() -> None:
    found = make()
    found.follow(image(({"user": "alice"}, "producer_byte_rate", 1), ({"client-id": None}, "consumer_byte_rate", 2)))
    produce, fetch = found.produce.limit("alice", "c"), found.fetch.limit("alice", "c")
    assert produce is not None
    assert fetch is not None
    assert (produce.value, fetch.value, found.request.limit("alice", "c")) == (1, 2, None)


def test_a_quota_of_a_user_is_shared_by_its_clients_and_a_default_by_nobody() -> None:
    found = make()
    found.follow(image(({"user": "alice"}, "producer_byte_rate", 1), ({"user": None}, "producer_byte_rate", 5)))

    def used(user: str, client: str) -> object:
        limit = found.produce.limit(user, client)
        assert limit is not None
        return found.produce.used(limit)

    assert used("alice", "a") is used("alice", "b")
    assert used("bob", "a") is not used("carol", "a")


def test_without_quotas_nothing_is_active_and_changes_are_told() -> None:
    found, told = make(), list[bool]()
    found.on_activity(told.append)
    found.follow(image(({"ip": None}, "connection_creation_rate", 1)))
    assert not found.is_active
    found.follow(image(({"user": "a"}, "producer_byte_rate", 1)))
    found.follow(image(({"user": "a"}, "producer_byte_rate", 2)))
    found.follow(image())
    assert told == [True, False]


def test_clients_beyond_count_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas, "KEPT_MAX", 10)
    clock = HandClock()
    found = make(clock)
    found.follow(image(({"client-id": None}, "producer_byte_rate", 1)))
    for number in range(100):
        clock.now_ms += 100
        limit = found.produce.limit("u", f"client-{number}")
        assert limit is not None
        found.produce.used(limit).record(1, now_ms=clock.now_ms, limit=1)
    assert len(found.produce._used) <= 10
    assert len(found.produce._found) <= 10


def test_an_address_that_connects_too_often_is_turned_away_and_others_are_not() -> None:
    clock = HandClock()
    found = make(clock).connections
    found.follow(image(({"ip": "10.0.0.1"}, "connection_creation_rate", 2)))
    paces = [found.pace("10.0.0.1") for _ in range(25)]
    assert [pace.is_refused for pace in paces] == [False] * 20 + [True] * 5
    assert all(found.pace("10.0.0.2") == (0, False) for _ in range(100))
    clock.now_ms += 11_000
    assert found.pace("::ffff:10.0.0.1") == (0, False)


def test_the_default_of_addresses_counts_for_each_alone() -> None:
    found = make().connections
    found.follow(
        image(({"ip": None}, "connection_creation_rate", 1), ({"ip": "10.0.0.9"}, "connection_creation_rate", 100))
    )
    assert sum(found.pace("10.0.0.1").is_refused for _ in range(15)) == 5
    assert sum(found.pace("10.0.0.2").is_refused for _ in range(15)) == 5
    assert not any(found.pace("10.0.0.9").is_refused for _ in range(15))


def test_all_connections_together_wait_for_their_turn() -> None:
    clock = HandClock()
    found = make(clock, **{"max.connection.creation.rate": 10}).connections
    paces = [found.pace(f"10.0.0.{number}") for number in range(120)]
    assert not any(pace.is_refused for pace in paces)
    assert [pace.wait_ms for pace in paces[:100]] == [0] * 100
    assert 1900 <= paces[-1].wait_ms <= 2100
