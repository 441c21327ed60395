"""The demo's page views as a picture and, for terminals, as lines of block characters."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

BLOCKS = " ▁▂▃▄▅▆▇█"


def sparkline(values: list[float]) -> str:
    top = max(values, default=0) or 1
    return "".join(BLOCKS[min(8, round(value / top * 8))] for value in values)


def draw(
    views: Mapping[tuple[datetime, str], float], path: Path, *, opening: datetime, failures: Mapping[datetime, str]
) -> None:
    """Draw the views of each minute and country as bars; ``failures`` are marked with their names."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    starts = sorted({start for start, _ in views})
    countries = sorted({country for _, country in views})
    figure, axes = pyplot.subplots(figsize=(10, 5), dpi=110)
    bottom = [0.0] * len(starts)
    places = list(range(len(starts)))
    palette = ("#4c72b0", "#dd8452", "#55a868", "#c44e52", "#8172b3")
    for country, colour in zip(countries, palette, strict=False):
        heights = [views.get((start, country), 0.0) for start in starts]
        axes.bar(places, heights, bottom=bottom, width=0.82, label=country, color=colour)
        bottom = [below + height for below, height in zip(bottom, heights, strict=True)]
    for number, (at, text) in enumerate(failures.items()):
        place = (at - opening).total_seconds() / 60 - 0.5
        axes.axvline(place, color="black", linestyle="--", linewidth=1)
        axes.annotate(
            f" {text}", (place, max(bottom) * (1.05 + 0.07 * number)), ha="left", fontsize=8, backgroundcolor="white"
        )
    axes.set_xticks(places, [start.strftime("%H:%M:%S") for start in starts], rotation=45, ha="right", fontsize=8)
    axes.set_ylim(0, max(bottom) * 1.3)
    axes.set_ylabel("page views in a minute")
    axes.set_title("Page views by country: joined and counted on Spark, written exactly once")
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=9, reverse=True)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)
