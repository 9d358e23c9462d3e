import streamlit as st

from ui import counts_flows, flows
from ui.address import open_address, tell_note
from ui.shell import need_result, page
from ui.state import state
from ui.views import take_finished_run

with page("Flows"):
    st.title("Flows", anchor=False)
    take_finished_run()
    open_address()
    now = state()
    if now.shown is now.counts and now.counts.finished is not None:
        counts_flows.show(now.counts.finished)
        st.stop()
    if now.study.finished is None:
        tell_note(None)
    flows.show(need_result())
