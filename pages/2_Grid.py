import streamlit as st

from agg_core.study.people import estimate_megabytes
from ui import cached, counts_data, gates_data, panels
from ui.cells import cells
from ui.forms import edit
from ui.heat import heat_over_the_day, places
from ui.shell import go_on, need_dataset, page
from ui.state import state

with page("Grid"):
    st.title("Grid", anchor=False)
    opened = need_dataset()
    if opened.kind == "counts":
        counts_data.cells_of(opened)
        st.stop()
    if opened.kind == "gates":
        gates_data.stations_of(opened)
        st.stop()
    now = state()
    st.caption(
        "The map is cut into cells and the day into steps. A person is in one cell "
        "at each step, and a flow is how many people go from one cell to another within a step."
    )
    at = places()
    with at.extent:
        st.header("Extent and cells", anchor=False)
        now.grid = cells(opened.key, at.extent_in_a_row)
        grid = now.grid.make()
        held = cached.trajectories(opened.key).report
        panels.cells(
            grid,
            held.individuals,
            estimate_megabytes(held.individuals, held.rows_kept, grid, now.settings),
            now.learn.reach_m,
        )
    with at.time:
        st.header("Time", anchor=False)
        names = ["step_minutes", "max_gap_minutes"]
        now.window = edit(now.window, "window", names, columns=at.time_in_a_row)
        go_on("pages/3_Learn.py", "Next: learn")
    with at.maps:
        days = cached.dates(opened.key, now.grid, now.window)
        date = None
        if len(days) > 1:
            date = st.selectbox(
                "Day", days, index=None, placeholder="mean of all days", key="view.heat.date"
            )
        heat_over_the_day(grid, cached.heat(opened.key, now.grid, now.window, date))
