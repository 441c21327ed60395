"""``barnabas completion``: what the shell runs when somebody presses Tab: commands, verbs, options, topics and groups.

``barnabas completion bash`` (zsh, fish) prints a few lines for the shell, which ask back with the words so far. What is
possible is read from the parsers themselves, so nothing is listed twice; names are asked of the cluster, in vain if it
does not answer.
"""

from __future__ import annotations

import argparse
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, Final, TypeAlias

# Where we know of nothing, every shell offers files. Bash splits words at colons too, so it is given back only what
# comes behind the last one; zsh may find its script in a directory of functions, where it is the function itself.
SCRIPTS: Final = {
    "bash": """\
_barnabas() {
    local line="${COMP_LINE:0:COMP_POINT}" current IFS=$' \\t\\n'
    local -a typed
    read -ra typed <<< "$line"
    [[ $line == *[[:space:]] ]] && typed+=("")
    current="${typed[${#typed[@]} - 1]}"
    IFS=$'\\n'
    COMPREPLY=($(barnabas completion words -- "${typed[@]:1}" 2> /dev/null))
    COMPREPLY=("${COMPREPLY[@]#"${current%"${current##*[:=]}"}"}")
}
complete -o default -F _barnabas barnabas
""",
    "zsh": """\
#compdef barnabas
_barnabas() {
    local -a found
    found=(${(f)"$(barnabas completion words -- "${(@)words[2,CURRENT]}" 2> /dev/null)"})
    if (( $#found )); then compadd -- $found; else _files; fi
}
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i }
if [[ $funcstack[1] == _barnabas ]]; then _barnabas "$@"; else compdef _barnabas barnabas; fi
""",
    "fish": """\
function __barnabas_words
    set -l found (barnabas completion words -- (commandline -opc)[2..-1] (commandline -ct) 2> /dev/null)
    if test (count $found) -gt 0
        printf '%s\\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c barnabas -f -a '(__barnabas_words)'
""",
}
HINTS: Final = {
    "bash": "source <(barnabas completion bash)",
    "zsh": "source <(barnabas completion zsh)",
    "fish": "barnabas completion fish | source",
}
NAMES_MS_MAX: Final = 1500

Names: TypeAlias = Callable[[str, Namespace], Iterable[str]]


def configure(parser: ArgumentParser) -> None:
    shells = ", ".join(f"`{hint}`" for hint in HINTS.values())
    parser.epilog = f"Switch it on for this shell, or for all in its start-up file, with {shells}."
    parser.add_argument("shell", choices=(*SCRIPTS, "words"), help="the shell; words is what its script calls")
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)


def prepare(words: list[str]) -> list[str]:
    """What is being typed may look like options, and must not be read as ours."""
    return [*words[:1], "--", *words[2:]] if words[:2] == ["words", "--"] else words


def run(arguments: Namespace) -> None:
    if arguments.shell in SCRIPTS:
        print(SCRIPTS[arguments.shell], end="")
        return
    for candidate in candidates(arguments.words, names_of_cluster):
        print(candidate)


def candidates(words: list[str], names: Names) -> list[str]:
    """What the last word may become; it may be empty."""
    from barnabas.cli.main import COMMANDS

    *before, current = words or [""]
    if not before:
        return _starting(current, COMMANDS)
    command = COMMANDS.get(before[0])
    if command is None:
        return []
    parser: ArgumentParser = ArgumentParser(add_help=True)
    import_module(f"barnabas.cli.{command.module}").configure(parser)
    return _of_parser(parser, before[1:], current, names)


def _of_parser(parser: ArgumentParser, before: list[str], current: str, names: Names) -> list[str]:
    options = {text: action for action in parser._actions for text in action.option_strings}
    positionals = [action for action in parser._actions if not action.option_strings]
    given: dict[str, str] = {}
    place = 0
    waiting: argparse.Action | None = None
    for index, word in enumerate(before):
        if waiting is not None:
            given[waiting.dest] = word
            waiting = None
        elif word in options:
            waiting = options[word] if options[word].nargs != 0 else None
        elif place < len(positionals):
            action = positionals[place]
            if isinstance(action, argparse._SubParsersAction):
                chosen = action.choices.get(word)
                return [] if chosen is None else _of_parser(chosen, before[index + 1 :], current, names)
            place += 0 if action.nargs in ("+", "*") else 1
    asked = Namespace(**{"servers": parser.get_default("servers"), "properties": [], **given})
    if waiting is not None:
        return _of_action(waiting, current, names, asked)
    if current.startswith("-"):
        return _starting(current, [text for text in options if text.startswith("--")])
    return _of_action(positionals[place], current, names, asked) if place < len(positionals) else []


def _of_action(action: argparse.Action, current: str, names: Names, asked: Namespace) -> list[str]:
    if action.choices is not None:
        return _starting(current, [str(choice) for choice in action.choices])
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    return _starting(current, names(metavar.partition("[")[0], asked))


def _starting(current: str, found: Iterable[str]) -> list[str]:
    return sorted(each for each in found if each.startswith(current))


def names_of_cluster(what: str, asked: Namespace) -> list[str]:
    """Topics or groups; nobody waits long for them, and nobody is told that there were none."""
    if what not in ("TOPIC", "GROUP"):
        return []
    from barnabas.cli.terminal.connection import attend, settings_of
    from barnabas.client.admin.client import Admin
    from barnabas.client.settings.client import Settings
    from barnabas.ops.failure import Failure

    async def work() -> list[str]:
        patience: dict[str, Any] = {"default_api_timeout_ms": NAMES_MS_MAX, "request_timeout_ms": NAMES_MS_MAX}
        async with Admin(settings_of(Settings, asked, **patience)) as admin:
            if what == "GROUP":
                return [group.group_id for group in await admin.list_groups()]
            return [topic.name for topic in await admin.cluster.all_topics() if not topic.is_internal]

    try:
        return attend(work())
    except Failure:
        return []
