"""A slice of the fuzzer of the socket, the same in every run; ``make fuzz`` sends a hundred times as many frames."""

from __future__ import annotations

import sys

import pytest

FRAMES = 10_000


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is read from /proc")
def test_ten_thousand_broken_frames_do_no_harm() -> None:
    from fuzz_socket import attack

    print(attack(FRAMES, seed=1))
