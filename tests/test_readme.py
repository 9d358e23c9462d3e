"""What README tells a reader to type works as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agg_core.plotting.unpacked import unpacked_page

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, flags=re.DOTALL)


COMMANDS = [
    line
    for block in _blocks("sh")
    for line in block.splitlines()
    if line.startswith("python -m agg_core")
]


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that commands may write into, with the project's data in it."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "data").symlink_to(ROOT / "data")
    return folder


def _run(arguments: list[str], folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_commands_run_one_after_the_other(elsewhere):
    assert [c.split()[3] for c in COMMANDS] == ["inspect", "learn", "flows"]
    said = [_run(command.split()[1:], elsewhere) for command in COMMANDS]
    assert "20,000" in said[0]
    assert "people" in said[1]
    (page,) = elsewhere.glob("*.html")
    assert unpacked_page(page.read_text("utf-8")).header["view"]["time"] == "08:00"


def test_the_python_example_prints_a_comparison():
    (example,) = _blocks("python")
    found = re.search(r"cpc=([0-9.]+)", _run(["-c", example], ROOT))
    assert found
    assert 0.6 < float(found[1]) < 1.0


def test_links_lead_to_files():
    links = re.findall(r"\]\(([^)#:]+)\)", TEXT)
    assert links
    for target in links:
        assert (ROOT / target).exists(), target


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"make (\w+)", TEXT)
    assert "app" in targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
