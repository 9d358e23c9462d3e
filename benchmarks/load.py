"""Many people at once on one server: ``python -m benchmarks load``.

Sessions talk to a server of its own as browsers do, over websockets, without drawing anything. Each
opens the sample, goes to Grid and Learn, starts the learner and looks at Flows, again and again;
jobs begin, wait for their turn, and run while pages answer. Told are how long pages take to answer,
what was refused or went wrong, and the memory of the server before, at its most, and after.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import websockets
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from agg_core.base.shipped import app_folder
from agg_core.made.samples import SAMPLES
from agg_core.store.job_store import JobStore
from agg_core.store.jobs import Job
from tests.browser.server import HOST, RUNS, served

__all__ = ["Told", "main", "visit"]

SAMPLE, OPEN = "home.sample-tokyo", f"data.{next(iter(SAMPLES))}"
LEARN = "Learn the flows"
THINK_S = 2.0
"""Seconds that a person looks at a page."""
ANSWER_S = 120.0
AFTER_S = 420.0
"""Seconds after the last session has gone, by which what it held is dropped."""


@dataclass
class Told:
    """What sessions saw."""

    answers: dict[str, list[float]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    refused: int = 0
    begun: int = 0

    def took(self, page: str, seconds: float) -> None:
        """Take in how long an answer took."""
        self.answers.setdefault(page, []).append(seconds)


class Visitor:
    """One session: asks for pages, presses buttons, and waits for answers."""

    def __init__(self, socket: Any, told: Told) -> None:
        self._socket, self._told = socket, told
        self._buttons: dict[str, str] = {}
        self.page = ""

    async def ask(self, name: str, *, page: str = "", press: str = "") -> bool:
        """Run a page, or press a button on the one that is shown; False without such a button."""
        asked = BackMsg()
        state = asked.rerun_script
        state.page_name = page or self.page
        if press:
            found = self._button(press)
            if found is None:
                return False
            widget = state.widget_states.widgets.add()
            widget.id, widget.trigger_value = found, True
        else:
            self._buttons.clear()
        self.page = state.page_name
        began = time.monotonic()
        await self._socket.send(asked.SerializeToString())
        await asyncio.wait_for(self._answered(), ANSWER_S)
        self._told.took(name, time.monotonic() - began)
        return True

    def _button(self, text: str) -> str | None:
        for identity, label in self._buttons.items():
            if text in (label, identity) or identity.endswith(text):
                return identity
        return None

    async def _answered(self) -> None:
        while True:
            message = ForwardMsg()
            message.ParseFromString(await self._socket.recv())
            if message.WhichOneof("type") == "delta":
                element = message.delta.new_element
                kind = element.WhichOneof("type")
                if kind == "button":
                    self._buttons[element.button.id] = element.button.label
                elif kind == "exception":
                    self._told.faults.append(element.exception.message[:200])
                elif kind == "alert" and "went wrong" in element.alert.body:
                    self._told.faults.append(element.alert.body[:200])
                elif kind == "alert" and "as many as may" in element.alert.body:
                    self._told.refused += 1
            elif message.WhichOneof("type") == "script_finished":
                done = ForwardMsg.ScriptFinishedStatus.FINISHED_SUCCESSFULLY
                if message.script_finished == done:
                    return


async def visit(address: str, until: float, told: Told) -> None:
    """Go through the app again and again until a moment of `time.monotonic`."""
    stream = f"{address.replace('http', 'ws')}/_stcore/stream"
    async with websockets.connect(
        stream, subprotocols=[websockets.Subprotocol("streamlit")], max_size=None, origin=None
    ) as socket:
        visitor = Visitor(socket, told)
        while time.monotonic() < until:
            await visitor.ask("Home", page="")
            await asyncio.sleep(THINK_S)
            await visitor.ask("Home to Flows", press=SAMPLE)
            await visitor.ask("Data", page="Data")
            await visitor.ask("open the sample", press=OPEN)
            for page in ("Grid", "Learn"):
                await asyncio.sleep(THINK_S)
                await visitor.ask(page, page=page)
            if await visitor.ask("start", press=LEARN):
                told.begun += 1
            for page in ("Flows", "Runs"):
                await asyncio.sleep(THINK_S)
                await visitor.ask(page, page=page)


async def _all(address: str, sessions: int, seconds: float, told: Told) -> None:
    until = time.monotonic() + seconds

    async def one() -> None:
        try:
            await visit(address, until, told)
        except (OSError, TimeoutError, websockets.WebSocketException) as fault:
            told.faults.append(f"{type(fault).__name__}: {fault}")

    await asyncio.gather(*(one() for _ in range(sessions)))


def memory_mb(port: int) -> float:
    """Memory in use by the server that listens to a port, MB; its jobs are not counted."""
    named = ["pgrep", "-f", f"streamlit run app.py .*--server.port {port}"]
    pids = subprocess.run(named, capture_output=True, text=True, check=True).stdout.split()
    for line in Path(f"/proc/{pids[0]}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1e3
    raise RuntimeError("the system does not tell")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks load", description=__doc__)
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--json", action="store_true", help="print JSON")
    chosen = parser.parse_args(arguments)
    told = Told()
    with tempfile.TemporaryDirectory() as folder, served(app_folder(), Path(folder)) as address:
        port = int(address.rsplit(":", 1)[1])
        asyncio.run(_all(address, 1, 10.0, Told()))  # what the first visitor of a page fills
        before = most = memory_mb(port)
        began = time.monotonic()

        async def watched() -> None:
            nonlocal most
            work = asyncio.create_task(_all(address, chosen.sessions, 60 * chosen.minutes, told))
            while not work.done():
                with suppress(OSError, IndexError, subprocess.CalledProcessError):
                    most = max(most, memory_mb(port))
                await asyncio.wait([work], timeout=2.0)
            await work

        asyncio.run(watched())
        lasted = time.monotonic() - began
        jobs = JobStore(Path(folder) / RUNS / "jobs").all()
        states = [job.state for job in jobs if isinstance(job, Job)]
        time.sleep(AFTER_S)
        after = memory_mb(port)
    every = np.concatenate([np.array(times) for times in told.answers.values()])
    figures = {
        "host": HOST, "sessions": chosen.sessions, "seconds": lasted, "answers": len(every),
        "median_s": float(np.median(every)), "p95_s": float(np.quantile(every, 0.95)),
        "by_page": {page: float(np.median(times)) for page, times in told.answers.items()},
        "starts": told.begun, "refused": told.refused,
        "jobs": {state: states.count(state) for state in sorted(set(states))},
        "faults": sorted(set(told.faults)), "n_faults": len(told.faults),
        "mb_before": before, "mb_most": most, "mb_after": after,
    }  # fmt: skip
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
