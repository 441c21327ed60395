"""Applications run in the test driver: the programs of the documentation, tables, stores and the clock."""

from __future__ import annotations

import msgspec
import pytest

from barnabas.streams import App, Continue, DeadLetter, Processor, Record, Store, StreamsError, drive, session, tumbling


class Order(msgspec.Struct):
    id: str
    total: int
    placed: int


class Payment(msgspec.Struct):
    order_id: str
    amount: int


class Paid(msgspec.Struct):
    id: str
    amount: int | None


def word_count() -> App:
    app = App("word-count")
    counts = (
        app.stream("lines", value=str)
        .flat_map_values(lambda line: line.lower().split())
        .group_by(lambda word: word)
        .count(store="counts")
    )
    counts.to_stream().to("word-counts", value=int)
    return app


def test_words_are_counted() -> None:
    with drive(word_count()) as driver:
        driver.send("lines", value="a b A", at=0)
        assert driver.table("word-counts") == {"a": 2, "b": 1}
        assert driver.store("counts") == {"a": 2, "b": 1}


def test_words_are_counted_on_several_partitions() -> None:
    with drive(word_count(), partitions=4) as driver:
        for number in range(20):
            driver.send("lines", value=f"a b w{number}", key=str(number), at=0)
        assert driver.store("counts")["a"] == 20
        partitions = {output.partition for output in driver.read("word-counts")}
        assert len(partitions) > 1


def test_orders_meet_their_payments() -> None:
    app = App("paid-orders")
    orders = app.stream("orders", value=Order, at=lambda order: order.placed)
    payments = app.stream("payments", value=Payment).select_key(lambda payment: payment.order_id)
    joined = orders.left_join(
        payments, lambda o, p: Paid(o.id, p.amount if p is not None else None), within="5m", grace="30s"
    )
    joined.to("paid", value=Paid)
    with drive(app) as driver:
        driver.send("orders", Order("1", 10, 1_000), key="1")
        driver.send("payments", Payment("1", 10), key="x", at=2_000)
        driver.send("orders", Order("2", 20, 3_000), key="2")
        assert driver.table("paid") == {"1": Paid("1", 10)}
        driver.send("orders", Order("3", 20, 400_000), key="3")
        assert driver.table("paid") == {"1": Paid("1", 10), "2": Paid("2", None)}


def test_sessions_are_emitted_when_they_close() -> None:
    app = App("sessions")
    visits = (
        app.stream("clicks", value=str)
        .group_by_key()
        .window(session(gap="30m", grace="5m"))
        .aggregate(list, lambda pages, page: [*pages, page], merge=lambda one, other: one + other)
        .suppress(until="window_closes")
    )
    visits.to_stream().map(lambda window, pages: (window.key, pages)).to("visits", key=str, value=list[str])
    with drive(app) as driver:
        for minute, page in ((0, "home"), (10, "cart"), (35, "pay")):
            driver.send("clicks", page, key="ann", at=minute * 60_000)
        assert driver.read("visits") == []
        driver.send("clicks", "home", key="bob", at=120 * 60_000)
        assert driver.table("visits") == {"ann": ["home", "cart", "pay"]}


def test_a_table_follows_its_topic() -> None:
    app = App("customers")
    accounts, customers = app.table("accounts", value=int), app.table("customers", value=str)
    regions = app.table("regions", value=str)
    people = customers.join(accounts, lambda region, balance: (region, balance))
    joined = people.join(regions, lambda person, region: f"{region}:{person[1]}", by=lambda person: person[0])
    joined.to_stream().to("people", value=str)
    with drive(app) as driver:
        driver.send("customers", "eu", key="ann")
        driver.send("accounts", 7, key="ann")
        driver.send("regions", "Europe", key="eu")
        assert driver.table("people") == {"ann": "Europe:7"}
        driver.send("regions", "EU", key="eu")
        assert driver.table("people") == {"ann": "EU:7"}
        driver.send("accounts", None, key="ann")
        assert driver.table("people") == {}


class Velocity(Processor[str, int, str, str]):
    """Warns of five payments within ten seconds."""

    seen: Store[str, list[int]]

    def init(self) -> None:
        self.schedule("1m", self.forget, by="stream_time")

    def process(self, record: Record[str, int]) -> None:
        recent = [*self.seen.get(record.key, ()), record.timestamp][-20:]
        self.seen[record.key] = recent
        if len(recent) >= 5 and recent[-1] - recent[-5] < 10_000:
            self.forward(record.with_value("5 in 10 s"))

    def forget(self, now: int) -> None:
        for key, times in list(self.seen.items()):
            if times[-1] < now - 3_600_000:
                del self.seen[key]


def test_a_processor_keeps_state_and_forgets() -> None:
    app = App("fraud")
    app.stream("payments", value=int).process(Velocity, key=str, value=str).to("alerts")
    with drive(app) as driver:
        for second in range(5):
            driver.send("payments", 1, key="ann", at=second * 1_000)
        assert driver.table("alerts") == {"ann": "5 in 10 s"}
        driver.send("payments", 1, key="bob", at=4_000_000)
        assert list(driver.store("seen")) == ["bob"]


def test_branches_share_a_stream() -> None:
    app = App("triage", on_error=Continue())
    small, large, rest = app.stream("orders", value=int).split(
        lambda total: total < 100, lambda total: total >= 1_000, default=True
    )
    small.to("small")
    large.to("large")
    rest.to("rest")
    with drive(app) as driver:
        for total in (5, 5_000, 500):
            driver.send("orders", total, key="k")
        assert [driver.table(topic) for topic in ("small", "large", "rest")] == [{"k": 5}, {"k": 5_000}, {"k": 500}]


def test_late_records_are_dropped_by_windows() -> None:
    app = App("late")
    app.stream("in", value=int).group_by_key().window(tumbling("10s")).count().to_stream().to("out", value=int)
    with drive(app) as driver:
        for at in (1_000, 11_000, 2_000):
            driver.send("in", 1, key="k", at=at)
        assert [(output.key.start, output.value) for output in driver.read("out")] == [(0, 1), (10_000, 1)]


def test_an_unknown_topic_or_store_is_named() -> None:
    with drive(word_count()) as driver:
        with pytest.raises(StreamsError, match="does not read topic nope; it reads: lines"):
            driver.send("nope", "x")
        with pytest.raises(StreamsError, match="has no store nope; its stores are: counts"):
            driver.store("nope")


def test_a_topic_that_is_written_and_read_loops() -> None:
    app = App("loop")
    app.stream("numbers", value=int).filter(lambda n: n > 0).map_values(lambda n: n - 1, value=int).to("numbers")
    app.table("done", value=int)
    with drive(app) as driver:
        driver.send("numbers", 3, key="k")
        assert [output.value for output in driver.read("numbers")] == [2, 1, 0]


def test_values_are_pydantic_models() -> None:
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Order", customer=(str, ...), total=(int, ...))
    app = App("models", on_error=DeadLetter("dead"))
    app.stream("in", value=model).group_by(lambda order: order.customer, key=str).reduce(
        lambda one, other: other if other.total > one.total else one, store="largest"
    ).to_stream().to("out")
    with drive(app) as driver:
        for total in (3, 7, 5):
            driver.send("in", model(customer="ann", total=total))
        driver.send_bytes("in", None, b'{"customer": "ann", "total": "many"}')
        driver.restart()
        assert driver.store("largest") == {"ann": model(customer="ann", total=7)}
        assert len(driver.read("dead")) == 1
