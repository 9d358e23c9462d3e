"""From a table of counts, as an operator delivers it, to flows with intervals."""

# %% A table: so many people in each cell at each hour (read yours with agg_core.open_file(path))
import numpy as np
import pandas as pd

import agg_core

CELLS = ["centre", "north", "south"]
N_DAYS, HOURS = 14, range(6, 19)
MORNING = [200, 1_000, 800]  # people per cell as a day begins
# Of this nobody is told: chances of being in each cell (column) an hour after each (row).
TRUE_TRANSMAT = [[0.90, 0.05, 0.05], [0.20, 0.75, 0.05], [0.20, 0.05, 0.75]]

rng = np.random.default_rng(0)
rows, moved = [], np.zeros((3, 3))
for day in range(1, N_DAYS + 1):
    people = np.array(MORNING)
    for hour in HOURS:
        time = f"2024-05-{day:02d} {hour:02d}:00"
        rows += [(time, cell, n) for cell, n in zip(CELLS, people, strict=True)]
        moves = rng.multinomial(people, TRUE_TRANSMAT)  # from row to column
        moved += moves * (hour < HOURS[-1])
        people = moves.sum(axis=0)
moved /= N_DAYS * (len(HOURS) - 1)
table = pd.DataFrame(rows, columns=["time", "cell", "count"])
print(table.head(3).to_string(index=False))

# %% Learn: moves cancel in counts, so that what is learned has intervals, from simulated worlds
result = agg_core.learn_flows(table, time="one", replicates=8, seed=0)
print(f"Learned from {result.basis}, in {result.wall_s:.1f} s")
print(result.choice)

# %% Flows of the whole day in people per hour, with intervals meant to hold nine in ten
# The errors of one run hang together: who is missed from one cell is found in another.
time = result.busiest
flows = result.table(time)
names = np.array(result.states.names)
shown = pd.DataFrame(
    {
        "from": names[flows["origin"]],
        "to": names[flows["dest"]],
        f"people per {result.step_name}": flows["count"].round(1),
        "low": flows["low"].round(1),
        "high": flows["high"].round(1),
        "really": moved[flows["origin"], flows["dest"]].round(1),
    }
)
print(shown.to_string(index=False))

# %% The same as a matrix; its rows sum to the people who are in a cell as an hour begins
matrix = pd.DataFrame(result.matrix(time), index=names, columns=names)
print(matrix.round(1).assign(people=matrix.sum(axis=1).round(1)))
