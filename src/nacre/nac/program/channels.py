"""Core IR's `Conv2d` has its channels last; in a file it is three calls, channels first.

They are permute (0, 3, 1, 2), conv2d and permute (0, 2, 3, 1), with weights that are stored as ATen
wants them. On the way back the three are one again. Only our own files are read so: others have
such calls too, and mean them. In ours a convolution whose channels come first is `convolution`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nacre.core.module import CoreOperation
from nacre.core.values import Custom, Word
from nacre.nac.format.values import NacFile
from nacre.nac.program.binding import Ref
from nacre.nac.program.interface import INTERFACE
from nacre.nac.run.program import PreparedInstruction
from nacre.nac.spec.instructions import PARAMETER

TO_FIRST, TO_LAST = (0, 3, 1, 2), (0, 2, 3, 1)  # NHWC to NCHW and back
WEIGHTS_TO_FIRST, WEIGHTS_TO_LAST = (3, 2, 0, 1), (2, 3, 1, 0)  # HWCF to FCHW and back
_PERMUTE = "permute.default"
_WORDS = {"Valid": "valid", "Same": "same"}


def window_call(op: CoreOperation) -> tuple[str, tuple[Any, ...]] | None:
    """The call of a `Conv2d` and its arguments behind the operands; None where ATen has none."""
    strides, padding = op.attributes["strides"], op.attributes["padding"]
    ones = (1, 1)
    if isinstance(padding, str):
        if padding == "Same" and strides != ones:
            return None
        return "conv2d.padding", (None, strides, _WORDS[padding], ones, 1)
    if any(before != behind for before, behind in padding):
        return None
    return "conv2d.default", (None, strides, tuple(p for p, _ in padding), ones, 1)


@dataclass(frozen=True)
class Window:
    """A call that is a `Conv2d`, and its attributes."""

    weight: int  # the instruction that gives the filter
    is_stored: bool  # the filter is a parameter, and stored channels first
    permutations: tuple[int, ...]  # instructions around it, which the `Conv2d` does without
    attributes: Mapping[str, Any]


def windows_of(file: NacFile, program: tuple[PreparedInstruction, ...]) -> dict[int, Window]:
    """Every `Conv2d` of a file of ours, by its call."""
    if file.resource(INTERFACE) is None:
        return {}
    windows = {}
    for index, instruction in enumerate(program):
        if _permutation(instruction) == TO_LAST:
            call = instruction.refs[0]
            window = _window(file, program, call, index)
            if window is not None:
                windows[call] = window
    return windows


def _window(
    file: NacFile, program: tuple[PreparedInstruction, ...], index: int, last: int
) -> Window | None:
    conv, uses = program[index], file.user_counts
    given = _attributes(conv)
    if given is None or uses[index] != 1:
        return None
    x, weight = (_ref(conv, name) for name in ("input", "weight"))
    if _permutation(program[x]) != TO_FIRST or uses[x] != 1:
        return None
    before = program[weight]
    if before.kind == "input" and before.variant == PARAMETER:
        return Window(weight, True, (x, last), given)
    if _permutation(before) != WEIGHTS_TO_FIRST or uses[weight] != 1:
        return None
    return Window(weight, False, (x, weight, last), given)


def _permutation(instruction: PreparedInstruction) -> object:
    prepared = instruction.call
    return (
        prepared.constants.get("dims")
        if prepared is not None and prepared.name == _PERMUTE
        else None
    )


def _ref(instruction: PreparedInstruction, name: str) -> int:
    source = next(o.source for o in instruction.operands if o.name == name)
    assert isinstance(source, Ref)
    return source.index


def _attributes(conv: PreparedInstruction) -> dict[str, Any] | None:
    """The attributes of a `Conv2d` that a call stands for."""
    prepared = conv.call
    if prepared is None or prepared.name not in ("conv2d.default", "conv2d.padding"):
        return None
    if {operand.name for operand in conv.operands} != {"input", "weight"}:
        return None
    if prepared.constants["dilation"] != (1, 1) or prepared.constants["groups"] != 1:
        return None
    padding: Any = prepared.constants["padding"]
    words = {text: Word(word) for word, text in _WORDS.items()}
    pads = words[padding] if isinstance(padding, str) else Custom((p, p) for p in padding)
    return {"strides": prepared.constants["stride"], "padding": pads}
