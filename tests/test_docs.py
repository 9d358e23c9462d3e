"""What docs/ tell a reader to type works as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[1]


def test_counts_become_flows_on_the_command_line(tmp_path):
    text = (ROOT / "docs" / "counts.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL)
    commands = block.replace("python -m", f"'{sys.executable}' -m")
    done = subprocess.run(
        ["sh", "-e", "-c", commands], cwd=tmp_path, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert re.search(r"^1 day, 47 pairs of successive counts, \d+ cells, 20,000\.0 people",
                     done.stdout, flags=re.MULTILINE)  # fmt: skip
    (path,) = tmp_path.glob("od-csv*.csv")
    flows = pd.read_csv(path, index_col="origin")
    # All that go somewhere, or stay, are the 20,000 people of the sample.
    assert flows.to_numpy().sum() == pytest.approx(20_000, rel=1e-3)
