"""SaslHandshake: a client names its SASL mechanism before it authenticates.

After version 0 bare tokens follow, after version 1 SaslAuthenticate requests.
"""

from __future__ import annotations

from barnabas.wire.api import ApiKey
from barnabas.wire.message import Message, array, int16, string


class SaslHandshakeRequest(Message, api=ApiKey.SASL_HANDSHAKE, versions=range(2)):
    mechanism: str = string()


class SaslHandshakeResponse(Message, api=ApiKey.SASL_HANDSHAKE, versions=range(2)):
    error_code: int = int16()
    mechanisms: list[str] = array(string)
