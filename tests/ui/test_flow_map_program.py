"""The program of the flow map, where Node and its packages are there to make and test it."""

import shutil
import subprocess
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[2] / "ui" / "flowmap"

needs_node = pytest.mark.skipif(
    shutil.which("node") is None or not (SOURCES / "node_modules").is_dir(),
    reason="needs Node, and `npm ci --ignore-scripts` in ui/flowmap",
)


@needs_node
@pytest.mark.parametrize("task", ["check", "test"])
def test_the_kept_program_is_that_of_its_sources_and_its_tests_pass(task: str) -> None:
    run = subprocess.run(
        ["npm", "run", "--silent", task],
        cwd=SOURCES, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
