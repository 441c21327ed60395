"""``barnabas up --detach``: the same broker in a process of its own that outlives the terminal.

Its log goes to a file in the data directory. The command returns when the broker is ready, or with its last words.
"""

from __future__ import annotations

import subprocess
import sys
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from barnabas.cli.serve.running import DATA_DIRECTORY, find_running, metrics_lines
from barnabas.cli.serve.up import LOOPBACK, beside_brokers
from barnabas.model.settings import InvalidSetting
from barnabas.ops.failure import Failure

LOG_FILE: Final = "barnabas.log"
READY: Final = "READY "


def detach_up(arguments: Namespace, *, rest_ports: Mapping[str, int], connect_port: int | None) -> int:
    """Start what was asked for without ``--detach``, and come back when it is ready."""
    if arguments.ephemeral:
        raise Failure("--detach and --ephemeral do not go together: nobody would know where its log is")
    data_dir, listener = _place(arguments)
    words = [] if arguments.data_dir is None else ["--data-dir", str(arguments.data_dir)]
    for name in ("port", "host", "config", "brokers", "profile"):
        if getattr(arguments, name, None) is not None:
            words += [f"--{name}", str(getattr(arguments, name))]
    for name in ("console_port", "registry_port", "connect_port"):
        if getattr(arguments, name) is not None:
            words += [f"--{name.replace('_', '-')}", str(getattr(arguments, name))]
    for name in ("restart", "no_rest", "connect"):
        if getattr(arguments, name, False):
            words.append(f"--{name.replace('_', '-')}")
    for override in arguments.overrides:
        words += ["--set", override]
    is_default = data_dir == Path(DATA_DIRECTORY).absolute()
    beside = beside_brokers(
        host=arguments.host or LOOPBACK,
        listener=listener,
        data_dir=data_dir,
        rest_ports=rest_ports,
        connect_port=connect_port,
    )
    lines = [line for each in beside for line in each.lines()]
    return _start(words, data_dir, lines, where="" if is_default else f" --data-dir {data_dir}")


def _place(arguments: Namespace) -> tuple[Path, str]:
    """The directory in which the brokers keep their metadata, from the options, the file or the environment; and the
    first listener."""
    if getattr(arguments, "brokers", None) is not None:
        return (arguments.data_dir or Path(DATA_DIRECTORY)).absolute(), "PLAINTEXT://"
    from barnabas.broker.settings.broker import BrokerSettings
    from barnabas.cli.serve.up import given_settings

    try:
        given = given_settings(
            port=arguments.port,
            host=arguments.host,
            data_dir=arguments.data_dir,
            config=arguments.config,
            overrides=arguments.overrides,
        )
        settings = BrokerSettings.of(given)
        return Path(settings.log_dirs[0]).absolute(), settings.listeners[0]
    except (InvalidSetting, OSError) as error:
        raise Failure(str(error)) from None


def _start(words: list[str], data_dir: Path, lines: list[str], *, where: str) -> int:
    data_dir.mkdir(parents=True, exist_ok=True)
    log = data_dir / LOG_FILE
    with log.open("ab") as errors:
        child = subprocess.Popen(  # noqa: S603 - our own interpreter, with words that a user gave to it
            [sys.executable, "-m", "barnabas", "up", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
    assert child.stdout is not None
    first = child.stdout.readline()
    if not first.startswith(READY):
        child.wait()
        said = log.read_text(errors="replace").strip().splitlines()
        raise Failure(said[-1].removeprefix("barnabas: ") if said else f"it ended at once; {log} may say why")
    child.stdout.close()
    child.returncode = 0  # it goes on without us: nobody waits for it
    servers = first.removeprefix(READY).strip()
    print(
        "barnabas is ready",
        f"  KAFKA    {servers}",
        *lines,
        *metrics_lines(find_running(data_dir)),
        f"  LOG      {log}",
        sep="\n",
    )
    print(f"  `barnabas status{where}` shows its state, `barnabas down{where}` stops it")
    return 0
