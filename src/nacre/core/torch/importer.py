"""The walk over an exported graph: calls on known tensors are computed, others brought in."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.suggest import did_you_mean
from nacre.core.builder import Builder
from nacre.core.module import Module
from nacre.core.onnx.findings import NoForm, finding
from nacre.core.rules.torch import TCH01
from nacre.core.torch.elements import element_name
from nacre.core.torch.exporting import program_of
from nacre.core.torch.folding import can_fold, folded
from nacre.core.torch.handlers import handlers
from nacre.core.torch.interface import Interface, expect_static, interface_of, static_type
from nacre.core.torch.library import torch
from nacre.core.torch.refused import REFUSED
from nacre.core.torch.use import Constants, Tensor, Use, Value

# Calls that check what holds already: shapes and types are static.
_CHECKS = frozenset(
    {
        "_assert_tensor_metadata.default", "_assert_scalar.default", "sym_constrain_range.default",
        "sym_constrain_range_for_size.default",
    }
)  # fmt: skip
_FRAME = re.compile(r'File "([^"<]+)", line (\d+)')


def from_torch(
    source: Any,  # noqa: ANN401 - a module, a program, a path
    example_args: Sequence[Any] = (),
    example_kwargs: Mapping[str, Any] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> Module:
    """A PyTorch module, a program of `torch.export` or a `.pt2` file as a module of `nacre-1`.

    Example arguments say shapes and types, as `torch.export` wants them. `shapes` gives sizes to
    inputs whose dimensions a program leaves open. Buffers that the module changes become state.
    InputError lists all that stands in the way.
    """
    program, name = program_of(source, tuple(example_args), dict(example_kwargs or {}), shapes)
    interface, problems = interface_of(program, name)
    if problems:
        raise InputError(problems)
    walk = Walk(name)
    walk.bring_in(program.graph_module, interface)
    return walk.module(interface)


class Lost:
    """Stands for what a refused node should have made, where not even its type is known."""


@dataclass(eq=False)
class Walk:
    """Goes down a graph. What is wrong is collected; one report for one cause."""

    name: str
    builder: Builder = field(default_factory=Builder)
    tensors: dict[str, Tensor | Lost] = field(default_factory=dict)
    found: list[Diagnostic] = field(default_factory=list)
    constants: Constants = field(init=False)

    def __post_init__(self) -> None:
        self.constants = Constants(self.builder)

    def bring_in(self, graph_module: Any, interface: Interface) -> None:  # noqa: ANN401
        """Inputs, weights and calls."""
        for node, (name, type_) in interface.inputs.items():
            self.tensors[node] = Value(self.builder.input(name, type_.dtype, type_.shape))
        self.tensors.update(interface.known)
        self.calls(graph_module, self.tensors)

    def calls(self, graph_module: Any, tensors: dict[str, Any]) -> None:  # noqa: ANN401
        """Nodes in their order, which is that of their definitions."""
        for node in graph_module.graph.nodes:
            if node.op == "get_attr":
                tensors[node.name] = getattr(graph_module, node.target)
            elif node.op == "call_function":
                tensors[node.name] = self._made(node, tensors)

    def _made(self, node: Any, tensors: dict[str, Any]) -> Any:  # noqa: ANN401 - fx.Node
        args, kwargs = (_mapped(part, lambda n: tensors[n.name]) for part in _arguments(node))
        if _holds(args, Lost) or _holds(kwargs, Lost):
            return Lost()
        try:
            return self._taken(node, args, kwargs)
        except NoForm as problem:
            self._refuse(node, problem)
            return self._stand_in(node.meta.get("val"))

    def _stand_in(self, meta: Any) -> Any:  # noqa: ANN401 - fake tensors
        """A tensor in the place of one that could not be made: what follows is looked at too."""
        if isinstance(meta, list | tuple):
            return [self._stand_in(part) for part in meta]
        try:
            type_ = static_type(meta)
        except NoForm:
            return Lost()
        return Value(self.builder.input("", type_.dtype, type_.shape))

    def _taken(self, node: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401
        target = node.target
        if target is operator.getitem:
            return _item(args[0], args[1])
        key = key_of(target)
        if key in _CHECKS:
            return None
        result, is_call = node.meta.get("val"), hasattr(target, "_schema")
        if is_call and can_fold(key, target, [args, kwargs], result):
            return folded(target, args, kwargs)
        if key in REFUSED:
            raise NoForm(*REFUSED[key])
        if not is_call:
            return _number(target, args)
        handler = handlers().get(key)
        if handler is None:
            raise NoForm("the operation is not known", did_you_mean(key, handlers()))
        for part in result if isinstance(result, list | tuple) else [result]:
            expect_static(part)
        names = [argument.name for argument in target._schema.arguments]
        metas = _mapped(_arguments(node), lambda n: n.meta.get("val"))
        given, known = (_named(names, target, *part) for part in ((args, kwargs), metas))
        made = handler(Use(key, given, known, result, self.constants))
        return _wrapped(made)

    def _refuse(self, node: Any, problem: NoForm) -> None:  # noqa: ANN401
        shapes = ", ".join(_described(n.meta.get("val")) for n in node.all_input_nodes)
        key = key_of(node.target)
        message = f"node `{node.name}` ({key}) of ({shapes}){_line(node)}: {problem.reason}"
        self.found.append(finding(TCH01, self.name, message, problem.rewrite))

    def module(self, interface: Interface) -> Module:
        """The module, when every node is in."""
        outputs = [self._output(place, node) for place, node in enumerate(interface.outputs)]
        states = []
        for name, node, initial in interface.states:
            output = self._output(name, node)
            states.append((name, output, self._constant(name, initial)))
        if self.found:
            raise InputError(self.found)
        for name, output, start in states:
            self.builder.state(name, output, start)
        return self.builder.module(*outputs)

    def _output(self, place: object, node: Any) -> int:  # noqa: ANN401 - fx.Node or a number
        tensor = self.tensors.get(node.name) if hasattr(node, "name") else node
        if isinstance(tensor, Value):
            return tensor.id
        if isinstance(tensor, Lost):  # the cause is reported
            return 0
        return self._constant(place, torch().as_tensor(tensor))

    def _constant(self, place: object, tensor: Any) -> int:  # noqa: ANN401 - torch.Tensor
        try:
            return self.constants.value(tensor)
        except NoForm as problem:
            self.found.append(finding(TCH01, self.name, f"output `{place}`: {problem.reason}"))
            return 0


def key_of(target: Any) -> str:  # noqa: ANN401 - an overload, a function
    """How handlers call an operation: `name.overload`, other namespaces before it."""
    if hasattr(target, "_schema"):
        name = f"{target._opname}.{target._overloadname}"
        return name if target.namespace == "aten" else f"{target.namespace}.{name}"
    found = getattr(target, "name", None) or getattr(target, "__name__", str(target))
    return str(found() if callable(found) else found)


def _arguments(node: Any) -> list[Any]:  # noqa: ANN401 - fx.Node
    return [list(node.args), dict(node.kwargs)]


def _named(names: list[str], target: Any, args: Any, kwargs: Any) -> dict[str, Any]:  # noqa: ANN401
    """Arguments by their names, defaults filled in."""
    schema = target._schema.arguments
    found = {a.name: a.default_value if a.has_default_value() else None for a in schema}
    found.update(zip(names, args, strict=False))
    found.update(kwargs)
    return found


def _mapped(found: Any, function: Any) -> Any:  # noqa: ANN401 - nested lists of nodes
    """Nested arguments with every node replaced."""
    if isinstance(found, list | tuple):
        return [_mapped(part, function) for part in found]
    if isinstance(found, dict):
        return {name: _mapped(part, function) for name, part in found.items()}
    return function(found) if hasattr(found, "all_input_nodes") else found


def _holds(found: Any, kind: type) -> bool:  # noqa: ANN401 - nested lists
    if isinstance(found, list | tuple):
        return any(_holds(part, kind) for part in found)
    if isinstance(found, dict):
        return any(_holds(part, kind) for part in found.values())
    return isinstance(found, kind)


def _number(target: Any, args: list[Any]) -> Any:  # noqa: ANN401 - a function of Python
    """Arithmetic on numbers of the program."""
    if target.__module__ not in ("_operator", "math"):
        raise NoForm("the operation is not known")
    if _holds(args, Value):
        raise NoForm("it works on numbers that are computed when the model runs")
    return target(*args)


def _item(found: Any, index: int) -> Any:  # noqa: ANN401 - a list of tensors
    if not isinstance(found, list | tuple) or index >= len(found):
        raise NoForm(f"output {index} of the operation has no form")
    return found[index]


def _wrapped(made: Any) -> Any:  # noqa: ANN401 - what a handler gives
    if isinstance(made, list | tuple):
        return [_wrapped(part) for part in made]
    return Value(made) if isinstance(made, int) else made


def _line(node: Any) -> str:  # noqa: ANN401 - fx.Node
    """Where the user's code calls it; nothing where the program does not say."""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    own = [frame for frame in frames if "/torch/nn/" not in frame[0].replace("\\", "/")]
    return f" at {Path(own[-1][0]).name}:{own[-1][1]}" if own else ""


def _described(meta: Any) -> str:  # noqa: ANN401 - a fake tensor
    if not hasattr(meta, "dtype"):
        return "-" if isinstance(meta, list | tuple) or meta is None else str(meta)
    try:
        name = element_name(meta.dtype)
    except NoForm:
        name = str(meta.dtype).removeprefix("torch.")
    return f"{name}{[int(d) if isinstance(d, int) else str(d) for d in meta.shape]}"
