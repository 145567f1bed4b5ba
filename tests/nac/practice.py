"""Programs of `torch.export` as files in use have them.

Arguments come as they stand in the graph, defaults left out, keywords behind without their names;
lists with tensors are spread; common operations have the names of standard ones.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from nacre.nac.format.values import NacFile
from nacre.nac.program.assembly import Argument, Assembler
from nacre.nac.program.binding import Ref

_ALIASES = {"detach": "pass", "dropout": "pass", "lift_fresh_copy": "clone", "unsafe_view": "view"}
_STANDARD = {"pass", "add", "sub", "gt", "neg", "where", "clone", "view", "le", "arange"}
_SUFFIXES = (".default", ".Tensor", ".Scalar", ".int", ".dim", ".dim_IntList", ".start", ".self")


def practised(module: Any, args: tuple[Any, ...]) -> NacFile:  # noqa: ANN401 - of torch
    """A module as the format's own compiler would write it."""
    import torch

    program = torch.export.export(module.eval(), args)
    made = Assembler()
    found: dict[str, Any] = {}
    targets = {s.arg.name: s.target for s in program.graph_signature.input_specs if s.target}
    for node in program.graph.nodes:
        if node.op == "placeholder":
            found[node.name] = _placeholder(made, program, node.name, targets)
        elif node.op == "call_function":
            values = [*node.args, *node.kwargs.values()]
            given = [part for value in values for part in _flat(value, found)]
            found[node.name] = made.call(_name(node.target), *given)
        elif node.op == "output":
            made.output(*[found[value.name] for value in node.args[0]])
    return made.file()


def _placeholder(made: Assembler, program: Any, name: str, targets: dict[str, str]) -> Ref:  # noqa: ANN401
    if name not in targets:
        return made.input(name)
    target = targets[name]
    tensor = program.state_dict.get(target, program.constants.get(target))
    array = np.asarray(tensor.detach().numpy())
    return made.parameter(made.weight(target, array))


def _flat(value: Any, found: dict[str, Any]) -> list[Argument]:  # noqa: ANN401 - of torch
    if hasattr(value, "all_input_nodes"):
        return [found[value.name]]
    if isinstance(value, list | tuple):
        if any(hasattr(part, "all_input_nodes") for part in value):
            return [part for item in value for part in _flat(item, found)]
        return [tuple(value)]
    if value is None or isinstance(value, bool | int | float | str):
        return [value]
    return [str(value).removeprefix("torch.")]


def _name(target: Any) -> str:  # noqa: ANN401 - of torch
    if target is operator.getitem:
        return "getitem"
    raw = str(target)
    key = raw.removeprefix("aten.")
    for suffix in _SUFFIXES:
        if key.endswith(suffix):
            key = key.removesuffix(suffix)
            break
    key = key.strip("_")
    key = _ALIASES.get(key, key)
    return f"nac.{key}" if key in _STANDARD else raw
