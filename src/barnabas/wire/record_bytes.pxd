# How the compiled encoders write one record: what record_encoder.py and record_builder.py share, in C.

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.string cimport memcpy


cdef inline object plain_bytes(object part):
    # A key or a value as bytes or None; what is neither bytes nor a view of bytes is a mistake of the caller.
    if part is None or type(part) is bytes:
        return part
    return bytes(memoryview(part))


cdef inline const unsigned char* address_of(object part) noexcept:
    if part is None:
        return NULL
    return <const unsigned char*>PyBytes_AS_STRING(part)


cdef inline Py_ssize_t size_of(object part) noexcept:
    return -1 if part is None else PyBytes_GET_SIZE(part)


cdef inline int check_timestamp(long long timestamp) except -1:
    # So far on either side of zero that the difference of two needs no more than 64 bits.
    if timestamp >= 1LL << 62 or timestamp < -(1LL << 62):
        raise ValueError(f"{timestamp} is no timestamp in milliseconds")
    return 0


cdef inline Py_ssize_t varint_size(long long value) noexcept nogil:
    cdef unsigned long long raw = (<unsigned long long>value << 1) ^ <unsigned long long>(value >> 63)
    cdef Py_ssize_t size = 1
    while raw > 0x7F:
        raw >>= 7
        size += 1
    return size


cdef inline Py_ssize_t put_varint(unsigned char* out, Py_ssize_t position, long long value) noexcept nogil:
    # Writes one varint and returns the position after it.
    cdef unsigned long long raw = (<unsigned long long>value << 1) ^ <unsigned long long>(value >> 63)
    while raw > 0x7F:
        out[position] = (raw & 0x7F) | 0x80
        position += 1
        raw >>= 7
    out[position] = <unsigned char>raw
    return position + 1


cdef inline Py_ssize_t body_size(
    long long delta, Py_ssize_t index, Py_ssize_t key_size, Py_ssize_t value_size
) noexcept nogil:
    # The size of all that put_body writes; a length of -1 takes one byte.
    cdef Py_ssize_t size = 1 + varint_size(delta) + varint_size(index) + varint_size(key_size) + varint_size(value_size)
    if key_size > 0:
        size += key_size
    if value_size > 0:
        size += value_size
    return size


cdef inline Py_ssize_t put_body(
    unsigned char* out,
    Py_ssize_t position,
    long long delta,
    Py_ssize_t index,
    const unsigned char* key,
    Py_ssize_t key_size,
    const unsigned char* value,
    Py_ssize_t value_size,
) noexcept nogil:
    # Attributes, deltas, key and value; the record's length stands before, its headers follow.
    out[position] = 0
    position = put_varint(out, position + 1, delta)
    position = put_varint(out, position, index)
    position = put_varint(out, position, key_size)
    if key_size > 0:
        memcpy(out + position, key, key_size)
        position += key_size
    position = put_varint(out, position, value_size)
    if value_size > 0:
        memcpy(out + position, value, value_size)
        position += value_size
    return position


cdef inline Py_ssize_t headers_size(object headers) except -1:
    cdef Py_ssize_t size = varint_size(len(headers))
    cdef Py_ssize_t length = 0
    for name, content in headers:
        PyUnicode_AsUTF8AndSize(name, &length)
        size += varint_size(length) + length
        length = -1 if content is None else len(plain_bytes(content))
        size += varint_size(length) + max(length, 0)
    return size


cdef inline Py_ssize_t put_headers(
    unsigned char* out, Py_ssize_t position, Py_ssize_t end, object headers
) except -1:
    # Writes what headers_size has measured, and never beyond it should a strange object change its mind.
    cdef Py_ssize_t length = 0
    cdef Py_ssize_t size
    cdef const char* text
    if varint_size(len(headers)) > end - position:
        raise ValueError("the headers changed while they were written")
    position = put_varint(out, position, len(headers))
    for name, content in headers:
        text = PyUnicode_AsUTF8AndSize(name, &length)
        plain = plain_bytes(content)
        size = size_of(plain)
        if varint_size(length) + length + varint_size(size) + max(size, 0) > end - position:
            raise ValueError("the headers changed while they were written")
        position = put_varint(out, position, length)
        memcpy(out + position, text, length)
        position = put_varint(out, position + length, size)
        if size > 0:
            memcpy(out + position, PyBytes_AS_STRING(plain), size)
            position += size
    if position != end:
        raise ValueError("the headers changed while they were written")
    return position


cdef inline bytes headers_bytes(object headers):
    # The headers and their number, as they stand in a record.
    cdef Py_ssize_t size = headers_size(headers)
    cdef bytes written = PyBytes_FromStringAndSize(NULL, size)
    put_headers(<unsigned char*>PyBytes_AS_STRING(written), 0, size, headers)
    return written
