"""Count the words of a topic of lines."""

from barnabas.streams import App

app = App("word-count")
counts = (
    app.stream("lines", value=str)
    .flat_map_values(lambda line: line.lower().split(), value=str)
    .group_by(lambda word: word, key=str)
    .count(store="counts")
)
counts.to_stream().to("word-counts")
