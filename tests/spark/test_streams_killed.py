"""An application whose driver is killed between and within batches writes what an undisturbed one writes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest
import streams_apps
from streams_running import Playground

APP = """
from barnabas.streams import App

app = App("kills")
words = app.stream("kill-lines", value=str).flat_map_values(str.split)
words.group_by(lambda word: word).count(store="counts").to_stream().to("kill-counts")
"""
WORDS = ("ant", "bee", "cow", "dog", "elk")
KILLS = int(os.environ.get("BARNABAS_STREAMS_KILLS", "1"))
LINES = 50 * (KILLS + 1)  # in batches of 25
SECONDS_MAX = 240


def command(stage: Any, path: Path, *more: str) -> list[str]:
    arguments = ["run", str(path), "-b", stage.servers, "--checkpoints", str(stage.directory), "--master", "local[2]"]
    settings = ["--set", "spark.driver.memory=512m", "--set", "spark.barnabas.batch.records.max=25"]
    return [sys.executable, "-m", "barnabas", *arguments, *settings, *more]


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A driver in a session of its own, which is killed with all its processes at the end."""
    with subprocess.Popen(arguments, text=True, start_new_session=True, stdout=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def test_a_killed_application_counts_every_word_exactly_once(stage: Any) -> None:
    ground = Playground(stage, streams_apps.words, {"kill-lines": 2, "kill-counts": 2})
    path = Path(stage.directory) / "app.py"
    path.write_text(APP)
    lines = [(str(n), " ".join(islice(cycle(WORDS), n % 5, n % 5 + 3))) for n in range(LINES)]
    ground.send("kill-lines", lines)
    for kill in range(1, KILLS + 1):
        with running(*command(stage, path)) as process:
            written = len(ground.records("kill-counts"))
            deadline = time.monotonic() + SECONDS_MAX
            while len(ground.records("kill-counts")) < written + 100:  # more than one batch of 75 words
                assert process.poll() is None, f"it ended by itself before kill {kill}"
                assert time.monotonic() < deadline
                time.sleep(0.1)
    last = subprocess.run(command(stage, path, "--once"), capture_output=True, text=True, timeout=SECONDS_MAX)
    assert last.returncode == 0, last.stderr
    assert last.stderr == "starting Spark (local[2]) ...\n", "nothing that Java or Spark print"
    expected = {word: sum(line.split().count(word) for _, line in lines) for word in WORDS}
    found = ground.records("kill-counts")
    for word in WORDS:
        updates = [int(value or 0) for key, value in found if key == word]
        assert updates == list(range(1, expected[word] + 1)), f"{word}: each update once and in order"
    assert ground.table("kills-counts-changelog") == {word: str(count) for word, count in expected.items()}


@pytest.mark.slow
def test_sigterm_ends_an_application_within_seconds_and_leaves_no_process(stage: Any) -> None:
    ground = Playground(stage, streams_apps.words, {"term-lines": 1, "term-counts": 1})
    path = Path(stage.directory) / "app.py"
    path.write_text(APP.replace("kill", "term"))
    ground.send("term-lines", [("1", "a b")])
    with running(*command(stage, path)) as process:
        deadline = time.monotonic() + SECONDS_MAX
        while not ground.records("term-counts"):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        process.terminate()
        assert process.wait(SECONDS_MAX) == 0
        left = deadline_of(lambda: not members(process.pid))
    assert left, "processes of the driver's session are still there"


def members(session: int) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(") ")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(entry.parent.name)
    return found


def deadline_of(is_so: Any) -> bool:
    deadline = time.monotonic() + 30
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True
