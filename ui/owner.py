"""Whose session this is: everything that people bring or learn belongs to an owner."""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

import streamlit as st

__all__ = [
    "asks_who",
    "is_logged_in",
    "own_machine",
    "owner",
    "sign_in_or_stop",
    "sign_out",
]

LOCAL = ("127.0.0.1", "localhost", "::1")
PROXY_HEADERS = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip")

KEY = "owner"
BACK = "sign.back"
"""Whether this session has looked where its person was going before signing in."""

KEEP_ADDRESS = """<script>
try {
  sessionStorage.setItem("flows.asked", JSON.stringify([Date.now(), window.location.href]));
} catch (refused) { /* a browser that keeps nothing begins at Home */ }
</script>"""
TO_ADDRESS = """<script>
try {
  const kept = sessionStorage.getItem("flows.asked");
  sessionStorage.removeItem("flows.asked");
  const [at, address] = kept ? JSON.parse(kept) : [0, window.location.href];
  const asked = new URL(address);
  const soon = Date.now() - at < 600000;
  if (soon && asked.origin === window.location.origin && asked.href !== window.location.href) {
    window.location.replace(asked.href);
  }
} catch (refused) { /* so does one that kept what is no address */ }
</script>"""
"""The provider sends everybody back to Home: only the tab itself can know what it was asked for.
It keeps that for ten minutes, and goes to addresses of this server alone."""


def asks_who() -> bool:
    """Whether the server's owner has named a provider that tells who people are (OpenID Connect).

    That is the table ``auth`` of Streamlit's ``secrets.toml``.
    """
    return st.secrets.load_if_toml_exists() and "auth" in st.secrets


def is_logged_in() -> bool:
    """Whether a person has logged in, who is the same owner in every session."""
    return bool(st.user.get("is_logged_in"))


def own_machine() -> bool:
    """Whether only people on this machine reach the server, so that all its runs are theirs.

    A server that others reach through a proxy on this machine listens to this machine only, too:
    the names it answers to and the proxy's headers give that away. One that asks who people are
    keeps them apart wherever it listens.
    """
    if asks_who():
        return False
    names: Any = (st.get_option("server.address"), *(st.get_option("server.allowedHosts") or ()))
    headers = st.context.headers
    return all(name in LOCAL for name in names) and not any(h in headers for h in PROXY_HEADERS)


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
    """Where the server asks who people are, nothing is shown to whoever has not said it.

    After that the browser goes to the address that it was asked for, also one of a run or a job.
    """
    if not asks_who():
        return
    if is_logged_in():
        if not st.session_state.get(BACK):
            st.html(TO_ADDRESS, unsafe_allow_javascript=True)
            st.session_state[BACK] = True
        return
    st.html(KEEP_ADDRESS, unsafe_allow_javascript=True)
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
