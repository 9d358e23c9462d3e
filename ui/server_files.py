"""Files and folders of the server that its owner lets everybody open."""

from __future__ import annotations

import streamlit as st

from agg_core.io.allowed import allowed_folders, allowed_sources
from ui.loading import take_from_server

__all__ = ["server_files"]


def server_files() -> None:
    """A choice of what lies in the folders that the owner has allowed, if there are any."""
    if not allowed_folders():
        return
    names = list(allowed_sources())
    with st.expander("Files of this server"):
        if not names:
            st.caption("The folders that this server may open are empty.")
            return
        st.selectbox(
            "File or folder", names, index=None, placeholder="choose one", key="server.choice",
            help="A folder of Parquet files is read as one table; the names of folders such as "
            "date=2024-05-01 are a column.",
        )  # fmt: skip
        st.button("Open", key="server.open", on_click=take_from_server)
