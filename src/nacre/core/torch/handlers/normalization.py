"""Operations of ATen that normalise."""

from __future__ import annotations

from nacre.core.torch.elements import dtype_of
from nacre.core.torch.handlers.table import handles
from nacre.core.torch.library import torch
from nacre.core.torch.remedies import EVAL
from nacre.core.torch.use import AtenCall
from nacre.core.unsupported import Unsupported

_TRAINING = "it normalises by this batch and keeps statistics, as in training"


@handles("softmax.int", "_softmax.default", "log_softmax.int", "_log_softmax.default")
def softmax(use: AtenCall) -> int:
    """e^x over its sum along an axis, or the logarithm of it."""
    opcode = "LogSoftmax" if "log" in use.name else "Softmax"
    x = use.value("self", use.dtype)
    if use.type_of(x).rank == 0:
        return use.reshaped(use.add(opcode, use.reshaped(x, (1,)), axis=0), ())
    return use.add(opcode, x, axis=use.axis())


@handles("layer_norm.default", "native_layer_norm.default", "rms_norm.default",
         "_fused_rms_norm.default")  # fmt: skip
def layer_norm(use: AtenCall) -> int | list[int]:
    """Mean 0 and variance 1, or mean square 1, over the last axes."""
    is_rms = "rms" in use.name
    x, dtype = use.value("input"), use.dtype_of("input")
    wanted = [int(d) for d in use.get("normalized_shape")]
    epsilon = use.get("eps", torch().finfo(dtype_of(dtype)).eps if is_rms else 1e-5)
    values = [x]
    if use.has("bias") and not use.has("weight"):
        values.append(use.taken(torch().ones(wanted, dtype=dtype_of(dtype))))
    values += [use.value(name, dtype) for name in ("weight", "bias") if use.has(name)]
    axis = use.type_of(x).rank - len(wanted)
    made = use.add("RmsNorm" if is_rms else "LayerNorm", *values, axis=axis, epsilon=float(epsilon))
    return [made] if use.name.startswith(("native", "_fused")) else made


@handles("group_norm.default", "native_group_norm.default")
def group_norm(use: AtenCall) -> int | list[int]:
    """Mean 0 and variance 1 over groups of channels."""
    is_native = use.name.startswith("native")
    groups = int(use.get("group" if is_native else "num_groups"))
    values = _affine(use, use.shape_of("input")[1])
    made = use.add("GroupNorm", *values, groups=groups, epsilon=float(use.get("eps", 1e-5)))
    return [made] if is_native else made


@handles("instance_norm.default")
def instance_norm(use: AtenCall) -> int:
    """Mean 0 and variance 1 over each channel's plane."""
    if not use.get("use_input_stats", True):
        return _by_statistics(use)
    if use.has("running_mean"):
        raise Unsupported(_TRAINING, EVAL)
    values = _affine(use, use.shape_of("input")[1])
    return use.add("InstanceNorm", *values, epsilon=float(use.get("eps", 1e-5)))


def _affine(use: AtenCall, channels: int) -> list[int]:
    """The input, a scale and a bias; a bias alone gets ones before it."""
    dtype = use.dtype_of("input")
    values = [use.value("input")]
    if use.has("bias") and not use.has("weight"):
        values.append(use.taken(torch().ones(channels, dtype=dtype_of(dtype))))
    return values + [use.value(name, dtype) for name in ("weight", "bias") if use.has(name)]


@handles("batch_norm.default", "_native_batch_norm_legit_no_training.default",
         "_native_batch_norm_legit.default", "_native_batch_norm_legit_functional.default",
         "_native_batch_norm_legit.no_stats", "native_batch_norm.default",
         "_batch_norm_with_update_functional.default", "_batch_norm_no_update.default")  # fmt: skip
def batch_norm(use: AtenCall) -> int | list[int]:
    """Each channel by a mean and variance that were learnt."""
    is_update = any(word in use.name for word in ("no_stats", "with_update"))
    if use.get("training", False) or is_update or not use.has("running_mean"):
        raise Unsupported(_TRAINING, EVAL)
    made = _by_statistics(use)
    return made if use.name.startswith("batch_norm") else [made]


def _by_statistics(use: AtenCall) -> int:
    dtype, channels = use.dtype_of("input"), use.shape_of("input")[1]
    library = torch()
    fills = {"weight": library.ones, "bias": library.zeros}
    values = [use.value("input")]
    for name in ("weight", "bias", "running_mean", "running_var"):
        if use.has(name):
            values.append(use.value(name, dtype))
        else:
            values.append(use.taken(fills[name](channels, dtype=dtype_of(dtype))))
    return use.add("BatchNorm", *values, epsilon=float(use.get("eps", 1e-5)))
