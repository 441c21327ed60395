"""Several registries share one topic: one leads, the others forward, and neither crash nor freeze gives an id twice.

``BARNABAS_REGISTRATIONS=1000`` runs the crash test at full size.
"""

from __future__ import annotations

import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from barnabas.testing import Broker, RegistryProcess

REGISTRATIONS = int(os.environ.get("BARNABAS_REGISTRATIONS", "40"))
CLIENTS = 8
FIRST = 1_000_000  # the number of a schema that is registered again and again
SECONDS_MAX = 60.0
HTTP = httpx.Client(verify=False, limits=httpx.Limits(max_keepalive_connections=0))


def schema(number: int) -> str:
    return json.dumps({"type": "record", "name": f"R{number}", "fields": []}, separators=(",", ":"))


def leads(registry: RegistryProcess) -> bool:
    try:
        return bool(HTTP.get(f"{registry.url}/readyz", timeout=2).json()["leads"])
    except httpx.HTTPError:
        return False


def leader_of(registries: list[RegistryProcess]) -> RegistryProcess:
    """The first registration makes the topic, and the election over it."""
    register([each.url for each in registries], FIRST)
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        for each in registries:
            if leads(each):
                return each
        time.sleep(0.05)
    raise AssertionError("there is no leader")


def until_leads(registry: RegistryProcess) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not leads(registry):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def register(urls: list[str], number: int) -> int:
    """As clients do it: another address, and again, until one answers."""
    deadline = time.monotonic() + SECONDS_MAX
    turn = number
    while time.monotonic() < deadline:
        turn += 1
        try:
            answer = HTTP.post(
                f"{urls[turn % len(urls)]}/subjects/s-{number}/versions", json={"schema": schema(number)}, timeout=30
            )
        except httpx.HTTPError:
            time.sleep(0.1)
            continue
        if answer.status_code == 200:
            return int(answer.json()["id"])
        assert answer.status_code >= 500, answer.text
    raise AssertionError(f"schema {number} could not be registered")


def assert_same(url: str, ids: dict[int, int]) -> None:
    """Every schema is there under the id that its client was told."""
    for number, schema_id in ids.items():
        assert HTTP.get(f"{url}/schemas/ids/{schema_id}/schema").text == schema(number)
        assert HTTP.get(f"{url}/subjects/s-{number}/versions").json() == [1]


@pytest.mark.timeout(600)
def test_a_leader_that_is_killed_loses_no_schema_and_gives_no_id_twice() -> None:
    with Broker() as broker:
        registries = [RegistryProcess(broker.bootstrap_servers) for _ in range(2)]
        try:
            for each in registries:
                each.start()
            victim = leader_of(registries)
            urls = [each.url for each in registries]
            done = threading.Semaphore(0)

            def one(number: int) -> int:
                found = register(urls, number)
                done.release()
                return found

            with ThreadPoolExecutor(CLIENTS) as clients:
                futures = {number: clients.submit(one, number) for number in range(REGISTRATIONS)}
                for _ in range(REGISTRATIONS // 3):
                    assert done.acquire(timeout=SECONDS_MAX)
                victim.kill()
                ids = {number: future.result() for number, future in futures.items()}
            assert len(set(ids.values())) == REGISTRATIONS
            survivor = next(each for each in registries if each is not victim)
            assert leads(survivor)
            assert_same(survivor.url, ids)
            victim.start()  # reads everything from the topic
            assert_same(victim.url, ids)
        finally:
            for each in registries:
                if each.is_running:
                    each.stop()


@pytest.mark.timeout(300)
def test_a_leader_that_was_frozen_cannot_write_when_it_wakes() -> None:
    with (
        Broker() as broker,
        RegistryProcess(broker.bootstrap_servers) as one,
        RegistryProcess(broker.bootstrap_servers) as two,
    ):
        frozen = leader_of([one, two])
        other = two if frozen is one else one
        first = register([frozen.url], 1)
        frozen.pause()
        answers: list[httpx.Response] = []
        # This request lies in the frozen process's socket: it is the first thing that it sees when it wakes.
        waiting = threading.Thread(
            target=lambda: answers.append(
                HTTP.post(f"{frozen.url}/subjects/s-3/versions", json={"schema": schema(3)}, timeout=SECONDS_MAX)
            )
        )
        waiting.start()
        until_leads(other)
        second = register([other.url], 2)
        frozen.resume()
        waiting.join()
        assert answers[0].status_code == 200, answers[0].text
        third = answers[0].json()["id"]
        assert len({first, second, third}) == 3
        assert not (leads(frozen) and leads(other))
        for url in (frozen.url, other.url):
            assert_same(url, {1: first, 2: second, 3: third})


def test_a_follower_forwards_writes_and_reads_them_back() -> None:
    with (
        Broker() as broker,
        RegistryProcess(broker.bootstrap_servers) as one,
        RegistryProcess(broker.bootstrap_servers) as two,
    ):
        follower = two if leader_of([one, two]) is one else one
        assert not leads(follower)
        schema_id = register([follower.url], 1)
        assert_same(follower.url, {1: schema_id})
        refused = HTTP.put(f"{follower.url}/config", json={"compatibility": "SIDEWAYS"})
        assert (refused.status_code, refused.json()["error_code"]) == (422, 42203)
        assert HTTP.put(f"{follower.url}/config", json={"compatibility": "FULL"}).json() == {"compatibility": "FULL"}
        assert HTTP.get(f"{one.url}/config").json() == {"compatibilityLevel": "FULL"}
        assert HTTP.get(f"{two.url}/config").json() == {"compatibilityLevel": "FULL"}
        assert HTTP.delete(f"{follower.url}/subjects/s-1").json() == [1]
