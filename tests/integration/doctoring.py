"""What the tests of ``barnabas doctor`` share: a visit, and what must be true of what was found.

``tests/tidy/test_findings.py`` reads the calls of :func:`expect`: each kind of finding must be brought about by a test.
"""

from __future__ import annotations

import json
import re
from importlib import import_module
from typing import Any

import pytest

from barnabas.cli.main import COMMANDS, main

Found = dict[str, Any]


def doctor(servers: str, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[Found]]:
    capsys.readouterr()
    code = main(["doctor", "-b", servers, "--seconds", "0.2", "-o", "json", *words])
    said = capsys.readouterr()
    assert said.out, said.err
    findings: list[Found] = json.loads(said.out)["findings"]
    for each in findings:
        assert each["evidence"]
        check_commands(each["mend"])
    return code, findings


def expect(findings: list[Found], kind: str, *, severity: str, about: str, evidence: str, mend: str) -> Found:
    """The one finding of this kind about this; ``evidence`` and ``mend`` are searched for as regular expressions."""
    found = [each for each in findings if (each["kind"], each["about"]) == (kind, about)]
    assert len(found) == 1, f"no {kind} about {about} in {json.dumps(findings, indent=1)}"
    (one,) = found
    assert one["severity"] == severity, one
    assert re.search(evidence, one["evidence"]), one
    assert re.search(mend, one["mend"]), one
    return one


def check_commands(mend: str) -> None:
    """Whatever command is recommended must be one."""
    assert mend
    for name, verb in re.findall(r"\bbarnabas ([a-z]+)(?: ([a-z-]+))?", mend):
        assert name in COMMANDS, mend
        verbs = getattr(import_module(f"barnabas.cli.{COMMANDS[name].module}"), "VERBS", None)
        assert verbs is None or verb in verbs, mend
