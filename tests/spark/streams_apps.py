"""Applications for the tests of Streams on Spark. Workers run this file again, so it holds nothing but applications."""

from __future__ import annotations

import msgspec

from barnabas.streams import App, Processor, Record, Store


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
