"""Checks that a program makes as it runs: which hold already, and which must not get lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nacre.core.torch.library import torch
from nacre.core.torch.nodes import key_of

# Calls that check what holds already: shapes and types are static.
CHECKS = frozenset(
    {
        "_assert_tensor_metadata.default", "_assert_scalar.default", "sym_constrain_range.default",
        "sym_constrain_range_for_size.default",
    }
)  # fmt: skip
ITEMS = frozenset({"item.default", "_local_scalar_dense.default"})
_ARITHMETIC = ("_operator", "math", "torch")  # where functions of numbers are from
_MOST_USERS = 1000  # a file must not keep us busy


@contextmanager
def keep_checks(program: Any) -> Iterator[None]:  # noqa: ANN401 - ExportedProgram
    """While it lasts, PyTorch's passes keep those calls of a program that give nothing.

    They are there for what they do, as `torch._assert_async(x)` is, but PyTorch takes most of them
    for calls that nobody needs.
    """
    lasting = torch().fx.node._side_effectful_functions
    added = {
        node.target
        for part in program.graph_module.modules()
        for node in getattr(getattr(part, "graph", None), "nodes", ())
        if _has_no_result(node.target)
    } - lasting
    lasting |= added
    try:
        yield
    finally:
        lasting -= added


def _has_no_result(target: Any) -> bool:  # noqa: ANN401 - an overload, a function, a name
    schema = getattr(target, "_schema", None)
    return schema is not None and not (schema.returns or schema.is_mutable)


def is_only_checked(node: Any) -> bool:  # noqa: ANN401 - fx.Node
    """Whether a number of the program, and what is computed of it, goes into checks alone."""
    waiting, seen = [node], set[Any]()
    while waiting:
        for user in waiting.pop().users:
            if user.op != "call_function" or len(seen) > _MOST_USERS:
                return False
            if user in seen or key_of(user.target) in CHECKS:
                continue
            if getattr(user.target, "__module__", None) not in _ARITHMETIC:
                return False
            seen.add(user)
            waiting.append(user)
    return True
