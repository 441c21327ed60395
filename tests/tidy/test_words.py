"""No sentence of Apache Kafka's is in the code or in the docs: we say what is wrong in words of our own.

Compared are runs of six words with the texts in Kafka's classes: what it logs, answers and says of its settings. Names
of settings and classes are facts and count as no words. The stand-ins for Kafka's scripts print what those print.
"""

from __future__ import annotations

import ast
import io
import re
import struct
import tokenize
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHIMS = ROOT / "src" / "barnabas" / "cli" / "shims"
RUN_LENGTH = 6
RUNS_MIN = 50_000  # in the jars of one version; fewer mean that they were not read
BREAK = "\x01"  # between words that no sentence joins; Java too writes it where a value goes
NAME = re.compile(r"\w+(?:[._]\w+)+", re.ASCII)
WORD = re.compile(rf"[a-z]+(?:'[a-z]+)*|{BREAK}")
# What follows the tag of an entry of a class's constant pool; a text says its length itself.
TEXT = 1
ENTRY_BYTES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
TWO_ENTRIES = (5, 6)


def runs(text: str) -> Iterator[tuple[str, ...]]:
    words = WORD.findall(NAME.sub(BREAK, text).lower())
    for run in zip(*(words[start:] for start in range(RUN_LENGTH)), strict=False):
        if BREAK not in run:
            yield run


def class_texts(content: bytes) -> Iterator[str]:
    """The constants of a class that are texts."""
    (count,) = struct.unpack_from(">H", content, 8)
    position, entry = 10, 1
    while entry < count:
        tag = content[position]
        position += 1
        if tag == TEXT:
            (size,) = struct.unpack_from(">H", content, position)
            yield content[position + 2 : position + 2 + size].decode(errors="replace")
            position += 2 + size
        else:
            position += ENTRY_BYTES[tag]
        entry += 2 if tag in TWO_ENTRIES else 1


def runs_of_kafka() -> set[tuple[str, ...]]:
    from tools.kafka_jars import kafka_libraries

    found: set[tuple[str, ...]] = set()
    for jar in kafka_libraries().glob("*kafka*.jar"):
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if name.endswith(".class"):
                    # What has no blank is a name or a pattern.
                    for text in class_texts(archive.read(name)):
                        if " " in text:
                            found.update(runs(text))
    return found


def texts_of(source: str) -> Iterator[str]:
    """The strings of a module, those with values in them as a whole, and its comments, those that go on joined."""
    tree = ast.parse(source)
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield BREAK.join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.value
    comment = ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            comment += f" {token.string}"
        elif token.type != tokenize.NL and comment:
            yield comment
            comment = ""


def our_texts() -> Iterator[tuple[Path, str]]:
    for path in sorted((ROOT / "src").rglob("*.py")):
        if SHIMS not in path.parents:
            yield from ((path, text) for text in texts_of(path.read_text()))
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.md")):
        yield from ((page, text) for text in re.split(r"\n\s*\n|\n(?=[|*#-])", page.read_text()))


@pytest.mark.java
def test_no_sentence_is_kafkas() -> None:
    kafkas = runs_of_kafka()
    assert len(kafkas) > RUNS_MIN
    shared = {
        f"{path.relative_to(ROOT)}: {' '.join(run)}"
        for path, text in our_texts()
        for run in kafkas.intersection(runs(text))
    }
    assert not shared, "\n".join(sorted(shared))


def test_names_and_values_part_a_sentence() -> None:
    assert list(runs("one two three {} four five six".replace("{}", BREAK))) == []
    assert list(runs("one two log.dirs three four five six")) == []
    assert list(runs("One, two (three) four: five's six")) == [("one", "two", "three", "four", "five's", "six")]
    (text,) = texts_of('f"no place for {count} replicas"')
    assert text == f"no place for {BREAK} replicas"
