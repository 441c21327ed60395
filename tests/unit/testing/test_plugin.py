"""The fixtures that pytest finds when the package is installed."""

from __future__ import annotations

import pytest

from barnabas.streams import App
from barnabas.testing.plugin import Drive

pytest_plugins = ("pytester",)


def test_the_fixture_drives_an_application(drive: Drive) -> None:
    app = App("copy")
    app.stream("in", value=str).to("out")
    driver = drive(app, partitions=2)
    driver.send("in", "a", key="k")
    assert driver.table("out") == {"k": "a"}


def test_applications_are_closed_at_the_end_of_the_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from barnabas.streams import App, Processor

        closed = []

        class Closing(Processor):
            def process(self, record): ...

            def close(self):
                closed.append(1)

        def test_first(drive):
            app = App("closing")
            app.stream("in").process(Closing)
            drive(app).send("in", b"", key="k")
            assert closed == []

        def test_second():
            assert closed == [1]
        """
    )
    pytester.runpytest("-p", "no:randomly").assert_outcomes(passed=2)
