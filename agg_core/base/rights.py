"""What a process gives up before it reads what strangers wrote: rights, network, files of others.

Each is given up where the system knows how, and where it lets a process do so that is not root:

- Nothing that it starts gains rights (``no_new_privs``), and root keeps none but to read.
- It has a network of its own, in which there is nobody: where that is refused, by a user namespace.
- It writes in its folder alone, and opens no connection (Landlock, of Linux 5.13 and 6.7).

Where all that is refused, as in some containers, limits on memory and time remain.
"""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress
from pathlib import Path

__all__ = ["give_up_rights"]

NEW_USERS, NEW_NETWORK = 0x10000000, 0x40000000
SET_NO_NEW_PRIVILEGES, DROP_BOUND = 38, 24
CAPABILITIES_3, READ_ALL = 0x20080522, 1 << 2
"""Version of the interface; the right of root to read what belongs to others."""
MOST_CAPABILITIES = 64

CREATE_RULES, ADD_RULE, RESTRICT = 444, 445, 446
"""System calls of Landlock, whose numbers are the same on x86 and ARM."""
ASK_VERSION, BENEATH = 1, 1
WRITES = sum(1 << bit for bit in (1, 4, 5, 6, 7, 8, 9, 10, 11, 12))
"""Write, remove and make files and folders of any kind."""
REFER, TRUNCATE = 1 << 13, 1 << 14
"""Move between folders and cut files, of versions 2 and 3."""
FILE_WRITES = (1 << 1) | TRUNCATE
CONNECTIONS = 3
"""To bind to a port and to connect, of version 4."""


class _Rules(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Capabilities(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


def give_up_rights(folder: Path) -> None:
    """Give up, for good, what reading needs not; what the system does not know of stays.

    ``folder`` is where this process may write still. Threads that run already keep what they have.
    """
    if sys.platform != "linux":
        return
    with suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(NEW_NETWORK) != 0:
            libc.unshare(NEW_USERS | NEW_NETWORK)
        libc.prctl(SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        _drop_capabilities(libc)
        _write_only_in(libc, folder)


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    for capability in range(MOST_CAPABILITIES):
        libc.prctl(DROP_BOUND, capability, 0, 0, 0)
    header, held = _Header(CAPABILITIES_3, 0), (_Capabilities * 2)()
    if libc.capget(ctypes.byref(header), held) != 0:
        return
    kept = held[0].permitted & READ_ALL if os.geteuid() == 0 else 0
    left = (_Capabilities * 2)(_Capabilities(kept, kept, 0), _Capabilities(0, 0, 0))
    libc.capset(ctypes.byref(header), left)


def _write_only_in(libc: ctypes.CDLL, folder: Path) -> None:
    """Let files be written beneath a folder alone, by Landlock."""
    libc.syscall.restype = ctypes.c_long
    version = libc.syscall(CREATE_RULES, None, ctypes.c_size_t(0), ctypes.c_uint32(ASK_VERSION))
    if version < 1:
        return
    writes = WRITES | (REFER if version >= 2 else 0) | (TRUNCATE if version >= 3 else 0)
    rules = _Rules(writes, CONNECTIONS if version >= 4 else 0)
    size = ctypes.sizeof(_Rules) if version >= 4 else ctypes.sizeof(ctypes.c_uint64)
    made = libc.syscall(
        CREATE_RULES, ctypes.byref(rules), ctypes.c_size_t(size), ctypes.c_uint32(0)
    )
    if made < 0:
        return
    try:
        _allow(libc, made, folder, writes)
        _allow(libc, made, Path(os.devnull), writes & FILE_WRITES)
        libc.syscall(RESTRICT, ctypes.c_int(made), ctypes.c_uint32(0))
    finally:
        os.close(made)


def _allow(libc: ctypes.CDLL, rules: int, path: Path, writes: int) -> None:
    handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        beneath = _Beneath(writes, handle)
        libc.syscall(
            ADD_RULE, ctypes.c_int(rules), ctypes.c_int(BENEATH), ctypes.byref(beneath),
            ctypes.c_uint32(0),
        )  # fmt: skip
    finally:
        os.close(handle)
