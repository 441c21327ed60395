"""The work as Faust; it has no joins, so tables are filled by agents. Runs in an environment of its own."""

# mypy: ignore-errors
import sys

import faust

servers, name, directory = sys.argv[1:]
app = faust.App(
    f"faust-{name}",
    broker=f"kafka://{servers}",
    store="memory://",
    datadir=directory,
    topic_partitions=4,
    broker_commit_interval=0.1,
    consumer_auto_offset_reset="earliest",
    web_enabled=False,
)


class Value(faust.Record, serializer="json", validation=False):
    amount: int
    sent: int
    text: str


left = app.topic("left", key_type=str, value_type=Value, key_serializer="raw")
right = app.topic("right", key_type=str, value_type=Value, key_serializer="raw")
out = app.topic("out-faust", key_serializer="raw", value_serializer="json")

if name == "map-filter":

    @app.agent(left)
    async def map_filter(stream):
        async for key, value in stream.items():
            if value.amount % 2 == 0:
                await out.send(key=key, value={"amount": value.amount * 2, "sent": value.sent})

elif name in ("count", "windowed-count"):
    counts = app.Table("counts", default=int, partitions=4)
    table = counts.tumbling(10.0, expires=60.0) if name == "windowed-count" else counts

    @app.agent(left)
    async def count(stream):
        async for event in stream.events():
            key = event.key
            table[key] += 1
            number = table[key].value() if name == "windowed-count" else table[key]
            await out.send(key=key, value=number)

elif name in ("stream-table", "table-table"):
    lefts = app.Table("lefts", partitions=4)
    rights = app.Table("rights", partitions=4)

    async def join(key, one, other):
        if one is not None and other is not None:
            await out.send(key=key, value={"amount": one["amount"] + other["amount"], "sent": one["sent"]})

    @app.agent(right)
    async def fill(stream):
        async for key, value in stream.items():
            rights[key] = value.asdict()
            if name == "table-table":
                await join(key, lefts.get(key), value.asdict())

    @app.agent(left)
    async def enrich(stream):
        async for key, value in stream.items():
            if name == "table-table":
                lefts[key] = value.asdict()
            await join(key, value.asdict(), rights.get(key))

else:
    sys.exit(f"Faust has no {name}")

faust.Worker(app, loglevel="ERROR").execute_from_commandline()
