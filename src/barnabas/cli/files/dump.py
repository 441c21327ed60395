"""``barnabas dump``: what the files of a data directory hold, read without a broker, and whether they are sound.

Segments are read in ``dump_log.py``, indexes and snapshots in ``dump_entries.py``, text files here. They read the
bytes themselves and ask nothing of the storage engine, so they are a second opinion about what it wrote.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from barnabas.cli.files.dump_entries import read_index, read_producers, read_time_index, read_transaction_index
from barnabas.cli.files.dump_finding import Broken, Finding, Row
from barnabas.cli.files.dump_log import read_batches
from barnabas.ops.failure import Failure

TEXT_BYTES_MAX: Final = 64 * 1024 * 1024
BROKEN: Final = 1

Reader = Callable[[Path, Namespace], Iterator[Finding]]


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", type=Path, metavar="FILE", help="files, or directories for all in them")
    parser.add_argument("-r", "--records", action="store_true", help="print the records of batches too")
    parser.add_argument("-q", "--quiet", action="store_true", help="only say what is broken")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")


def run(arguments: Namespace) -> int:
    broken = 0
    for path in _files(arguments.paths):
        reader = _reader(path)
        if reader is None:
            if path in arguments.paths:
                raise Failure(f"{path}: not a file of a data directory")
            continue
        broken += _show(path, reader, arguments)
    return BROKEN if broken else 0


def _files(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.exists():
            raise Failure(f"{path}: no such file")
        if path.is_dir():
            yield from sorted(entry for entry in path.rglob("*") if entry.is_file())
        else:
            yield path


def _reader(path: Path) -> Reader | None:
    return _BY_SUFFIX.get(path.suffix) or _BY_NAME.get(path.name) or _BY_SUFFIX.get(_parted(path.name))


def _parted(name: str) -> str:
    """``leader-epoch-checkpoint`` and its like end in a word, not in a suffix."""
    return "-checkpoint" if name.endswith("-checkpoint") else ""


def _show(path: Path, reader: Reader, arguments: Namespace) -> bool:
    is_broken = False
    if not (arguments.json or arguments.quiet):
        print(path)
    try:
        for finding in reader(path, arguments):
            if isinstance(finding, Broken):
                is_broken = True
            elif arguments.quiet:
                continue
            print(_as_json(path, finding) if arguments.json else _as_text(path, finding, arguments))
    except PermissionError:
        raise Failure(f"{path}: not allowed to read it") from None
    return is_broken


def _as_json(path: Path, finding: Finding) -> str:
    if isinstance(finding, Broken):
        return json.dumps({"file": str(path), "kind": "broken", "position": finding.position, "why": finding.why})
    return json.dumps({"file": str(path), "kind": finding.kind, **finding.facts}, ensure_ascii=False)


def _as_text(path: Path, finding: Finding, arguments: Namespace) -> str:
    if isinstance(finding, Broken):
        where = "" if finding.position is None else f" at byte {finding.position}"
        about = f"{path}: " if arguments.quiet else "  "
        return f"{about}BROKEN{where}: {finding.why}"
    indent = "    " if finding.kind == "record" else "  "
    facts = (f"{name} {value}" for name, value in finding.facts.items() if value is not None)
    return f"{indent}{finding.kind}  {'  '.join(facts)}"


# --- text files -------------------------------------------------------------------------------------------------------


def _read_checkpoint(path: Path, arguments: Namespace) -> Iterator[Finding]:
    """A version, a count and that many lines."""
    lines = _text(path).splitlines()
    if len(lines) < 2 or not lines[0].isdecimal() or not lines[1].isdecimal():
        yield Broken(0, "it does not begin with a version and a count")
        return
    names = ("epoch", "start_offset") if path.name.startswith("leader-epoch") else ("topic", "partition", "offset")
    for line in lines[2:]:
        words = line.split()
        if len(words) != len(names):
            yield Broken(None, f"the line {line!r} should have {len(names)} words")
        else:
            yield Row("entry", dict(zip(names, words, strict=True)))
    if int(lines[1]) != len(lines) - 2:
        yield Broken(None, f"it announces {lines[1]} entries and has {len(lines) - 2}")


def _read_properties(path: Path, arguments: Namespace) -> Iterator[Finding]:
    for line in _text(path).splitlines():
        if line.strip() and not line.startswith("#"):
            name, separator, value = line.partition("=") if "=" in line else line.partition(":")
            if separator:
                yield Row("setting", {name.strip(): value.strip()})
            else:
                yield Broken(None, f"the line {line!r} is no name and value")


def _read_json(path: Path, arguments: Namespace) -> Iterator[Finding]:
    try:
        yield Row("state", dict(json.loads(_text(path))))
    except (ValueError, TypeError) as error:
        yield Broken(0, f"it is no JSON object: {error}")


def _text(path: Path) -> str:
    if path.stat().st_size > TEXT_BYTES_MAX:
        raise Failure(f"{path}: too large to be a text file of a data directory")
    return path.read_bytes().decode(errors="replace")


_BY_SUFFIX: Final[dict[str, Reader]] = {
    ".log": read_batches,
    ".checkpoint": read_batches,  # a snapshot of the metadata is batches too
    ".index": read_index,
    ".timeindex": read_time_index,
    ".txnindex": read_transaction_index,
    ".snapshot": read_producers,
    "-checkpoint": _read_checkpoint,
}
_BY_NAME: Final[dict[str, Reader]] = {
    "meta.properties": _read_properties,
    "partition.metadata": _read_properties,
    "quorum-state": _read_json,
    ".kafka_cleanshutdown": _read_json,
}
