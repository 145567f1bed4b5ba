"""Calls that normalise."""

from __future__ import annotations

import numpy as np

from nacre.base.elements import GRAPH_TYPES
from nacre.core.aten.call import AtenCall
from nacre.core.aten.handlers.elementwise import wanted_type
from nacre.core.aten.refusals import TRAINING
from nacre.core.aten.table import handles
from nacre.core.unsupported import Unsupported


@handles("softmax.int", "_softmax.default", "log_softmax.int", "_log_softmax.default")
def softmax(call: AtenCall) -> int:
    """e^x over its sum along an axis, or the logarithm of it."""
    opcode = "LogSoftmax" if "log" in call.name else "Softmax"
    dtype = wanted_type(call, call.dtype_of("self"))
    if call.get("half_to_float", False):
        dtype = "f32"
    x = call.as_float(call.value("self", dtype))
    if call.type_of(x).rank == 0:
        return call.reshape(call.add(opcode, call.reshape(x, (1,)), axis=0), ())
    return call.add(opcode, x, axis=call.axis())


@handles("layer_norm.default", "native_layer_norm.default", "rms_norm.default",
         "_fused_rms_norm.default")  # fmt: skip
def layer_norm(call: AtenCall) -> int | list[int]:
    """Mean 0 and variance 1, or mean square 1, over the last axes."""
    is_rms = "rms" in call.name
    x, dtype = call.value("input"), call.dtype_of("input")
    wanted, dims = call.integers("normalized_shape"), call.shape_of("input")
    if not wanted or dims[-len(wanted) :] != wanted:
        raise Unsupported(f"a tensor {list(dims)} is normalised over {list(wanted)}")
    least = float(np.finfo(GRAPH_TYPES[dtype].dtype).eps) if is_rms and dtype != "bf16" else 2**-7
    epsilon = float(call.number("eps", least if is_rms else 1e-5))
    values = [x]
    if call.has("bias") and not call.has("weight"):
        values.append(_filled_parameter(call, 1, wanted, dtype))
    values += [call.value(name, dtype) for name in ("weight", "bias") if call.has(name)]
    opcode = "RmsNorm" if is_rms else "LayerNorm"
    norm = call.add(opcode, *values, axis=len(dims) - len(wanted), epsilon=epsilon)
    return [norm] if call.name.startswith(("native", "_fused")) else norm


@handles("group_norm.default", "native_group_norm.default")
def group_norm(call: AtenCall) -> int | list[int]:
    """Mean 0 and variance 1 over groups of channels."""
    is_native = call.name.startswith("native")
    groups = call.integer("group" if is_native else "num_groups")
    epsilon = float(call.number("eps", 1e-5))
    made = call.add("GroupNorm", *_input_scale_bias(call), groups=groups, epsilon=epsilon)
    return [made] if is_native else made


@handles("instance_norm.default")
def instance_norm(call: AtenCall) -> int:
    """Mean 0 and variance 1 over each channel's plane."""
    if not call.get("use_input_stats", True):
        return _norm_by_statistics(call)
    if call.has("running_mean"):
        raise Unsupported(*TRAINING)
    return call.add(
        "InstanceNorm", *_input_scale_bias(call), epsilon=float(call.number("eps", 1e-5))
    )


def _filled_parameter(call: AtenCall, number: float, shape: tuple[int, ...], dtype: str) -> int:
    """A parameter that is left out."""
    call.require_affordable(shape)
    return call.constant(np.full(shape, number, GRAPH_TYPES[dtype].dtype), dtype)


def _channels(call: AtenCall) -> int:
    dims = call.shape_of("input")
    if len(dims) < 2:
        raise Unsupported(f"a tensor {list(dims)} has no channels")
    return dims[1]


def _input_scale_bias(call: AtenCall) -> list[int]:
    """The input, a scale and a bias; a bias alone gets ones before it."""
    dtype, channels = call.dtype_of("input"), _channels(call)
    values = [call.value("input")]
    if call.has("bias") and not call.has("weight"):
        values.append(_filled_parameter(call, 1, (channels,), dtype))
    return values + [call.value(name, dtype) for name in ("weight", "bias") if call.has(name)]


@handles("batch_norm.default", "_native_batch_norm_legit_no_training.default",
         "_native_batch_norm_legit.default", "_native_batch_norm_legit_functional.default",
         "native_batch_norm.default", "_batch_norm_no_update.default")  # fmt: skip
def batch_norm(call: AtenCall) -> int | list[int]:
    """Each channel by a mean and variance that were learnt."""
    if call.get("training", False) or not call.has("running_mean"):
        raise Unsupported(*TRAINING)
    made = _norm_by_statistics(call)
    return made if call.name == "batch_norm" else [made]


def _norm_by_statistics(call: AtenCall) -> int:
    dtype, channels = call.dtype_of("input"), _channels(call)
    values = [call.value("input")]
    for name, filling in (("weight", 1), ("bias", 0), ("running_mean", 0), ("running_var", 1)):
        if call.has(name):
            values.append(call.value(name, dtype))
        else:
            values.append(_filled_parameter(call, filling, (channels,), dtype))
    return call.add("BatchNorm", *values, epsilon=float(call.number("eps", 1e-5)))
