"""What README tells a reader to type works as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

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


def _run(arguments: list[str]) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_run(command):
    said = _run(command.split()[1:])
    assert "20,000" in said or "people" in said


def test_both_commands_are_there():
    assert [c.split()[3] for c in COMMANDS] == ["inspect", "learn"]


def test_the_python_example_prints_a_comparison():
    (example,) = _blocks("python")
    found = re.search(r"cpc=([0-9.]+)", _run(["-c", example]))
    assert found
    assert 0.6 < float(found[1]) < 1.0


def test_links_lead_to_files():
    for target in re.findall(r"\]\(([^)#:]+)\)", TEXT):
        assert (ROOT / target).exists(), target


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"make (\w+)", TEXT):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
