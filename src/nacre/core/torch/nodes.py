"""Nodes of an exported graph: their names, their arguments, numbers that they compute."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from nacre.core.aten.call import Number, Result, Value
from nacre.core.aten.refusals import explain_refusal
from nacre.core.torch.constants import Constants, KnownTensor
from nacre.core.torch.elements import element_name
from nacre.core.torch.library import torch
from nacre.core.torch.remedies import NEWER, UNUSED
from nacre.core.unsupported import Unsupported


def key_of(target: Any) -> str:  # noqa: ANN401 - an overload, a function
    """How handlers call an operation: `name.overload`, other namespaces before it."""
    if hasattr(target, "_schema"):
        name = f"{target._opname}.{target._overloadname}"
        return name if target.namespace == "aten" else f"{target.namespace}.{name}"
    found = getattr(target, "name", None) or getattr(target, "__name__", str(target))
    return str(found() if callable(found) else found)


def label_of(node: Any) -> str:  # noqa: ANN401 - fx.Node
    """What people call a node: the layer that it is, `features.0`, else the node's own name.

    A layer is a module of PyTorch's own: what stands in the code of a user's has no other name.
    """
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    path, class_name = stack[-1] if stack else ("", "")
    kind = (
        class_name
        if isinstance(class_name, str)
        else f"{class_name.__module__}.{class_name.__qualname__}"
    )
    return str(path) if path and kind.startswith("torch.nn.") else str(node.name)


def arguments_of(node: Any) -> list[Any]:  # noqa: ANN401 - fx.Node
    """Those by place, and those by name."""
    return [list(node.args), dict(node.kwargs)]


def arguments_by_name(target: Any, args: Any, kwargs: Any) -> dict[str, Any]:  # noqa: ANN401
    """Arguments by their names, defaults filled in."""
    schema = target._schema.arguments
    found = {a.name: a.default_value if a.has_default_value() else None for a in schema}
    found.update(zip(list(found), args, strict=False))
    found.update(kwargs)
    return found


def argument(given: Any, constants: Constants) -> Any:  # noqa: ANN401 - whatever it is
    """An argument as handlers have it: tuples, known tensors, element types by their words."""
    library = torch()
    if isinstance(given, list | tuple):
        return tuple(argument(part, constants) for part in given)
    if isinstance(given, library.Tensor):
        return KnownTensor(given, constants)
    if isinstance(given, library.dtype):
        return str(given).removeprefix("torch.")
    return given


def _is_node(argument: object) -> bool:
    return hasattr(argument, "all_input_nodes")


def map_arguments(arguments: Any, function: Any, is_meant: Callable[[Any], bool] = _is_node) -> Any:  # noqa: ANN401
    """Nested arguments with every node, or what else is meant, replaced."""
    if isinstance(arguments, list | tuple):
        return [map_arguments(part, function, is_meant) for part in arguments]
    if isinstance(arguments, dict):
        return {name: map_arguments(part, function, is_meant) for name, part in arguments.items()}
    return function(arguments) if is_meant(arguments) else arguments


def contains_kind(arguments: Any, kind: type) -> bool:  # noqa: ANN401 - nested lists
    """Whether something of a kind is among arguments."""
    if isinstance(arguments, list | tuple):
        return any(contains_kind(part, kind) for part in arguments)
    if isinstance(arguments, dict):
        return any(contains_kind(part, kind) for part in arguments.values())
    return isinstance(arguments, kind)


_MOST_STEPS = 16  # from a tensor to its transform: converted, padded, copied


def feeds_transform(node: Any) -> bool:  # noqa: ANN401 - fx.Node
    """Whether a complex tensor is only made, or padded, to be transformed by an FFT."""
    waiting, seen = [node], {node}
    while waiting:
        waiting_node = waiting.pop()
        is_complex = getattr(
            getattr(waiting_node.meta.get("val"), "dtype", None), "is_complex", False
        )
        if not (is_complex and waiting_node.users) or len(seen) > _MOST_STEPS:
            return False
        for user in waiting_node.users:
            if user.op != "call_function":
                return False
            if user not in seen and not key_of(user.target).startswith("_fft_"):
                seen.add(user)
                waiting.append(user)
    return True


_MOST_BITS = 64


def fold_number_call(target: Any, args: list[Any]) -> Any:  # noqa: ANN401 - a function of Python
    """Arithmetic on numbers of the program."""
    if getattr(target, "__module__", None) not in ("_operator", "math"):
        raise Unsupported(*explain_refusal(key_of(target)))
    if not all(isinstance(arg, bool | int | float) for arg in args):
        reason = "it works on numbers that are computed when the model runs"
        raise Unsupported(reason, "keep them tensors, and shapes fixed")
    # A file must not keep us busy with a power of a power.
    if any(isinstance(arg, int) and arg.bit_length() > _MOST_BITS for arg in args) or (
        target in (operator.pow, operator.lshift) and abs(args[1]) > _MOST_BITS
    ):
        raise Unsupported("its numbers are beyond 64 bits", NEWER)
    try:
        return target(*args)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise Unsupported(f"it cannot be computed: {error}", NEWER) from None


def output_item(outputs: Any, index: int) -> Any:  # noqa: ANN401 - a list of tensors
    """One output of a call; some are made only now."""
    if not isinstance(outputs, list | tuple) or index >= len(outputs):
        raise Unsupported(f"output {index} of the operation has no form", UNUSED)
    return as_tensors(outputs[index]()) if callable(outputs[index]) else outputs[index]


def as_tensors(results: Result) -> Any:  # noqa: ANN401 - tensors and numbers of the program
    """What a handler gives, values told apart from numbers; what is made later stays so."""
    if isinstance(results, Number):
        return results.number
    if isinstance(results, int):
        return Value(results)
    return [Value(part) if isinstance(part, int) else part for part in results]


def describe(meta: Any) -> str:  # noqa: ANN401 - a fake tensor
    """A type for a message."""
    if not hasattr(meta, "dtype"):
        return "-" if isinstance(meta, list | tuple) or meta is None else str(meta)
    try:
        name = element_name(meta.dtype)
    except Unsupported:
        name = str(meta.dtype).removeprefix("torch.")
    return f"{name}{[int(d) if isinstance(d, int) else str(d) for d in meta.shape]}"
