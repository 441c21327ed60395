"""The committed bundle of the console was built from the sources beside it, and stays small."""

from __future__ import annotations

import gzip

from tools.console_manifest import BUNDLE, differences

GZIPPED_BYTES_MAX = 600_000


def test_the_bundle_was_built_from_these_sources() -> None:
    assert differences() == [], "run `make console`"


def test_the_bundle_is_small_enough_for_a_slow_line() -> None:
    sizes = {path.name: len(gzip.compress(path.read_bytes())) for path in BUNDLE.rglob("*") if path.is_file()}
    assert sum(sizes.values()) <= GZIPPED_BYTES_MAX, sizes


def test_the_pages_load_nothing_from_other_hosts() -> None:
    page = (BUNDLE / "index.html").read_text()
    assert "http://" not in page
    assert "https://" not in page
    assert "<style" not in page
    assert "<script>" not in page
