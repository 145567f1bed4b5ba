"""The dialect in xDSL: types, attributes and operations, made from the tables of this room.

This module needs xDSL; `nacre.nem.mlir.reading` says so where it is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, BytesAttr, DenseArrayBase, StringAttr
from xdsl.ir import Attribute, Dialect, Operation, ParametrizedAttribute, Region, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    param_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import IsTerminator, NoTerminator
from xdsl.utils.exceptions import VerifyException

from nacre.nem.mlir.fitting import misfit
from nacre.nem.mlir.kinds import ATTRIBUTES, TYPES, Kind
from nacre.nem.mlir.nodes import MalformedError, parameters, task_attributes
from nacre.nem.mlir.signatures import SEGMENTS, SIGNATURES, Part, Signature
from nacre.nem.mlir.writer import TERMINATOR
from nacre.nem.spec.opcodes import OPCODES, Opcode


def _accepts(kind: Kind, attribute: Attribute) -> bool:
    """Whether an attribute is one of those that a kind names."""
    if isinstance(attribute, BytesAttr):  # a string with bytes by their numbers
        return "string" in kind.builtins
    if attribute.name in kind.builtins or attribute.name in _full_names(kind):
        return True
    if kind.words and isinstance(attribute, StringAttr):
        return attribute.data in kind.words
    if kind.names and attribute.name == "nem.name":
        return parameters(attribute)[0].data in kind.names
    return False


@cache
def _full_names(kind: Kind) -> frozenset[str]:
    return frozenset(f"nem.{name}" for name in kind.own)


def _describe(kind: Kind) -> str:
    attributes = [f"#nem.{name}" for name in kind.own]
    words = [f'"{word}"' for word in kind.words]
    return ", ".join(
        [*kind.builtins, *attributes, *words, *(f'#nem.name<"{n}">' for n in kind.names)]
    )


def _short(name: str) -> str:
    """A name without that of the dialect."""
    return name.removeprefix("nem.")


class NemAttribute(ParametrizedAttribute):  # type: ignore[misc] # xDSL may be missing
    """An attribute of the dialect; its parameters are of the kinds that the table says."""

    def verify(self) -> None:
        """Raise where a parameter is of another kind."""
        for (name, kind), parameter in zip(
            ATTRIBUTES[_short(self.name)], self.parameters, strict=True
        ):
            if not _accepts(kind, parameter):
                expected = _describe(kind)
                raise VerifyException(
                    f"`{name}` of `#{self.name}` is {parameter}, expected {expected}"
                )


class NemOperation(IRDLOperation):  # type: ignore[misc] # xDSL may be missing
    """An operation of the dialect; the table says what it takes and gives."""

    def verify_(self) -> None:
        """Raise where something is missing, too much, or of another kind."""
        signature = self.signature
        for region in self.regions:
            verify_region(self, region)
        _verify_values("operand", signature, signature.operands, self, operand_groups(self))
        results = [list(self.results)] if signature.results else []
        _verify_values("result", signature, signature.results, self, results)
        _verify_attributes(self, signature)
        if signature.name in OPCODES:
            _verify_task(self, OPCODES[signature.name])

    @property
    def signature(self) -> Signature:
        """The row of the table."""
        return SIGNATURES[_short(self.name)]


def verify_region(op: Operation, region: Region) -> None:
    """Raise where blocks of a body take arguments, or it does not end where it is ended."""
    for block in region.blocks:
        if block.args:
            count = len(block.args)
            raise VerifyException(f"the body of `{op.name}` takes {count} arguments, expected none")
        for inner in block.ops:
            if isinstance(inner, TerminatorOp) and not _ends_body(inner, op):
                raise VerifyException(f"`{inner.name}` alone ends the body of an operation")


def _ends_body(end: TerminatorOp, op: Operation) -> bool:
    has_more = end.operands or end.results or end.regions or end.successors
    return isinstance(op, NemOperation) and end.next_op is None and not has_more


def operand_groups(op: NemOperation) -> list[list[Any]]:
    """The operands by their roles; raises VerifyException where they cannot be told apart."""
    parts, operands = op.signature.operands, list(op.operands)
    if op.signature.has_segments:
        sizes = _stated_sizes(op)
    else:
        variadic_count = len(operands) - sum(part.arity == "single" for part in parts)
        sizes = [1 if part.arity == "single" else variadic_count for part in parts]
    if len(sizes) != len(parts) or min(sizes, default=0) < 0 or sum(sizes) != len(operands):
        raise VerifyException(f"`{op.name}` does not take {len(operands)} operands as given")
    groups, done = [], 0
    for size in sizes:
        groups.append(operands[done : done + size])
        done += size
    return groups


def _stated_sizes(op: NemOperation) -> list[int]:
    sizes = op.attributes.get(SEGMENTS)
    if not isinstance(sizes, DenseArrayBase):
        raise VerifyException(f"`{op.name}` lacks `{SEGMENTS}`, an array of i32")
    return [int(size) for size in sizes.iter_values()]


def _verify_values(
    what: str,
    signature: Signature,
    parts: Sequence[Part],
    op: Operation,
    groups: Sequence[Sequence[Any]],
) -> None:
    if not parts and (op.results if what == "result" else op.operands):
        raise VerifyException(f"`{op.name}` has no {what}s")
    for part, group in zip(parts, groups, strict=True):
        is_fine = part.arity == "variadic" or len(group) <= 1
        if not is_fine or (part.arity == "single" and not group):
            raise VerifyException(f"`{op.name}` has {len(group)} {what}s `{part.name}`")
        for value in group:
            if value.type.name not in [f"nem.{name}" for name in part.types]:
                expected = " or ".join(f"!nem.{name}" for name in part.types)
                raise VerifyException(
                    f"{what} `{part.name}` of `{op.name}` is {value.type}, expected {expected}"
                )


def _verify_attributes(op: Operation, signature: Signature) -> None:
    entries = {entry.name: entry for entry in signature.attributes}
    for entry in entries.values():
        value = op.attributes.get(entry.name)
        if value is None and entry.required:
            raise VerifyException(f"`{op.name}` lacks its attribute `{entry.name}`")
        if value is not None and not _accepts(entry.kind, value):
            raise VerifyException(
                f"attribute `{entry.name}` of `{op.name}` is {value}, "
                f"expected {_describe(entry.kind)}"
            )
    for name in op.attributes:
        if name not in entries and name != SEGMENTS and "." not in name:
            raise VerifyException(f"`{op.name}` has no attribute `{name}`")


def _verify_task(op: NemOperation, row: Opcode) -> None:
    """Raise where a task does not fit its opcode: values, lengths of lists, numbers of operands."""
    sizes = [len(group) for group in operand_groups(op)]
    inputs = sum(sizes[: len(row.inputs)])
    try:
        attributes = task_attributes(row.name, op.attributes)
    except MalformedError as error:
        raise VerifyException(str(error)) from None
    wrong = misfit(row, inputs, sum(sizes[:-1]) - inputs, attributes)
    if wrong is not None:
        raise VerifyException(wrong)


def _type(name: str) -> Any:  # noqa: ANN401 - a class of xDSL
    class_ = type(
        f"{name.title()}Type", (ParametrizedAttribute, TypeAttribute), {"name": f"nem.{name}"}
    )
    return irdl_attr_definition(class_)


def _attribute(name: str, kinds: Sequence[tuple[str, Kind]]) -> Any:  # noqa: ANN401
    # Parameters must not hide what every attribute has, such as `name`.
    fields = [f"{parameter}_" for parameter, _ in kinds]
    body: dict[str, Any] = {"name": f"nem.{name}"}
    body["__annotations__"] = dict.fromkeys(fields, Attribute)
    body.update((parameter, param_def()) for parameter in fields)
    return irdl_attr_definition(type(f"{_camel(name)}Attr", (NemAttribute,), body))


def _operation(signature: Signature) -> Any:  # noqa: ANN401
    body: dict[str, Any] = {
        "name": f"nem.{signature.name}",
        "arguments": var_operand_def(),
        "outcomes": var_result_def(),
        "__doc__": signature.summary,
    }
    if signature.has_body:
        body["body"] = region_def("single_block")
        body["traits"] = traits_def(NoTerminator())
    return irdl_op_definition(type(f"{_camel(signature.name)}Op", (NemOperation,), body))


def _camel(name: str) -> str:
    return "".join(part.title() for part in name.split("_"))


@irdl_op_definition
class TerminatorOp(IRDLOperation):  # type: ignore[misc] # xDSL may be missing
    """What ends a body for upstream's tools, in both of its forms; it means nothing."""

    name = TERMINATOR
    assembly_format = "attr-dict"
    traits = traits_def(IsTerminator())


TYPE_CLASSES = {name: _type(name) for name in TYPES}
ATTRIBUTE_CLASSES = {name: _attribute(name, kinds) for name, kinds in ATTRIBUTES.items()}
OPERATION_CLASSES = {name: _operation(signature) for name, signature in SIGNATURES.items()}

Nem = Dialect(
    "nem",
    list(OPERATION_CLASSES.values()),
    [*TYPE_CLASSES.values(), *ATTRIBUTE_CLASSES.values()],
)
_Terminators = Dialect("omp", [TerminatorOp], [])


def nem_context() -> Context:
    """What a parser must know to read modules of the dialect."""
    context = Context()
    for dialect in (Builtin, Nem, _Terminators):
        context.load_dialect(dialect)
    return context
