import streamlit as st

from ui import flows
from ui.address import open_address, tell_note
from ui.learning import need_flows
from ui.shell import page
from ui.shipped_run import about_shipped
from ui.state import state
from ui.views import take_finished_run

with page("Flows"):
    st.title("Flows", anchor=False)
    take_finished_run()
    open_address()
    if state().shown.finished is None:
        tell_note(None)
    run = need_flows()
    about_shipped(run)
    flows.show(run)
