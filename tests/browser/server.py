"""The app as a server of its own, and the browser that looks at it."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from agg_core.store.job_store import JobStore
from agg_core.store.jobs import Job

HOST = "127.0.0.1"
START_SECONDS = 60
RUNS = "flows"
"""Folder in the server's home that holds its saved runs."""

CHROMIUM_ARGS = [
    "--no-sandbox",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--no-first-run",
    # a request that would leave is still seen and fails its test, but it never gets out
    f"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE {HOST}",
]


@contextmanager
def served(
    repository: Path, home: Path, *, jobs_go_on: bool = False, port: int | None = None
) -> Iterator[str]:
    """Serve app.py on a port, or any that is free, in a home of its own; gives the address.

    Its jobs would outlive it: they end with it unless they are to go on.
    """
    log = home / "streamlit.log"
    port = free_port() if port is None else port
    command = [sys.executable, "-m", "streamlit", "run", "app.py"]
    command += ["--server.address", HOST, "--server.port", str(port)]
    command += ["--server.headless", "true", "--server.fileWatcherType", "none"]
    with log.open("wb") as output:
        server = subprocess.Popen(
            command,
            cwd=repository,
            env=os.environ | {"HOME": str(home), "FLOWS_HOME": str(home / RUNS)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _wait_until_healthy(server, port, log)
        yield f"http://{HOST}:{port}"
    finally:
        _end_group(server)
        for job in () if jobs_go_on else JobStore(home / RUNS / "jobs").all():
            if isinstance(job, Job):
                job.remove()


def free_port() -> int:
    """A port that nobody listens to."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _wait_until_healthy(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        connection = http.client.HTTPConnection(HOST, port, timeout=5)
        with suppress(OSError, http.client.HTTPException):
            connection.request("GET", "/_stcore/health")
            if connection.getresponse().status == http.client.OK:
                connection.close()
                return
        connection.close()
        time.sleep(0.1)
    raise RuntimeError(f"the app did not start; its log:\n{log.read_text()[-4000:]}")


def _end_group(server: subprocess.Popen[bytes]) -> None:
    """End the server and what it started, politely first."""
    for stop in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(server.pid, stop)
        with suppress(subprocess.TimeoutExpired):
            server.wait(timeout=10)
