"""Compiled functions of two bodies: for whole transitions (d, d), and for those of near states."""

from __future__ import annotations

from numba import types
from numba.extending import overload

__all__ = ["by_kind"]


def by_kind(of_whole, of_near):
    """A function for compiled code whose body depends on the type of its first argument.

    Of an array it is ``of_whole``, of anything else ``of_near``, which take the same arguments. The
    choice is made when code is compiled, so that none is left in its loops.
    """

    def either(moves, *_rest):
        raise NotImplementedError("this is for compiled code")

    # Bodies name arguments that they have no use for otherwise, which strictness would forbid.
    @overload(either, strict=False, jit_options={"forceinline": True})
    def _chosen(moves, *_rest):
        return of_whole if isinstance(moves, types.Array) else of_near

    return either
