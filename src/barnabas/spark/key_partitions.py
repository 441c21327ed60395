"""The partitions of a whole column of keys at once: the hash of Java's client, over rows of equal length together.

The client hashes key by key, in Python; a batch of Spark has ten thousand of them. ``client/partitioner.py`` has the
hash in its plain form, which a test compares with this one. Called by ``writing.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    import pyarrow

_SEED: Final = 0x9747B28C
_MULTIPLIER: Final = np.uint32(0x5BD1E995)
_SHIFT: Final = np.uint32(24)
_POSITIVE: Final = np.uint32(0x7FFFFFFF)


def partitions_of(keys: pyarrow.Array, partition_count: int) -> pyarrow.Array:
    """Where each key of a binary column goes; null where there is no key."""
    import pyarrow as pa

    rows = len(keys)
    _, bounds, data = keys.buffers()
    edges = np.frombuffer(bounds, np.int32)[keys.offset : keys.offset + rows + 1]
    content = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(0, np.uint8)
    starts, sizes = edges[:-1], np.diff(edges)
    hashes = np.zeros(rows, np.uint32)
    for size in np.unique(sizes):
        of_size = np.flatnonzero(sizes == size)
        letters = content[starts[of_size][:, None] + np.arange(size)]
        hashes[of_size] = _hashes(letters, int(size))
    chosen = ((hashes & _POSITIVE) % np.uint32(partition_count)).astype(np.int32)
    missing = keys.is_null().to_numpy(zero_copy_only=False) if keys.null_count else None
    return pa.array(chosen, pa.int32(), mask=missing)


def _hashes(letters: Any, size: int) -> Any:
    """murmur2 of every row of a table of bytes."""
    digest = np.full(len(letters), _SEED ^ size, np.uint32)
    whole = size & ~3
    words = np.ascontiguousarray(letters[:, :whole]).view("<u4") if whole else None
    for column in range(whole // 4):
        assert words is not None
        word = words[:, column] * _MULTIPLIER
        word ^= word >> _SHIFT
        word *= _MULTIPLIER
        digest *= _MULTIPLIER
        digest ^= word
    if size > whole:
        for place in range(size - whole):
            digest ^= letters[:, whole + place].astype(np.uint32) << np.uint32(8 * place)
        digest *= _MULTIPLIER
    digest ^= digest >> np.uint32(13)
    digest *= _MULTIPLIER
    digest ^= digest >> np.uint32(15)
    return digest
