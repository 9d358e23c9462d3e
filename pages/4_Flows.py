import streamlit as st

from agg_core.plotting.charts import arrow_legend
from agg_core.plotting.maps import arrow_half_widths_px
from agg_core.study import SOURCES
from ui import cached, panels
from ui.panels import SOURCE_NAMES
from ui.shell import need_result, page, theme

with page("Flows"):
    st.title("Flows")
    run = need_result()
    result = cached.result(run.key)
    grid, learn = result.settings.grid.make(), result.settings.learn
    bar = st.columns([3, 2, 2, 2], gap="medium")
    anchor = bar[0].segmented_control(
        "Time of day", [a.anchor for a in result.anchors], default=result.busiest,
        required=True, key="flows.anchor",
    )  # fmt: skip
    truth = bar[1].selectbox(
        "Beside the estimate", SOURCES[1:], format_func=SOURCE_NAMES.get, key="flows.truth"
    )
    threshold = bar[2].number_input(
        "Arrows above (people per step)", min_value=0.0, value=learn.threshold, step=5.0,
        key="flows.threshold",
    )  # fmt: skip
    top_n = bar[3].number_input(
        "At most so many arrows", min_value=1, max_value=2000, value=300, step=50, key="flows.top"
    )
    shown = {source: result.table(anchor, source) for source in ("estimate", truth)}
    vmax = panels.common_scale(shown.values(), grid)
    step = f"per {result.settings.window.step_minutes}-minute step"
    for column, (source, other) in zip(
        st.columns(2, gap="small"), (("estimate", truth), (truth, "estimate")), strict=True
    ):
        with column:
            size = f", M = {learn.group_size}" if source == "estimate" else ""
            st.subheader(SOURCE_NAMES[source] + size, anchor=False)
            panels.flow_map(
                grid, shown[source], shown[other], (SOURCE_NAMES[source], SOURCE_NAMES[other]),
                vmax=vmax, threshold=threshold, top_n=top_n, unit=step, key=f"flows.{source}",
            )  # fmt: skip
    st.plotly_chart(
        arrow_legend(vmax, threshold, theme(), half_widths_px=arrow_half_widths_px(grid)),
        width="content", config=panels.STATIC, key="flows.legend",
    )  # fmt: skip
    panels.comparison(cached.comparison(run.key, anchor, "estimate", truth, threshold), threshold,
                      SOURCE_NAMES[truth])  # fmt: skip
    panels.about_result(result, anchor, run.title)
