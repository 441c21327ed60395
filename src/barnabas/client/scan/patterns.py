"""Regular expressions from users: RE2 matches them in time linear in the text, whatever the pattern is."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from barnabas.client.errors import InvalidExpression

PATTERN_MEMORY_BYTES_MAX: Final = 1024 * 1024


@cache
def _options() -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = PATTERN_MEMORY_BYTES_MAX
    return options


def compile_pattern(pattern: str | bytes) -> Any:
    """The compiled pattern, for texts of the same type; InvalidExpression if RE2 refuses it. The library caches 128."""
    import re2  # only commands that filter need it

    try:
        return re2.compile(pattern, _options())
    except re2.error as error:
        reason = error.args[0].decode(errors="replace") if error.args else "RE2 gives no reason"
        text = pattern if isinstance(pattern, str) else pattern.decode(errors="replace")
        raise InvalidExpression(f"{text!r} is not a valid regular expression: {reason}") from None
