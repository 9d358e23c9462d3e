import streamlit as st

from ui import cached, panels
from ui.forms import edit
from ui.shell import go_on, need_dataset, page
from ui.state import state

with page("Grid"):
    st.title("Grid")
    opened = need_dataset()
    now = state()
    settings, view = st.columns([3, 5], gap="large")
    with settings:
        st.markdown("**Extent and blocks**")
        now.grid = edit(now.grid, "grid", ["west", "east", "south", "north", "rows", "cols"])
        grid = now.grid.make()
        width_m, height_m = grid.block_size_m
        st.caption(
            f"{grid.n_cells:,} blocks of {width_m / 1000:.2f} km x {height_m / 1000:.2f} km, "
            "numbered from the south-west."
        )
        st.markdown("**Time**")
        now.window = edit(now.window, "window", ["step_minutes", "max_gap_minutes"])
        go_on("pages/3_Learn.py", "Next: learn")
    with view:
        days = cached.dates(opened.key, now.grid, now.window)
        date = None
        if len(days) > 1:
            date = st.selectbox(
                "Day", days, index=None, placeholder="mean of all days", key="view.heat.date"
            )
        panels.heat_over_the_day(grid, cached.heat(opened.key, now.grid, now.window, date))
