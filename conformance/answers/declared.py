"""The differences between the answers of Kafka and of Barnabas that are known, each with its reason."""

from __future__ import annotations

import tomllib
from pathlib import Path

from conformance.answers.cases import Case

DIFFERENCES = Path(__file__).parent / "differences.toml"


def declared() -> list[dict[str, str]]:
    """The deliberate differences: api, shape, client and path may be `*`; each has a reason."""
    return list(tomllib.loads(DIFFERENCES.read_text()).get("difference", []))


def reason_for(rules: list[dict[str, str]], case: Case, client: str, path: str) -> str | None:
    facts = {"api": case.api.name, "shape": case.shape, "client": client, "path": path}
    for rule in rules:
        if all(rule.get(key, "*") in ("*", value) for key, value in facts.items()):
            return rule["reason"]
    return None
