import streamlit as st

from agg_core.plotting.charts import arrow_legend
from agg_core.plotting.flow_maps import arrow_half_widths_px
from ui import cached, panels
from ui.panels import SOURCE_NAMES
from ui.shell import need_result, page, theme
from ui.views import flow_view, take_finished_run

with page("Flows"):
    st.title("Flows")
    take_finished_run()
    run = need_result()
    result = cached.result(run.key)
    grid, learn = result.settings.grid.make(), result.settings.learn
    view = flow_view([a.anchor for a in result.anchors], result.busiest, learn.threshold)
    names = {**SOURCE_NAMES, "estimate": f"{SOURCE_NAMES['estimate']}, M = {learn.group_size}"}
    figures = cached.comparison(run.key, view.anchor, "estimate", view.truth, view.threshold)
    panels.distrust(figures)
    vmax = panels.common_scale(result, view.truth)
    step = f"per {result.settings.window.step_minutes}-minute step"
    for column, (source, other) in zip(
        st.columns(2, gap="small"),
        (("estimate", view.truth), (view.truth, "estimate")),
        strict=True,
    ):
        with column:
            st.subheader(names[source], anchor=False)
            panels.flow_map(
                grid, result.table(view.anchor, source), result.table(view.anchor, other),
                (names[source], names[other]), vmax=vmax, threshold=view.threshold,
                top_n=view.top_n, unit=step, key=f"flows.{source}",
            )  # fmt: skip
    st.plotly_chart(
        arrow_legend(vmax, view.threshold, theme(), half_widths_px=arrow_half_widths_px(grid)),
        width="content", config=panels.STATIC, key="flows.legend",
    )  # fmt: skip
    st.caption("The shade of a block says how many people are in it as the step begins.")
    panels.comparison(figures, view.threshold, SOURCE_NAMES[view.truth])
    panels.about_result(result, view.anchor, run.title)
