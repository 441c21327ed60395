"""The schema registry: Confluent's REST API over the topic ``_schemas``.

``state.py`` is what the topic says, ``writes.py`` decides what may be added to it, ``service.py`` does both for
requests; ``engines.py`` parses and compares schemas in worker processes. Begin with ``service.py``.
"""
