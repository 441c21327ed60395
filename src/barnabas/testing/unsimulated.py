"""What asyncio's loops can do and a simulated one cannot: threads, signals, processes, real sockets and pipes.

Each says so when it is called. ``loop`` builds on this class; nobody else does.
"""

from __future__ import annotations

import asyncio
from typing import Any


def _refused(name: str, instead: str = "use create_server and create_connection") -> Any:
    def refuse(self: asyncio.AbstractEventLoop, *arguments: object, **options: object) -> None:
        raise NotImplementedError(f"{name} is not simulated: {instead}")

    return refuse


class UnsimulatedLoop(asyncio.AbstractEventLoop):
    run_in_executor = _refused("run_in_executor", "go through world.workers")
    set_default_executor = _refused("set_default_executor", "go through world.workers")
    add_signal_handler = _refused("add_signal_handler", "call what the signal would")
    remove_signal_handler = _refused("remove_signal_handler", "call what the signal would")
    subprocess_exec = _refused("subprocess_exec", "processes are outside")
    subprocess_shell = _refused("subprocess_shell", "processes are outside")
    getaddrinfo = _refused("getaddrinfo", "hosts are known by name")
    getnameinfo = _refused("getnameinfo", "hosts are known by name")
    start_tls = _refused("start_tls", "connections are plain")
    add_reader = _refused("add_reader")
    remove_reader = _refused("remove_reader")
    add_writer = _refused("add_writer")
    remove_writer = _refused("remove_writer")
    sock_accept = _refused("sock_accept")
    sock_connect = _refused("sock_connect")
    sock_recv = _refused("sock_recv")
    sock_recv_into = _refused("sock_recv_into")
    sock_recvfrom = _refused("sock_recvfrom")
    sock_recvfrom_into = _refused("sock_recvfrom_into")
    sock_sendall = _refused("sock_sendall")
    sock_sendfile = _refused("sock_sendfile")
    sock_sendto = _refused("sock_sendto")
    sendfile = _refused("sendfile")
    connect_accepted_socket = _refused("connect_accepted_socket")
    connect_read_pipe = _refused("connect_read_pipe")
    connect_write_pipe = _refused("connect_write_pipe")
    create_datagram_endpoint = _refused("create_datagram_endpoint")
    create_unix_connection = _refused("create_unix_connection")
    create_unix_server = _refused("create_unix_server")
