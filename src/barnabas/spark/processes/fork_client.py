"""What Spark starts instead of Python, on one machine: asks ``nursery.py`` for a process that has imported everything.

If there is none to ask, Python is started as Spark said. Run by itself, without packages and as fast as can be: hence
no import but these, and what is left of it when it was given a process is a shell that waits for that one's end and
ends with its exit code.
"""

from __future__ import annotations

import os
import socket
import sys

# In the environment: the name by which the nursery listens, of those that Linux keeps apart from files. It ends with
# who listens, however that one ends. Anybody may call it, or take it when free, so each side looks who the other is.
ADDRESS = "BARNABAS_NURSERY"
ANSWER_SECONDS_MAX = 20.0
GIVEN = b"1"
LINE_FD = 3
HERE = 3  # after standard input, output and error: the directory


def is_of_this_user(line: socket.socket) -> bool:
    """Whether it is who runs this that has the other end: process, user and group of it are three numbers."""
    peer = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int.from_bytes(peer[4:8], sys.byteorder) == os.geteuid()


def ask(address: str, arguments: list[str]) -> socket.socket | None:
    """A line that brings the exit code of the process that was asked for; None if it was not given."""
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    here = os.open(".", os.O_RDONLY)
    try:
        line.settimeout(ANSWER_SECONDS_MAX)
        line.connect(f"\0{address}")
        if not is_of_this_user(line):
            raise PermissionError(address)
        told = "\0".join([*arguments, "", *(f"{name}={value}" for name, value in os.environ.items())])
        body = os.fsencode(told)
        socket.send_fds(line, [len(body).to_bytes(4, "big")], [0, 1, 2, here])
        line.sendall(body)
        if line.recv(1) == GIVEN:
            line.settimeout(None)
            return line
    except OSError:
        pass
    finally:
        os.close(here)
    line.close()
    return None


def main() -> None:
    arguments = sys.argv[1:]
    address = os.environ.get(ADDRESS)
    line = ask(address, arguments) if address and arguments[:1] == ["-m"] else None
    if line is not None:
        os.dup2(line.fileno(), LINE_FD)
        os.set_inheritable(LINE_FD, True)
        os.execv("/bin/sh", ["sh", "-c", f"read -r code <&{LINE_FD}; exit ${{code:-1}}"])  # noqa: S606
    os.execv(sys.executable, [sys.executable, *arguments])  # noqa: S606


if __name__ == "__main__":
    main()
