"""Which weights are quantised, and why others are not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from types import MappingProxyType

import numpy as np

from nacre.base.suggest import did_you_mean
from nacre.core.values import Array
from nacre.nac.checks.examination import operand_offsets
from nacre.nac.format.positions import BinarySource
from nacre.nac.format.values import NacFile
from nacre.nac.program.interface import InitialParameter, program_interface
from nacre.nac.rules.building import refusal
from nacre.nac.spec.elements import DTYPES, FP16
from nacre.nac.spec.instructions import INPUT, PARAMETER

# Calls whose weights stay: a variance of 0 where it was small makes a channel explode.
_NORMS = frozenset(
    {
        "batch_norm", "native_batch_norm", "_native_batch_norm_legit_no_training", "layer_norm",
        "native_layer_norm", "group_norm", "native_group_norm", "instance_norm", "rms_norm",
        "BatchNorm", "LayerNorm", "GroupNorm", "InstanceNorm", "RmsNorm",
    }
)  # fmt: skip
# Calls between integers and reals: their scales are part of a model that is quantised already.
_QUANTISATIONS = frozenset(
    {
        "Quantize", "Dequantize", "QConv", "QLinear", "QBinOp", "QPool",
        "fake_quantize_per_tensor_affine", "fake_quantize_per_channel_affine",
    }
)  # fmt: skip
# Calls that take rows: of a table with few bits every row loses, and often the head is the same.
_TABLES = frozenset({"embedding", "index_select", "Gather", "GatherAxis"})
OF_NORM, OF_QUANTISATION, OF_STATE = "of a norm", "of a quantisation", "of a state"
OF_TABLE = "a table of rows"
_REASONS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(_NORMS, OF_NORM),
        **dict.fromkeys(_QUANTISATIONS, OF_QUANTISATION),
        **dict.fromkeys(_TABLES, OF_TABLE),
    }
)

_LARGEST_SCALED = float(np.finfo(np.float32).max) * (1 - 2.0**-20)


@dataclass(frozen=True)
class Choice:
    """What stays as it is beside what must: by names, by use, by rank."""

    keep: tuple[str, ...] = ()  # patterns of names, such as `*.bias`
    keep_norms: bool = True
    least_rank: int = 1

    def require_known(self, names: Sequence[str]) -> None:
        """InputError where a pattern fits no name."""
        for pattern in self.keep:
            if not any(fnmatchcase(name, pattern) for name in names):
                hint = did_you_mean(pattern, names)
                raise refusal(f"no weight has a name like `{pattern}`", hint)

    def reason(self, names: Sequence[str], array: Array, quant: int, use: str | None) -> str | None:
        """Why a weight of f32, which may have a use that tells, stays; None where it does not."""
        if any(fnmatchcase(name, pattern) for pattern in self.keep for name in names):
            return "asked for"
        if array.ndim == 0 or array.ndim < self.least_rank:
            return f"rank {array.ndim}"
        if use in (OF_QUANTISATION, OF_STATE) or (use == OF_NORM and self.keep_norms):
            return use
        return _reason_of_elements(array, quant)


def _reason_of_elements(array: Array, quant: int) -> str | None:
    if array.size == 0:
        return "empty"
    finite = np.isfinite(array)
    largest = float(np.abs(array[finite]).max(initial=0))
    if quant == FP16:
        most = float(np.finfo(np.float16).max)
        return f"larger than {most:.0f}" if largest > most else None
    if not finite.all():
        return "not finite"
    # 127 times a scale that was rounded up is infinite: the mask that attention adds.
    return f"larger than {_LARGEST_SCALED:.3g}" if largest > _LARGEST_SCALED else None


def reason_of_type(dtype: int) -> str | None:
    """Why a weight of another type stays: a quantised one is read as f32."""
    name = DTYPES[dtype]
    return None if name == "f32" else f"of type {name}"


def uses_of(file: NacFile) -> dict[int, str]:
    """Parameters of norms and quantisations, tables of rows, and what states start as."""
    states = program_interface(file, BinarySource("<nac>", 0))[0].states.values()
    first = [
        state.initial.parameter for state in states if isinstance(state.initial, InitialParameter)
    ]
    uses: dict[int, str] = dict.fromkeys(first, OF_STATE)
    instructions = file.instructions
    for index, instruction in enumerate(instructions):
        use = _REASONS.get(_bare_name(file.name_of.get(instruction.op, "")))
        if use is None:
            continue
        for offset in operand_offsets(instruction.op, instruction.c, instruction.d):
            source = instructions[index + offset]
            if offset and (source.op, source.variant) == (INPUT, PARAMETER):
                id_ = source.c[1]
                # A state before a quantisation before a norm before a table.
                uses[id_] = max(use, uses.get(id_, use))
    return uses


def _bare_name(name: str) -> str:
    """`aten.layer_norm.default` and `core.LayerNorm` without what stands around the name."""
    return name.removeprefix("aten.").removeprefix("core.").partition(".")[0]
