"""Settings files are read as Java reads them, and TOML as its names say."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.cli.terminal.config_file import properties, read_config
from barnabas.model.settings import InvalidSetting


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("a = b", {"a": "b"}),
        ("a:b", {"a": "b"}),
        ("a b c", {"a": "b c"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("a=b=c:d", {"a": "b=c:d"}),
        ("  a = b  ", {"a": "b"}),
        ("# a=b\n! c=d\n\n   # e=f\ng=h", {"g": "h"}),
        ("a=b,\\\n   c", {"a": "b,c"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("# comment \\\na=b", {"a": "b"}),
        ("a\\=b=c", {"a=b": "c"}),
        ("a=\\u0041\\t\\:", {"a": "A\t:"}),
        ("a=b\r\nc=d", {"a": "b", "c": "d"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=b\\", {"a": "b"}),
        ("listeners=PLAINTEXT://:9092", {"listeners": "PLAINTEXT://:9092"}),
    ],
)
def test_properties_are_read_as_java_reads_them(text: str, expected: dict[str, str]) -> None:
    assert dict(properties(text)) == expected


def test_toml_tables_are_names_with_dots(tmp_path: Path) -> None:
    path = tmp_path / "broker.toml"
    path.write_text('listeners = ["A://x:1", "B://y:2"]\nlog.dirs = "d"\n[auto.create.topics]\nenable = false\n')
    assert read_config(path) == {
        "listeners": "A://x:1,B://y:2",
        "log.dirs": "d",
        "auto.create.topics.enable": "false",
    }


@pytest.mark.parametrize("name", ["server.properties", "broker.toml"])
def test_a_file_that_is_no_text_is_refused_by_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidSetting, match=name):
        read_config(path)
