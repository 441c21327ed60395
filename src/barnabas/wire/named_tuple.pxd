# How the compiled record codec makes named tuples: what it needs of C and cannot say in Python.

from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE, PyTuple_SET_ITEM

# Cython's own declaration of this function takes any object where C wants a type, which newer compilers refuse.
cdef extern from "Python.h":
    object PyType_GenericAlloc(type kind, Py_ssize_t item_count)

cdef extern from *:
    """
    static inline PyObject *new_untracked(PyTypeObject *kind, Py_ssize_t item_count) {
        return (PyObject *)_PyObject_GC_NewVar(kind, item_count);
    }
    """
    object new_untracked(type kind, Py_ssize_t item_count)


cdef inline object new_record(
    type kind, tuple place, object offset, object timestamp, object key, object value, object headers
):
    # A named tuple is a tuple with another type: filled in place, it costs no constructor and no plain tuple first.
    # Numbers, bytes and text make no cycles, so the collector need not know of it: whoever holds millions of records
    # is not slowed down by looks at each of them. The caller has seen to it that the type has no room for more.
    cdef Py_ssize_t first = PyTuple_GET_SIZE(place)
    cdef object record = new_untracked(kind, first + 5)
    cdef Py_ssize_t index
    cdef object part
    for index in range(first):
        part = <object>PyTuple_GET_ITEM(place, index)
        Py_INCREF(part)
        PyTuple_SET_ITEM(record, index, part)
    Py_INCREF(offset)
    PyTuple_SET_ITEM(record, first, offset)
    Py_INCREF(timestamp)
    PyTuple_SET_ITEM(record, first + 1, timestamp)
    Py_INCREF(key)
    PyTuple_SET_ITEM(record, first + 2, key)
    Py_INCREF(value)
    PyTuple_SET_ITEM(record, first + 3, value)
    Py_INCREF(headers)
    PyTuple_SET_ITEM(record, first + 4, headers)
    return record


cdef inline object new_pair(type kind, object first, object second):
    cdef object pair = PyType_GenericAlloc(kind, 2)
    Py_INCREF(first)
    PyTuple_SET_ITEM(pair, 0, first)
    Py_INCREF(second)
    PyTuple_SET_ITEM(pair, 1, second)
    return pair
