"""BIN01-BIN05: two tensors element by element."""

from __future__ import annotations

from collections.abc import Iterator

from nacre.base.excerpt import backquote
from nacre.base.rules import declare
from nacre.base.suggest import did_you_mean
from nacre.core.module import Shape
from nacre.core.rules.facts import OperationFacts, operation_rule
from nacre.core.rules.signature import shape_text
from nacre.core.specs import CLASS_WORDS, CLASSES

_BINARY = "Binary operations"
V1_OPERATIONS = ("Add", "Sub", "Mul")


@operation_rule("BIN01", "binary-operation", _BINARY, "BinOp")
def binary_operation(facts: OperationFacts) -> Iterator[str]:
    """The `op` of a BinOp is not one of the profile's: Add, Sub and Mul in `core-v1`.

    `Div` is not part of Core v1.
    """
    word, allowed = facts.attributes.get("op"), _operations(facts)
    if word in allowed:
        return
    hint = did_you_mean(str(word), allowed)
    expected = ", ".join(f"`{name}`" for name in allowed)
    yield (
        f"{backquote(str(word))} is no operation of `BinOp` in `{facts.profile}`, "
        f"expected one of {expected}{'; ' + hint if hint else ''}"
    )


def _operations(facts: OperationFacts) -> tuple[str, ...]:
    if facts.profile == "core-v1":
        return V1_OPERATIONS
    spec = facts.spec.attribute("op")
    return spec.choices if spec is not None else V1_OPERATIONS


@operation_rule("BIN02", "binary-types", _BINARY, "BinOp")
def binary_types(facts: OperationFacts) -> Iterator[str]:
    """The operands of a BinOp differ in element type, or have one that it does not compute with.

    There is no arithmetic on `bool`; And, Or and Xor are for `bool` and integers, shifts for
    integers.
    """
    lhs, rhs = facts.types
    op = facts.attributes.get("op")
    accepted = facts.spec.accepted_types(0, op)
    if lhs.dtype != rhs.dtype:
        yield f"the operands have the types `{lhs.dtype}` and `{rhs.dtype}`, expected one type"
    elif lhs.dtype not in CLASSES[accepted]:
        yield f"`{op}` of `{lhs.dtype}`, expected {CLASS_WORDS[accepted]}"


@operation_rule("BIN03", "broadcast", _BINARY, "BinOp")
def broadcast(facts: OperationFacts) -> Iterator[str]:
    """The shapes of the operands of a BinOp do not broadcast.

    Shapes are aligned at their ends; two sizes go together if they are equal or one of them is 1.
    """
    lhs, rhs = (type_.shape for type_ in facts.types)
    failing = broadcast_failure(lhs, rhs)
    if failing is not None:
        yield f"shapes {shape_text(lhs)} and {shape_text(rhs)} do not broadcast: {failing}"


def broadcast_failure(lhs: Shape, rhs: Shape) -> str | None:
    """The first dimension of the aligned shapes that does not fit, and both extents."""
    rank = max(len(lhs), len(rhs))
    pairs = zip((1,) * (rank - len(lhs)) + lhs, (1,) * (rank - len(rhs)) + rhs, strict=True)
    for axis, (left, right) in enumerate(pairs):
        if left != right and left != 1 and right != 1:
            return f"dimension {axis} is {left} and {right}"
    return None


BIN04 = declare(
    "BIN04", "scalar-broadcast", f"Core IR / {_BINARY}",
    """
    A scalar, whose shape is `[]`, broadcasts to any shape.
    """, behaviour=True, language="Core IR")  # fmt: skip
BIN05 = declare(
    "BIN05", "subtraction-order", f"Core IR / {_BINARY}",
    """
    Nothing changes the order of the operands of `Sub`.
    """, behaviour=True, language="Core IR")  # fmt: skip
