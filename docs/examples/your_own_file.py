"""From trajectories of your own, in a CSV, to flows as tables and as files for other programs."""

# %% FILE is to be the path of your own; what is written goes to FOLDER
from pathlib import Path

import numpy as np
import pandas as pd

import agg_core
from agg_core.exports import EXPORTS, ExportInput, export_file_name

FILE = Path("my_people.csv")
FOLDER = Path("my_flows")

# %% A made-up file to begin with: leave this cell out when FILE is your own
rng = np.random.default_rng(0)
n_people = 1_500
homes, works = rng.integers(6, size=n_people), rng.integers(6, size=n_people)
leaves = rng.choice([7, 8, 9], size=n_people, p=[0.2, 0.6, 0.2])  # the last hour at home
hours = np.arange(6, 11)
cell = np.where(hours <= leaves[:, None], homes[:, None], works[:, None])  # 2 rows x 3 columns
places = pd.DataFrame(
    {
        "user_id": np.repeat(np.arange(n_people), len(hours)),
        "time": np.tile([f"2024-05-01 {hour:02d}:00" for hour in hours], n_people),
        "lon": (139.65 + 0.1 * (cell % 3)).ravel(),
        "lat": (35.55 + 0.1 * (cell // 3)).ravel(),
    }
)
places.to_csv(FILE, index=False)

# %% What the file holds: columns, times and places are found out by their content
people = agg_core.open_file(FILE, tz="Asia/Tokyo")
print(f"{len(people.user_ids):,} people, {len(people):,} fixes")

# %% Flows from 08:00 to 09:00, learned from counts of groups of 20 people with a noisy sensor
result = agg_core.learn_flows(
    FILE, tz="Asia/Tokyo",
    west=139.6, south=35.5, east=139.9, north=35.7, rows=2, cols=3,
    step_minutes=60, length=2, times=["08:00"],
    group_size=20, misclassify=0.05, threshold=10,
)  # fmt: skip
(time,) = result.times
table = result.table(time, least=result.threshold)
moves = table.loc[table["origin"] != table["dest"]]
print(f"Learned by {result.learner} in {result.wall_s:.1f} s; largest moves, people per hour:")
print(moves[["origin", "dest", "count"]].head(5).round(1).to_string(index=False))

# %% Beside it, what was counted before anybody was hidden in a group
fit = agg_core.compare_flows(result.matrix(time), result.matrix(time, "counted"))
print(f"Moves learned / counted {fit.total_ratio:.2f}, in common {fit.cpc:.2f} (1 is perfect)")

# %% Files for other programs: lines for QGIS and kepler.gl, matrices for transport models
FOLDER.mkdir(exist_ok=True)
for key in ("geojson-flows", "omx"):
    export = EXPORTS[key]
    path = FOLDER / export_file_name(export, time)
    path.write_bytes(export.make(ExportInput(result, time)))
    print(f"{path}: {export.about}")
