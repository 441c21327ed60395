"""Collect the clicks of a user into visits: a visit ends after 30 minutes without a click."""

import msgspec

from barnabas.streams import App, session


class Click(msgspec.Struct):
    page: str


class Visit(msgspec.Struct):
    start: int
    end: int
    pages: list[str]


app = App("sessions")
visits = (
    app.stream("clicks", value=Click)
    .group_by_key()
    .window(session(gap="30m", grace="5m"))
    .aggregate(
        lambda: list[str](),
        lambda pages, click: [*pages, click.page],
        merge=lambda one, other: one + other,
        value=list[str],
    )
    .suppress(until="window_closes")
)
visits.to_stream().map(
    lambda window, pages: (window.key, Visit(window.start, window.end, pages)), key=str, value=Visit
).to("visits")
