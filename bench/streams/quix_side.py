"""The work as Quix Streams; it has no table-table join. Runs in an environment of its own: SERVERS WORKLOAD STATE."""

# mypy: ignore-errors
import sys
from datetime import timedelta

from quixstreams import Application

servers, name, directory = sys.argv[1:]
app = Application(
    servers,
    consumer_group=f"quix-{name}",
    auto_offset_reset="earliest",
    state_dir=directory,
    commit_interval=0.1,
    processing_guarantee="exactly-once",
    loglevel="ERROR",
)
left = app.dataframe(app.topic("left", key_deserializer="str"))
out = app.topic("out-quix", key_serializer="str")


def both(one, other):
    return {"amount": one["amount"] + other["amount"], "sent": one["sent"]}


def counted(value, state):
    number = state.get("count", 0) + 1
    state.set("count", number)
    return number


if name == "map-filter":
    left = left[left["amount"] % 2 == 0].apply(lambda value: {"amount": value["amount"] * 2, "sent": value["sent"]})
elif name == "count":
    left = left.apply(counted, stateful=True)
elif name == "windowed-count":
    left = left.tumbling_window(timedelta(seconds=10)).count().current()
elif name == "stream-table":
    left = left.join_asof(app.dataframe(app.topic("right", key_deserializer="str")), on_merge=both)
elif name == "stream-stream":
    span = timedelta(milliseconds=500)
    right = app.dataframe(app.topic("right", key_deserializer="str"))
    left = left.join_interval(right, on_merge=both, backward_ms=span, forward_ms=span, grace_ms=timedelta(seconds=1))
else:
    sys.exit(f"Quix Streams has no {name}")
left.to_topic(out)
app.run()
