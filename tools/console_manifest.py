"""Writes the hashes of the console's sources and of its bundle beside the bundle; ``--check`` compares them.

``make console`` runs it after the build. ``make check`` compares without npm, so that a bundle that was not built from
the sources beside it cannot be committed.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "console"
BUNDLE = ROOT / "src" / "barnabas" / "console" / "static"
MANIFEST = BUNDLE / "manifest.json"
OUTSIDE = ("node_modules", "dist", ".vite")


def hashes(folder: Path) -> dict[str, str]:
    found = {}
    for path in sorted(folder.rglob("*")):
        place = path.relative_to(folder)
        if path.is_file() and path != MANIFEST and place.parts[0] not in OUTSIDE:
            found[place.as_posix()] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def differences() -> list[str]:
    """What is not as the manifest says."""
    if not MANIFEST.exists():
        return ["there is no manifest: run `make console`"]
    recorded = json.loads(MANIFEST.read_text())
    found = []
    for name, folder in (("sources", SOURCES), ("bundle", BUNDLE)):
        now = hashes(folder)
        found += [f"{name}: {each}" for each in sorted(now.keys() ^ recorded[name].keys())]
        found += [f"{name}: {each}" for each in sorted(now) if recorded[name].get(each, now[each]) != now[each]]
    return found


def notices() -> str:
    """The licences of what the bundle contains."""
    names = json.loads((SOURCES / "package.json").read_text())["bundled"]
    parts = []
    for name in names:
        folder = SOURCES / "node_modules" / name
        version = json.loads((folder / "package.json").read_text())["version"]
        text = next(path.read_text() for path in sorted(folder.glob("LICEN[CS]E*")))
        parts.append(f"{name} {version}\n\n{text.strip()}\n")
    return ("\n" + "-" * 80 + "\n\n").join(parts)


def main() -> int:
    if "--check" in sys.argv:
        changed = differences()
        for each in changed:
            print(f"changed since the console was built: {each}")
        return int(bool(changed))
    (BUNDLE / "THIRD-PARTY.txt").write_text(notices())
    MANIFEST.write_text(json.dumps({"sources": hashes(SOURCES), "bundle": hashes(BUNDLE)}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
