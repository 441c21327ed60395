"""Where profiles are kept: a file of client settings each, and one that names the profile in use.

They lie below ``$BARNABAS_HOME``, else below the directory for configuration of the one who calls. ``profile.py`` is
the command; ``connection.py`` reads the settings. Only the standard library's cheapest parts are imported, because
every command asks here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from barnabas.ops.failure import Failure

if TYPE_CHECKING:
    from pathlib import Path

HOME_VARIABLE: Final = "BARNABAS_HOME"
ENDING: Final = ".properties"
IN_USE_FILE: Final = "profile"
HIDDEN: Final = "(secret)"
NAME: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"


def home() -> str:
    above = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return os.environ.get(HOME_VARIABLE) or os.path.join(above, "barnabas")


def path_of(name: str) -> Path:
    from pathlib import Path

    if not re.fullmatch(NAME, name):
        raise Failure(f"{name!r} is no name for a profile: say letters, digits, dots and dashes")
    return Path(home()) / "profiles" / f"{name}{ENDING}"


def existing(name: str) -> Path:
    """The file of a profile that must be there."""
    path = path_of(name)
    if not path.exists():
        raise Failure(f"there is no profile {name!r}; `barnabas profile list` shows what there is")
    return path


def read_client_config(path: Path) -> dict[str, str]:
    """Client settings of a file, be it a profile or not."""
    from barnabas.cli.terminal.config_file import read_config
    from barnabas.model.settings import InvalidSetting

    try:
        return read_config(path)
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from error
    except InvalidSetting as error:
        raise Failure(str(error)) from error


def is_secret(name: str) -> bool:
    """Whether the value of a setting is nobody's business."""
    from barnabas.observe.log import SECRETS

    return any(word in name.lower() for word in (*SECRETS, "user.info", "keystore.key", "ssl.key.pem"))


def shown(name: str, value: str) -> str:
    """A value as it may be seen; of an address only the password is hidden."""
    if is_secret(name):
        return HIDDEN
    return re.sub(r"(://[^/@:]*):[^/@]*@", rf"\1:{HIDDEN}@", value)


def profile_names() -> list[str]:
    directory = os.path.join(home(), "profiles")
    names = os.listdir(directory) if os.path.isdir(directory) else []
    return sorted(name.removesuffix(ENDING) for name in names if name.endswith(ENDING))


def profile_in_use() -> str | None:
    try:
        with open(os.path.join(home(), IN_USE_FILE)) as file:
            return file.read().strip() or None
    except OSError:
        return None


def use_profile(name: str | None) -> None:
    path = os.path.join(home(), IN_USE_FILE)
    os.makedirs(home(), exist_ok=True)
    with open(path, "w") as file:
        file.write("" if name is None else f"{name}\n")


def write_profile(name: str, settings: Mapping[str, str]) -> Path:
    """A file that only its owner can read: it may hold a password."""
    path = path_of(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.writelines(f"{key}={_escaped(value)}\n" for key, value in settings.items())
    return path


def remember(name: str, servers: str) -> None:
    """A cluster that was just started here: from now on every command finds it."""
    write_profile(name, {"bootstrap.servers": servers})
    use_profile(name)


def _escaped(value: str) -> str:
    """As Java's properties want it."""
    text = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return "\\" + text if text[:1] == " " else text
