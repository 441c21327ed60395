"""Applications for the tests of Streams on Spark. Workers run this file again, so it holds nothing but applications."""

from __future__ import annotations

import msgspec

from barnabas.streams import App, DeadLetter, Processor, Record, Store, col, store, tumbling


class Order(msgspec.Struct):
    customer: str
    total: int


words = App("words")
(
    words.stream("lines", value=str)
    .flat_map_values(lambda line: line.split())
    .group_by(lambda word: word)
    .count(store="counts")
    .to_stream()
    .to("word-counts")
)

people = App("people")
names = people.table("names", value=str)
cities = people.table("cities", value=str)
names.join(cities, lambda name, city: f"{name} in {city}", store="located").to_stream().to("located")

sums = App("sums")
(
    sums.stream("orders", value=Order)
    .group_by(lambda order: order.customer)
    .aggregate(lambda: 0, lambda total, order: total + order.total, value=int)
    .to_stream()
    .group_by(lambda customer, total: customer[:1])
    .reduce(max, store="largest")
    .to_stream()
    .to("largest")
)

rates = App("rates")
prices = rates.global_table("prices", value=int)
rates.stream("sales", value=str).join(prices, lambda sale, price: f"{sale} for {price}", by=lambda key, sale: sale).to(
    "priced"
)


class Pulse(Processor[str, str, str, str]):
    """Writes the number of records so far whenever a tick comes."""

    seen: Store[str, int]

    def init(self) -> None:
        self.schedule("200ms", self.tell, by="wall_clock")

    def process(self, record: Record[str, str]) -> None:
        self.seen["all"] = self.seen.get("all", 0) + 1

    def tell(self, now: int) -> None:
        if self.seen.get("all"):
            self.forward(Record("all", str(self.seen["all"]), now))


pulses = App("pulses")
pulses.stream("beats", value=str).process(Pulse).to("pulse")

owned = App("owned")
pets = owned.table("pets", value=str)  # name of the owner
owners = owned.table("owners", value=str)
pets.join(owners, lambda owner, city: f"{owner} of {city}", by=lambda owner: owner).to_stream().to("owned-pets")

large = App("large")
large.stream("blobs", value=str).group_by_key().reduce(lambda old, new: new, store="blobs").to_stream().to(
    "blob-copies"
)


class Recent(Processor[str, str, str, str]):
    """Forwards the number of clicks of a key in the last 5 seconds."""

    seen: Store[str, int] = store(ttl="5s")

    def process(self, record: Record[str, str]) -> None:
        assert record.key is not None
        self.seen[record.key] = self.seen.get(record.key, 0) + 1
        self.forward(Record(record.key, f"recent {self.seen[record.key]}", record.timestamp))


everything = App("everything")
ordered = everything.stream("e-orders", value=str)
clicked = everything.stream("e-clicks", value=str)
everything_names = everything.table("e-names", value=str)
ordered.left_join(everything_names, lambda order, name: f"{name} bought {order}", value=str).to("e-out")
ordered.join(clicked, lambda order, click: f"{order} after {click}", within="1s", grace="1s", value=str).to("e-out")
clicked.process(Recent, key=str, value=str).to("e-out")
(
    clicked.group_by_key()
    .window(tumbling("1s", grace="500ms"))
    .count(store="clicks")
    .suppress(until="window_closes")
    .to_stream()
    .map(lambda window, count: (window.key, f"{window.start}: {count}"), key=str, value=str)
    .to("e-out")
)

ranked = App("ranked")
ranked_prices = ranked.global_table("r-prices", value=int)
(
    ranked.stream("r-orders", value=str)
    .group_by(lambda customer: customer[:1], key=str)
    .count(store="orders-by-letter")
    .to_stream()
    .left_join(ranked_prices, lambda count, price: f"{count} at {price}", by=lambda letter, count: letter, value=str)
    .to("r-largest")
)

shelf = App("shelf")
shelf.stream("s-books", value=str).group_by_key().count(store="shelved").to_stream().to("s-out")

lent = App("lent")
lent.stream("l-books", value=str).group_by_key().count(store="lent").to_stream().to("l-out")

copies = App("copies", on_error=DeadLetter("c-dead"))
copies.stream("c-in", value=Order).filter(col("customer") == "ann").map_values(
    lambda order: 10 // order.total, value=int
).to("c-out")

framed = App("framed")
files = framed.from_dataframe(
    "f-files",
    lambda spark: (
        spark.readStream.schema("key string, value string, timestamp timestamp")
        .json(spark.conf.get("spark.tests.frames"))
        .where("value is not null")
    ),
    value=str,
    partitions=2,
)
named = framed.table("f-names", value=str)
files.left_join(named, lambda value, name: f"{name}: {value}", value=str).to("f-out")
files.group_by_key().count(store="f-counts").to_stream().to("f-counted")
