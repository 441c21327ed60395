"""Every Streams application in ``examples/streams`` is driven record by record and gives the results it promises."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.streams import App, Driver, drive
from barnabas.streams.host.code import load_module

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "streams"
MINUTE_MS = 60_000
Driven = Callable[[Any, Driver], None]


def word_count(example: Any, driver: Driver) -> None:
    driver.send("lines", "to be or")
    driver.send("lines", "not to BE")
    assert driver.table("word-counts") == {"to": 2, "be": 2, "or": 1, "not": 1}
    assert driver.store("counts") == driver.table("word-counts")


def paid_orders(example: Any, driver: Driver) -> None:
    driver.send("orders", example.Order("1", 10, placed=1_000), key="1")
    driver.send("orders", example.Order("2", 20, placed=2_000), key="2")
    driver.send("payments", example.Payment("1", 10), key="x", at=3_000)
    assert driver.table("paid") == {"1": example.Paid("1", 10, 10)}
    driver.send("payments", example.Payment("2", 20), key="y", at=6 * MINUTE_MS)  # too late: closes the window
    assert driver.table("paid")["2"] == example.Paid("2", 20, None)


def customers(example: Any, driver: Driver) -> None:
    driver.send("customers", example.Customer("Ann", "eu"), key="1")
    driver.send("accounts", example.Account(7), key="1")
    assert driver.table("people") == {}
    driver.send("regions", example.Region("Europe"), key="eu")
    assert driver.table("people") == {"1": example.Person("Ann", 7, "Europe")}
    driver.send("regions", example.Region("EU"), key="eu")
    driver.send("accounts", example.Account(9), key="1")
    assert driver.store("people") == {"1": example.Person("Ann", 9, "EU")}
    driver.send("customers", None, key="1")
    assert driver.table("people") == {}


def sessions(example: Any, driver: Driver) -> None:
    for minute, page in ((0, "home"), (34, "pay"), (20, "cart")):  # the click in the middle makes it one visit
        driver.send("clicks", example.Click(page), key="ann", at=minute * MINUTE_MS)
    assert driver.read("visits") == []
    driver.send("clicks", example.Click("home"), key="ann", at=120 * MINUTE_MS)
    (visit,) = driver.read("visits")
    assert (visit.key, visit.value.start, visit.value.end) == ("ann", 0, 34 * MINUTE_MS)
    assert sorted(visit.value.pages) == ["cart", "home", "pay"]


def fraud_rule(example: Any, driver: Driver) -> None:
    def pay(card: str, second: int) -> None:
        driver.send("payments", example.Payment(1), key=card, at=second * 1_000, partition=0)

    for number in range(4):
        pay("card", number)
        pay("slow", number * 60)
    assert driver.read("alerts") == []
    pay("card", 4)
    assert driver.table("alerts") == {"card": example.Alert("card", "5 payments in 10 s")}
    pay("new", 2 * 3_600)
    assert list(driver.store("seen")) == ["new"]


def triage(example: Any, driver: Driver) -> None:
    for name, total, items in (("a", 50, 1), ("b", 500, 1), ("c", 5_000, 2), ("d", 5_000, 0)):
        driver.send("orders", example.Order(name, total, items), key=name)
    driver.send_bytes("orders", b"e", b"not an order")
    assert list(driver.table("small-orders")) == ["a"]
    assert list(driver.table("orders-checked")) == ["b"]
    assert driver.table("to-review") == {"c": example.Review("c", 2_500)}
    assert [row.key for row in driver.read_rows("triage-dead-letters")] == [b"d", b"e"]


def fraud_detection(example: Any, driver: Driver) -> None:
    driver.send("cards", example.Card("ann", 100), key="1", at=0)
    driver.send("merchants", example.Merchant(20), key="shop", at=0)

    def pay(amount: int, country: str, second: int, merchant: str = "shop", card: str = "1") -> list[tuple[str, int]]:
        driver.send("payments", example.Payment(merchant, amount, country), key=card, at=second * 1_000)
        return [(each.value.rule, each.value.score) for each in driver.read("alerts")]

    assert pay(10, "AT", 0) == []
    assert pay(500, "AT", 1, card="unknown") == []
    assert pay(150, "AT", 1) == [("over the limit", 50)]
    assert pay(10, "AT", 2) == []
    assert driver.table("blocked-cards") == {}
    assert pay(10, "AT", 3) == [("too many payments in a minute", 50)]
    assert pay(10, "AT", 4) == []
    assert driver.table("blocked-cards") == {"1": 100}
    assert pay(150, "IT", 5 * 60, merchant="new") == [("over the limit", 65), ("AT and IT within an hour", 60)]
    assert driver.table("blocked-cards") == {"1": 225}
    assert pay(10, "FR", 3 * 3_600) == []


def leaderboard(example: Any, driver: Driver) -> None:
    def board(league: str) -> list[tuple[str, int]]:
        return [(each.name, each.points) for each in driver.table("leaderboard").get(league, [])]

    for key, name in (("1", "Ann"), ("2", "Bob"), ("3", "Cy"), ("4", "Di")):
        driver.send("players", example.Player(name, "gold"), key=key)
    for key, points in (("1", 5), ("2", 9), ("3", 7), ("4", 1), ("1", 5)):
        driver.send("points", points, key=key)
    assert board("gold") == [("Ann", 10), ("Bob", 9), ("Cy", 7)]
    driver.send("players", example.Player("Anna", "silver"), key="1")
    assert board("gold") == [("Bob", 9), ("Cy", 7), ("Di", 1)], "the fourth moves up"
    assert board("silver") == [("Anna", 10)]
    driver.send("players", None, key="2")
    assert board("gold") == [("Cy", 7), ("Di", 1)]
    driver.restart()
    driver.send("points", 100, key="4")
    assert board("gold") == [("Di", 101), ("Cy", 7)]


DRIVEN: dict[str, Driven] = {
    each.__name__: each
    for each in (word_count, paid_orders, customers, sessions, fraud_rule, triage, fraud_detection, leaderboard)
}


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Load an example as ``barnabas run`` does."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    return lambda name: load_module(EXAMPLES / f"{name}.py")


def test_every_example_is_driven() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(DRIVEN)


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("name", DRIVEN)
def test_an_example_gives_its_results(name: str, partitions: int, load: Callable[[str], Any]) -> None:
    example = load(name)
    assert isinstance(example.app, App)
    with drive(example.app, partitions=partitions) as driver:
        DRIVEN[name](example, driver)


@pytest.mark.slow
def test_the_examples_are_typed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), *map(str, EXAMPLES.glob("*.py"))]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert result.returncode == 0, result.stdout
