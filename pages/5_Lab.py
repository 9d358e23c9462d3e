import streamlit as st

from ui import lab
from ui.shell import page

with page("Lab"):
    st.title("Lab", anchor=False)
    st.caption(
        "For teaching and for doubt: how much is lost when only counts of groups are kept. The "
        "data is made up here, so the truth is known; your own data and flows stay as they are."
    )
    lab.show()
