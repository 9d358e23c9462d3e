"""People who sign in: what is theirs is theirs in every browser, and nobody else's."""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from agg_core.store.runs import RunStore
from tests.agg_core import tiny
from tests.browser.conftest import Watch, opened_page
from tests.browser.drive import arrive, widget
from tests.browser.provider import Provider, provider
from tests.browser.server import RUNS, free_port, served


@dataclass
class Served:
    """The app whose people sign in, and who says who they are."""

    address: str
    asks: Provider
    runs: RunStore


@pytest.fixture(scope="module")
def asking(
    chromium: str, repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    home, port = tmp_path_factory.mktemp("people"), free_port()
    (home / ".streamlit").mkdir()
    with provider() as asks:
        secrets = home / ".streamlit" / "secrets.toml"
        secrets.write_text(asks.secrets(f"http://127.0.0.1:{port}"))
        with served(repository, home, port=port) as address:
            yield Served(address, asks, RunStore(home / RUNS / "runs"))


def sign_in(page: Page, asking: Served, who: str) -> None:
    asking.asks.who = who
    page.goto("/")
    widget(page, "sign.in").get_by_role("button").click()
    expect(page.get_by_role("link", name="Runs", exact=True)).to_be_visible()


def runs_of(page: Page) -> list[str]:
    page.get_by_role("link", name="Runs", exact=True).click()
    arrive(page, "Runs")
    return [title for title in ("of anna", "of berta") if page.get_by_text(title).count()]


@pytest.mark.parametrize("page_name", ["", "Data", "Flows", "Runs", "Evidence", "Lab", "Learn"])
def test_nothing_is_shown_to_strangers(browser: Browser, asking: Served, page_name: str) -> None:
    with opened_page(browser, asking.address, Watch()) as page:
        page.goto(f"/{page_name}")
        expect(widget(page, "sign.in")).to_be_visible()
        expect(page.get_by_role("link", name="Runs", exact=True)).to_have_count(0)


def test_a_person_finds_their_runs_in_every_browser_and_nobody_elses(
    browser: Browser, asking: Served
) -> None:
    _, result = tiny.run(tiny.people(), tiny.settings())
    with opened_page(browser, asking.address, Watch()) as page:
        sign_in(page, asking, "anna")
        assert runs_of(page) == []
        anna = owner_of(asking, "anna")
        run = asking.runs.save(result, "of anna", anna)
        asking.runs.save(result, "of berta", owner_of(asking, "berta"))
    for who, theirs in (("anna", ["of anna"]), ("berta", ["of berta"])):
        with opened_page(browser, asking.address, Watch()) as page:
            sign_in(page, asking, who)
            assert runs_of(page) == theirs
            page.goto(f"/Flows?run={run.id}")
            arrive(page, "Flows")
            refused = page.get_by_text("There is no saved run of that address")
            expect(refused).to_have_count(0 if who == "anna" else 1)


@pytest.mark.parametrize("asked", ["Flows?run={run}", "Runs", "Learn?job=" + "0" * 32])
def test_who_signs_in_goes_to_the_address_that_was_asked_for(
    browser: Browser, asking: Served, asked: str
) -> None:
    _, result = tiny.run(tiny.people(), tiny.settings())
    asked = asked.format(run=asking.runs.save(result, "asked for", owner_of(asking, "carla")).id)
    with opened_page(browser, asking.address, Watch()) as page:
        asking.asks.who = "carla"
        page.goto(f"/{asked}")
        widget(page, "sign.in").get_by_role("button").click()
        page.wait_for_url(lambda url: asked in url)
        name = asked.partition("?")[0]
        arrive(page, name)
        if "run=" in asked:
            expect(page.get_by_text("There is no saved run of that address")).to_have_count(0)
            expect(widget(page, "flows.map")).to_be_visible()
        # Only once: Home is Home afterwards, also in this tab.
        page.goto("/")
        expect(page.get_by_role("heading", name="Population flows")).to_be_visible()


def owner_of(asking: Served, who: str) -> str:
    """The id that is made of issuer and subject (`ui.owner.owner`)."""
    return sha256(f"{asking.asks.address} {who}".encode()).hexdigest()[:32]


def test_who_signs_out_is_a_stranger(browser: Browser, asking: Served) -> None:
    with opened_page(browser, asking.address, Watch()) as page:
        sign_in(page, asking, "anna")
        widget(page, "sign.who").get_by_role("button").click()
        expect(page.get_by_text("Anna", exact=True)).to_be_visible()
        widget(page, "sign.out").get_by_role("button").click()
        expect(widget(page, "sign.in")).to_be_visible()
