"""Whose session this is: everything that people bring or learn belongs to an owner."""

from __future__ import annotations

import hashlib
import secrets

import streamlit as st

__all__ = ["asks_who", "is_logged_in", "owner", "sign_in_or_stop", "sign_out"]

KEY = "owner"


def asks_who() -> bool:
    """Whether the server's owner has named a provider that tells who people are (OpenID Connect).

    That is the table ``auth`` of Streamlit's ``secrets.toml``.
    """
    return st.secrets.load_if_toml_exists() and "auth" in st.secrets


def is_logged_in() -> bool:
    """Whether a person has logged in, who is the same owner in every session."""
    return bool(st.user.get("is_logged_in"))


def owner() -> str:
    """Id of whoever uses this session, 32 hexadecimal digits.

    It is made of the issuer and the subject of a person who has logged in, so that all sessions of
    that person share it; else it is random, and of this session alone.
    """
    if is_logged_in():
        who = f"{st.user.get('iss', '')} {st.user['sub']}"
        return hashlib.sha256(who.encode()).hexdigest()[:32]
    if KEY not in st.session_state:
        st.session_state[KEY] = secrets.token_hex(16)
    return str(st.session_state[KEY])


def sign_in_or_stop() -> None:
    """Where the server asks who people are, nothing is shown to whoever has not said it."""
    if not asks_who() or is_logged_in():
        return
    st.title("Population flows", anchor=False)
    st.info("This server shows flows to people who have signed in.", icon=":material/lock:")
    st.button("Sign in", type="primary", icon=":material/login:", on_click=st.login, key="sign.in")
    st.stop()


def sign_out() -> None:
    """A button for whoever has signed in, with the name that the provider told."""
    if not asks_who():
        return
    name = st.user.get("name") or st.user.get("email") or "Signed in"
    with st.popover("", icon=":material/account_circle:", key="sign.who"):
        st.text(str(name))
        st.button("Sign out", icon=":material/logout:", on_click=st.logout, key="sign.out")
