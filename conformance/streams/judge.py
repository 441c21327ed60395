"""Compares the topologies of the judge record by record with Apache Kafka's: descriptions, and every output record."""

from __future__ import annotations

import hashlib
import re
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tools.cache import cache_directory, locked
from tools.kafka_jars import program, streams_libraries

from conformance.streams import ours
from conformance.streams.records import generate, write
from conformance.streams.topologies import ALL

JAVA = Path(__file__).parent / "java"
COMPILE_SECONDS_MAX = 300
RUN_SECONDS_MAX = 3600
_EXTRACTOR = re.compile(r"extractor class: .*")  # the name of a lambda, which is never the same


@dataclass(frozen=True)
class Verdict:
    """The comparison of one topology: the number of output records, and the first difference, if any."""

    name: str
    records: int
    difference: str | None


def _classes(libraries: Path) -> Path:
    sources = sorted(JAVA.glob("*.java"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    directory = cache_directory("java", digest)
    with locked("streams-judge"):
        if not (directory / "StreamsJudge.class").exists():
            command = [program("javac"), "-cp", f"{libraries}/*", "-d", str(directory), *map(str, sources)]
            subprocess.run(command, check=True, timeout=COMPILE_SECONDS_MAX)
    return directory


def run_kafka(input_file: Path, results: Path, names: Iterable[str]) -> None:
    """Run topologies with Apache Kafka's test driver; the results are files in a directory."""
    libraries = streams_libraries()
    path = f"{_classes(libraries)}:{libraries}/*"
    command = [
        program("java"),
        "-Xmx512M",
        "-XX:+UseSerialGC",
        "-cp",
        path,
        "StreamsJudge",
        str(input_file),
        str(results),
    ]
    subprocess.run([*command, *names], check=True, timeout=RUN_SECONDS_MAX, stderr=subprocess.DEVNULL)


def _first_difference(expected: list[str], found: list[str]) -> str | None:
    for number, (theirs, mine) in enumerate(zip(expected, found, strict=False), 1):
        if theirs != mine:
            return f"record {number}: Kafka has {_readable(theirs)}, Barnabas has {_readable(mine)}"
    if len(expected) != len(found):
        longer = expected if len(expected) > len(found) else found
        who = "Kafka" if longer is expected else "Barnabas"
        extra = _readable(longer[min(len(expected), len(found))])
        return f"Kafka has {len(expected)} records, Barnabas has {len(found)}; the next one of {who} is {extra}"
    return None


def _readable(line: str) -> str:
    topic, key, value, timestamp, headers = line.split("\t")
    shown = [part if part == "\\N" else repr(bytes.fromhex(part)) for part in (key, value)]
    return f"{topic} key={shown[0]} value={shown[1]} timestamp={timestamp} headers={headers}"


def judge(seed: int, count: int, names: Iterable[str] = (), *, restart_every: int = 0) -> list[Verdict]:
    """Compare topologies on random records of a seed."""
    chosen = list(names) or list(ALL)
    records = generate(seed, count)
    verdicts = []
    with tempfile.TemporaryDirectory() as directory:
        input_file, results = Path(directory, "records"), Path(directory, "results")
        write(records, input_file)
        run_kafka(input_file, results, chosen)
        for name in chosen:
            failed = results / f"{name}.error"
            if failed.exists():
                verdicts.append(Verdict(name, 0, f"Kafka failed: {failed.read_text()}"))
                continue
            expected = (results / f"{name}.out").read_text().splitlines()
            theirs = (results / f"{name}.topology").read_text()
            mine = ours.description(name)
            if _EXTRACTOR.sub("", theirs) != _EXTRACTOR.sub("", mine):
                verdicts.append(Verdict(name, 0, f"the descriptions differ:\n{theirs}\n---\n{mine}"))
                continue
            found = ours.run(name, records, restart_every=restart_every)
            verdicts.append(Verdict(name, len(expected), _first_difference(expected, found)))
    return verdicts
