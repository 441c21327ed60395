"""Every block of Python on the pages about the clients runs, page by page, against one broker."""

from __future__ import annotations

import importlib.util
import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from barnabas import NewTopic, ProducerSettings, Settings, blocking
from barnabas.testing import Broker, RegistryProcess

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "client").glob("*.md"))
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
TEN_LINES = 13  # with the imports, the settings' second line and what runs it


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_shows_works(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = BLOCK.findall(page.read_text())
    assert blocks
    worked: list[Any] = []
    with Broker() as broker:
        servers = broker.bootstrap_servers
        with blocking.Admin(Settings(bootstrap_servers=(servers,))) as admin:
            admin.create_topic(NewTopic("orders", partition_count=2))
        with blocking.Producer(ProducerSettings(bootstrap_servers=(servers,))) as producer:
            producer.send_many("orders", [(b"k%d" % (number % 7), b"%d" % number) for number in range(100)])
        names: dict[str, Any] = {"servers": servers, "work": worked.append}
        with RegistryProcess(servers) if page.stem == "serdes" else nullcontext() as registry:
            names["registry_url"] = registry.url if registry is not None else None
            for block in blocks:
                exec(compile(block, str(page), "exec"), names)
        if page.stem == "delivery":
            assert len(worked) == 200  # at most and at least once, and nothing crashed
            settings = {"bootstrap_servers": servers, "isolation_level": "read_committed"}
            assert len(blocking.Topic("bills", **settings).to_arrow()) == 101


def test_the_three_ways_take_ten_lines_each() -> None:
    page = next(page for page in PAGES if page.stem == "delivery")
    for block in BLOCK.findall(page.read_text())[:3]:
        lines = [
            line for line in block.splitlines() if line.strip() and not line.startswith(("import", "from", "asyncio"))
        ]
        assert len(lines) <= TEN_LINES, block


def test_pages_link_to_pages_that_exist() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_reference_is_what_the_code_says() -> None:
    spec = importlib.util.spec_from_file_location("client_reference", ROOT / "tools" / "client_reference.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert (ROOT / "docs" / "client" / "reference.md").read_text() == tool.reference(), "run `make docs`"
