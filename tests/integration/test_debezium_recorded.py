"""Our change events beside Debezium's, which are recorded: types, defaults, keys, large values, changes of schemas."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

from conformance.connect.events import compare, events_of
from conformance.connect.recorded import PATH, SEED, TRANSACTIONS, stable, unpacked
from conformance.connect.workload import SCHEMA, TABLES, Workload

from barnabas.connect.converters import JsonConfig, JsonConverter, SimpleConverter
from barnabas.connect.records import Record

DIFFERENCES_MAX = 10


class Written(NamedTuple):
    """A record as it would be in the topic."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


def written(record: Record) -> Written:
    convert, plain = JsonConverter(JsonConfig()), SimpleConverter(SimpleConverter.Config())
    key = None if record.key is None else convert.to_bytes(record.topic, record.key_schema, record.key)
    value = None if record.value is None else convert.to_bytes(record.topic, record.value_schema, record.value)
    headers = [(each.key, plain.to_bytes(record.topic, each.schema, each.value)) for each in record.headers]
    return Written(key, value, headers)


def test_events_are_those_that_debezium_made_of_the_same_statements(sql: Any, capture: Any) -> None:
    workload = Workload(SEED)
    for statement in (*SCHEMA, *workload.first_rows()):
        sql(statement)
    run = capture(skipped_operations="none")
    run.until(lambda: any(each.value and each.value["source"]["snapshot"] == "last" for each in run.records))
    for statements, is_committed in workload.transactions(TRANSACTIONS):
        for statement in ("begin", *statements, "commit" if is_committed else "rollback"):
            sql(statement)
    sql("insert into marker values (1, 'the end')")
    run.until(lambda: any(each.key == {"id": 1} and each.topic.endswith("marker") for each in run.records))
    found: dict[str, list[Written]] = defaultdict(list)
    for record in run.records:
        found[record.topic.rpartition(".")[2]].append(written(record))
    theirs = unpacked(PATH.read_bytes())
    differences: list[str] = []
    for table in TABLES:
        ours = stable(events_of(found[table], "shop"))
        assert len(ours) == len(theirs[table]), table
        differences += [f"{path}: {text}" for path, text in compare(theirs[table], ours, table)]
    assert not differences, differences[:DIFFERENCES_MAX]
