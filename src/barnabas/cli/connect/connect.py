"""``barnabas connect``: run a worker, and create, list, change, try and delete connectors."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from barnabas.cli.connect.connector_files import ConnectorFile, read_connectors
from barnabas.cli.connect.rest_client import RestClient, add_url, connector_path
from barnabas.cli.terminal.output import add_output, is_table, print_facts, print_rows, print_value
from barnabas.ops.failure import Failure

HIDDEN: Final = "********"  # what workers show instead of a secret
STATE_PATHS: Final = {"RUNNING": "/resume", "PAUSED": "/pause", "STOPPED": "/stop"}


def configure(parser: ArgumentParser) -> None:
    """Add the verbs."""
    verbs = parser.add_subparsers(metavar="VERB", required=True)

    def verb(name: str, run: Callable[[Namespace], Any], text: str) -> ArgumentParser:
        entry = verbs.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        entry.set_defaults(run=run)
        return entry

    _configure_worker(verb)
    entry = verb("apply", _apply, "create or change the connectors of files; what is as it should be is left alone")
    entry.add_argument("-f", "--file", required=True, type=Path, metavar="PATH", help="file or directory to apply")
    entry.add_argument("--prune", action="store_true", help="delete connectors that no file has")
    add_url(entry)
    entry = verb("list", _list, "list connectors with their states")
    _add_common(entry)
    entry = verb("describe", _describe, "show configuration, states, offsets and traces of connectors")
    entry.add_argument("names", nargs="+", metavar="NAME")
    _add_common(entry)
    for name, text in (
        ("pause", "pause connectors: no new records, tasks stay"),
        ("resume", "resume connectors that are paused or stopped"),
        ("stop", "stop connectors: tasks end, offsets can be changed"),
        ("restart", "restart connectors and their tasks"),
        ("delete", "delete connectors; their offsets stay"),
    ):
        entry = verb(name, _change, text)
        entry.add_argument("names", nargs="+", metavar="NAME")
        entry.set_defaults(change=name)
        if name == "restart":
            entry.add_argument("--only-failed", action="store_true", help="leave alone what runs")
        add_url(entry)
    entry = verb("offsets", _offsets, "show or change how far a connector has got")
    entry.add_argument("name", metavar="NAME")
    example = '[{"partition": {…}, "offset": {…}}]'
    entry.add_argument("--set", dest="entries", metavar="JSON", help=f"offsets to set: {example}")
    entry.add_argument("--reset", action="store_true", help="forget all offsets; the connector must be stopped")
    _add_common(entry)
    entry = verb("plugins", _plugins, "list plugins, or the keys of one")
    entry.add_argument("plugin", nargs="?", metavar="PLUGIN")
    _add_common(entry)
    entry = verb("validate", _validate, "check the connectors of files without creating them")
    entry.add_argument("-f", "--file", required=True, type=Path, metavar="PATH", help="file or directory to check")
    add_url(entry)
    entry = verb("logs", _logs, "print the traces of a connector's failures, and its lines in the driver's log")
    entry.add_argument("name", metavar="NAME")
    entry.add_argument("--data-dir", type=Path, metavar="PATH", help="data directory of a worker on this machine")
    add_url(entry)
    _configure_trial(verb)


def _configure_worker(verb: Callable[..., ArgumentParser]) -> None:
    from barnabas.cli.terminal.connection import add_connection

    entry = verb("worker", _worker, "run a worker until it is stopped")
    entry.add_argument("-c", "--config", type=Path, metavar="FILE", help="properties file with the worker's settings")
    set_help = "a setting of the worker; repeatable"
    entry.add_argument("--set", action="append", default=[], dest="settings", metavar="KEY=VALUE", help=set_help)
    entry.add_argument("--host", help="address to listen on (default 127.0.0.1)")
    entry.add_argument("--port", type=int, help="port to listen on (default 8083)")
    entry.add_argument("--data-dir", metavar="PATH", help="directory for checkpoints and logs (default: temporary)")
    entry.add_argument("--plugins", metavar="PATH", help="directory with plugins as Python files (default plugins)")
    entry.add_argument("--master", help="where Spark runs (default local[2])")
    entry.add_argument("--with-parent", action="store_true", help="stop when standard input is closed")
    add_connection(entry)


def _configure_trial(verb: Callable[..., ArgumentParser]) -> None:
    from barnabas.cli.terminal.connection import add_connection

    entry = verb("try", _try, "read a few live records through a connector's converters and transforms; change nothing")
    entry.add_argument("file", type=Path, metavar="FILE", help="file of one connector")
    entry.add_argument("--records", type=int, default=5, metavar="N", help="records to read (default 5)")
    entry.add_argument("--plugins", metavar="PATH", help="directory with plugins as Python files")
    add_connection(entry)
    entry = verb("replay", _replay, "write a sink's dead letters to its target again")
    entry.add_argument("file", type=Path, metavar="FILE", help="file of the sink connector")
    entry.add_argument("--plugins", metavar="PATH", help="directory with plugins as Python files")
    entry.add_argument("--from-beginning", action="store_true", help="also those that were replayed before")
    add_connection(entry)


def _add_common(parser: ArgumentParser) -> None:
    add_output(parser)
    add_url(parser)


def run(arguments: Namespace) -> int | None:
    """Run the verb."""
    code: int | None = arguments.run(arguments)
    return code


def _worker(arguments: Namespace) -> int:
    from barnabas.cli.connect.worker import run_worker

    return run_worker(arguments)


def _try(arguments: Namespace) -> None:
    from barnabas.cli.connect.trial import try_connector

    try_connector(arguments)


def _replay(arguments: Namespace) -> None:
    from barnabas.cli.connect.trial import replay

    replay(arguments)


def _apply(arguments: Namespace) -> None:
    wanted = read_connectors(arguments.file)
    client = RestClient(arguments)
    for each in wanted:
        print(f"{each.name}: {_apply_one(client, each)}")
    if arguments.prune:
        for name in sorted(set(client.ask("GET", "/connectors")) - {each.name for each in wanted}):
            client.ask("DELETE", connector_path(name))
            print(f"{name}: deleted")


def _apply_one(client: RestClient, wanted: ConnectorFile) -> str:
    old = client.find(connector_path(wanted.name, "/config"))
    if old is None:
        body = {"name": wanted.name, "config": wanted.config, "initial_state": wanted.state}
        client.ask("POST", "/connectors", body)
        return "created"
    done = []
    if not is_same(old, wanted.config):
        client.ask("PUT", connector_path(wanted.name, "/config"), wanted.config)
        done.append("changed")
    status = client.find(connector_path(wanted.name, "/status"))
    state = "RUNNING" if status is None else status["connector"]["state"]
    if (state if state in ("PAUSED", "STOPPED") else "RUNNING") != wanted.state:
        client.ask("PUT", connector_path(wanted.name, STATE_PATHS[wanted.state]))
        done.append(wanted.state.lower())
    return ", ".join(done) or "unchanged"


def is_same(shown: dict[str, str], wanted: dict[str, str]) -> bool:
    """Return whether a shown configuration is the wanted one; secrets cannot be compared and count as the same."""
    return shown.keys() == wanted.keys() and all(value in (HIDDEN, wanted[key]) for key, value in shown.items())


def _list(arguments: Namespace) -> None:
    found = RestClient(arguments).ask("GET", "/connectors?expand=info&expand=status")
    if not found and is_table(arguments):
        print("no connectors; `barnabas connect apply -f FILE` creates one", file=sys.stderr)
    columns = ("NAME", "TYPE", "STATE", "TASKS", "CLASS", "WORKER")
    rows = []
    for name, each in sorted(found.items()):
        info, status = each.get("info", {}), each.get("status")
        tasks = [] if status is None else [task["state"] for task in status["tasks"]]
        shown = f"{tasks.count('RUNNING')}/{len(tasks)} running" if tasks else "-"
        state = "-" if status is None else status["connector"]["state"]
        worker = "-" if status is None else status["connector"]["worker_id"]
        kind = info.get("config", {}).get("connector.class", "-")
        rows.append((name, info.get("type", "-"), "FAILED" if "FAILED" in tasks else state, shown, kind, worker))
    print_rows(arguments, columns, rows)


def _describe(arguments: Namespace) -> None:
    client = RestClient(arguments)
    found = []
    for name in arguments.names:
        info = client.ask("GET", connector_path(name))
        status = client.find(connector_path(name, "/status"))
        offsets = client.ask("GET", connector_path(name, "/offsets"))["offsets"]
        topics = client.ask("GET", connector_path(name, "/topics"))[name]["topics"]
        details = client.find(connector_path(name, "/details")) or {}
        found.append({**info, "status": status, "offsets": offsets, "topics": topics, "details": details})
    if not is_table(arguments):
        print_value(arguments, found)
        return
    for index, each in enumerate(found):
        if index:
            print()
        print_facts(_facts(each))


def _facts(each: dict[str, Any]) -> dict[str, object]:
    status = each["status"] or {"connector": {"state": "none yet"}, "tasks": []}
    facts: dict[str, object] = {
        "connector": each["name"],
        "type": each["type"],
        "state": status["connector"]["state"],
        "tasks": ", ".join(f"{task['id']} {task['state']}" for task in status["tasks"]) or "-",
        "topics": ", ".join(each["topics"]) or "-",
    }
    places = [f"{json.dumps(one['partition'])} at {json.dumps(one['offset'])}" for one in each["offsets"]]
    facts["offsets"] = "; ".join(places) or "-"
    facts |= {name.replace("_", " "): value for name, value in each["details"].items()}
    facts |= {f"  {key}": value for key, value in sorted(each["config"].items())}
    traces = [part["trace"] for part in (status["connector"], *status["tasks"]) if part.get("trace")]
    return facts | ({"trace": traces[0]} if traces else {})


def _change(arguments: Namespace) -> None:
    client = RestClient(arguments)
    done = {"pause": "paused", "resume": "resumed", "stop": "stopped", "restart": "restarted", "delete": "deleted"}
    for name in arguments.names:
        if arguments.change == "delete":
            client.ask("DELETE", connector_path(name))
        elif arguments.change == "restart":
            only = str(arguments.only_failed).lower()
            client.ask("POST", connector_path(name, f"/restart?includeTasks=true&onlyFailed={only}"))
        else:
            client.ask("PUT", connector_path(name, f"/{arguments.change}"))
        print(f"{name}: {done[arguments.change]}")


def _offsets(arguments: Namespace) -> None:
    client, path = RestClient(arguments), connector_path(arguments.name, "/offsets")
    if arguments.entries is not None:
        try:
            entries = json.loads(arguments.entries)
        except ValueError as error:
            raise Failure(f"--set is not JSON: {error}") from error
        print(client.ask("PATCH", path, {"offsets": entries})["message"])
    elif arguments.reset:
        print(client.ask("DELETE", path)["message"])
    else:
        rows = [(json.dumps(o["partition"]), json.dumps(o["offset"])) for o in client.ask("GET", path)["offsets"]]
        print_rows(arguments, ("PARTITION", "OFFSET"), rows)


def _plugins(arguments: Namespace) -> None:
    client = RestClient(arguments)
    if arguments.plugin is None:
        found = client.ask("GET", "/connector-plugins?connectorsOnly=false")
        rows = [(each["class"], each["type"], each["version"]) for each in found]
        print_rows(arguments, ("CLASS", "TYPE", "VERSION"), rows)
        return
    keys = client.ask("GET", f"/connector-plugins/{arguments.plugin}/config")
    columns = ("KEY", "TYPE", "DEFAULT", "IMPORTANCE", "DOCUMENTATION")
    described = []
    for key in keys:
        default = "required" if key["required"] else key["default_value"] or "-"
        described.append((key["name"], key["type"], default, key["importance"], key["documentation"]))
    print_rows(arguments, columns, described)


def _validate(arguments: Namespace) -> int:
    client, count = RestClient(arguments), 0
    for each in read_connectors(arguments.file):
        kind = each.config.get("connector.class", "")
        infos = client.ask("PUT", f"/connector-plugins/{kind or '-'}/config/validate", each.config)
        problems = [problem for one in infos["configs"] for problem in one["value"]["errors"]]
        print(f"{each.name}: {'valid' if not problems else f'{len(problems)} error(s)'}")
        for problem in problems:
            print(f"  {problem}")
        count += len(problems)
    return 1 if count else 0


def _logs(arguments: Namespace) -> None:
    status = RestClient(arguments).ask("GET", connector_path(arguments.name, "/status"))
    for part in (status["connector"], *status["tasks"]):
        if part.get("trace"):
            print(f"{arguments.name} {'task ' + str(part['id']) if 'id' in part else 'connector'} {part['state']}:")
            print(part["trace"])
    if arguments.data_dir is not None:
        path = arguments.data_dir / "driver.log"
        if not path.is_file():
            raise Failure(f"{path} is not there: is this the data directory of a worker that leads?")
        with path.open(errors="replace") as lines:
            for line in lines:
                if arguments.name in line:
                    print(line, end="")
