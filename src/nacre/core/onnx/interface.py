"""The inputs of a model: element types, and shapes made static."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from string import ascii_uppercase
from typing import Any, cast

import numpy as np

from nacre.base.diagnostics import Diagnostic
from nacre.base.excerpt import backquote
from nacre.base.hints import setting
from nacre.base.suggest import did_you_mean
from nacre.core.module import TensorType
from nacre.core.onnx.findings import Unsound, finding
from nacre.core.onnx.handlers.elementwise import element_name
from nacre.core.rules.onnx import ONX01, ONX02, ONX04, ONX06
from nacre.core.unsupported import Unsupported

_LETTERS = {4: "NCHW"}  # of axes, where a model of so many is most often one of images
_FIXED = (
    "the model itself fixes these sizes: leave the shape out, or open them, by a name in place of"
    ' each size of the input in the file (`dim.dim_param = "N"`), or by exporting the model with'
    " open sizes (in PyTorch `dynamic_shapes` or `dynamic_axes`)"
)


def input_types(
    inputs: Sequence[Any],
    shapes: Mapping[str, Sequence[int]],
    name: str,
    type_only: Collection[str] = (),
) -> tuple[dict[str, TensorType], list[Diagnostic]]:
    """The types of inputs by name, and what is wrong with them.

    Open dimensions of inputs that only give a type have the size 1: no element of them is used.
    """
    types: dict[str, TensorType] = {}
    known = set(_names(inputs))
    problems = [unknown_input(given, inputs, name) for given in shapes if given not in known]
    wrong = {n: _shape_problem(n, given, name) for n, given in shapes.items() if n in known}
    problems += [problem for problem in wrong.values() if problem is not None]
    for value in inputs:
        if wrong.get(value.name) is not None:
            continue
        type_ = input_type(value, shapes.get(value.name), name, is_free=value.name in type_only)
        if isinstance(type_, Diagnostic):
            problems.append(type_)
        else:
            types[value.name] = type_
    return types, problems


def type_only_inputs(graph: Any) -> frozenset[str]:  # noqa: ANN401 - onnx.GraphProto
    """Inputs that nothing uses, or only as the pattern of a type."""
    uses: Counter[str] = Counter(output.name for output in graph.output)
    for node in graph.node:
        is_like = node.op_type == "CastLike" and not node.domain
        uses.update(node.input[:1] if is_like else node.input)
        uses.update(name for a in node.attribute for name in names_within(a))
    return frozenset(value.name for value in graph.input if not uses[value.name])


def names_within(attribute: Any) -> list[str]:  # noqa: ANN401 - onnx.AttributeProto
    """Whatever names appear in graphs that an attribute holds."""
    names: list[str] = []
    waiting = [attribute.g, *attribute.graphs] if attribute.HasField("g") else [*attribute.graphs]
    while waiting:
        graph = waiting.pop()
        names += [output.name for output in graph.output]
        for node in graph.node:
            names += node.input
            for inner in node.attribute:
                waiting += [*([inner.g] if inner.HasField("g") else []), *inner.graphs]
    return names


def _shape_problem(given: str, shape: object, name: str) -> Diagnostic | None:
    """Why what was given as a shape is none."""
    is_list = isinstance(shape, Sequence | np.ndarray) and not isinstance(shape, str | bytes)
    if is_list and all(_is_whole(size) for size in cast("Sequence[object]", shape)):
        return None
    message = (
        f"input {backquote(given)} was given {backquote(repr(shape))}, expected a list of integers"
    )
    return finding(ONX06, name, message, f'for example shapes={{"{given}": (1, 3, 224, 224)}}')


def _is_whole(size: object) -> bool:
    return isinstance(size, int | np.integer) and not isinstance(size, bool)


def _names(inputs: Sequence[Any]) -> list[str]:
    return [value.name for value in inputs]


def unknown_input(given: str, inputs: Sequence[Any], name: str) -> Diagnostic:
    """What is said about an input that the model does not have."""
    some = ", ".join(backquote(known) for known in _names(inputs)[:8])
    hint = did_you_mean(given, _names(inputs)) or f"the inputs are {some or 'none'}"
    return finding(ONX06, name, f"the model has no input {backquote(given)}", hint)


def input_type(
    value: Any,  # noqa: ANN401 - onnx.ValueInfoProto
    given: Sequence[int] | None,
    name: str,
    *,
    is_free: bool,
) -> TensorType | Diagnostic:
    """The type of an input under a shape that was given for it, or what is wrong with it."""
    tensor, title = value.type.tensor_type, backquote(value.name)
    if not value.type.HasField("tensor_type"):
        message = f"input {title} is a sequence, a map or optional; Core IR has tensors only"
        return finding(ONX01, name, message, "give the model one input for each tensor")
    try:
        dtype = element_name(tensor.elem_type)
    except Unsound as problem:
        return finding(ONX04, name, f"input {title}: {problem}", problem.help)
    except Unsupported as problem:
        bound = setting(
            f"`--constant {value.name}=FILE.npy`", f'`constants={{"{value.name}": array}}`'
        )
        help_ = f"{problem.help}, or bind the input: {bound}"
        return finding(ONX01, name, f"input {title}: {problem.reason}", help_)
    dims = list(tensor.shape.dim) if tensor.HasField("shape") else None
    sizes = [d.dim_value if d.HasField("dim_value") else 0 for d in dims or ()]
    if given is None and is_free:
        return TensorType(dtype, tuple(max(size, 1) for size in sizes))
    if given is None:
        if any(_is_empty(d) for d in dims or ()):
            return _empty_input_finding(value, dims or (), name)
        if dims is None or any(size < 1 for size in sizes):
            return _open_shape_finding(value, dims, name)
        return TensorType(dtype, tuple(sizes))
    wanted = tuple(int(dim) for dim in given)
    if 0 in wanted:
        message = f"input {title} was given the shape {list(wanted)}, without elements"
        return finding(ONX01, name, message, "Core IR has no empty tensors: give sizes above 0")
    fits = dims is None or (
        len(wanted) == len(sizes)
        and all(s < 1 or s == w for s, w in zip(sizes, wanted, strict=True))
    )
    if not fits or any(dim < 1 for dim in wanted):
        shown = format_dims(dims) if dims is not None else "any shape"
        message = f"input {title} was given the shape {list(wanted)}, the model says {shown}"
        return finding(ONX06, name, message, _shape_advice(wanted, dims))
    return TensorType(dtype, wanted)


def _shape_advice(wanted: Sequence[int], dims: Sequence[Any] | None) -> str:
    """What to do about a shape that an input cannot have."""
    if any(size < 1 for size in wanted):
        return "give sizes above 0"
    if dims is not None and len(dims) != len(wanted):
        return f"give as many sizes as the input has axes, {len(dims)}"
    return _FIXED


def format_dims(dims: Sequence[Any]) -> str:
    """Sizes of a shape for a message, open ones by their names."""
    shown = [
        str(d.dim_value) if d.dim_value > 0 or _is_empty(d) else d.dim_param or "?" for d in dims
    ]
    return f"[{', '.join(shown)}]"


def _is_empty(dim: Any) -> bool:  # noqa: ANN401 - onnx.TensorShapeProto.Dimension
    """Whether a model says that an axis has no elements, not that its size is open."""
    return bool(dim.HasField("dim_value")) and dim.dim_value == 0


def _empty_input_finding(value: Any, dims: Sequence[Any], name: str) -> Diagnostic:  # noqa: ANN401
    message = f"input {backquote(value.name)} has the shape {format_dims(dims)}, without elements"
    shape, stands = _example(dims)
    given = f"{_shape_option(value.name, shape)}; {stands}"
    help_ = f"Core IR has no empty tensors; where a 0 stands for an open size, give one: {given}"
    return finding(ONX01, name, message, help_)


def _example(dims: Sequence[Any]) -> tuple[str, str]:
    """A shape to fill in, with a letter for each size that is open, and what they stand for.

    Sizes that the model gives one name have one letter.
    """
    letters = dict(enumerate(_LETTERS.get(len(dims), ascii_uppercase)))
    taken: dict[object, str] = {}  # letters by the name of the size, or the axis without one
    shown = [
        str(d.dim_value)
        if d.dim_value > 0
        else taken.setdefault(d.dim_param or axis, letters.get(axis, f"A{axis}"))
        for axis, d in enumerate(dims)
    ]
    named = [f"{letter} is {backquote(of)}" for of, letter in taken.items() if isinstance(of, str)]
    more = f" ({', '.join(named)})" if named else ""
    is_one = len(taken) == 1
    stands = f"the letter stands for a size{more}" if is_one else f"letters stand for sizes{more}"
    return "x".join(shown), f"{stands}: put a number in {'its' if is_one else 'their'} place"


def _shape_option(name: str, shape: str) -> str:
    """How a shape such as `1x3xHxW` is given to an input."""
    sizes = ", ".join(shape.split("x"))
    comma = "" if "," in sizes else ","
    return setting(f"`--shape {name}={shape}`", f'`shapes={{"{name}": ({sizes}{comma})}}`')


def _open_shape_finding(value: Any, dims: Sequence[Any] | None, name: str) -> Diagnostic:  # noqa: ANN401
    shown = "no shape at all" if dims is None else f"the shape {format_dims(dims)}"
    message = f"input {backquote(value.name)} has {shown}, expected sizes"
    if dims is None:
        help_ = f"{_shape_option(value.name, 'AxBxC')}, a number for each axis that the input has"
    else:
        shape, stands = _example(dims)
        help_ = f"{_shape_option(value.name, shape)}; {stands}"
    return finding(ONX02, name, message, help_)
