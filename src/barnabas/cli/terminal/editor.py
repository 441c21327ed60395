"""A text in the editor of the one who calls: ``$VISUAL``, else ``$EDITOR``, else vi. What was written comes back."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from barnabas.ops.failure import Failure

FALLBACK: Final = "vi"


def edited(text: str, *, name: str) -> str:
    """The text as it was left; ``name`` ends the file's, so that an editor knows what it is."""
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or FALLBACK
    with tempfile.TemporaryDirectory(prefix="barnabas-") as directory:
        path = Path(directory) / name
        path.write_text(text)
        try:
            done = subprocess.run([*shlex.split(command), str(path)], check=False)  # noqa: S603 - the user's own editor
        except OSError as error:
            raise Failure(f"{command}: {error.strerror}; name an editor in $EDITOR") from error
        if done.returncode:
            raise Failure(f"{command} ended with code {done.returncode}: nothing was changed")
        return path.read_text()
