"""How tests are spread over the workers of pytest-xdist (``--dist loadfile``).

A file runs on one worker, so that its module's fixtures are made once. All tests of Spark run on one worker, so that
there is one Spark session. Directories with long tests come first and short unit tests last: they even out the ends
of the workers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from xdist.scheduler.loadfile import LoadFileScheduling

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

SPARK = "tests/spark"
LONGEST_FIRST = (SPARK, "tests/docs", "tests/conformance", "tests/sim", "tests/integration", "tests/property")


def directory_of(nodeid: str) -> str:
    return PurePosixPath(*PurePosixPath(nodeid.partition("::")[0]).parts[:2]).as_posix()


def rank(nodeid: str) -> int:
    """Return the place of a test's directory in the order of the run."""
    directory = directory_of(nodeid)
    return LONGEST_FIRST.index(directory) if directory in LONGEST_FIRST else len(LONGEST_FIRST)


class Scheduling(LoadFileScheduling):  # type: ignore[misc]
    """Assigns whole files, and all files of Spark's tests to one worker."""

    def _split_scope(self, nodeid: str) -> str:
        return SPARK if directory_of(nodeid) == SPARK else super()._split_scope(nodeid)

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        super().mark_test_complete(node, item_index, duration)
        # Finished files are counted again after every test otherwise, and there are thousands of tests.
        assigned = self.assigned_work[node]
        for scope in [scope for scope, tests in assigned.items() if all(tests.values())]:
            del assigned[scope]

    def schedule(self) -> None:
        with self._in_collected_order():
            super().schedule()

    @contextmanager
    def _in_collected_order(self) -> Iterator[None]:
        """xdist would begin with the files that have the most tests, which are short ones."""
        option = self.config.option
        before, option.loadscopereorder = option.loadscopereorder, False
        yield
        option.loadscopereorder = before
