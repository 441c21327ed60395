"""The authorities that a TLS server names when it asks for a certificate, so that a client knows which one to show.

Python's ssl has no call for this, so OpenSSL is asked directly: the very library that the ssl module uses, through
the pointer that every context holds. Where that is not certain to be right (another interpreter, a library that was
linked in statically), nothing is touched and none are named, as before. Called by `tls.server_context`; ADR 8.
"""

from __future__ import annotations

import _ssl
import base64
import binascii
import re
import ssl
import sys
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from barnabas.observe.log import logger

if TYPE_CHECKING:
    import ctypes

log = logger("tls")

# What a context begins with was looked up in the sources of these, and tried out with each.
KNOWN_VERSIONS: Final = ((3, 11), (3, 12), (3, 13), (3, 14))
NAMES_BYTES_MAX: Final = 0xFFFF  # what the length before the names can say; more would end every handshake
NAME_PREFIX_BYTES: Final = 2
_CERTIFICATE: Final = re.compile(
    r"-----BEGIN ((?:X509 |TRUSTED )?CERTIFICATE)-----\s*([A-Za-z0-9+/=\s]+?)-----END \1-----"
)


class _Unnamable(Exception):
    """Why no authority can be named."""


def name_authorities(context: ssl.SSLContext, certificates_pem: str) -> bool:
    """Whether the subjects of all certificates, which are those that the context trusts, are named from now on.

    All or none: a client whose authority is missing from the list would show nothing, and be refused for it.
    """
    try:
        certificates = _certificates_in(certificates_pem)
        if len(certificates) != context.cert_store_stats()["x509"]:
            raise _Unnamable("not every trusted certificate was understood")
        _open_library().name(context, certificates)
    except _Unnamable as reason:
        log.warning(
            "authorities_not_named", reason=reason, effect="clients are not told whose certificates are trusted"
        )
        return False
    return True


def _certificates_in(text: str) -> list[bytes]:
    """In DER, each once; what follows the certificate in a block of OpenSSL's own kind is not looked at."""
    try:
        found = [base64.b64decode(match[2]) for match in _CERTIFICATE.finditer(text)]
    except binascii.Error as error:
        raise _Unnamable("a trusted certificate is not base64") from error
    return list(dict.fromkeys(found))


class _Library:
    """The functions of OpenSSL that are needed, with their types."""

    def __init__(self, handle: ctypes.CDLL) -> None:
        import ctypes  # for brokers that ask for certificates alone

        self._ctypes = ctypes
        pointer = ctypes.c_void_p
        self._version = self._function(handle, "OpenSSL_version_num", ctypes.c_ulong)
        self._options = self._function(handle, "SSL_CTX_get_options", ctypes.c_uint64, pointer)
        self._read = self._function(handle, "d2i_X509", pointer, pointer, pointer, ctypes.c_long)
        self._free = self._function(handle, "X509_free", None, pointer)
        self._subject = self._function(handle, "X509_get_subject_name", pointer, pointer)
        self._size = self._function(handle, "i2d_X509_NAME", ctypes.c_int, pointer, pointer)
        self._add = self._function(handle, "SSL_CTX_add_client_CA", ctypes.c_int, pointer, pointer)
        self._forget_errors = self._function(handle, "ERR_clear_error", None)

    @staticmethod
    def _function(handle: ctypes.CDLL, name: str, result: Any, *arguments: Any) -> Any:
        function = getattr(handle, name, None)
        if function is None:
            raise _Unnamable(f"this Python's OpenSSL shows no {name}")
        function.restype, function.argtypes = result, arguments
        return function

    def check(self) -> None:
        """_Unnamable unless this is the library of the ssl module, and contexts begin as they are known to."""
        if self._version() != ssl.OPENSSL_VERSION_NUMBER:
            raise _Unnamable("another OpenSSL than that of Python's ssl was found")
        for options in (ssl.OP_NO_TICKET, ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION):
            probe = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            probe.options = options
            if self._options(self._context(probe)) != int(probe.options):
                raise _Unnamable("a context of Python's ssl does not look as expected")

    def name(self, context: ssl.SSLContext, certificates: Sequence[bytes]) -> None:
        """The context copies the names: what is made here is freed here."""
        read: list[int] = []
        try:
            for der in certificates:
                certificate = self._certificate(der)
                if not certificate:
                    raise _Unnamable("a trusted certificate was not understood")
                read.append(certificate)
            size_bytes = sum(NAME_PREFIX_BYTES + self._size(self._subject(one), None) for one in read)
            if size_bytes > NAMES_BYTES_MAX:
                raise _Unnamable(f"the names of {len(read)} trusted authorities do not fit into a handshake")
            for certificate in read:
                if self._add(self._context(context), certificate) != 1:
                    raise MemoryError  # nothing else can be wrong with a name that has just been read
        finally:
            for certificate in read:
                self._free(certificate)
            self._forget_errors()  # or the next call of the ssl module would take them for its own

    def _certificate(self, der: bytes) -> int | None:
        ctypes = self._ctypes
        kept = ctypes.create_string_buffer(der, len(der))
        place = ctypes.c_void_p(ctypes.addressof(kept))  # moved on by the call
        found: int | None = self._read(None, ctypes.byref(place), len(der))
        return found

    def _context(self, context: ssl.SSLContext) -> int:
        """What is behind the head of the object: the pointer to OpenSSL's own context."""
        found = self._ctypes.c_void_p.from_address(id(context) + object.__basicsize__).value
        if not found:
            raise _Unnamable("a context of Python's ssl does not look as expected")
        return found


@cache
def _open_library() -> _Library:
    if sys.implementation.name != "cpython" or sys.version_info[:2] not in KNOWN_VERSIONS:
        raise _Unnamable("this version of Python is not known well enough")
    path = getattr(_ssl, "__file__", None)
    if path is None:
        raise _Unnamable("OpenSSL is linked into this Python")
    import ctypes

    try:
        library = _Library(ctypes.CDLL(path))
    except OSError as error:
        raise _Unnamable(f"Python's ssl cannot be opened again: {error}") from error
    library.check()
    return library
