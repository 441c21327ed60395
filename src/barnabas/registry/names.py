"""Names of subjects: ``orders-value`` in the default context, ``:.team:orders-value`` in the context ``.team``."""

from __future__ import annotations

from typing import Final, NamedTuple

DEFAULT_CONTEXT: Final = "."
ANY_CONTEXT: Final = "*"
ANY_CONTEXT_PREFIX: Final = ":*:"
RESERVED: Final = ("__GLOBAL", "__EMPTY")
NAME_CHARACTERS_MAX: Final = 1000


class SubjectName(NamedTuple):
    context: str  # begins with a dot
    name: str  # empty for the context itself

    def __str__(self) -> str:
        return self.name if self.context == DEFAULT_CONTEXT else f":{self.context}:{self.name}"


def parse(text: str, *, context: str = DEFAULT_CONTEXT) -> SubjectName:
    """A subject as written in a path or a reference; ``context`` is that of a name that has none of its own."""
    if text.startswith(ANY_CONTEXT_PREFIX):
        return SubjectName(ANY_CONTEXT, text[len(ANY_CONTEXT_PREFIX) :])
    if not text.startswith(":."):
        return SubjectName(context, text)
    named, _, name = text[1:].partition(":")
    return SubjectName(named, name)


def normal(text: str, *, context: str = DEFAULT_CONTEXT) -> str:
    """The one spelling of a subject: without the default context."""
    return str(parse(text, context=context))


def context_of(subject: str) -> str:
    return parse(subject).context if subject.startswith(":") else DEFAULT_CONTEXT


def context_name(text: str) -> str:
    """A context as written in a path (``team``, ``.team``, ``:.team:``) as its name."""
    name = text.strip(":")
    return name if name.startswith(".") else f".{name}"


def is_valid(subject: str, *, allows_context: bool = False) -> bool:
    """Whether schemas (with ``allows_context``: settings) may be kept under this name."""
    context, name = parse(subject)
    if context == ANY_CONTEXT or len(subject) > NAME_CHARACTERS_MAX or not subject.isprintable():
        return False
    if ":" in context or name in RESERVED:
        return False
    return bool(name) or (allows_context and context != DEFAULT_CONTEXT)
