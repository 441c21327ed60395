"""A small writer of Python source: indented lines, fresh names, and the constants the finished function refers to.

It knows neither messages nor bytes. ``barnabas.wire.decoder`` and ``barnabas.wire.encoder`` write with it, and
``barnabas.wire.message`` uses it for constructors.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Source:
    def __init__(self, **constants: Any) -> None:
        self.constants: dict[str, Any] = dict(constants)
        self._lines: list[str] = []
        self._depth = 0
        self._count = 0
        self._names: dict[int, str] = {}

    def line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        self.line(header)
        self._depth += 1
        yield
        self._depth -= 1

    def name(self, prefix: str) -> str:
        """A name that occurs nowhere else in this source."""
        self._count += 1
        return f"{prefix}{self._count}"

    def constant(self, value: Any, prefix: str = "k") -> str:
        """The name under which the function will find this very object."""
        known = self._names.get(id(value))
        if known is None:
            known = self._names[id(value)] = self.name(prefix)
            self.constants[known] = value
        return known

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"

    def function(self, name: str, *, title: str) -> Any:
        """Run the source and hand out the function of that name."""
        exec(compile(self.text(), f"<{title}>", "exec"), self.constants)  # noqa: S102 - the source is our own
        return self.constants[name]
