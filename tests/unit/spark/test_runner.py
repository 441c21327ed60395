"""What a pipeline's progress and its errors say to people."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from barnabas.spark.pipelines.runner import reason_of, state_of

STALLED = """[STREAM_FAILED] Query [id = 1] terminated with exception: Traceback (most recent call last):
  File "reading.py", line 58, in read
    reading.close()
barnabas.spark.errors.DataLost: records of orders-0 from 3 up to 9 are gone. Start with a new checkpoint.
 SQLSTATE: 38000
=== Streaming Query ==="""
BROKEN = """[STREAM_FAILED] terminated: Job aborted: org.apache.spark.SparkRuntimeException: [USER_RAISED_EXCEPTION] \
a record cannot be decoded: topic orders, partition 0, offset 7: it is not JSON
\tat org.apache.spark.Something
+- Project [raise_error(concat(a record cannot be decoded: topic , topic#1, partition , partition#2))]"""


def test_the_sentence_is_found_among_the_traces() -> None:
    assert reason_of(STALLED) == "records of orders-0 from 3 up to 9 are gone. Start with a new checkpoint."
    assert reason_of(BROKEN).startswith(
        "a record cannot be decoded: topic orders, partition 0, offset 7: it is not JSON"
    )
    assert reason_of("something else\nat x") == "something else"


def test_lag_is_what_the_sources_have_not_read() -> None:
    source = {"latestOffset": {"a": {"0": 10, "1": 4}}, "endOffset": {"a": {"0": 7}}}
    state = state_of(
        {"batchId": 3, "numInputRows": 5, "sources": [source, {"latestOffset": None}], "stateOperators": []}
    )
    assert (state.batch_id, state.rows, state.lag) == (3, 5, 7)
