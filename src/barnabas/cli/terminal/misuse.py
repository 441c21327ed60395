"""What somebody may have meant who used a word that a command does not have.

Near misses, and words of other tools. Only imported when something was wrong, so that nobody else pays for it; the
parser of ``main.py`` calls it.
"""

from __future__ import annotations

import re
from argparse import ArgumentParser
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

_NEARNESS_MIN: Final = 0.6
# What other tools call it.
_SYNONYMS: Final = {
    "add": "create",
    "drop": "delete",
    "info": "describe",
    "ls": "list",
    "new": "create",
    "remove": "delete",
    "rm": "delete",
    "show": "describe",
    "unset": "delete",
}
_UNKNOWN_OPTION: Final = re.compile(r"unrecognized arguments: (-[\w-]+)")
_UNKNOWN_WORD: Final = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)")


def advice(parser: ArgumentParser, message: str) -> str:
    """A question to be put behind the message, or nothing."""
    option = _UNKNOWN_OPTION.match(message)
    if option is not None:
        return near(option[1], [word for word in parser._option_string_actions if word.startswith("--")])
    word = _UNKNOWN_WORD.search(message)
    if word is not None:
        return near(word[1], re.findall(r"'([^']*)'", word[2]) or word[2].split(", "))
    return ""


def near(word: str, known: Iterable[str]) -> str:
    choices = list(known)
    synonym = _SYNONYMS.get(word)
    found = [synonym] if synonym in choices else get_close_matches(word, choices, n=1, cutoff=_NEARNESS_MIN)
    return f": did you mean {found[0]!r}?" if found else ""
