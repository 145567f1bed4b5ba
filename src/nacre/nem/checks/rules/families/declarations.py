"""TYP14, TYP15, TYP18, TYP21: what families bind, and to which types."""

from __future__ import annotations

from collections.abc import Iterator

from nacre.base.diagnostics import Diagnostic, Related
from nacre.base.excerpt import backquote
from nacre.base.fixes import respelling_fix
from nacre.base.rules import rule
from nacre.base.suggest import did_you_mean, nearest
from nacre.nem.checks.family_types import type_problem
from nacre.nem.model.families import Family, governs, is_bound_type
from nacre.nem.spec.opcodes import OPCODES, Opcode
from nacre.nem.syntax.ast import Node, OperandBinding

_MOST_LISTED = 6  # opcodes of a family, in a line
_REGISTRY = "Type Family Conformance Registry / Classification"
_MATCHING = "Opcode Type Legality and Type Families / Type Family Matching Rule"
_GRAMMAR = "Formal Language Definition / Type Family Grammar"


@rule("TYP14", "conformance-given-twice", _REGISTRY)
def conformance_given_twice(family: Family) -> Iterator[Diagnostic]:
    """A variant gives one combination of types two conformance classes, or is declared twice.

    Bad (-) and good (+):

          type_family relu<T: {f16}> {
              input: T
              output: T
              variants:
        -         default: {} conformance: { MUST <f16> MAY <f16> }
        +         default: {} conformance: { MAY <f16> }
          }
    """
    seen: dict[tuple[str, ...], Node] = {}
    declared: dict[str, Node] = {}
    for variant in family.node.variants:
        name = variant.name
        if (earlier := declared.setdefault(name.name, name)) is not name:
            yield conformance_given_twice.at(
                family.source.span(name.start, name.end),
                f"variant {backquote(name.name)} is declared twice",
                related=(Related(family.source.span(earlier.start, earlier.end), "first here"),),
                help="give it another name, or all its types in one conformance list",
            )
            continue
        for entry in variant.conformance:
            types = tuple(t.name for t in entry.types)
            before = seen.setdefault((variant.name.name, *types), entry)
            if before is not entry:
                combination = f"<{', '.join(types)}>" if types else "the family"
                message = f"`{variant.name.name}` gives {combination} a second conformance class"
                first = family.source.span(before.start, before.end)
                yield conformance_given_twice.at(
                    family.source.span(entry.start, entry.end),
                    message,
                    related=(Related(first, "the first one"),),
                )


@rule("TYP15", "family-type-not-declared", _GRAMMAR)
def family_type_not_declared(family: Family) -> Iterator[Diagnostic]:
    """A family uses a type outside its parameters' sets, or a type variable it does not declare.

    Bad (-) and good (+):

          type_family relu<T: {f16}> {
              input: T
        -     output: U
        +     output: T
              variants:
                  default: {} conformance: { MAY <f16> }
          }
    """
    node = family.node
    bindings = [*node.operands, *(o for variant in node.variants for o in variant.operands)]
    for binding in bindings:
        if not is_bound_type(binding.type.name, node):
            yield _unbound(family, binding)
    for entry in (entry for variant in node.variants for entry in variant.conformance):
        span = family.source.span(entry.start, entry.end)
        if len(entry.types) != len(node.params):
            wanted = _count_text(len(node.params), "type parameter")
            written = _count_text(len(entry.types), "type")
            message = f"`{family.name}` has {wanted}, found {written}"
            yield family_type_not_declared.at(span, message)
            continue
        for type_, parameter in zip(entry.types, node.params, strict=True):
            allowed = [t.name for t in parameter.types]
            if type_.name not in allowed:
                yield family_type_not_declared.at(
                    family.source.span(type_.start, type_.end),
                    f"`{type_.name}` is not in the set of `{parameter.name.name}`",
                    help=f"`{parameter.name.name}` is one of {', '.join(allowed)}",
                )


def _count_text(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _unbound(family: Family, binding: OperandBinding) -> Diagnostic:
    return family_type_not_declared.at(
        family.source.span(binding.type.start, binding.type.end),
        f"{backquote(binding.type.name)} is no element type and no parameter of `{family.name}`",
        help="declare it: `<T: {f16, f32}>`",
    )


@rule("TYP18", "family-without-opcode", _GRAMMAR, severity="info")
def family_without_opcode(family: Family) -> Iterator[Diagnostic]:
    """A family governs no opcode.

    The first part of a family's name is an opcode, or one of the domains eltwise, view, norm,
    softmax; `gemm` also stands for matmul.

    Bad (-) and good (+):

        - type_family frobnicate<T: {f16}> {
        + type_family relu.fast<T: {f16}> {
              input: T
              output: T
              variants:
                  default: {} conformance: { MAY <f16> }
          }
    """
    if not any(governs(family.name, opcode) for opcode in OPCODES.values()):
        yield family_without_opcode.at(
            family.span,
            f"type family `{family.name}` governs no opcode; nothing will use it",
            help=_naming(family.name),
        )


def _naming(name: str) -> str:
    """How a family is named; what was meant, where that can be told."""
    domains = sorted({domain for opcode in OPCODES.values() for domain in opcode.family_domains})
    meant = nearest(name.partition(".")[0], domains)
    rule_ = "the name begins with an opcode, or one of eltwise, view, norm, softmax: `relu.fast`"
    return rule_ if meant is None else f"did you mean `{meant}`? {rule_}"


@rule(
    "TYP21",
    "types-without-meaning",
    _MATCHING,
    fix="writes the word that was meant, where it can be one only",
)
def types_without_meaning(family: Family) -> Iterator[Diagnostic]:
    """A family binds what is no operand of its opcodes, or types that they cannot compute with.

    Every operand that an opcode requires has one type, and that of the input where the family
    leaves it out; positions and indices may go without.
    Views, pooling and reductions keep the element type; positions and indices are integers;
    `quantize` goes from floats to integers, `dequantize` back. Elementwise operations, softmax and
    norms take floats, or integers of one type; other mixtures need `quant = required`, for then
    they are computed on real values.

    Bad (-) and good (+):

          type_family relu.mixed {
              input: i8
              output: f16
        +     quant = required
              variants:
                  default: {} conformance: { MAY }
          }
    """
    opcodes = [opcode for opcode in OPCODES.values() if governs(family.name, opcode)]
    if not opcodes:  # TYP18
        return
    unknown = list(_unknown_operands(family, opcodes))
    yield from unknown
    # Which operands or which types it means is not known.
    if unknown or any(family_type_not_declared(family)):
        return
    for instance in family.instances.values():
        for opcode in opcodes:
            problem = type_problem(opcode, instance)
            if problem is not None:
                yield types_without_meaning.at(family.span, f"`{instance.id}`: {problem}")
                return


def _unknown_operands(family: Family, opcodes: list[Opcode]) -> Iterator[Diagnostic]:
    node = family.node
    names = ("input", "output", *(o.name for opcode in opcodes for o in opcode.operands))
    known = [
        n for n in dict.fromkeys(names) if any(opcode.operands_bound_to(n) for opcode in opcodes)
    ]
    for block in (node.operands, *(variant.operands for variant in node.variants)):
        seen: set[str] = set()
        for binding in block:
            name = binding.operand.name
            span = family.source.span(binding.operand.start, binding.operand.end)
            if not any(opcode.operands_bound_to(name) for opcode in opcodes):
                message = f"{backquote(name)} is no operand of {_names(opcodes)}"
                fix = respelling_fix(span, name, known)
                yield types_without_meaning.at(span, message, help=_operands(name, known), fix=fix)
            elif name in seen:
                yield types_without_meaning.at(span, f"operand `{name}` is bound twice")
            seen.add(name)


def _names(opcodes: list[Opcode]) -> str:
    listed = [f"`{opcode.name}`" for opcode in opcodes[:_MOST_LISTED]]
    more = len(opcodes) - len(listed)
    if more:
        return f"{', '.join(listed)} and {more} more opcodes"
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} or {listed[-1]}"


def _operands(name: str, known: list[str]) -> str:
    listed = f"operands are {', '.join(f'`{one}`' for one in known)}"
    hint = did_you_mean(name, known) if len(name) > 1 or name.swapcase() in known else None
    return listed if hint is None else f"{hint} {listed}"
