"""The console in a real browser, against a real broker: pages, actions, hostile records, accessibility; and pictures.

Skipped without Playwright or Chromium. With BARNABAS_PICTURES=1 the pictures of docs/pictures are made again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from barnabas import ConsumerSettings, ProducerSettings
from barnabas.client.blocking import Consumer, Producer
from barnabas.testing import Broker

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
CHROMIUM = Path("/usr/bin/chromium")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="there is no /usr/bin/chromium: apt-get install chromium"),
]

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"
AXE = ROOT / "console" / "node_modules" / "axe-core" / "axe.min.js"
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WAIT_MS = 60_000
HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
PAGES = ("overview", "topics", "topics/orders", "topics/orders/partitions", "topics/orders/groups")
PAGES += ("topics/orders/config", "groups", "groups/billing", "brokers", "brokers/1")
PAGES += ("access/users", "access/acls", "access/quotas")


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        fill(running)
        yield running


def fill(broker: Broker) -> None:
    servers = {"bootstrap.servers": broker.bootstrap_servers}
    now_ms = int(time.time() * 1000)
    with Producer(ProducerSettings.of(servers)) as producer:
        for number in range(3000):
            region = ("eu", "us", "apac")[number % 3]
            value = {"id": number, "customer": f"customer-{number % 50}", "total": number % 400, "region": region}
            producer.send(
                "orders",
                key=f"customer-{number % 50}".encode(),
                value=json.dumps(value).encode(),
                headers=[("source", b"shop")],
                timestamp_ms=now_ms - (3000 - number) * 1000,
            )
        producer.send("hostile", key=HOSTILE.encode(), value=HOSTILE.encode(), headers=[(HOSTILE, HOSTILE.encode())])
        producer.flush()
    settings = {**servers, "group.id": "billing", "auto.offset.reset": "earliest", "enable.auto.commit": "false"}
    with Consumer(ConsumerSettings.of(settings)) as consumer:
        consumer.subscribe("orders")
        seen = 0
        while seen < 1000:
            seen += len(consumer.poll(timeout_ms=1000))
        consumer.commit()


@pytest.fixture(scope="module")
def url(broker: Broker) -> Iterator[str]:
    command = [sys.executable, "-m", "barnabas", "console", "--port", "0", "-b", broker.bootstrap_servers]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().split()[1] + "/c/local/"
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with playwright.sync_playwright() as started:
        running = started.chromium.launch(executable_path=str(CHROMIUM), args=list(FLAGS))
        yield running
        running.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    opened = browser.new_page(viewport={"width": 1440, "height": 900})
    opened.set_default_timeout(WAIT_MS)
    problems: list[str] = []
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
    yield opened
    opened.close()
    # What the server refuses is shown on the page and logged by the browser; everything else is our fault.
    assert [each for each in problems if "Failed to load resource" not in each] == []


def show(page: Page, url: str, place: str, theme: str = "dark") -> None:
    page.add_init_script(f"localStorage.setItem('theme', '{theme}')")
    page.goto(url + place)
    page.wait_for_selector("h1")
    page.get_by_text("Loading…").first.wait_for(state="detached")


@pytest.mark.parametrize("place", PAGES)
def test_a_page_is_accessible_in_both_themes_and_fits_1024_pixels(page: Page, url: str, place: str) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: run `make console`")
    for theme in ("light", "dark"):
        show(page, url, place, theme)
        page.evaluate(AXE.read_text())
        found = page.evaluate("axe.run(document, {runOnly: ['wcag2a', 'wcag2aa']})")
        assert [(each["id"], each["nodes"][0]["html"][:200]) for each in found["violations"]] == [], (place, theme)
    page.set_viewport_size({"width": 1024, "height": 800})
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 1024


def test_a_search_finds_and_shows_a_record_with_the_reason_of_its_form(page: Page, url: str) -> None:
    show(page, url, "topics/orders")
    page.get_by_label("Filter", exact=True).fill("value.id == 1234")
    page.get_by_role("button", name="Search").click()
    page.get_by_text("1 shown").wait_for()
    page.locator("tbody tr").first.click()
    drawer = page.get_by_label("Record", exact=True)
    drawer.get_by_text("is valid JSON").wait_for()
    assert '"id": 1234' in drawer.inner_text()
    drawer.get_by_role("tab", name="code").click()
    assert "barnabas consume orders" in drawer.inner_text()
    assert "where=value.id" in page.url


def test_markup_in_keys_values_and_headers_is_shown_as_text(page: Page, url: str) -> None:
    show(page, url, "topics/hostile")
    page.locator("tbody tr").first.click()
    drawer = page.get_by_label("Record", exact=True)
    for tab in ("value", "key", "headers", "bytes"):
        drawer.get_by_role("tab", name=tab).click()
    assert "<script>" in page.locator("tbody").first.inner_text()
    assert page.locator("main img[src=x], aside img[src=x]").count() == 0
    assert page.title() != "owned"


def test_a_topic_is_made_filled_configured_and_deleted_with_the_keyboard_and_forms(page: Page, url: str) -> None:
    show(page, url, "overview")
    page.keyboard.press("g")
    page.keyboard.press("t")
    page.get_by_role("button", name="Create topic").click()
    page.get_by_label("Name", exact=True).fill("made.here")
    page.get_by_label("Partitions").fill("2")
    assert "barnabas topic create made.here -p 2" in page.locator("dialog").inner_text()
    page.get_by_role("button", name="Create", exact=True).click()
    page.get_by_role("heading", name="made.here").wait_for()
    page.get_by_role("button", name="Produce").click()
    page.locator("dialog").get_by_label("Key", exact=True).fill("k1")
    page.locator("dialog").get_by_label("Value", exact=True).fill('{"a": 1}')
    page.get_by_role("button", name="Send", exact=True).click()
    page.get_by_text("1 shown").wait_for()
    page.get_by_role("link", name="Configuration").click()
    page.get_by_role("button", name="Edit retention.ms").click()
    page.locator("input[aria-label='retention.ms']").fill("5000")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("retention.ms changed").wait_for()
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_label("to confirm").fill("made.here")
    page.locator("dialog").get_by_role("button", name="Delete", exact=True).click()
    page.get_by_text("Topic made.here deleted").wait_for()


def test_offsets_are_reset_after_a_preview(page: Page, url: str) -> None:
    show(page, url, "groups/billing")
    page.get_by_role("button", name="Reset offsets").click()
    dialog = page.locator("dialog")
    assert dialog.get_by_role("button", name="Reset", exact=True).is_disabled()
    dialog.get_by_label("Continue at").select_option("end")
    dialog.get_by_role("button", name="Preview").click()
    dialog.locator("tbody tr").first.wait_for()
    dialog.get_by_role("button", name="Reset", exact=True).click()
    page.get_by_text("Offsets of billing are reset").wait_for()


def test_the_palette_goes_to_a_topic(page: Page, url: str) -> None:
    show(page, url, "overview")
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("topic orders")
    page.get_by_role("option").first.wait_for()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="orders").wait_for()


@pytest.mark.skipif("BARNABAS_PICTURES" not in os.environ, reason="pictures are made with BARNABAS_PICTURES=1")
@pytest.mark.parametrize("place", PAGES)
def test_pictures_of_all_pages(page: Page, url: str, place: str) -> None:
    for theme in ("dark", "light"):
        show(page, url, place, theme)
        page.wait_for_timeout(12_000 if place in ("overview", "groups/billing") and theme == "dark" else 2000)
        name = f"console-{place.replace('/', '-')}{'' if theme == 'dark' else '-light'}.png"
        page.screenshot(path=PICTURES / name)
