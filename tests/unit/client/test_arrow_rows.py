"""How the rows of a table are cut into batches."""

from __future__ import annotations

import pyarrow as pa
import pytest

from barnabas.client.produce.arrow_rows import ArrowRows, size_of_rows, slices


def table(sizes: list[int], **more: list[bytes]) -> pa.Table:
    return pa.table({"value": pa.array([b"x" * size for size in sizes], pa.binary()), **more})


@pytest.mark.parametrize(
    "sizes",
    [
        [100] * 5_000,
        [1] * 4_000 + [9_000] * 40,
        [9_000] * 40 + [1] * 4_000,
        [5, 20_000] * 50,
        [50_000],
        [],
    ],
)
def test_no_piece_is_too_large_but_for_a_row_that_is_so_alone(sizes: list[int]) -> None:
    pieces = list(slices(table(sizes), 16_384))
    assert [len(value) for piece in pieces for value in piece.column("value").to_pylist()] == sizes
    assert all(size_of_rows(piece) <= 16_384 or len(piece) == 1 for piece in pieces)


def test_rows_alike_make_few_pieces() -> None:
    pieces = list(slices(table([100] * 5_000), 16_384))
    assert len(pieces) <= 1 + size_of_rows(table([100] * 5_000)) // 16_000


def test_an_upper_bound_is_never_below_what_the_batch_takes() -> None:
    for rows in (table([0] * 100), table([3] * 300, key=[b"key"] * 300), table([200_000])):
        content = ArrowRows(rows, 1_700_000_000_000)
        assert len(content.encode()) - 61 <= content.size_bytes


def test_pieces_of_a_table_in_many_chunks_are_whole() -> None:
    parts = pa.concat_tables([table([10] * 100) for _ in range(20)])
    assert all(piece.column("value").num_chunks == 1 for piece in slices(parts, 8_192))
