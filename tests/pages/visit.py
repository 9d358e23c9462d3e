"""A person's visit to the app, as page tests need it: go, upload, set, press, and look."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from streamlit.runtime.caching import clear_session_data_cache, clear_session_resource_cache
from streamlit.testing.v1 import AppTest

from tests.agg_core.plotting.unpacked import Unpacked
from ui import workspace

APP = Path(__file__).resolve().parents[2] / "app.py"
SESSION = "test session id"
"""The one session id of every AppTest: what a visit leaves behind must be cleared after it."""

PAGES = {
    "Home": "app.py",
    "Data": "pages/1_Data.py",
    "Grid": "pages/2_Grid.py",
    "Learn": "pages/3_Learn.py",
    "Flows": "pages/4_Flows.py",
    "Evidence": "pages/7_Evidence.py",
    "Lab": "pages/5_Lab.py",
    "Runs": "pages/6_Runs.py",
}
RUN_SECONDS = 60


class Visit:
    """One session; every move reruns the page and fails on an exception shown to the person."""

    def __init__(self, page: str = "Home", **address: str) -> None:
        """Open a page by its address; parameters are those after the question mark."""
        workspace.held_by(SESSION).clear()  # another session, though of the same id
        self.at = AppTest.from_file(str(APP), default_timeout=60)
        for name, value in address.items():
            self.at.query_params[name] = value
        self.go(page)

    def _run(self) -> Visit:
        self.at.run()
        assert not self.at.exception, self.at.exception[0].message
        return self

    def go(self, page: str) -> Visit:
        self.at.switch_page(PAGES[page])
        return self._run()

    def press(self, key: str) -> Visit:
        self.at.button(key=key).click()
        return self._run()

    def upload(self, name: str, content: bytes | str) -> Visit:
        data = content.encode() if isinstance(content, str) else content
        self.at.file_uploader(key="upload").upload(name, data, "text/csv")
        return self._run()

    def set(self, key: str, value: Any) -> Visit:
        self._widget(key).set_value(value)
        return self._run()

    def read_again(self, **choices: Any) -> Visit:
        """Fill the form "Read it differently" and send it."""
        for name, value in choices.items():
            self._widget(f"reading.{name}").set_value(value)
        next(b for b in self.at.button if b.label == "Read again").click()
        return self._run()

    def choose_nothing(self) -> Visit:
        """On the page Learn: noise and prior as given, no simulated worlds, which take long."""
        self.set("learner.noise", "given").set("learner.strength", "given")
        return self.set("learn.replicates", 0)

    def learn(self) -> Visit:
        """Start the learner and wait until it has ended, however it ends."""
        return self.press("start").wait_until_ended()

    def wait_until_ended(self) -> Visit:
        deadline = time.monotonic() + RUN_SECONDS
        while any(key.endswith(".cancel") for key in self.keys("button")):
            assert time.monotonic() < deadline, "the work did not end in time"
            time.sleep(0.2)
            self._run()
        return self

    def _widget(self, key: str) -> Any:
        kinds = ("number_input", "selectbox", "multiselect", "text_input", "toggle",
                 "select_slider", "button_group")  # fmt: skip
        return next(w for kind in kinds for w in self.at.get(kind) if w.key == key)

    def value(self, key: str) -> Any:
        return self._widget(key).value

    def keys(self, kind: str) -> list[str]:
        return [widget.key for widget in self.at.get(kind)]

    @property
    def address(self) -> dict[str, str]:
        """Parameters of the address, as they stand after the last move."""
        params = self.at.query_params.items()
        return {name: text if isinstance(text, str) else text[0] for name, text in params}

    @property
    def title(self) -> str:
        return str(self.at.title[0].value)

    @property
    def errors(self) -> list[str]:
        return [error.value for error in self.at.error]

    @property
    def captions(self) -> str:
        return "\n".join(caption.value for caption in self.at.caption)

    @property
    def figures(self) -> dict[str, str]:
        return {metric.label: metric.value for metric in self.at.metric}

    @property
    def ways_on(self) -> list[str]:
        """Labels of links and buttons."""
        links = [link.proto.label for link in self.at.get("page_link")]
        return links + [button.label for button in self.at.button]

    @property
    def guesses(self) -> dict[str, str]:
        """How the file was read: role or property to what it was taken as."""
        table = self.at.dataframe[-1].value
        return dict(zip(table["What"], table["Taken as"], strict=True))

    def charts(self) -> list[dict[str, Any]]:
        """Every plotly figure, as plain data."""
        return [json.loads(chart.proto.spec) for chart in self.at.get("plotly_chart")]

    def decks(self) -> list[dict[str, list[Any]]]:
        """Data of every map's layers, by the layer's id."""
        found = [json.loads(chart.proto.json) for chart in self.at.get("deck_gl_json_chart")]
        return [{layer["id"]: layer["data"] for layer in deck["layers"]} for deck in found]

    @property
    def maps(self) -> list[Unpacked]:
        """What every flow map was sent."""
        sent = [found.proto for found in self.at.get("bidi_component")]
        return [Unpacked(proto.bytes) for proto in sent if proto.component_name == "flow_map"]

    def _told(self, key: str) -> dict[str, Any]:
        session, name = self.at.session_state, f"told.{key}"
        return session[name] if name in session else {}  # noqa: SIM401  # it has no such method

    @property
    def view(self) -> dict[str, Any]:
        """What the flow map shows: what it was asked to, and what was chosen on it since."""
        asked, told = self.maps[-1].header["view"], self._told("flows.map")
        return {**asked, **(told if told.get("asked") == asked["asked"] else {})}

    def tell(self, key: str = "flows.map", **changes: Any) -> Visit:
        """Change the view on the map of a key, as the map tells it."""
        self.at.session_state[f"told.{key}"] = {**self.view, **changes}
        return self._run()

    def arrows(self, source: str = "estimate") -> dict[tuple[int, int], float]:
        """Flows of the map between cells, above its threshold at its time, to two decimals."""
        view = self.view
        outside = len(self.maps[-1].header["cells"])
        return {
            pair: round(count, 2)
            for pair, count in self.maps[-1].flows(source, view["time"], view["step"]).items()
            if outside not in pair and count > view["threshold"]
        }


@contextmanager
def cleared_session() -> Iterator[None]:
    """Leave nothing of a visit to the next one: data, running learners, files."""
    try:
        yield
    finally:
        workspace.forget(SESSION)
        clear_session_data_cache(SESSION)
        clear_session_resource_cache(SESSION)
