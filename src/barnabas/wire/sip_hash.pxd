# SipHash-2-4 with 128 bits of output, as its authors define it: the hash of the compiled record filter.

from libc.string cimport memcpy


cdef inline void sip_rounds(unsigned long long* v, int count) noexcept nogil:
    cdef int number
    for number in range(count):
        v[0] += v[1]
        v[1] = ((v[1] << 13) | (v[1] >> 51)) ^ v[0]
        v[0] = (v[0] << 32) | (v[0] >> 32)
        v[2] += v[3]
        v[3] = ((v[3] << 16) | (v[3] >> 48)) ^ v[2]
        v[0] += v[3]
        v[3] = ((v[3] << 21) | (v[3] >> 43)) ^ v[0]
        v[2] += v[1]
        v[1] = ((v[1] << 17) | (v[1] >> 47)) ^ v[2]
        v[2] = (v[2] << 32) | (v[2] >> 32)


cdef inline (unsigned long long, unsigned long long) sip_hash(
    const unsigned char* data, Py_ssize_t size, unsigned long long seed_low, unsigned long long seed_high
) noexcept nogil:
    # Words are read as the machine has them: the hash is kept in memory only, so big-endian ones may differ.
    cdef unsigned long long v[4]
    cdef unsigned long long word = 0
    cdef unsigned long long low
    cdef Py_ssize_t position = 0
    v[0] = seed_low ^ 0x736f6d6570736575ULL
    v[1] = seed_high ^ 0x646f72616e646f6dULL ^ 0xee
    v[2] = seed_low ^ 0x6c7967656e657261ULL
    v[3] = seed_high ^ 0x7465646279746573ULL
    while size - position >= 8:
        memcpy(&word, data + position, 8)
        v[3] ^= word
        sip_rounds(v, 2)
        v[0] ^= word
        position += 8
    word = <unsigned long long>size << 56
    cdef int shift = 0
    while position < size:
        word |= <unsigned long long>data[position] << shift
        position += 1
        shift += 8
    v[3] ^= word
    sip_rounds(v, 2)
    v[0] ^= word
    v[2] ^= 0xee
    sip_rounds(v, 4)
    low = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xdd
    sip_rounds(v, 4)
    return low, v[0] ^ v[1] ^ v[2] ^ v[3]
