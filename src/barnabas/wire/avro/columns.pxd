# The columns as compiled modules beside this one see them; `columns.py` has the code.

cdef class Column:
    cdef public Py_ssize_t rows
    cdef public Py_ssize_t nulls
    cdef Py_ssize_t room
    cdef unsigned char[::1] bits
    cdef int add(self, bint is_valid) except -1
    cdef int grow(self) except -1
    cdef int put_null(self) except -1
    cdef int cut(self, Py_ssize_t rows) except -1

cdef class LongColumn(Column):
    cdef long long[::1] numbers
    cdef int put(self, long long number) except -1

cdef class DoubleColumn(Column):
    cdef double[::1] numbers
    cdef int put(self, double number) except -1

cdef class BytesColumn(Column):
    cdef int[::1] bounds
    cdef unsigned char[::1] data
    cdef int put(self, const unsigned char* source, Py_ssize_t start, Py_ssize_t size) except -1

cdef class DecimalColumn(Column):
    cdef unsigned char[::1] data
    cdef int put(self, const unsigned char* source, Py_ssize_t start, Py_ssize_t size) except -1

cdef class StructColumn(Column):
    cdef public tuple children

cdef class ListColumn(Column):
    cdef public Column items
    cdef int[::1] bounds
    cdef int put(self) except -1
