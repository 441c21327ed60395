"""The entry point of the command line: the table of commands, each imported only when it is called.

Only argparse is imported here, so that nothing waits for what it does not use. A command module has ``configure``,
which adds its options to a parser, and ``run``, which does the work and may answer an exit code; what goes wrong on
the way is raised and becomes one line here.
"""

from __future__ import annotations

import gc
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from importlib import import_module
from typing import Final, NamedTuple, NoReturn

from barnabas.ops.failure import Failure

FAILED: Final = 1
MISUSED: Final = 2
INTERRUPTED: Final = 130


class Command(NamedTuple):
    module: str
    help: str


class Parser(ArgumentParser):
    """What cannot be read is said in one line; whoever wants to see all options asks for them."""

    def error(self, message: str) -> NoReturn:
        from barnabas.cli.terminal.misuse import advice

        question = advice(self, message)
        print(f"{self.prog}: {message}{question or ';'} `{self.prog} --help` says what there is", file=sys.stderr)
        raise SystemExit(MISUSED)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Namespace | None = None
    ) -> tuple[Namespace, list[str]]:
        """What a verb does not know is said by the verb's own parser, which knows what is near."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown


COMMANDS: Final = {
    "up": Command("serve.start", "start a broker here; an empty data directory becomes a new cluster"),
    "down": Command("serve.down", "stop the brokers of a data directory"),
    "purge": Command("serve.purge", "stop the brokers of a data directory and delete it"),
    "status": Command("serve.status", "show what runs from a data directory, and where it is reached"),
    "cluster": Command("cluster.cluster", "show the parts of the cluster and its health"),
    "broker": Command("cluster.broker", "start one broker of a cluster; list, empty and forget brokers"),
    "topic": Command("cluster.topic", "create, list, describe, change and delete topics"),
    "group": Command("cluster.group", "list, describe, move and delete consumer groups; how far they are behind"),
    "produce": Command("records.produce", "send records read from standard input"),
    "consume": Command("records.consume", "print records of topics"),
    "schema": Command("records.schema", "create, get, list, check, compare and delete schemas of the registry"),
    "reassign": Command("cluster.reassign", "move partitions from broker to broker"),
    "leader": Command("cluster.leader", "elect leaders of partitions"),
    "config": Command("cluster.config", "show and change the settings of topics, brokers and groups"),
    "acl": Command("cluster.acl", "list, create and delete ACLs"),
    "user": Command("cluster.user", "create, list and delete SCRAM users"),
    "txn": Command("cluster.txn", "list, describe and abort transactions; explain what readers wait for"),
    "console": Command("serve.console", "serve the web console of one or more clusters"),
    "registry": Command("serve.registry", "run the schema registry of a cluster"),
    "rest": Command("serve.rest", "run the HTTP services of a cluster in one process, as `up` does"),
    "run": Command("pipelines.run", "run the pipelines and Streams applications of a file on Spark"),
    "pipeline": Command("pipelines.pipeline", "list and describe pipelines and Streams applications"),
    "streams": Command("pipelines.streams", "list, describe, query and reset Streams applications"),
    "connect": Command("connect.connect", "run a Connect worker; create, list, change and try connectors"),
    "profile": Command("terminal.profile", "save the addresses and credentials of clusters, and choose one"),
    "batch": Command("terminal.batch", "run the commands of a file, one a line"),
    "generate": Command("files.generate", "print a dashboard for Grafana, and rules and a job for Prometheus"),
    "doctor": Command(
        "cluster.doctor", "find problems of the cluster, with their evidence and the command that fixes each"
    ),
    "debug": Command("files.debug", "collect diagnostics into one archive for support"),
    "dump": Command("files.dump", "show and verify the files of a data directory, without a broker"),
    "completion": Command("terminal.completion", "let the shell complete commands, options and names"),
    "version": Command("terminal.version", "print the version"),
}

_HEAD: Final = """\
Usage: barnabas COMMAND [OPTIONS]

A distributed, replicated commit log that speaks Kafka's protocol. Start a broker with `barnabas up`; commands
find it at 127.0.0.1:9092, or where --bootstrap-server, BARNABAS_BOOTSTRAP_SERVERS or a profile says.

Commands:
"""


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    if len(words) > 1 and words[0] == "help":
        words = [*words[1:], "--help"]
    if not words or words[0] in ("-h", "--help", "help"):
        print(usage(), end="")
        return 0 if words else MISUSED
    name = "version" if words[0] in ("-V", "--version") else words[0]
    command = COMMANDS.get(name)
    if command is None:
        from barnabas.cli.terminal.misuse import near

        question = near(name, COMMANDS) or ";"
        print(f"barnabas: there is no command {name!r}{question} `barnabas --help` lists them", file=sys.stderr)
        return MISUSED
    module = import_module(f"barnabas.cli.{command.module}")
    parser = Parser(prog=f"barnabas {name}", description=f"{command.help[0].upper()}{command.help[1:]}.")
    module.configure(parser)
    prepare = getattr(module, "prepare", list)  # what argparse cannot read by itself
    return _carry_out(module.run, parser, prepare(words[1:]))


def _carry_out(run: object, parser: ArgumentParser, words: list[str]) -> int:
    assert callable(run)
    # A command of a tenth of a second needs no collector, and imports run a tenth faster without; whoever stays, or
    # reads much, switches it on again.
    gc.disable()
    try:
        code = run(parser.parse_args(words))
        sys.stdout.flush()
    except Failure as failure:
        if failure.args:
            print(f"barnabas: {failure}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        from barnabas.cli.terminal.output import silence

        silence()
        return 0
    finally:
        gc.enable()
    return int(code or 0)


def usage() -> str:
    width = max(map(len, COMMANDS))
    rows = "".join(f"  {name:<{width}}  {command.help}\n" for name, command in COMMANDS.items())
    return f"{_HEAD}{rows}\n`barnabas COMMAND --help` says more.\n"
