"""The six kinds of work as applications of Barnabas: ``barnabas run bench/streams/apps.py count``."""

import msgspec

from barnabas.streams import App, tumbling


class Value(msgspec.Struct):
    amount: int
    sent: int
    text: str


class Result(msgspec.Struct):
    amount: int
    sent: int


def both(one: Value, other: Value) -> Result:
    return Result(one.amount + other.amount, one.sent)


map_filter = App("barnabas-map-filter")
map_filter.stream("left", value=Value).filter(lambda value: value.amount % 2 == 0).map_values(
    lambda value: Result(value.amount * 2, value.sent), value=Result
).to("out-barnabas")

count = App("barnabas-count")
count.stream("left", value=Value).group_by_key().count(store="counts").to_stream().to("out-barnabas")

windowed_count = App("barnabas-windowed-count")
windows = windowed_count.stream("left", value=Value).group_by_key().window(tumbling("10s")).count(store="counts")
windows.to_stream().map(lambda window, number: (window.key, number), key=str, value=int).to("out-barnabas")

stream_table = App("barnabas-stream-table")
stream_table.stream("left", value=Value).join(
    stream_table.table("right", value=Value, store="rows"), both, value=Result
).to("out-barnabas")

table_table = App("barnabas-table-table")
table_table.table("left", value=Value, store="left").join(
    table_table.table("right", value=Value, store="right"), both, value=Result
).to_stream().to("out-barnabas")

stream_stream = App("barnabas-stream-stream")
stream_stream.stream("left", value=Value).join(
    stream_stream.stream("right", value=Value), both, within="500ms", value=Result
).to("out-barnabas")
