"""Instructions: system operations and their variants, signature codes, memory actions."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

INPUT, OUTPUT, CONTROL_FLOW, CONVERGENCE = 2, 3, 6, 7
FIRST_REGULAR = 10  # ids below are system operations
USER, PARAMETER, STATE, LIFTED = 0, 1, 2, 3  # variants of INPUT
FINAL, BRANCH = 0, 1  # variants of OUTPUT
MOST_COHERENCE = 100  # the variant of CONVERGENCE is a threshold in percent

# How many numbers C and D have. `outputs` counts those of the header, `prefix` as C's first says,
# `branches` as the second of D says.
Shape = Literal["none", "id", "outputs", "prefix", "three", "branches"]


class Variant(Struct, frozen=True):
    """A variant of a system operation."""

    name: str
    shape: Shape
    prefixes: tuple[int, ...] = ()  # that C may begin with: as practice writes it, then as the text


_INPUTS = {
    USER: Variant("user_input", "none"),
    PARAMETER: Variant("load_param", "id", (1, 2)),
    STATE: Variant("load_state", "id", (1, 2)),
    LIFTED: Variant("lifted_constant", "id", (1, 2)),
}
_OUTPUTS = {FINAL: Variant("return", "outputs"), BRANCH: Variant("yield", "prefix")}
_CONVERGENCE = Variant("converge", "branches", (1,))

# By operation, then by variant.
SYSTEM: Mapping[int, Mapping[int, Variant]] = MappingProxyType(
    {
        INPUT: MappingProxyType(_INPUTS),
        OUTPUT: MappingProxyType(_OUTPUTS),
        CONTROL_FLOW: MappingProxyType({0: Variant("branch", "three", (2, 3))}),
        CONVERGENCE: MappingProxyType(dict.fromkeys(range(MOST_COHERENCE + 1), _CONVERGENCE)),
    }
)
SYSTEM_NAMES: Mapping[int, str] = MappingProxyType(
    {INPUT: "<INPUT>", OUTPUT: "<OUTPUT>", CONTROL_FLOW: "<CONTROL_FLOW>",
     CONVERGENCE: "<CONVERGENCE>"}
)  # fmt: skip

# Codes of signatures.
TENSOR_CODES: Mapping[str, str] = MappingProxyType(
    {
        "Q": "query", "K": "key", "V": "value", "M": "mask", "B": "bias", "W": "weight",
        "T": "tensor", "P": "parameter or buffer",
    }
)  # fmt: skip
CONSTANT_CODES: Mapping[str, str] = MappingProxyType(
    {"A": "axis", "S": "shape", "i": "integer", "f": "float", "b": "truth value", "s": "string",
     "c": "other constant"}
)  # fmt: skip


class Action(Struct, frozen=True):
    """A command of the memory coprocessor."""

    code: int
    name: str
    summary: str


SAVE_RESULT, FREE, FORWARD, PRELOAD = 10, 20, 30, 40
ACTIONS: Mapping[int, Action] = MappingProxyType(
    {
        SAVE_RESULT: Action(SAVE_RESULT, "SAVE_RESULT", "keep this tick's result: several use it"),
        FREE: Action(FREE, "FREE", "drop a result or a weight"),
        FORWARD: Action(FORWARD, "FORWARD", "hand this tick's result to its only consumer"),
        PRELOAD: Action(PRELOAD, "PRELOAD", "begin to load a weight"),
    }
)
# The schedule of v1.8 has two more, about gradients; nothing happens at inference.
TRAINING_ACTIONS: Mapping[int, Action] = MappingProxyType(
    {
        15: Action(15, "SAVE_FOR_GRAD", "keep this tick's result for training"),
        25: Action(25, "FREE_AFTER_TRNG", "drop a result after training"),
    }
)

# The widest values that the fields of instructions hold.
MOST_INSTRUCTIONS = 65535  # names of inputs and MMAP count them in 16 bits
MOST_ID = 32767  # of a constant, parameter or state: C is int16
MOST_DISTANCE = 32768  # D is int16
MOST_SIGNATURES = 255  # B is a byte
MOST_ARGUMENTS = 255  # a signature has a letter for each, and its length is a byte
MOST_OPERATION = 255  # A is a byte
MOST_COMMANDS = 255  # of one tick
