"""Pipelines out of files: every pipeline that a Python file defines, or the one that a short YAML file describes.

A YAML file has ``sources``, ``sql`` over their names, and ``sink``; what a mistake is and where is said in a sentence.
"""

from __future__ import annotations

import dataclasses
import runpy
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from barnabas.spark.errors import InvalidOption, NotInstalled, PipelineFailed
from barnabas.spark.pipelines.pipeline import Files, Pipeline, Topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEYS: Final = {"name", "sources", "sql", "sink", "mode", "trigger"}
EXAMPLE: Final = "sources: {orders: {topic: orders, schema: 'id long'}}, sql: select * from orders, sink: {topic: copy}"


def load(path: Path) -> list[Pipeline]:
    """Load the pipelines of a file. Raises PipelineFailed if it has none, or two of one name."""
    if not path.is_file():
        raise PipelineFailed(f"there is no file {path}")
    if path.suffix in (".yaml", ".yml"):
        return [_described(path)]
    pipelines = pipelines_of(runpy.run_path(str(path)).values())
    if not pipelines:
        raise PipelineFailed(f"{path} defines no pipeline: put @barnabas.spark.pipeline(...) above a function")
    names = [each.name for each in pipelines]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise PipelineFailed(f"{path} has two pipelines of the name {twice[0]}")
    return pipelines


def pipelines_of(values: Iterable[object]) -> list[Pipeline]:
    """The pipelines among the variables of a module, each once."""
    return list({id(each): each for each in values if isinstance(each, Pipeline)}.values())


def _described(path: Path) -> Pipeline:
    try:
        import yaml
    except ImportError as error:
        raise NotInstalled("YAML needs pyyaml: `pip install 'barnabas[spark]'`") from error
    try:
        told = yaml.safe_load(path.read_text())
    except yaml.YAMLError as error:
        raise PipelineFailed(f"{path} is not YAML: {error}") from error
    if not isinstance(told, dict):
        raise PipelineFailed(f"{path} describes no pipeline; it looks like {EXAMPLE}")
    unknown = sorted(set(map(str, told)) - KEYS)
    if unknown:
        raise PipelineFailed(f"{path}: {unknown[0]!r} is none of {', '.join(sorted(KEYS))}")
    for needed in ("sources", "sql", "sink"):
        if needed not in told:
            raise PipelineFailed(f"{path}: {needed} is missing; it looks like {EXAMPLE}")
    try:
        return Pipeline(
            name=str(told.get("name", path.stem)),
            reads={str(name): _end(entry) for name, entry in told["sources"].items()},
            writes=_end(told["sink"]),
            transform=Query(str(told["sql"])),
            mode=told.get("mode", "append"),
            trigger=str(told.get("trigger", "1 second")),
        )
    except (InvalidOption, TypeError, AttributeError) as error:
        raise PipelineFailed(f"{path}: {error}") from error


def _end(told: Mapping[str, Any]) -> Topic | Files:
    """A topic or files: ``{topic: orders, ...}`` or ``{path: out, ...}``."""
    values = dict(told)
    watermark = values.get("watermark")
    if isinstance(watermark, str):
        column, _, delay = watermark.partition(",")
        values["watermark"] = (column.strip(), delay.strip())
    values["options"] = {str(name): str(value) for name, value in values.get("options", {}).items()}
    kind = Topic if "topic" in values else Files
    if kind is Topic:
        values["name"] = values.pop("topic")
    known = {entry.name for entry in dataclasses.fields(kind)}
    unknown = sorted(set(values) - known)
    if unknown:
        raise InvalidOption(f"{unknown[0]!r} is none of {', '.join(sorted(known))}")
    return kind(**values)


class Query:
    """SQL as a function from tables to a table."""

    def __init__(self, sql: str) -> None:
        self.sql = sql

    def __call__(self, **tables: DataFrame) -> DataFrame:
        for name, table in tables.items():
            table.createOrReplaceTempView(name)
        spark = next(iter(tables.values())).sparkSession
        return spark.sql(self.sql)
