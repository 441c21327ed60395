"""Everything that the page about Streams shows works: its blocks of Python, and the examples in its tables."""

from __future__ import annotations

import inspect
import re
import shlex
import sys
from argparse import ArgumentParser
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from barnabas.cli.main import COMMANDS
from barnabas.streams import LONG, App, Driver, ProcessingFailed, drive, tumbling
from barnabas.streams.queries.metrics import families
from barnabas.streams.topology.node import Topology
from barnabas.testing.plugin import Drive

PAGE = Path(__file__).parents[2] / "docs" / "STREAMS.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^(?:echo .*\| )?(barnabas [^#\n]*)", re.MULTILINE)
ROW_EXAMPLE = re.compile(r"^\|.*\| `([^`]+)` \|$", re.MULTILINE)
WORD_COUNT_LINES_MAX = 20
JAVA_CALLS = 15


def section(title: str) -> str:
    """Return the text of a section of the page."""
    return PAGE.read_text().split(f"\n## {title}\n")[1].split("\n## ")[0]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names of a module, in which the annotations of processors are looked up."""
    module = ModuleType("streams_page")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return vars(module)


def test_every_block_runs_and_its_tests_pass(names: dict[str, Any], drive: Drive) -> None:
    passed = 0
    text = PAGE.read_text()
    for block in BLOCK.finditer(text):
        above = "\n" * text.count("\n", 0, block.start(1))  # so that errors have the page's line numbers
        exec(compile(above + block[1], str(PAGE), "exec"), names)
        for name in [name for name in names if name.startswith("test_")]:
            test = names.pop(name)
            test(drive) if "drive" in inspect.signature(test).parameters else test()
            passed += 1
    assert passed == 3


def test_the_word_count_and_its_test_are_short() -> None:
    block = BLOCK.findall(section("Count words"))[0]
    lines = [line for line in block.splitlines() if line.strip() and not line.startswith("#")]
    assert len(lines) <= WORD_COUNT_LINES_MAX


def test_the_readme_has_the_same_word_count() -> None:
    assert BLOCK.findall(section("Count words"))[0] in (PAGE.parents[1] / "README.md").read_text()


@pytest.mark.parametrize("title", ["Operators", "Coming from Kafka Streams"])
def test_every_example_of_a_table_runs(title: str, names: dict[str, Any]) -> None:
    exec(compile(BLOCK.findall(section("Operators"))[0], str(PAGE), "exec"), names)
    app, order = names["app"], names["Order"]
    table = section(title).split("\n- ")[0]
    examples = ROW_EXAMPLE.findall(table)
    assert len(examples) >= JAVA_CALLS
    for example in examples:
        eval(compile(example, example, "eval"), names)
    assert isinstance(app.topology(), Topology)
    with drive(app, partitions=2) as driver:
        driver.send("countries", "Austria", key="AT")
        driver.send("customers", names["Customer"]("Ann", "AT"), key="1")
        driver.send("balances", 5, key="1")
        driver.send("prices", 1, key="tea")
        driver.send("orders", order("1", "tea", 7), key="1")
        driver.send("more-orders", order("1", "tea", 8), key="1")
        written = "orders-1" if title == "Operators" else "copy"
        assert [output.value for output in driver.read(written, value=order)] == [order("1", "tea", 7)]


def test_the_page_has_fifteen_calls_of_java() -> None:
    assert len(ROW_EXAMPLE.findall(section("Coming from Kafka Streams"))) == JAVA_CALLS


def test_the_commands_are_commands() -> None:
    commands = COMMAND.findall(PAGE.read_text())
    assert len(commands) == 23
    for command in commands:
        _, name, *words = shlex.split(command)
        parser = ArgumentParser(exit_on_error=False)
        import_module(f"barnabas.cli.{COMMANDS[name].module}").configure(parser)
        assert parser.parse_args(words)


def test_the_queries_of_the_page_have_the_answers_of_the_page(tmp_path: Path, capsys: Any) -> None:
    from stores_fed import filled, shop

    (block,) = BLOCK.findall(section("Query stores"))
    names: dict[str, Any] = {"app": shop}
    exec(compile(block, str(PAGE), "exec"), names)
    with filled(tmp_path) as fed:
        names["show"](fed.servers)
    assert capsys.readouterr().out == "2000 0 {'sales': {0: 5}}\na 3 5100\nb 1 2000\nc 1 5000\n"


def test_the_metrics_of_the_page_are_exported() -> None:
    pages = re.findall(r"`(?:kafka|barnabas)_streams_\w+`|`_\w+`", section("Operate"))
    shown, before = set(), ""
    for name in (page.strip("`") for page in pages):
        before = name if not name.startswith("_") else f"{before.rpartition('_metrics_')[0]}_metrics{name}"
        shown.add(before)
    assert shown == {family.name for family in families({}, {})}


def values(driver: Driver, topic: str) -> list[Any]:
    return [output.value for output in driver.read(topic)]


def test_null_keys_and_values_mean_what_the_table_says() -> None:
    app = App("nulls")
    stream, rows = app.stream("in", value=str), app.table("rows", value=str, store="rows")
    stream.map_values(lambda value: value, value=str).to("mapped")
    stream.group_by_key().count().to_stream().to("counted")
    stream.join(rows, lambda one, row: one + row, value=str).to("joined")
    stream.left_join(rows, lambda one, row: one + str(row), value=str).to("left-joined")
    with drive(app) as driver:
        driver.send("rows", "row", key="k")
        driver.send("rows", "row")
        driver.send("in", "a")
        driver.send("in", None, key="k")
        assert values(driver, "mapped") == ["a", None]
        assert values(driver, "counted") == []
        assert values(driver, "joined") == []
        assert values(driver, "left-joined") == ["aNone"]
        assert driver.store("rows") == {"k": "row"}
        driver.send("rows", None, key="k")
        assert driver.store("rows") == {}


def test_every_update_is_emitted_and_late_records_are_dropped_after_a_restart_too() -> None:
    app = App("late")
    app.stream("in", value=str).group_by_key().window(tumbling("1m", grace="10s")).count().to_stream().to("out")
    with drive(app) as driver:
        for at in (0, 0, 69_999, 1):
            driver.send("in", "x", key="k", at=at)
        assert values(driver, "out") == [1, 2, 1, 3]
        driver.send("in", "x", key="k", at=70_000)
        driver.restart()
        driver.send("in", "late", key="k", at=1)
        assert values(driver, "out") == [2]


class Point(msgspec.Struct):
    x: int


def test_a_struct_without_its_type_is_refused_with_what_to_pass() -> None:
    app = App("untyped")
    app.stream("in", value=int).map_values(lambda x: Point(x)).group_by(lambda point: "all").reduce(max).to_stream()
    with drive(app) as driver, pytest.raises(ProcessingFailed, match=r"pass key= or value= .* value=Point"):
        driver.send("in", 1, key="k")


def test_counts_are_json_or_java_longs() -> None:
    app = App("longs")
    counts = app.stream("in", value=str).group_by_key().count().to_stream()
    counts.to("json")
    counts.to("longs", value=LONG)
    with drive(app) as driver:
        driver.send("in", "x", key="k")
        assert [row.value for row in driver.read_rows("json")] == [b"1"]
        assert [row.value for row in driver.read_rows("longs")] == [bytes([0, 0, 0, 0, 0, 0, 0, 1])]


def test_the_page_links_to_files_that_exist() -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", PAGE.read_text())
    assert targets
    for target in targets:
        assert (PAGE.parent / target).exists(), target
