"""Streams applications on Spark: the results are those of the test driver, also after restarts."""

from __future__ import annotations

from typing import Any

import streams_apps
from streams_running import Playground


def test_words_are_counted_across_batches_and_restarts(stage: Any) -> None:
    ground = Playground(stage, streams_apps.words, {"lines": 2, "word-counts": 2})
    ground.send("lines", [("1", "a b a"), ("2", "b c")])
    ground.run()
    ground.send("lines", [("1", "a"), ("2", "c c")])
    ground.run()
    assert ground.table("word-counts") == {"a": "3", "b": "2", "c": "3"}
    assert len(ground.records("word-counts")) == 8, "every update is written"
    assert ground.table("words-counts-changelog") == {"a": "3", "b": "2", "c": "3"}
    assert ground.committed("lines") == 4
