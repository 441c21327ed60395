"""Alert on five payments within ten seconds: a processor with a store and a punctuator."""

import msgspec

from barnabas.streams import App, Processor, Record, Store

HOUR_MS = 3_600_000


class Payment(msgspec.Struct):
    amount: int


class Alert(msgspec.Struct):
    card: str
    reason: str


class Velocity(Processor[str, Payment, str, Alert]):
    """Keeps the times of the last payments of each card."""

    seen: Store[str, list[int]]

    def init(self) -> None:
        self.schedule("1m", self.forget, by="stream_time")

    def process(self, record: Record[str, Payment]) -> None:
        recent = [*self.seen.get(record.key, ()), record.timestamp][-5:]
        self.seen[record.key] = recent
        if len(recent) == 5 and recent[-1] - recent[0] < 10_000:
            self.forward(record.with_value(Alert(record.key, "5 payments in 10 s")))

    def forget(self, now: int) -> None:
        for card, times in list(self.seen.items()):
            if times[-1] < now - HOUR_MS:
                del self.seen[card]


app = App("fraud")
app.stream("payments", value=Payment).process(Velocity, key=str, value=Alert).to("alerts")
