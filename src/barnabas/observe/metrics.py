"""Numbers that a program shows of itself, in the text form of Prometheus.

A part that has numbers adds a source: a function that gives families when somebody looks, so that nothing is kept up to
date for nobody. What a number means, and where it comes from, is the source's business; the page is written here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple, TypeAlias

Labels: TypeAlias = "tuple[tuple[str, str], ...]"
Number: TypeAlias = "int | float"

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
GAUGE: Final = "gauge"
COUNTER: Final = "counter"
SUMMARY: Final = "summary"
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class Sample(NamedTuple):
    value: Number
    labels: Labels = ()
    suffix: str = ""  # of a summary: _count or _sum


class Family(NamedTuple):
    name: str
    doc: str
    samples: Iterable[Sample]
    kind: str = GAUGE


Source: TypeAlias = "Callable[[], Iterable[Family]]"


def one(name: str, doc: str, value: Number, kind: str = GAUGE) -> Family:
    """A family with a single sample and no labels."""
    return Family(name, doc, (Sample(value),), kind)


class Metrics:
    """Everything that a page shows. ``metrics.add(source)`` adds families; the order is that of adding."""

    def __init__(self) -> None:
        self._sources: list[Source] = []

    def add(self, source: Source) -> None:
        self._sources.append(source)

    def families(self) -> Iterator[Family]:
        seen: set[str] = set()
        for source in self._sources:
            for family in source():
                assert family.name not in seen, f"two sources give {family.name}"
                seen.add(family.name)
                yield family

    def page(self, spell: Callable[[str], str] = str) -> Iterator[str]:
        """The page, piece by piece; ``spell`` may write names in another way."""
        for known_as, doc, samples, kind in self.families():
            name = spell(known_as)
            yield f"# HELP {name} {doc}\n# TYPE {name} {kind}\n"
            for value, labels, suffix in samples:
                text = ",".join(f'{label}="{content.translate(_ESCAPES)}"' for label, content in labels)
                yield f"{name}{suffix}{{{text}}} {value}\n" if text else f"{name}{suffix} {value}\n"
