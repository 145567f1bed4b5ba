"""Surface expressions, such as `relu(x @ w + b)`, as modules."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.elements import GRAPH_TYPES
from nacre.base.excerpt import backquote
from nacre.base.source import Source
from nacre.base.suggest import Suggestions, did_you_mean
from nacre.core.expression_reader import Node, read_expression
from nacre.core.module import CoreOperation, Module, TensorType
from nacre.core.ops import OPS
from nacre.core.rules.facts import OperationFacts
from nacre.core.rules.lowering import LOW02, LOW04, LOW06
from nacre.core.text.values import literal_array
from nacre.core.values import Attributes, Literal, Word, attributes, kind_of
from nacre.core.verify import MAX_FINDINGS, verdict_of

_TYPE = re.compile(r"\s*(\w+)\s*(?:\[\s*((?:\d{1,18}\s*(?:,\s*\d{1,18}\s*)*)?)\])?\s*", re.ASCII)


def lower(text: str, inputs: Mapping[str, str | TensorType]) -> Module:
    """The module of an expression; InputError points at what is wrong in it.

    Names become Inputs in order of first use, with the types given as in `{"x": "f32[2,3]"}`;
    literals become `ConstTensor`s of the element type of what they are combined with.
    """
    if not isinstance(text, str):
        raise TypeError(f"an expression is {kind_of(text)}, expected a string")
    if not isinstance(inputs, Mapping):
        kind = kind_of(inputs)
        raise TypeError(f"the inputs are {kind}, expected types by name: {{'x': 'f32[2,3]'}}")
    source = Source("<expression>", text)
    types = input_types(inputs)
    nodes = read_expression(source)
    typed = _TypeInference(source, nodes, types).steps()
    return _emit(nodes, typed)


def input_types(inputs: Mapping[str, str | TensorType]) -> dict[str, TensorType]:
    """Types by name from text such as `f32[2,3]`; every wrong one is reported."""
    types: dict[str, TensorType] = {}
    wrong: list[Diagnostic] = []
    for name, given in inputs.items():
        if not isinstance(name, str):
            raise TypeError(f"the name of an input is {kind_of(name)}, expected a string")
        if not isinstance(given, str | TensorType):
            message = f"the type of input {backquote(name)} is {kind_of(given)}"
            raise TypeError(f"{message}, expected text such as 'f32[2,3]'")
        type_ = given if isinstance(given, TensorType) else _type(given)
        if isinstance(type_, TensorType):
            types[name] = type_
        else:
            source = Source(f"<input {name}>", str(given))
            wrong.append(
                LOW06.at(source.span(0, len(source.text)), f"input {backquote(name)}: {type_}")
            )
    if wrong:
        raise InputError(wrong)
    return types


def _type(text: str) -> TensorType | str:
    """A type, or what is wrong with it."""
    match = _TYPE.fullmatch(text)
    if match is None:
        return f"expected a type such as `f32[2,3]`, found {backquote(text)}"
    if match[1] not in GRAPH_TYPES:
        hint = did_you_mean(match[1], GRAPH_TYPES)
        return f"no element type {backquote(match[1])}{'; ' + hint if hint else ''}"
    dims = tuple(int(dim) for dim in (match[2] or "").split(",") if dim.strip())
    return TensorType(match[1], dims)


class _Step(Struct, frozen=True):
    """A node that was checked."""

    attributes: Attributes
    type: TensorType


class _TypeInference:
    """Finds the type of every node; what is wrong is collected, each cause once."""

    def __init__(
        self, source: Source, nodes: Sequence[Node], inputs: Mapping[str, TensorType]
    ) -> None:
        self._source = source
        self._nodes = nodes
        self._inputs = inputs
        self._hints = Suggestions(inputs)
        self._findings: list[Diagnostic] = []

    def steps(self) -> list[_Step]:
        """All nodes, checked."""
        dtypes = self._dtypes()
        steps: list[_Step | None] = []
        for node, dtype in zip(self._nodes, dtypes, strict=True):
            steps.append(self._step(node, dtype, steps))
        if self._findings:
            raise InputError(self._findings[:MAX_FINDINGS])
        return [step for step in steps if step is not None]

    def _dtypes(self) -> list[str]:
        """Element types: up from the inputs, then down to literals, which take what they meet."""
        known: list[str | None] = []
        has_float: list[bool] = []
        for node in self._nodes:
            sharing = _operands_of_result_type(node)
            own = self._inputs.get(node.given["name"]) if node.opcode == "Input" else None
            below = next((known[i] for i in sharing if known[i] is not None), None)
            known.append(own.dtype if own is not None else below)
            is_float = "data" in node.given and _holds_float(node.given["data"])
            has_float.append(is_float or any(has_float[i] for i in sharing))
        for index in reversed(range(len(self._nodes))):
            # Users come after what they use, so this one's type is settled by now.
            dtype = known[index] or ("f32" if has_float[index] else "i64")
            known[index] = dtype
            for operand in _operands_of_result_type(self._nodes[index]):
                known[operand] = known[operand] or dtype
        return [dtype or "f32" for dtype in known]

    def _step(self, node: Node, dtype: str, steps: Sequence[_Step | None]) -> _Step | None:
        if node.opcode == "Input":
            return self._input(node)
        if node.opcode == "ConstTensor":
            return self._literal(node, dtype)
        operands = [steps[operand] for operand in node.operands]
        types = tuple(step.type for step in operands if step is not None)
        if len(types) < len(operands):
            return None  # what is wrong was said below
        completed = attributes(_complete_attributes(node, types[0].rank))
        return self._verified_step(node, types, completed)

    def _input(self, node: Node) -> _Step | None:
        name = node.given["name"]
        type_ = self._inputs.get(name)
        if type_ is None:
            help = self._hints.help(name)
            span = self._source.span(node.start, node.end)
            self._findings.append(
                LOW02.at(span, f"no input {backquote(name)} was given", help=help)
            )
            return None
        return self._verified_step(node, (), attributes({"name": name}), type_)

    def _literal(self, node: Node, dtype: str) -> _Step | None:
        array = literal_array(node.given["data"], GRAPH_TYPES[dtype])
        if array is None or array.size == 0:
            span = self._source.span(node.start, node.end)
            text = backquote(self._source.text[node.start : node.end])
            problem = _literal_problem(node.given["data"], dtype)
            self._findings.append(LOW04.at(span, f"the literal {text} {problem}"))
            return None
        given = {"data": Literal(array), "dtype": Word(dtype), "shape": array.shape}
        return self._verified_step(node, (), attributes(given), TensorType(dtype, array.shape))

    def _verified_step(
        self,
        node: Node,
        types: tuple[TensorType, ...],
        completed: Attributes,
        type_: TensorType | None = None,
    ) -> _Step | None:
        """The node, if no rule of the verifier speaks against it."""
        spec = OPS[node.opcode]
        result = type_ or spec.infer(types, completed) or TensorType(types[0].dtype)
        verdict = verdict_of(OperationFacts(node.opcode, spec, types, completed, result, "core-v1"))
        errors = [(rule, message) for rule, message in verdict if rule.severity == "error"]
        span = self._source.span(node.start, node.end)
        self._findings += [rule.at(span, message) for rule, message in errors]
        return None if errors else _Step(completed, result)


def _operands_of_result_type(node: Node) -> tuple[int, ...]:
    """The operands that have the element type of the result."""
    return node.operands[:1] if node.opcode == "Gather" else node.operands


def _literal_problem(data: object, dtype: str) -> str:
    """Why numbers are no tensor of an element type."""
    array = literal_array(data, GRAPH_TYPES["f64"])
    if array is None:
        return "has rows of different lengths"
    return f"has a value that is no `{dtype}`" if array.size else "is empty"


def _holds_float(data: Any) -> bool:  # noqa: ANN401 - a number, or tuples of them
    if isinstance(data, tuple):
        return any(_holds_float(item) for item in data)
    return isinstance(data, float)


def _complete_attributes(node: Node, rank: int) -> dict[str, Any]:
    """The attributes, with what follows from the rank of the operand."""
    usual: dict[str, tuple[int, ...]] = {
        "permutation": tuple(reversed(range(rank))),
        "steps": (1,) * rank,
    }
    return {name: usual[name] if value is None else value for name, value in node.given.items()}


def _emit(nodes: Sequence[Node], steps: Sequence[_Step]) -> Module:
    """Inputs first, then the rest in the order in which it was read."""
    order = sorted(range(len(nodes)), key=lambda index: nodes[index].opcode != "Input")
    ids = {index: value for value, index in enumerate(order)}
    operations = tuple(
        CoreOperation(
            ids[index],
            nodes[index].opcode,
            tuple(ids[operand] for operand in nodes[index].operands),
            steps[index].attributes,
            steps[index].type,
        )
        for index in order
    )
    return Module(operations, (ids[len(nodes) - 1],))
