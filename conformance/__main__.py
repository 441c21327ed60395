"""The command line of the judges: `python -m conformance run|check|record|docs|list`.

`run` starts a broker, runs a suite on it and keeps the outcomes in the cache; `check` compares the last run with the
list in the repository; `record` puts it into the list; `docs` writes the page of results. Nothing is decided here.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace

from bench.peers import PeerFailed
from tools.kafka_jars import JavaMissing

from conformance import docs, verdicts
from conformance.brokers import BROKERS, started
from conformance.fetched import CannotFetch
from conformance.outcome import Leg, Outcome, Verdict
from conformance.suites import SUITES


def main() -> int:
    options = _parser().parse_args()
    # Told to stop, we still stop the broker and remove its files.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        return {"run": _run, "check": _check, "record": _record, "docs": _docs, "list": _list}[options.what](options)
    except (CannotFetch, JavaMissing, PeerFailed, verdicts.PassLost) as error:
        print(f"conformance: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m conformance", description="Other people's tests as judges.")
    parser.add_argument("what", choices=["run", "check", "record", "docs", "list"])
    parser.add_argument("--suite", default="", help=f"one of: {', '.join(SUITES)} (all of them if none is named)")
    parser.add_argument("--peer", default="barnabas", choices=list(BROKERS))
    parser.add_argument("--tests", default="", help="only tests whose name holds one of these, separated by commas")
    parser.add_argument("--not-passing", action="store_true", help="only tests that did not pass in the last run")
    parser.add_argument("--accept-losses", action="store_true", help="record even what passed before and does not now")
    parser.add_argument("--jobs", type=int, default=1, choices=[1], help="tests at a time: the broker is shared")
    return parser


def _suites(options: argparse.Namespace) -> list[str]:
    if options.suite and options.suite not in SUITES:
        raise CannotFetch(f"there is no suite {options.suite!r}: {', '.join(SUITES)}")
    return [options.suite] if options.suite else list(SUITES)


def _run(options: argparse.Namespace) -> int:
    """Runs, prints and keeps; the exit code tells whether something was lost since the list was written."""
    lost: list[Outcome] = []
    for suite in _suites(options):
        outcomes: list[Outcome] = []
        for leg in _chosen(suite, options):
            for outcome in _outcomes(options.peer, leg):
                outcomes.append(outcome)
                print(f"{outcome.verdict:8}{outcome.seconds:7.1f} s  {outcome.test}  {outcome.reason}", flush=True)
                verdicts.save_run(suite, options.peer, [outcome])
        passed = sum(outcome.verdict is Verdict.PASS for outcome in outcomes)
        print(f"{suite} on {options.peer}: {passed} of {len(outcomes)} pass", flush=True)
        rows = verdicts.read(suite)
        if not options.tests and not options.not_passing:
            missing = verdicts.gone(rows, options.peer, outcomes)
            verdicts.save_run(suite, options.peer, missing)
            outcomes += missing
        lost += verdicts.losses(rows, options.peer, outcomes)
    return _tell_losses(lost)


def _chosen(suite: str, options: argparse.Namespace) -> Iterator[Leg]:
    words = [word for word in options.tests.split(",") if word]
    passed = {one.test for one in verdicts.load_run(suite, options.peer) if one.verdict is Verdict.PASS}
    legs = SUITES[suite]()
    names = {test for leg in legs for test in leg.tests}
    for leg in legs:
        tests = [
            test
            for test in leg.tests
            if (not words or any(_is_meant(word, test, names) for word in words))
            and not (options.not_passing and test in passed)
        ]
        if tests:
            yield replace(leg, tests=tests)


def _is_meant(word: str, test: str, names: set[str]) -> bool:
    """A word that is the whole name of a test means that one, and not those whose names begin with it."""
    return word == test if word in names else word in test


def _outcomes(kind: str, leg: Leg) -> Iterator[Outcome]:
    """A broker that dies fails the test that it died in; the next one finds a new broker."""
    waiting = list(leg.tests)
    while waiting:
        with started(kind, leg) as peer:
            for outcome in leg.run(peer, tuple(waiting)):
                waiting.remove(outcome.test)
                if not peer.is_alive():
                    yield Outcome(outcome.test, Verdict.FAIL, f"the broker died: {peer.log_end()}", outcome.seconds)
                    break
                yield outcome
            else:
                return


def _check(options: argparse.Namespace) -> int:
    lost: list[Outcome] = []
    for suite in _suites(options):
        outcomes = verdicts.load_run(suite, options.peer)
        rows = verdicts.read(suite)
        expected = sum(row.of(options.peer) is Verdict.PASS for row in rows.values())
        print(f"{suite} on {options.peer}: the list has {expected} passes, the last runs {len(outcomes)} tests")
        lost += verdicts.losses(rows, options.peer, outcomes)
    return _tell_losses(lost)


def _tell_losses(lost: list[Outcome]) -> int:
    for outcome in lost:
        print(f"LOST  {outcome.test}: {outcome.verdict} {outcome.reason}", file=sys.stderr)
    return 1 if lost else 0


def _record(options: argparse.Namespace) -> int:
    for suite in _suites(options):
        outcomes = verdicts.load_run(suite, options.peer)
        rows = verdicts.merged(verdicts.read(suite), options.peer, outcomes, accept_losses=options.accept_losses)
        if rows:
            print(f"written: {verdicts.write(suite, rows.values())}")
    return 0


def _docs(_: argparse.Namespace) -> int:
    print(f"written: {docs.write_page()}")
    return 0


def _list(options: argparse.Namespace) -> int:
    for suite in _suites(options):
        for leg in _chosen(suite, options):
            print(*(f"{suite}\t{test}" for test in leg.tests), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
