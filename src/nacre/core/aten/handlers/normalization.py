"""Calls that normalise."""

from __future__ import annotations

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.core.aten.call import AtenCall
from nacre.core.aten.handlers.elementwise import wanted_type
from nacre.core.aten.refused import TRAINING
from nacre.core.aten.table import handles
from nacre.core.unsupported import Unsupported


@handles("softmax.int", "_softmax.default", "log_softmax.int", "_log_softmax.default")
def softmax(use: AtenCall) -> int:
    """e^x over its sum along an axis, or the logarithm of it."""
    opcode = "LogSoftmax" if "log" in use.name else "Softmax"
    dtype = wanted_type(use, use.dtype_of("self"))
    if use.get("half_to_float", False):
        dtype = "f32"
    x = use.as_float(use.value("self", dtype))
    if use.type_of(x).rank == 0:
        return use.reshape(use.add(opcode, use.reshape(x, (1,)), axis=0), ())
    return use.add(opcode, x, axis=use.axis())


@handles("layer_norm.default", "native_layer_norm.default", "rms_norm.default",
         "_fused_rms_norm.default")  # fmt: skip
def layer_norm(use: AtenCall) -> int | list[int]:
    """Mean 0 and variance 1, or mean square 1, over the last axes."""
    is_rms = "rms" in use.name
    x, dtype = use.value("input"), use.dtype_of("input")
    wanted, dims = use.integers("normalized_shape"), use.shape_of("input")
    if not wanted or dims[-len(wanted) :] != wanted:
        raise Unsupported(f"a tensor {list(dims)} is normalised over {list(wanted)}")
    least = float(np.finfo(GRAPH_TYPES[dtype].dtype).eps) if is_rms and dtype != "bf16" else 2**-7
    epsilon = float(use.number("eps", least if is_rms else 1e-5))
    values = [x]
    if use.has("bias") and not use.has("weight"):
        values.append(_row(use, 1, wanted, dtype))
    values += [use.value(name, dtype) for name in ("weight", "bias") if use.has(name)]
    opcode = "RmsNorm" if is_rms else "LayerNorm"
    made = use.add(opcode, *values, axis=len(dims) - len(wanted), epsilon=epsilon)
    return [made] if use.name.startswith(("native", "_fused")) else made


@handles("group_norm.default", "native_group_norm.default")
def group_norm(use: AtenCall) -> int | list[int]:
    """Mean 0 and variance 1 over groups of channels."""
    is_native = use.name.startswith("native")
    groups = use.integer("group" if is_native else "num_groups")
    epsilon = float(use.number("eps", 1e-5))
    made = use.add("GroupNorm", *_affine(use), groups=groups, epsilon=epsilon)
    return [made] if is_native else made


@handles("instance_norm.default")
def instance_norm(use: AtenCall) -> int:
    """Mean 0 and variance 1 over each channel's plane."""
    if not use.get("use_input_stats", True):
        return _by_statistics(use)
    if use.has("running_mean"):
        raise Unsupported(*TRAINING)
    return use.add("InstanceNorm", *_affine(use), epsilon=float(use.number("eps", 1e-5)))


def _row(use: AtenCall, number: float, shape: tuple[int, ...], dtype: str) -> int:
    """A parameter that is left out."""
    use.affordable(shape)
    return use.constant(np.full(shape, number, GRAPH_TYPES[dtype].dtype), dtype)


def _channels(use: AtenCall) -> int:
    dims = use.shape_of("input")
    if len(dims) < 2:
        raise Unsupported(f"a tensor {list(dims)} has no channels")
    return dims[1]


def _affine(use: AtenCall) -> list[int]:
    """The input, a scale and a bias; a bias alone gets ones before it."""
    dtype, channels = use.dtype_of("input"), _channels(use)
    values = [use.value("input")]
    if use.has("bias") and not use.has("weight"):
        values.append(_row(use, 1, (channels,), dtype))
    return values + [use.value(name, dtype) for name in ("weight", "bias") if use.has(name)]


@handles("batch_norm.default", "_native_batch_norm_legit_no_training.default",
         "_native_batch_norm_legit.default", "_native_batch_norm_legit_functional.default",
         "native_batch_norm.default", "_batch_norm_no_update.default")  # fmt: skip
def batch_norm(use: AtenCall) -> int | list[int]:
    """Each channel by a mean and variance that were learnt."""
    if use.get("training", False) or not use.has("running_mean"):
        raise Unsupported(*TRAINING)
    made = _by_statistics(use)
    return made if use.name == "batch_norm" else [made]


def _by_statistics(use: AtenCall) -> int:
    dtype, channels = use.dtype_of("input"), _channels(use)
    values = [use.value("input")]
    for name, filling in (("weight", 1), ("bias", 0), ("running_mean", 0), ("running_var", 1)):
        if use.has(name):
            values.append(use.value(name, dtype))
        else:
            values.append(_row(use, filling, (channels,), dtype))
    return use.add("BatchNorm", *values, epsilon=float(use.number("eps", 1e-5)))
