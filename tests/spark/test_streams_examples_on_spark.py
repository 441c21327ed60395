"""The two larger Streams applications of ``examples`` write on Spark what they write in the test driver."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest

from barnabas.streams import Driver
from barnabas.streams.host.code import load_module
from barnabas.testing.plugin import Drive

EXAMPLES = Path(__file__).parents[2] / "examples" / "streams"
Written = list[tuple[Any, Any, int]]


def play_games(example: Any, driver: Driver) -> list[Written]:
    at = count()
    for key, name in (("1", "Ann"), ("2", "Bob"), ("3", "Cy")):
        driver.send("players", example.Player(name, "gold"), key=key, at=next(at))
    for key, points in (("1", 5), ("2", 9), ("3", 7), ("1", 5)):
        driver.send("points", points, key=key, at=next(at))
    first = written(driver, "leaderboard")
    driver.send("players", example.Player("Ann", "silver"), key="1", at=next(at))
    driver.send("points", 4, key="3", at=next(at))
    return [first, written(driver, "leaderboard")]


def pay(example: Any, driver: Driver) -> list[Written]:
    driver.send("merchants", example.Merchant(20), key="shop", at=0)
    driver.send("cards", example.Card("ann", 100), key="1", at=1)
    for second, (amount, country) in enumerate(((10, "AT"), (150, "AT"), (10, "AT"), (10, "AT")), 1):
        driver.send("payments", example.Payment("shop", amount, country), key="1", at=second * 1_000)
    first = [written(driver, topic) for topic in ("alerts", "blocked-cards")]
    driver.send("payments", example.Payment("shop", 500, "IT"), key="1", at=300_000)
    return [*first, *(written(driver, topic) for topic in ("alerts", "blocked-cards"))]


def written(driver: Driver, topic: str) -> Written:
    return [(output.key, output.value, output.timestamp) for output in driver.read(topic)]


@pytest.mark.parametrize(("name", "play"), [("leaderboard", play_games), ("fraud_detection", pay)])
def test_an_example_writes_on_spark_what_it_writes_in_the_test_driver(
    name: str, play: Any, stage: Any, drive: Drive
) -> None:
    example = load_module(EXAMPLES / f"{name}.py")
    expected = play(example, drive(example.app))
    assert all(expected)
    assert play(example, drive(example.app, on="spark")) == expected
