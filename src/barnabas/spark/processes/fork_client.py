"""The program that Spark runs instead of Python on one machine: asks the fork server for a process.

It sends its arguments, environment, directory and standard streams to ``fork_server.py`` and then waits, as a small
shell, for the exit code of the forked process. If the fork server does not answer, or the request is not for it, the
program replaces itself with plain Python. It runs as a script, isolated and without site packages, because Spark waits
for it: hence the few imports.
"""

from __future__ import annotations

import os
import socket
import sys

# Environment variable with the fork server's address, a name in Linux's abstract socket namespace. The name is free
# again when the server ends. Any local user could connect to it or bind it, so each side checks the other's user.
ADDRESS = "BARNABAS_FORK_SERVER"
ANSWER_SECONDS_MAX = 20.0
ACCEPTED = b"1"
CONNECTION_FD = 3
DIRECTORY = 3  # index of the working directory among the sent descriptors, after stdin, stdout and stderr


def is_same_user(connection: socket.socket) -> bool:
    """Whether the peer runs as this user. SO_PEERCRED is three numbers: process, user, group."""
    peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int.from_bytes(peer[4:8], sys.byteorder) == os.geteuid()


def request(address: str, arguments: list[str]) -> socket.socket | None:
    """Ask for a process. Returns the connection that will bring its exit code, or None if the request was refused."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    directory = os.open(".", os.O_RDONLY)
    try:
        connection.settimeout(ANSWER_SECONDS_MAX)
        connection.connect(f"\0{address}")
        if not is_same_user(connection):
            raise PermissionError(address)
        text = "\0".join([*arguments, "", *(f"{name}={value}" for name, value in os.environ.items())])
        body = os.fsencode(text)
        socket.send_fds(connection, [len(body).to_bytes(4, "big")], [0, 1, 2, directory])
        connection.sendall(body)
        if connection.recv(1) == ACCEPTED:
            connection.settimeout(None)
            return connection
    except OSError:
        pass
    finally:
        os.close(directory)
    connection.close()
    return None


def main() -> None:
    arguments = sys.argv[1:]
    address = os.environ.get(ADDRESS)
    connection = request(address, arguments) if address and arguments[:1] == ["-m"] else None
    if connection is not None:
        os.dup2(connection.fileno(), CONNECTION_FD)
        os.set_inheritable(CONNECTION_FD, True)
        os.execv("/bin/sh", ["sh", "-c", f"read -r code <&{CONNECTION_FD}; exit ${{code:-1}}"])  # noqa: S606
    os.execv(sys.executable, [sys.executable, *arguments])  # noqa: S606


if __name__ == "__main__":
    main()
