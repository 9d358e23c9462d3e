"""Learn the shipped runs from scratch: ``python data/learn.py``, or only those that are named."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from agg_core.store.codec import save_result, save_teaching  # noqa: E402
from agg_core.store.result_files import RESULT_FILE, SEALS, write_result  # noqa: E402
from agg_core.store.shipped_lab import TEACHING, learn_teaching  # noqa: E402
from agg_core.store.shipped_runs import SHIPPED_RUNS, learn_shipped  # noqa: E402

PLACES = {"parameters.npz": 32, "ensemble.parquet": 8, "ensemble_by_day.parquet": 8}
"""Binary places that are kept of numbers in a file: of chances more than of people."""
PLACES_OF_TABLES = 12


def rounded(values: np.ndarray, places: int) -> np.ndarray:
    """The same with so many binary places, which take a third of the room."""
    return (np.round(values * 2.0**places) / 2.0**places).astype(values.dtype)


def make_small(folder: Path) -> None:
    """Round the numbers in the files of a result, which stays what it is otherwise."""
    for file in folder.glob("*.parquet"):
        table = pd.read_parquet(file)
        for name in table.select_dtypes("floating"):
            places = PLACES.get(file.name, PLACES_OF_TABLES)
            table[name] = rounded(table[name].to_numpy(), places)
        table.to_parquet(file, index=False)
    file = folder / "parameters.npz"
    if file.exists():
        with np.load(file) as arrays:
            kept = {
                name: rounded(values, PLACES[file.name]) if values.dtype.kind == "f" else values
                for name, values in arrays.items()
            }
        np.savez_compressed(file, **kept)
    # Its digests are those of the files as they are now.
    about = json.loads((folder / RESULT_FILE).read_text(encoding="utf-8"))
    (folder / RESULT_FILE).unlink()
    write_result(folder, {name: value for name, value in about.items() if name not in SEALS})


def main(keys: list[str]) -> None:
    """Write the runs of these keys, or all of them, into this folder."""
    for key in keys or [*SHIPPED_RUNS, TEACHING]:
        folder = HERE / "runs" / key
        shutil.rmtree(folder, ignore_errors=True)
        if key == TEACHING:
            save_teaching(learn_teaching(), folder)
        else:
            *_, result = learn_shipped(key)
            save_result(result, folder)
        make_small(folder)
        size = sum(file.stat().st_size for file in folder.iterdir())
        print(f"runs/{key}: {size:,} bytes", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
