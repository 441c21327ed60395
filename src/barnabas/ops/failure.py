"""A command that cannot go on, as the line that its user sees."""

from __future__ import annotations


class Failure(Exception):
    """Ends the command with exit code 1; the sentence, if there is one, goes to standard error."""
