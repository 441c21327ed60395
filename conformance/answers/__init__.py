"""The differential judge: the same requests to Apache Kafka and to Barnabas, and their answers field by field.

`cases` makes requests from the declarations of the messages, `exchange` sends them, `answers` compares two answers, and
`differences.toml` says which differences are deliberate and why. `python -m conformance.answers` runs all of it.
"""
