# cython: boundscheck=False, wraparound=False, cdivision=True
"""Growing columns in Arrow's layout: what the Avro decoder writes to, row by row.

One source runs interpreted and compiled (Cython's pure-Python mode); ``columns.pxd`` declares the compiled form. A
column can be cut back to fewer rows, so that a record that turns out to be malformed leaves nothing behind.
"""

from __future__ import annotations

from typing import Any

try:
    import cython
except ImportError:
    from barnabas.wire import uncompiled as cython

if cython.compiled:
    from cython.cimports.libc.string import memcpy

COMPILED: bool = cython.compiled

ROWS_MIN = 64
DATA_BYTES_MIN = 256
DECIMAL_BYTES = 16
COLUMN_BYTES_MAX = (1 << 31) - 1  # the bounds of bytes and lists are int32
FULL = "a column of decoded Avro data has more than 2 GiB: decode fewer records at once"


def _larger(old: Any, size_bytes: int) -> Any:
    """A buffer of this size that begins with the bytes of ``old``."""
    new = bytearray(size_bytes)
    plain = memoryview(old).cast("B")
    new[: len(plain)] = plain
    return memoryview(new)


@cython.cclass
class Column:
    """The validity of rows, which every column has; the column of a null type has nothing else."""

    def __init__(self) -> None:
        self.rows = self.nulls = 0
        self.room = ROWS_MIN
        self.bits = memoryview(bytearray(ROWS_MIN // 8))

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def add(self, is_valid: cython.bint) -> cython.int:
        """Begin a row; a subclass has room for it then."""
        row: cython.Py_ssize_t = self.rows
        if row >= self.room:
            if row >= COLUMN_BYTES_MAX:
                raise OverflowError(FULL)
            self.room *= 2
            self.bits = _larger(self.bits, self.room // 8)
            self.grow()
        if is_valid:
            self.bits[row >> 3] |= 1 << (row & 7)
        else:
            self.bits[row >> 3] &= 0xFF ^ (1 << (row & 7))
            self.nulls += 1
        self.rows = row + 1
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def grow(self) -> cython.int:
        """Make room for ``room`` rows in the buffers of a subclass."""
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def put_null(self) -> cython.int:
        return self.add(False)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def cut(self, rows: cython.Py_ssize_t) -> cython.int:
        """Forget the rows from ``rows`` on."""
        row: cython.Py_ssize_t
        for row in range(rows, self.rows):
            if not self.bits[row >> 3] >> (row & 7) & 1:
                self.nulls -= 1
        if rows < self.rows:
            self.rows = rows
        return 0

    def buffers(self) -> list[Any]:
        """Validity (None if no row is null), then the buffers of the column's own; larger than the rows need."""
        return [memoryview(self.bits) if self.nulls else None]


@cython.cclass
class LongColumn(Column):
    def __init__(self) -> None:
        Column.__init__(self)
        self.numbers = memoryview(bytearray(8 * ROWS_MIN)).cast("q")

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def grow(self) -> cython.int:
        self.numbers = _larger(self.numbers, 8 * self.room).cast("q")
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def put(self, number: cython.longlong) -> cython.int:
        self.add(True)
        self.numbers[self.rows - 1] = number
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def put_null(self) -> cython.int:
        self.add(False)
        self.numbers[self.rows - 1] = 0
        return 0

    def buffers(self) -> list[Any]:
        return [*Column.buffers(self), memoryview(self.numbers)]


@cython.cclass
class DoubleColumn(Column):
    def __init__(self) -> None:
        Column.__init__(self)
        self.numbers = memoryview(bytearray(8 * ROWS_MIN)).cast("d")

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def grow(self) -> cython.int:
        self.numbers = _larger(self.numbers, 8 * self.room).cast("d")
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def put(self, number: cython.double) -> cython.int:
        self.add(True)
        self.numbers[self.rows - 1] = number
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def put_null(self) -> cython.int:
        self.add(False)
        self.numbers[self.rows - 1] = 0
        return 0

    def buffers(self) -> list[Any]:
        return [*Column.buffers(self), memoryview(self.numbers)]


@cython.cclass
class BytesColumn(Column):
    """Bytes or text: row ``i`` is from bound ``i`` to bound ``i + 1``."""

    def __init__(self) -> None:
        Column.__init__(self)
        self.bounds = memoryview(bytearray(4 * (ROWS_MIN + 1))).cast("i")
        self.data = memoryview(bytearray(DATA_BYTES_MIN))

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def grow(self) -> cython.int:
        self.bounds = _larger(self.bounds, 4 * (self.room + 1)).cast("i")
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def put(self, source: cython.p_const_uchar, start: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.int:
        self.add(True)
        first: cython.Py_ssize_t = self.bounds[self.rows - 1]
        if size > len(self.data) - first:
            if first + size > COLUMN_BYTES_MAX:
                self.cut(self.rows - 1)
                raise OverflowError(FULL)
            self.data = _larger(self.data, max(2 * len(self.data), first + size))
        if size > 0:
            if cython.compiled:
                memcpy(cython.address(self.data[first]), source + start, size)
            else:
                self.data[first : first + size] = source[start : start + size]
        self.bounds[self.rows] = first + size
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def put_null(self) -> cython.int:
        self.add(False)
        self.bounds[self.rows] = self.bounds[self.rows - 1]
        return 0

    def buffers(self) -> list[Any]:
        return [*Column.buffers(self), memoryview(self.bounds), memoryview(self.data)]


@cython.cclass
class DecimalColumn(Column):
    """Decimals as Arrow has them: 16 bytes of two's complement, the lowest first. Avro has the highest first."""

    def __init__(self) -> None:
        Column.__init__(self)
        self.data = memoryview(bytearray(DECIMAL_BYTES * ROWS_MIN))

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def grow(self) -> cython.int:
        self.data = _larger(self.data, DECIMAL_BYTES * self.room)
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def put(self, source: cython.p_const_uchar, start: cython.Py_ssize_t, size: cython.Py_ssize_t) -> cython.int:
        self.add(True)
        place: cython.Py_ssize_t = DECIMAL_BYTES * (self.rows - 1)
        filler: cython.int = 0xFF if size and source[start] > 0x7F else 0
        index: cython.Py_ssize_t
        for index in range(DECIMAL_BYTES):
            self.data[place + index] = source[start + size - 1 - index] if index < size else filler
        return 0

    def buffers(self) -> list[Any]:
        return [*Column.buffers(self), memoryview(self.data)]


@cython.cclass
class StructColumn(Column):
    """A row of every child for each row of its own. The children are known after the column has been made."""

    def __init__(self) -> None:
        Column.__init__(self)
        self.children = ()

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def put_null(self) -> cython.int:
        child: Column
        self.add(False)
        for child in self.children:
            child.put_null()
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def cut(self, rows: cython.Py_ssize_t) -> cython.int:
        child: Column
        Column.cut(self, rows)
        for child in self.children:
            child.cut(rows)
        return 0


@cython.cclass
class ListColumn(Column):
    """Lists, or maps as lists of a struct: row ``i`` has the items from bound ``i`` to bound ``i + 1``."""

    def __init__(self, items: Column) -> None:
        Column.__init__(self)
        self.items = items
        self.bounds = memoryview(bytearray(4 * (ROWS_MIN + 1))).cast("i")

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def grow(self) -> cython.int:
        self.bounds = _larger(self.bounds, 4 * (self.room + 1)).cast("i")
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def put(self) -> cython.int:
        """A row of the items that were put since the last row."""
        self.add(True)
        self.bounds[self.rows] = self.items.rows
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def put_null(self) -> cython.int:
        self.add(False)
        self.bounds[self.rows] = self.bounds[self.rows - 1]
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def cut(self, rows: cython.Py_ssize_t) -> cython.int:
        Column.cut(self, rows)
        self.items.cut(self.bounds[rows])
        return 0

    def buffers(self) -> list[Any]:
        return [*Column.buffers(self), memoryview(self.bounds)]
