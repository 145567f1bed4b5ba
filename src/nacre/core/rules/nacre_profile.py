"""NCR01-NCR03: the operations that `nacre-1` has beyond Core v1, judged by their rows."""

from __future__ import annotations

from collections.abc import Iterator

from nacre.base.elements import GRAPH_TYPES
from nacre.base.excerpt import backquote
from nacre.base.suggest import did_you_mean
from nacre.core.ops import OPS
from nacre.core.rules.facts import OperationFacts, operation_rule
from nacre.core.specs import CLASS_WORDS, CLASSES
from nacre.kernels.interface.fitting import Fitting
from nacre.kernels.registry import PRIMITIVES

_FURTHER = "Profile nacre-1"
_OPCODES = tuple(name for name, spec in OPS.items() if spec.profile == "nacre-1")


@operation_rule("NCR01", "operand-types", _FURTHER, *_OPCODES)
def operand_types(facts: OperationFacts) -> Iterator[str]:
    """An operand of an operation of `nacre-1` has an element type that it is not for."""
    spec, op = facts.spec, facts.attributes.get("op")
    first: str | None = None  # the type that `same` refers to: of the last operand with a class
    for index, type_ in enumerate(facts.types):
        name = spec.operands[min(index, len(spec.operands) - 1)]
        accepted = spec.accepted_types(index, op)
        if spec.most is None and index > 0 and "opaque" not in spec.traits:
            accepted = "same"
        if accepted == "same":
            if type_.dtype != first:
                yield f"operand `{name}` has the type `{type_.dtype}`, expected `{first}`"
        elif type_.dtype not in CLASSES[accepted]:
            what = f"`{facts.opcode}`"
            what = f"`{op}` of {what}" if index == 0 and op in spec.by_op else what
            expected = CLASS_WORDS[accepted]
            yield f"operand `{name}` of {what} has the type `{type_.dtype}`, expected {expected}"
        if accepted in ("any", "number", "float") and first is None:
            first = type_.dtype
    if spec.problem is not None:
        problem = spec.problem([t.dtype for t in facts.types], spec.with_defaults(facts.attributes))
        if problem is not None:
            yield f"`{facts.opcode}`: {problem}"


@operation_rule("NCR02", "operands-fit", _FURTHER, *_OPCODES)
def operands_fit(facts: OperationFacts) -> Iterator[str]:
    """Shapes and attributes of an operation of `nacre-1` do not go together."""
    if facts.spec.primitive is None or next(attribute_words(facts), None) is not None:
        return
    shape = PRIMITIVES[facts.spec.primitive].shape
    if isinstance(shape, Fitting):
        reason = shape.reason(
            [t.shape for t in facts.types], facts.spec.with_defaults(facts.attributes)
        )
        if reason is not None:
            yield f"`{facts.opcode}`: {reason}"


@operation_rule("NCR03", "attribute-word", _FURTHER, *_OPCODES)
def attribute_word(facts: OperationFacts) -> Iterator[str]:
    """A word that an operation of `nacre-1` does not know, or an element type that is none."""
    yield from attribute_words(facts)


def attribute_words(facts: OperationFacts) -> Iterator[str]:
    """What is wrong with words."""
    for spec in facts.spec.attributes:
        value = facts.attributes.get(spec.name)
        if value is None:
            continue
        known = tuple(GRAPH_TYPES) if spec.kind == "dtype" else spec.choices
        if spec.kind in ("word", "dtype") and value not in known:
            hint = did_you_mean(str(value), known)
            expected = ", ".join(f"`{word}`" for word in known)
            message = f"{backquote(str(value))} is no `{spec.name}` of `{facts.opcode}`"
            yield f"{message}, expected one of {expected}{'; ' + hint if hint else ''}"
