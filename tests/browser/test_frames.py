"""Who may put a page of the app into a frame: pages of its own origin, and no others."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Watch
from tests.browser.server import HOST


@pytest.fixture
def stranger(app_url: str) -> Iterator[str]:
    """Serve a page of another origin that frames the app."""

    class Framing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(f'<link rel="icon" href="data:,"><iframe src="{app_url}/">'.encode())

        def log_message(self, *said: object) -> None:
            pass

    with ThreadingHTTPServer((HOST, 0), Framing) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield f"http://{HOST}:{server.server_port}/"
        server.shutdown()
        serving.join()


def test_a_page_of_another_origin_cannot_frame_the_app(
    page: Page, stranger: str, watch: Watch
) -> None:
    page.goto(stranger)
    expect(page.locator("iframe")).to_have_count(1)
    page.wait_for_load_state("networkidle")
    assert all("Population flows" not in frame.content() for frame in page.frames)
    assert any("frame-ancestors" in error for error in watch.errors)
    watch.errors.clear()


def test_a_page_of_its_own_origin_can(page: Page, app_url: str) -> None:
    page.goto("/_stcore/health")
    page.evaluate("document.body.innerHTML = '<iframe src=\"/\" width=1000 height=700>'")
    inside = page.frame_locator("iframe")
    expect(inside.get_by_role("heading", name="Population flows")).to_be_visible()
