"""How ``barnabas topic describe`` prints a topic; ``ops/topics/description.py`` collects what there is to print."""

from __future__ import annotations

from barnabas.cli.terminal.output import print_facts, print_table
from barnabas.ops.topics.description import Description


def print_description(topic: Description, sections: frozenset[str]) -> None:
    """Summary, partitions and configs, as far as they are wanted."""
    blocks = {"summary": _print_summary, "partitions": _print_partitions, "configs": _print_configs}
    is_first = True
    for name, show in blocks.items():
        if name in sections and (name != "configs" or topic["configs"]):
            if not is_first:
                print()
            show(topic)
            is_first = False


def _print_summary(topic: Description) -> None:
    print_facts({"name": topic["name"], "id": topic["id"], "internal": "yes" if topic["internal"] else "no"})


def _print_partitions(topic: Description) -> None:
    columns = ("PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "LOG-START", "HIGH-WATERMARK")
    rows = [
        (
            part["partition"],
            "none" if part["leader"] < 0 else part["leader"],
            part["leader_epoch"],
            ",".join(map(str, part["replicas"])),
            ",".join(map(str, part["isr"])),
            "-" if part["log_start_offset"] is None else part["log_start_offset"],
            "-" if part["high_watermark"] is None else part["high_watermark"],
        )
        for part in topic["partitions"]
    ]
    print_table(columns, rows, right=("PARTITION", "LEADER", "EPOCH", "LOG-START", "HIGH-WATERMARK"))
    cleaned = [(part["partition"], part["cleaner"]) for part in topic["partitions"] if _is_cleaned(part["cleaner"])]
    if cleaned:
        print()
        print_table(("PARTITION", "CLEANER"), cleaned, right=("PARTITION",))


def _print_configs(topic: Description) -> None:
    settings = [(entry["name"], entry["value"], entry["source"]) for entry in topic["configs"]]
    print_table(("SETTING", "VALUE", "SOURCE"), settings)


def _is_cleaned(sentence: str | None) -> bool:
    return sentence is not None and not sentence.startswith("not compacted")
