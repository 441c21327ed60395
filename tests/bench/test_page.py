"""The page about performance says what the results file says."""

from __future__ import annotations

from bench.page import BEGINS, ENDS, PAGE, RESULTS, tables, with_tables
from bench.results import load


def test_the_tables_of_the_page_are_those_of_the_results() -> None:
    rows, notes = load(RESULTS)
    page = PAGE.read_text()
    assert rows, "there are no results"
    assert with_tables(page, tables(rows, notes)) == page, "run `python -m bench docs`"


def test_what_is_written_by_hand_stays() -> None:
    page = f"by hand\n{BEGINS}\nold\n{ENDS}\nby hand as well\n"
    assert with_tables(page, "new") == f"by hand\n{BEGINS}\n\nnew\n\n{ENDS}\nby hand as well\n"
