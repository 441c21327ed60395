"""Fraud detection: three rules raise alerts, and a card that collects enough of them within an hour is blocked.

Topics that it reads: ``payments`` (key: card), ``cards`` (key: card, a table) and ``merchants`` (key: merchant, a
small table of which every task has a copy). It writes ``alerts`` and ``blocked-cards``.
"""

import msgspec

from barnabas.streams import App, DeadLetter, Processor, Record, Store, store, tumbling

BLOCK_AT = 100  # score of a card at which it is blocked
PAYMENTS_MAX = 3  # payments of a card within a minute
TRAVEL_MS = 3_600_000  # shortest time between payments in two countries


class Payment(msgspec.Struct):
    merchant: str
    amount: int
    country: str


class Card(msgspec.Struct):
    customer: str
    limit: int


class Merchant(msgspec.Struct):
    risk: int  # 0 to 100


class Checked(msgspec.Struct):
    """A payment with its card and the risk of its merchant."""

    customer: str
    amount: int
    limit: int
    country: str
    risk: int


class Alert(msgspec.Struct):
    rule: str
    score: int


class Place(msgspec.Struct):
    country: str
    at: int


class Travel(Processor[str, Checked, str, Alert]):
    """Alerts if a card is used in two countries within an hour."""

    places: Store[str, Place] = store(ttl="1h")

    def process(self, record: Record[str, Checked]) -> None:
        before: Place | None = self.places.get(record.key)
        country = record.value.country
        if before is not None and before.country != country and record.timestamp - before.at < TRAVEL_MS:
            self.forward(record.with_value(Alert(f"{before.country} and {country} within an hour", 60)))
        self.places[record.key] = Place(country, record.timestamp)


app = App("fraud-detection", on_error=DeadLetter("fraud-dead-letters"))
cards = app.table("cards", value=Card)
merchants = app.global_table("merchants", value=Merchant)

with_card = app.stream("payments", value=Payment).join(cards, lambda payment, card: (payment, card))
checked = with_card.left_join(
    merchants,
    lambda pair, merchant: Checked(
        pair[1].customer, pair[0].amount, pair[1].limit, pair[0].country, merchant.risk if merchant else 50
    ),
    by=lambda pair: pair[0].merchant,
    value=Checked,
)

over_limit = checked.filter(lambda payment: payment.amount > payment.limit).map_values(
    lambda payment: Alert("over the limit", 40 + payment.risk // 2), value=Alert
)
too_many = (
    checked.group_by_key()
    .window(tumbling("1m", grace="10s"))
    .count()
    .to_stream()
    .filter(lambda count: count == PAYMENTS_MAX + 1)  # one alert for each minute
    .map(lambda window, count: (window.key, Alert("too many payments in a minute", 50)), key=str, value=Alert)
)
travel = checked.process(Travel, key=str, value=Alert)

alerts = over_limit.merge(too_many).merge(travel)
alerts.to("alerts", key=str, value=Alert)

scores = (
    alerts.repartition(key=str, value=Alert, name="alerts-by-card")
    .group_by_key()
    .window(tumbling("1h", grace="10s"))
    .aggregate(lambda: 0, lambda score, alert: score + alert.score, value=int, store="scores")
)
scores.to_stream().filter(lambda score: score >= BLOCK_AT).map(
    lambda window, score: (window.key, score), key=str, value=int
).to("blocked-cards")
