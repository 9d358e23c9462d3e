import streamlit as st

from ui import cached
from ui.forms import edit
from ui.heat import heat_over_the_day, places
from ui.shell import go_on, need_dataset, page
from ui.state import state

with page("Grid"):
    st.title("Grid")
    opened = need_dataset()
    now = state()
    at = places()
    with at.extent:
        st.markdown("**Extent and blocks**")
        names = ["west", "east", "south", "north", "rows", "cols"]
        now.grid = edit(now.grid, "grid", names, columns=at.extent_in_a_row)
        grid = now.grid.make()
        width_m, height_m = grid.block_size_m
        st.caption(
            f"{grid.n_cells:,} blocks of {width_m / 1000:.2f} km x {height_m / 1000:.2f} km, "
            "numbered from the south-west."
        )
    with at.time:
        st.markdown("**Time**")
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
