"""Many people at once on one server: ``python -m benchmarks load``.

Sessions talk to a server of its own as browsers do, over websockets, without drawing anything. Each
opens the sample, goes to Grid and Learn, starts the learner and looks at Flows, again and again;
jobs begin, wait for their turn, and run while pages answer. What is drawn anew by itself, as the
progress of a job is, is asked for as often as a browser would. Told are how long pages take to
answer, the CPU seconds of the server for an answer (which other work on the machine changes less),
what was refused or went wrong, and the memory of the server before, at its most, and after.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
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
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from agg_core.base.shipped import app_folder
from agg_core.made.samples import SAMPLES
from agg_core.store.job_store import JobStore
from agg_core.store.jobs import Job
from tests.browser.server import HOST, RUNS, served

__all__ = ["Told", "main", "visit"]

SAMPLE, OPEN = "home.sample-tokyo", f"data.{next(iter(SAMPLES))}"
LEARN = "Learn the flows"
STEPS: dict[str, dict[str, str]] = {
    "Home": {"page": ""}, "Home to Flows": {"press": SAMPLE}, "open the sample": {"press": OPEN},
}  # fmt: skip
"""What a step of a visit asks for that is not just the page of its name."""
THINK_S = 7.0
"""Seconds that a person looks at a page, in the mean: the mean of TPC-W, whose think times are
exponential, too. A map is looked at for longer than that, a page on the way to another for less."""
MOST_THINK = 10.0
"""Nobody looks longer than so many times the mean."""
ANSWER_S = 120.0
PROXIED = {"X-Forwarded-For": "192.0.2.1"}
"""As behind a proxy: sessions are then different owners, whose jobs run beside each other."""
DONE = (
    ForwardMsg.ScriptFinishedStatus.FINISHED_SUCCESSFULLY,
    ForwardMsg.ScriptFinishedStatus.FINISHED_FRAGMENT_RUN_SUCCESSFULLY,
)
AFTER_S = 420.0
"""Seconds after the last session has gone, by which what it held is dropped."""


@dataclass
class Told:
    """What sessions saw."""

    answers: dict[str, list[float]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    refused: int = 0
    begun: int = 0
    received: int = 0
    """Bytes of messages."""

    def took(self, page: str, seconds: float) -> None:
        """Take in how long an answer took."""
        self.answers.setdefault(page, []).append(seconds)


class Visitor:
    """One session: asks for pages, presses buttons, and waits for answers."""

    def __init__(self, socket: Any, told: Told, chance: np.random.Generator, think: float) -> None:
        self._socket, self._told, self._chance, self._think = socket, told, chance, think
        self._buttons: dict[str, str] = {}
        self._by_itself: dict[str, float] = {}
        """Parts of the page that are asked for again and again, and after how many seconds."""
        self.page = ""

    async def ask(self, name: str, *, page: str | None = None, press: str = "") -> bool:
        """Run a page, or press a button on the one that is shown; False without such a button."""
        asked = BackMsg()
        state = asked.rerun_script
        state.page_name = self.page if page is None else page
        if press:
            found = self._button(press)
            if found is None:
                return False
            widget = state.widget_states.widgets.add()
            widget.id, widget.trigger_value = found, True
        else:
            self._buttons.clear()
        self.page = state.page_name
        self._by_itself.clear()
        await self._answer(name, asked)
        return True

    async def think(self) -> None:
        """Look at the page; parts that are drawn anew by themselves are asked for meanwhile."""
        seconds = min(self._chance.exponential(self._think), MOST_THINK * self._think)
        until, part = time.monotonic() + seconds, ""
        due = {each: time.monotonic() + every for each, every in self._by_itself.items()}
        while True:
            due = {each: due.get(each, 0.0) for each in self._by_itself}
            if due:
                part = min(due, key=due.__getitem__)
            if not due or due[part] > until:
                break
            await asyncio.sleep(max(due[part] - time.monotonic(), 0.0))
            asked = BackMsg()
            asked.rerun_script.page_name = self.page
            asked.rerun_script.fragment_id, asked.rerun_script.is_auto_rerun = part, True
            await self._answer(f"{self.page}, by itself", asked)
            due[part] = time.monotonic() + self._by_itself.get(part, 0.0)
        await asyncio.sleep(max(until - time.monotonic(), 0.0))

    async def _answer(self, name: str, asked: BackMsg) -> None:
        began = time.monotonic()
        await self._socket.send(asked.SerializeToString())
        await asyncio.wait_for(self._answered(), ANSWER_S)
        self._told.took(name, time.monotonic() - began)

    def _button(self, text: str) -> str | None:
        for identity, label in self._buttons.items():
            if text in (label, identity) or identity.endswith(text):
                return identity
        return None

    async def _answered(self) -> None:
        while True:
            message, received = ForwardMsg(), await self._socket.recv()
            message.ParseFromString(received)
            self._told.received += len(received)
            kind = message.WhichOneof("type")
            if kind == "delta":
                self._take(message.delta.new_element)
            elif kind == "auto_rerun":
                self._by_itself[message.auto_rerun.fragment_id] = message.auto_rerun.interval
            elif kind == "stop_auto_rerun":
                for part in message.stop_auto_rerun.fragment_ids:
                    self._by_itself.pop(part, None)
            elif kind == "script_finished":
                if message.script_finished in DONE:
                    return
                self._by_itself.clear()  # the page begins anew

    def _take(self, element: Element) -> None:
        kind = element.WhichOneof("type")
        if kind == "button":
            self._buttons[element.button.id] = element.button.label
        elif kind == "exception":
            self._told.faults.append(element.exception.message[:200])
        elif kind == "alert" and "went wrong" in element.alert.body:
            self._told.faults.append(element.alert.body[:200])
        elif kind == "alert" and "as many as may" in element.alert.body:
            self._told.refused += 1


async def visit(address: str, until: float, told: Told, seed: int, think: float) -> None:
    """Go through the app again and again until a moment of `time.monotonic`."""
    stream = f"{address.replace('http', 'ws')}/_stcore/stream"
    async with websockets.connect(
        stream, subprotocols=[websockets.Subprotocol("streamlit")], max_size=None, origin=None,
        additional_headers=PROXIED,
    ) as socket:  # fmt: skip
        visitor = Visitor(socket, told, np.random.default_rng(seed), think)
        while time.monotonic() < until:
            for page in ("Home", "Home to Flows", "Data", "open the sample", "Grid", "Learn"):
                await visitor.ask(page, **STEPS.get(page, {"page": page}))
                await visitor.think()
            if await visitor.ask("start", press=LEARN):
                told.begun += 1
            await visitor.think()
            for page in ("Flows", "Runs"):
                await visitor.ask(page, page=page)
                await visitor.think()


async def _all(address: str, sessions: int, seconds: float, told: Told, think: float) -> None:
    until = time.monotonic() + seconds

    async def one(seed: int) -> None:
        try:
            await visit(address, until, told, seed, think)
        except (OSError, TimeoutError, websockets.WebSocketException) as fault:
            told.faults.append(f"{type(fault).__name__}: {fault}")

    await asyncio.gather(*(one(seed) for seed in range(sessions)))


def server_pid(port: int) -> int:
    """The process of the server that listens to a port; its jobs are others."""
    named = ["pgrep", "-f", f"streamlit run app.py .*--server.port {port}"]
    pids = subprocess.run(named, capture_output=True, text=True, check=True).stdout.split()
    return int(pids[0])


def memory_mb(pid: int) -> float:
    """Memory in use by a process, MB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1e3
    raise RuntimeError("the system does not tell")


def cpu_s(pid: int) -> float:
    """Seconds of CPU that a process has taken, of all its threads."""
    after_name = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(map(int, after_name[11:13])) / os.sysconf("SC_CLK_TCK")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks load", description=__doc__)
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument(
        "--think", type=float, default=THINK_S, help="seconds that a page is looked at, in the mean"
    )
    parser.add_argument(
        "--after", type=float, default=AFTER_S, help="seconds to wait before memory is looked at"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    chosen = parser.parse_args(arguments)
    told, load_before = Told(), os.getloadavg()
    with tempfile.TemporaryDirectory() as folder, served(app_folder(), Path(folder)) as address:
        pid = server_pid(int(address.rsplit(":", 1)[1]))
        asyncio.run(_all(address, 1, 10.0, Told(), 1.0))  # what the first visitor of a page fills
        before = most = memory_mb(pid)
        began, cpu_before = time.monotonic(), cpu_s(pid)

        async def watched() -> None:
            nonlocal most
            work = asyncio.create_task(
                _all(address, chosen.sessions, 60 * chosen.minutes, told, chosen.think)
            )
            while not work.done():
                with suppress(OSError):
                    most = max(most, memory_mb(pid))
                await asyncio.wait([work], timeout=2.0)
            await work

        asyncio.run(watched())
        lasted, cpu = time.monotonic() - began, cpu_s(pid) - cpu_before
        jobs = JobStore(Path(folder) / RUNS / "jobs").all()
        states = [job.state for job in jobs if isinstance(job, Job)]
        time.sleep(chosen.after)
        after = memory_mb(pid)
    # What a person asked for; what is drawn anew by itself is told apart.
    asked = [times for page, times in told.answers.items() if not page.endswith(", by itself")]
    every, answers = np.concatenate(asked), sum(map(len, told.answers.values()))
    figures = {
        "host": HOST, "load_average_before": load_before, "sessions": chosen.sessions,
        "think_s": chosen.think, "seconds": lasted,
        "answers": len(every), "by_themselves": answers - len(every),
        "median_s": float(np.median(every)), "p95_s": float(np.quantile(every, 0.95)),
        "by_page": {page: float(np.median(times)) for page, times in told.answers.items()},
        "cpu_s": cpu, "cpu_s_per_answer": cpu / answers, "cpu_share": cpu / lasted,
        "mb_per_answer": told.received / 1e6 / answers,
        "starts": told.begun, "refused": told.refused,
        "jobs": {state: states.count(state) for state in sorted(set(states))},
        "faults": sorted(set(told.faults)), "n_faults": len(told.faults),
        "mb_before": before, "mb_most": most, "mb_after": after, "after_s": chosen.after,
    }  # fmt: skip
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
