"""Whose session this is: everything that people bring or learn belongs to an owner."""

from __future__ import annotations

import hashlib
import secrets

import streamlit as st

__all__ = ["is_logged_in", "owner"]

KEY = "owner"


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
