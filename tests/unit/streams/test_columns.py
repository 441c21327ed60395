"""Column expressions: SQL's nulls, fields of structs and dicts, and their place in operators."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.streams import App, Column, Driver, ProcessingFailed, col, drive, lit


class Address(msgspec.Struct):
    city: str | None = None


class Order(msgspec.Struct):
    customer: str
    total: int | None = None
    address: Address | None = None


@pytest.mark.parametrize(
    ("expression", "value", "result"),
    [
        (col("total") > 100, Order("a", 101), True),
        (col("total") > 100, Order("a"), None),
        (col("total") > 100, Order("a", 5), False),
        (col("total") * 2 + 1 == 11, Order("a", 5), True),
        (10 - col("total"), Order("a", 3), 7),
        (col("address.city") == "Graz", Order("a", address=Address("Graz")), True),
        (col("address.city") == "Graz", Order("a"), None),
        (col("address.city").is_null(), Order("a"), True),
        (col("customer").is_in(["a", "b"]), Order("b"), True),
        (col("missing").is_null(), {"total": 1}, True),
        (col("total"), {"total": 1}, 1),
        (lit(5), None, 5),
    ],
)
def test_an_expression_has_a_result(expression: Column, value: Any, result: Any) -> None:
    assert expression(value) is result or expression(value) == result


TRUTHS = st.sampled_from([True, False, None])


@given(TRUTHS, TRUTHS)
def test_and_or_not_know_three_values(one: bool | None, other: bool | None) -> None:
    value = {"one": one, "other": other}
    both = (col("one") & col("other"))(value)
    either = (col("one") | col("other"))(value)
    assert both is (False if False in (one, other) else None if None in (one, other) else True)
    assert either is (True if True in (one, other) else None if None in (one, other) else False)
    assert (~col("one"))(value) is (None if one is None else not one)


def test_an_expression_is_not_a_condition() -> None:
    with pytest.raises(TypeError, match=r"\(total > 100\) has no truth value"):
        bool(col("total") > 100)
    assert repr((col("total") > 100) & ~col("address.city").is_in(["Graz", "Linz"])) == (
        "((total > 100) and (not (address.city in ('Graz', 'Linz'))))"
    )


def values(driver: Driver, topic: str) -> list[Any]:
    return [output.value for output in driver.read(topic)]


def test_operators_take_expressions() -> None:
    app = App("columns")
    orders = app.stream("orders", value=Order)
    orders.filter(col("total") > 100).to("large")
    orders.filter_not(col("total") > 100).to("others")
    orders.map_values(col("total") * 2, value=int).to("doubled")
    cheap, rest = orders.split(col("total") < 10, default=True)
    cheap.to("cheap")
    rest.to("rest")
    orders.group_by(col("customer"), key=str).count().to_stream().to("counts")
    with drive(app) as driver:
        for total in (5, 500, None):
            driver.send("orders", Order("ann", total), key="k")
        assert [order.total for order in values(driver, "large")] == [500]
        assert [order.total for order in values(driver, "others")] == [5, None]
        assert values(driver, "doubled") == [10, 1000, None]
        assert [order.total for order in values(driver, "cheap")] == [5]
        assert [order.total for order in values(driver, "rest")] == [500, None]
        assert driver.table("counts") == {"ann": 3}


def test_a_comparison_of_other_types_is_an_error_of_the_record() -> None:
    app = App("columns")
    app.stream("orders", value=Order).filter(col("customer") > 5).to("out")
    with drive(app) as driver, pytest.raises(ProcessingFailed, match="TypeError"):
        driver.send("orders", Order("ann"), key="k")
