"""Log lines: text or JSON, to a file that is rotated, with nothing secret and nothing forged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from barnabas.observe.lines import JSON, LINES, write_logs
from barnabas.observe.log import logger

log = logger("test")
EVIL = 'a"\n2026-01-01 INFO barnabas forged=1\x1b[31m\u202e\x00'


def written(path: Path, form: str, level: str = "INFO") -> None:
    write_logs(form=form, level=level, path=str(path))


def test_a_line_of_json_is_one_object_with_what_the_event_carries(tmp_path: Path) -> None:
    path = tmp_path / "log"
    written(path, JSON)
    log.info("started", port=9092, ratio=0.5, client=EVIL, nothing=None, level="mine")
    (line,) = path.read_text().splitlines()
    found = json.loads(line)
    assert found.pop("time")[:2] == "20"
    assert found == {
        "level": "INFO", "logger": "barnabas.test", "event": "started", "port": 9092, "ratio": 0.5, "client": EVIL,
        "nothing": None, "level_": "mine",
    }  # fmt: skip
    assert line.isascii()


def test_a_client_cannot_forge_a_line_or_colour_a_terminal(tmp_path: Path) -> None:
    path = tmp_path / "log"
    written(path, LINES)
    log.info("connected", client=EVIL)
    (line,) = path.read_text().splitlines()
    assert line.endswith('client="a\\"\\n2026-01-01 INFO barnabas forged=1\\x1b[31m\\u202e\\x00"')
    assert "\x1b" not in line


@pytest.mark.parametrize("form", [JSON, LINES])
@pytest.mark.parametrize("key", ["password", "ssl_key_password", "token", "client_secret", "sasl_jaas_config"])
def test_what_is_secret_by_its_name_is_hidden(tmp_path: Path, form: str, key: str) -> None:
    path = tmp_path / "log"
    written(path, form)
    log.info("signed in", **{key: "hunter2"})
    text = path.read_text()
    assert "hunter2" not in text
    assert "[hidden]" in text


@pytest.mark.parametrize("form", [JSON, LINES])
def test_the_traceback_of_what_a_client_sent_forges_no_line(tmp_path: Path, form: str) -> None:
    path = tmp_path / "log"
    written(path, form)
    try:
        raise ValueError("x\n2026-01-01 00:00:00 ERROR barnabas.audit forged")
    except ValueError:
        log.exception("handler failed", api="FETCH")
    text = path.read_text()
    assert "forged" in text
    if form == JSON:
        assert len(text.splitlines()) == 1
        assert "forged" in json.loads(text)["exception"]
    else:
        assert all(line.startswith("  ") for line in text.splitlines()[1:])


def test_a_file_is_put_aside_when_it_is_full(tmp_path: Path) -> None:
    path = tmp_path / "log"
    write_logs(path=str(path), level="INFO", file_bytes_max=2000, file_count=2)
    for number in range(200):
        log.info("event", number=number)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["log", "log.1", "log.2"]
    assert all(file.stat().st_size <= 2000 for file in tmp_path.iterdir())
    assert "number=199" in path.read_text()


def test_below_its_level_nothing_is_written_but_the_audit_log_is(tmp_path: Path) -> None:
    path = tmp_path / "log"
    written(path, LINES, "WARNING")
    log.info("quiet")
    logger("audit").info("change", api="CREATE_TOPICS")
    assert [line.split(" ", 3)[3] for line in path.read_text().splitlines()] == [
        "barnabas.audit change api=CREATE_TOPICS"
    ]
    write_logs(path=str(path), has_audit=False)
    logger("audit").info("change", api="DELETE_TOPICS")
    assert "DELETE_TOPICS" not in path.read_text()


def test_a_long_value_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "log"
    for form in (JSON, LINES):
        written(path, form)
        log.info("connected", client="x" * 10_000)
    assert all(len(line) < 400 for line in path.read_text().splitlines())
