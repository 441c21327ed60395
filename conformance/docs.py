"""Writes `docs/CONFORMANCE.md` from the lists of verdicts, so that the page never says more than the lists.

Called by the command line; it reads files and writes one, and starts nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from conformance import verdicts
from conformance.outcome import Verdict
from conformance.suites.clients import CLIENTS, FEATURES
from conformance.verdicts import Row

PAGE = Path(__file__).parents[1] / "docs" / "CONFORMANCE.md"

_TITLES = {
    "librdkafka": (
        "librdkafka's own tests",
        (
            "The 118 tests of librdkafka 2.15.1 that need a broker, each in a process of its own. One broker; three "
            "where a test makes topics with three replicas or signs in (certificates, PLAIN, SCRAM, OAUTHBEARER with "
            "an issuer of tokens). Parts that are about share groups are rows of their own where a test mixes them "
            "with others."
        ),
    ),
    "librdkafka-consumer": (
        "librdkafka's tests of groups with the new protocol",
        "The tests of librdkafka whose clients are in groups, once more, with `group.protocol=consumer` (KIP-848).",
    ),
    "kafka-python": (
        "kafka-python's own integration tests",
        "The integration tests of kafka-python's source distribution, each in a process of its own.",
    ),
    "tools": (
        "Apache Kafka's command-line tools",
        "Apache Kafka's tools, pointed at the broker; what they must say is written in `conformance/suites`.",
    ),
    "clients": (
        "Client stacks",
        (
            "A small program per client (`conformance/clients`), a cell per feature; a pass is one on both brokers. "
            "`codecs` are all four, `group` is the classic protocol and `next-group` that of KIP-848 (both go on where "
            "they stood), `transactions` are one that is aborted and one that is committed."
        ),
    ),
    "registry": (
        "Clients of schema registries",
        (
            "kafkajs' and Confluent's registry clients for Node and their serializers, and franz-go's client for Go, "
            "against the schema registry; the broker below it is the peer. Confluent's Python client and serializers "
            "are part of `make test`."
        ),
    ),
}
_HEAD = """\
# Conformance

Other people's tests, run against Barnabas and, first, against Apache Kafka 4.3.1 in the same harness: a test that
Kafka fails is marked as such, every other one is ours to pass. Written by `python -m conformance docs` from
`conformance/verdicts/`; a pass that fails, or that a whole run of its suite does not have, fails
`python -m conformance check`. `make test` checks a slice of the lists (`tests/conformance/test_slice.py`). That a
broker which loses records, or does not answer, loses its passes is shown by `tests/conformance/test_truth.py`.

```sh
make conformance                                               # everything, on Barnabas
python -m conformance run --suite librdkafka --tests 0012      # a few tests of one suite
python -m conformance run --suite tools --peer kafka           # the same, on Apache Kafka
python -m conformance check                                    # the last run against the lists
python -m conformance record                                   # put the last run into the lists; passes only grow
```

Everything it needs comes from the registries (npm, PyPI, Maven, Go's proxy, Debian) and is kept outside the repository.
"""


# Karapace is on none of the registries that a run may fetch from: its tests were run by hand.
_KARAPACE = Path(__file__).with_name("verdicts") / "karapace.md"


def page() -> str:
    """The whole page."""
    lists = {suite: list(verdicts.read(suite).values()) for suite in _TITLES}
    sections = (line for suite in _TITLES for line in _section(suite, lists[suite]))
    return "\n".join([_HEAD, *_summary(lists), *sections, _KARAPACE.read_text()])


def write_page() -> Path:
    PAGE.write_text(page())
    return PAGE


def _summary(lists: dict[str, list[Row]]) -> Iterator[str]:
    yield "| suite | tests | Kafka passes | Barnabas passes | of those that Kafka passes |"
    yield "|---|---:|---:|---:|---:|"
    for suite, rows in lists.items():
        kafka, ours = _passes(rows, "kafka"), _passes(rows, "barnabas")
        both = _passes([row for row in rows if row.kafka is Verdict.PASS], "barnabas")
        yield f"| {_TITLES[suite][0]} | {len(rows)} | {kafka} | {ours} | {both} of {kafka} |"
    yield ""


def _section(suite: str, rows: list[Row]) -> Iterator[str]:
    title, text = _TITLES[suite]
    yield f"## {title}\n\n{text}\n"
    ours = [row for row in rows if row.kafka is Verdict.PASS and row.barnabas is not Verdict.PASS]
    theirs = [row for row in rows if row.kafka not in (Verdict.PASS, Verdict.UNKNOWN)]
    unknown = [row for row in rows if row.kafka is Verdict.UNKNOWN]
    if ours:
        yield "Ours to pass, and not passed:\n"
        yield from _table(ours)
    if theirs:
        yield "Not passed by Apache Kafka in this harness:\n"
        yield from _table(theirs)
    if unknown:
        yield "Not yet run on Apache Kafka in this harness:\n"
        yield from _table(unknown)
    if suite == "clients":
        yield from _matrix(rows)
        return
    passed = [f"`{row.test}`" for row in rows if row.kafka is Verdict.PASS and row.barnabas is Verdict.PASS]
    if passed:
        yield f"<details><summary>Passed by both: {len(passed)}</summary>\n"
        yield ", ".join(passed)
        yield "\n</details>\n"


def _matrix(rows: Iterable[Row]) -> Iterator[str]:
    """What passes on both brokers, by client and feature; what a client lacks, with the reason."""
    known = {row.test: row for row in rows}
    yield "| client | " + " | ".join(FEATURES) + " |"
    yield "|---|" + ":-:|" * len(FEATURES)
    for name in CLIENTS:
        cells = [known.get(f"{name}: {feature}") for feature in FEATURES]
        yield f"| {name} | " + " | ".join("–" if row is None else _shown(row) for row in cells) + " |"
    yield ""
    for name, client in CLIENTS.items():
        for feature, reason in client.lacks.items():
            yield f"- {name} without `{feature}`: {reason}."
    yield ""


def _shown(row: Row) -> str:
    if row.kafka == row.barnabas:
        return str(row.kafka)
    return f"Kafka {row.kafka or '–'}, Barnabas {row.barnabas or '–'}"


def _table(rows: Iterable[Row]) -> Iterator[str]:
    yield "| test | Kafka | Barnabas | why |"
    yield "|---|---|---|---|"
    for row in rows:
        reason = row.reason.replace("|", "\\|")
        yield f"| `{row.test}` | {row.kafka or '–'} | {row.barnabas or '–'} | {reason} |"
    yield ""


def _passes(rows: Iterable[Row], peer: str) -> int:
    return sum(row.of(peer) is Verdict.PASS for row in rows)
