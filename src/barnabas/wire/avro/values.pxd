# The steps as compiled modules beside this one see them; `values.py` has the code.

from barnabas.wire.avro.columns cimport Column

cdef class Limits:
    cdef public Py_ssize_t cells
    cdef public Py_ssize_t depth

cdef class Step:
    cdef Column column
    cdef Py_ssize_t read(
        self, const unsigned char* data, Py_ssize_t position, Py_ssize_t end, Limits limits
    ) except -1

cdef (unsigned long long, Py_ssize_t) varint(
    const unsigned char* data, Py_ssize_t position, Py_ssize_t end
) noexcept
cdef (Py_ssize_t, Py_ssize_t) size_of(
    const unsigned char* data, Py_ssize_t position, Py_ssize_t end, Py_ssize_t fixed
) noexcept
