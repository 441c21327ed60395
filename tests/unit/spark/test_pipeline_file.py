"""Pipelines out of files: Python and YAML."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.spark.errors import InvalidOption, PipelineFailed
from barnabas.spark.pipelines.pipeline import Files, Pipeline, Topic
from barnabas.spark.pipelines.pipeline_file import load

PYTHON = """
from barnabas.spark import Topic, pipeline

@pipeline(reads={"orders": Topic(name="orders", schema="id long")}, writes=Topic(name="copy"))
def copy_orders(orders):
    return orders

again = copy_orders
"""
YAML = """
name: totals
sources:
  orders: {topic: orders, schema: "id long, at timestamp", watermark: "at, 10 seconds", on_bad_record: dead_letter}
sql: select count(*) as n from orders
sink: {path: out, format: json, options: {compression: gzip}}
trigger: 5 seconds
"""


def write(directory: Path, name: str, text: str) -> Path:
    path = directory / name
    path.write_text(text)
    return path


def test_every_pipeline_of_a_python_file_is_found_once(tmp_path: Path) -> None:
    (found,) = load(write(tmp_path, "p.py", PYTHON))
    assert found.name == "copy-orders"
    assert found.reads == {"orders": Topic(name="orders", schema="id long")}
    assert found.transform("x") == "x"


def test_a_yaml_file_describes_one(tmp_path: Path) -> None:
    (found,) = load(write(tmp_path, "p.yaml", YAML))
    orders = found.reads["orders"]
    assert isinstance(orders, Topic)
    assert orders.watermark == ("at", "10 seconds")
    assert orders.dead_letter_topic == "orders.dead-letters"
    assert found.writes == Files(path="out", format="json", options={"compression": "gzip"})
    assert (found.name, found.trigger) == ("totals", "5 seconds")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[]", "describes no pipeline"),
        ("sources: {", "is not YAML"),
        ("sql: x", "sources is missing"),
        ("colour: red", "'colour' is none of"),
        ("{sources: {a: {topic: a, colour: 1}}, sql: x, sink: {topic: b}}", "'colour' is none of"),
        ("{sources: {a: {topic: a}}, sql: x, sink: {topic: b}, mode: loud}", "say append, update or complete"),
        ("{sources: {a: {topic: a}}, sql: x, sink: {path: b}, mode: update}", "files can only be added to"),
    ],
)
def test_a_mistake_is_a_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(PipelineFailed, match=sentence):
        load(write(tmp_path, "p.yaml", text))


def test_a_file_without_pipelines_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(PipelineFailed, match=r"@barnabas.spark.pipeline"):
        load(write(tmp_path, "p.py", "x = 1"))
    with pytest.raises(PipelineFailed, match="there is no file"):
        load(tmp_path / "missing.py")


def test_names_are_such_that_groups_and_directories_can_have_them() -> None:
    with pytest.raises(InvalidOption, match="no name for a pipeline"):
        Pipeline(name="a/b", reads={"a": Topic(name="a")}, writes=Topic(name="b"), transform=lambda a: a)
