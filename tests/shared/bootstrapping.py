"""The broker that tests of clients talk to: our own, or whichever ``BARNABAS_TEST_BOOTSTRAP`` names.

Run against Apache Kafka, the same tests judge the tests.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

# The consumer protocol (KIP-848) is there from 4.0 on; before that a broker does not offer it, or only as a preview.
needs_consumer_protocol = pytest.mark.skipif(
    os.environ.get("BARNABAS_TEST_VERSION", "") in ("2.8", "3.9"), reason="this version has no consumer protocol"
)


@contextmanager
def bootstrap(settings: Mapping[str, str] | None = None) -> Iterator[str]:
    """Its address. The settings are those of our own broker; another one is taken as it is."""
    named = os.environ.get("BARNABAS_TEST_BOOTSTRAP")
    if named:
        yield named
        return
    from barnabas.testing import Broker

    with Broker(settings=settings) as broker:
        yield broker.bootstrap_servers
