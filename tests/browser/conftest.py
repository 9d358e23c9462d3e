"""The app in a real browser: one server for the session, one clean page for each test.

A page fails its test when anything leaves 127.0.0.1 or the browser's console shows an error.
"""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from tests.browser.city import save_city
from tests.browser.server import CHROMIUM_ARGS, HOST, RUNS, served

WAIT_MS = 60_000
PLAIN_COMPOSITING = "--disable-gpu-compositing"
"""Only maps are drawn by the software that stands in for a graphics card: all of a page by it takes
twice the time."""
PROBE = re.compile(rf"//{HOST}:\d+/[A-Z][a-z]+/_stcore/(health|host-config)$")
"""Streamlit's client asks for its server below the page's own address first, and is told 404."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder needs a browser."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker("browser")


@pytest.fixture(scope="session")
def chromium(unavailable: Callable[[str], NoReturn]) -> str:
    """Return the path of the system's Chromium (CHROMIUM overrides it)."""
    path = shutil.which(os.environ.get("CHROMIUM") or "chromium")
    if path is None:
        unavailable("Chromium is not there: install Debian's chromium or set CHROMIUM to its path")
    return path


@pytest.fixture(scope="session")
def runs_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the home of the server; see `served` for where it keeps its runs."""
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="session")
def app_url(chromium: str, repository: Path, runs_home: Path) -> Iterator[str]:
    """Serve app.py on a free port, in a home of its own, until the session ends."""
    with served(repository, runs_home) as address:
        yield address


@pytest.fixture(scope="session")
def city_run(runs_home: Path) -> str:
    """Save a quick run of the sample city; return its id, for the address of a picture."""
    return save_city(runs_home / RUNS)


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """Launch one Chromium for a module: its event loop must not outlive the browser tests."""
    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=chromium, args=[*CHROMIUM_ARGS, PLAIN_COMPOSITING]
        )
        yield launched
        launched.close()


@dataclass
class Watch:
    """What a page did that it should not: addresses beyond 127.0.0.1, errors shown."""

    outside: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def address(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("data", "blob", "about") and parts.hostname != HOST:
            self.outside.append(url)

    def console(self, message: ConsoleMessage) -> None:
        url = str(message.location.get("url", ""))
        if message.type == "error" and not PROBE.search(url):
            self.errors.append(f"{message.text} [{url}]")

    def complain(self) -> None:
        """Fail the test that looks at the page now, if the page did any of it."""
        faults = [f"request beyond {HOST}: {url}" for url in self.outside]
        faults += [f"error in the browser: {text}" for text in self.errors]
        if faults:
            pytest.fail("\n".join(faults), pytrace=False)


@contextmanager
def opened_page(browser: Browser, app_url: str, watch: Watch) -> Iterator[Page]:
    """Open an empty page, 1280 x 900, whose `goto("/")` is the app's home."""
    context = browser.new_context(base_url=app_url, viewport={"width": 1280, "height": 900})
    context.set_default_timeout(WAIT_MS)
    context.on("request", lambda request: watch.address(request.url))
    context.on("console", watch.console)
    context.on("weberror", lambda fault: watch.errors.append(str(fault.error)))
    opened = context.new_page()
    opened.on("websocket", lambda socket_: watch.address(socket_.url))
    yield opened
    context.close()


@pytest.fixture
def watch() -> Watch:
    """Record what the page does; a test that provokes an error on purpose clears it here."""
    return Watch()


@pytest.fixture
def page(browser: Browser, app_url: str, watch: Watch) -> Iterator[Page]:
    """Open a page that nobody has used."""
    with opened_page(browser, app_url, watch) as opened:
        yield opened
    watch.complain()
