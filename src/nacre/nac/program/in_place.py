"""Calls that change their first operand, such as `relu_.default`, where it cannot be noticed.

Such a call is its functional form when nobody else sees the tensor that it changes: the tensor has
no other user, nor has any tensor that it may share memory with, and it is no weight.
"""

from __future__ import annotations

from collections.abc import Mapping

from nacre.nac.format.values import NacFile
from nacre.nac.spec.instructions import INPUT, USER
from nacre.nac.spec.operations import call_of

# Calls whose result may share memory with their first operand.
_SHARING = frozenset(
    {
        "nac.pass", "nac.transpose", "getitem", "alias", "chunk", "contiguous", "detach", "dropout",
        "expand", "expand_as", "flatten", "mT", "movedim", "narrow", "numpy_T", "permute",
        "reshape", "reshape_as", "select", "slice", "split", "split_with_sizes", "squeeze",
        "swapaxes", "swapdims", "t", "to", "transpose", "type_as", "unbind", "unflatten",
        "unsqueeze", "view", "view_as", "_unsafe_view",
    }
)  # fmt: skip


def out_of_place_call(call: str) -> str:
    """The call that gives the same and changes nothing; the call itself where it is no such one."""
    name, dot, overload = call.partition(".")
    is_changing = name.endswith("_") and not name.startswith("__")
    return f"{name[:-1]}{dot}{overload}" if is_changing else call


def may_run_out_of_place(file: NacFile, index: int, known: dict[int, bool]) -> bool:
    """Whether nobody notices that an instruction changes its first operand.

    What is known of the instructions before it is added to: they are asked about in order.
    """
    known[index] = _may_run_out_of_place(file, index, known)
    return known[index]


def _may_run_out_of_place(file: NacFile, index: int, known: Mapping[int, bool]) -> bool:
    changed = index
    while True:
        offsets = file.instructions[changed].d
        if not offsets or not offsets[0]:
            return False
        changed += offsets[0]
        if file.user_counts[changed] != 1:
            return False
        maker = file.instructions[changed]
        if changed in known:
            return known[changed]
        if maker.is_system:
            return (maker.op, maker.variant) == (INPUT, USER)
        call = call_of(file.name_of[maker.op])
        if call not in _SHARING and call.partition(".")[0].rstrip("_") not in _SHARING:
            return out_of_place_call(call) == call
