"""What the dialect asks of its operations: upstream's tool refuses what we refuse."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import pytest

from nacre import nem
from nacre.base.diagnostics import InputError
from nacre.nem.mlir.irdl import irdl_text
from nacre.nem.mlir.kinds import ATTRIBUTES, TYPES, Kind
from nacre.nem.mlir.signatures import SIGNATURES, Entry, Part, Signature, attribute_kind
from nacre.nem.spec.opcodes import OPCODES
from tests.nem.mlir.upstream import needs_mlir_opt, run_mlir_opt

pytest.importorskip("xdsl")

ALIEN = "1.0 : f32"  # of no kind that the dialect has
SAMPLES = {"string": '"x"', "integer": "1", "array": "[]", "unit": "unit"}
WORDS = {  # where a string or an array must say more than IRDL can ask for
    ("task", "opcode"): '"relu"',
    ("float", "digits"): '"1.0"',
}


def sample(kind: Kind, owner: str = "", name: str = "") -> str:
    """An attribute of a kind."""
    if (owner, name) in WORDS:
        return WORDS[owner, name]
    if kind.builtins:
        return SAMPLES[kind.builtins[0]]
    if kind.words or kind.names:
        return f'"{kind.words[0]}"' if kind.words else f'#nem.name<"{kind.names[0]}">'
    return attribute(kind.own[0])


def attribute(name: str, wrong: int | None = None) -> str:
    """An attribute of the dialect; one of its parameters may be of another kind."""
    given = [sample(kind, name, parameter) for parameter, kind in ATTRIBUTES[name]]
    if wrong is not None:
        given[wrong] = ALIEN
    return f"#nem.{name}<{', '.join(given)}>"


def value(entry: Entry, signature: Signature) -> str:
    """A value for an attribute of an operation, which our own verifier takes too."""
    row = OPCODES.get(signature.name)
    spec = row.attribute(entry.name) if row is not None else None
    if spec is not None and spec.type == "int_list":
        return f"[{', '.join(['1'] * (spec.length or 1))}]"
    return (
        "true"
        if spec is not None and spec.type == "bool"
        else sample(entry.kind, signature.name, entry.name)
    )


def operation(
    signature: Signature,
    *,
    attributes: dict[str, str] | None = None,
    operands: Sequence[str] | None = None,
    results: Sequence[str] | None = None,
    body: str = "",
    more: str = "",
) -> str:
    """A module with one operation, whose operands are looked up."""
    if attributes is None:
        attributes = required(signature)
    if operands is None:
        operands = given_operands(signature)
    if results is None:
        results = [part.types[0] for part in signature.results if part.arity == "single"]
    lines = [
        f'%{at} = "nem.lookup"() {{name = "n{at}"}} : () -> !nem.{type_}'
        for at, type_ in enumerate(operands)
    ]
    names = ", ".join(f"%{at}" for at in range(len(operands)))
    types = ", ".join(f"!nem.{type_}" for type_ in operands)
    out = ", ".join(f"!nem.{type_}" for type_ in results)
    bound = "%r = " if results else ""
    region = f' ({{\n{body}"omp.terminator"() : () -> ()\n}})' if signature.has_body else ""
    listed = ", ".join(
        [*(f"{name} = {text}" for name, text in attributes.items()), *([more] if more else [])]
    )
    head = f'{bound}"nem.{signature.name}"({names}){region} {{{listed}}}'
    return "\n".join(["module {", *lines, f"{head} : ({types}) -> ({out})", "}"])


def given_operands(signature: Signature) -> list[str]:
    return [part.types[0] for part in signature.operands if is_given(part, signature)]


def is_given(part: Part, signature: Signature) -> bool:
    """Of variadic operands one stands for all; of a task's dependences none."""
    return part.arity == "single" or (part.arity == "variadic" and part.name != "deps")


def required(signature: Signature) -> dict[str, str]:
    found = {
        entry.name: value(entry, signature) for entry in signature.attributes if entry.required
    }
    if signature.has_segments:
        sizes = (str(int(is_given(part, signature))) for part in signature.operands)
        found["operand_segment_sizes"] = f"array<i32: {', '.join(sizes)}>"
    return found


def broken(signature: Signature) -> Iterator[str]:
    """Modules that break each of the operation's constraints, one a module."""
    fine = required(signature)
    for name in fine:
        yield operation(signature, attributes={k: v for k, v in fine.items() if k != name})
        yield operation(signature, attributes={**fine, name: ALIEN})
    for entry in signature.attributes:
        if entry.required and (entry.kind.words or entry.kind.names):
            other = '"other"' if entry.kind.words else '#nem.name<"other">'
            yield operation(signature, attributes={**fine, entry.name: other})
    operands = given_operands(signature)
    for at, type_ in enumerate(operands):
        wrong = TYPES[(TYPES.index(type_) + 1) % len(TYPES)]
        yield operation(signature, operands=[*operands[:at], wrong, *operands[at + 1 :]])
    if any(part.arity == "single" for part in signature.operands):
        yield operation(signature, operands=operands[1:])
    if not signature.operands:
        yield operation(signature, operands=["token"])
    elif not any(part.name in ("deps", "tokens") for part in signature.operands):
        yield operation(signature, operands=[*operands, operands[-1]])
    if not signature.results:
        yield operation(signature, results=["token"])
    elif signature.name != "lookup":
        yield operation(
            signature, results=["token" if "token" not in signature.results[0].types else "region"]
        )


def refused_by_us(text: str) -> bool:
    try:
        nem.from_mlir(text)
    except InputError as error:
        return {d.code for d in error.diagnostics} <= {"MLR02", "MLR03"}
    return False


SIGNED = pytest.mark.parametrize("name", SIGNATURES)


@pytest.mark.sampled(8)
@SIGNED
def test_we_refuse_every_broken_operation(name: str) -> None:
    taken = [text for text in broken(SIGNATURES[name]) if not refused_by_us(text)]
    assert taken == []


def refusals(texts: Sequence[str]) -> list[bool]:
    """Which of several modules upstream's tool refuses."""
    done = run_mlir_opt("\n// -----\n".join(texts), "--split-input-file")
    found = re.findall(
        r"^within split at <stdin>:(\d+) offset .*: error", done.stderr, re.MULTILINE
    )
    starts, at = [], 1
    for text in texts:
        starts.append(at)
        at += text.count("\n") + 2
    begun = {int(line) for line in found}
    # A part begins behind the mark before it, on the line of the mark.
    return [start in begun or start - 1 in begun for start in starts]


@needs_mlir_opt
@pytest.mark.sampled(12)
@SIGNED
def test_mlir_opt_refuses_every_broken_operation_and_takes_it_as_it_should_be(name: str) -> None:
    wrong = list(broken(SIGNATURES[name]))
    assert wrong
    found = refusals([operation(SIGNATURES[name]), *wrong])
    assert [text for text, is_refused in zip(wrong, found[1:], strict=True) if not is_refused] == []
    assert not found[0]


def with_attribute(text: str) -> str:
    return f"module attributes {{nem.x = {text}}} {{\n}}"


@needs_mlir_opt
def test_mlir_opt_refuses_every_broken_attribute_and_takes_the_others() -> None:
    fine = [with_attribute(attribute(name)) for name in ATTRIBUTES]
    wrong = [
        with_attribute(attribute(name, at))
        for name, parameters in ATTRIBUTES.items()
        for at in range(len(parameters))
    ]
    assert refusals([*fine, *wrong]) == [False] * len(fine) + [True] * len(wrong)


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_we_refuse_every_broken_attribute(name: str) -> None:
    for at in range(len(ATTRIBUTES[name])):
        assert refused_by_us(with_attribute(attribute(name, at)))


def test_the_dialect_has_an_operation_for_every_opcode() -> None:
    assert set(OPCODES) <= set(SIGNATURES)
    text = irdl_text()
    for name, row in OPCODES.items():
        assert f"irdl.operation @{name} {{" in text
        given = {entry.name: entry for entry in SIGNATURES[name].attributes}
        for spec in row.attributes:
            assert given[spec.name] == Entry(spec.name, attribute_kind(spec), spec.required)


def test_symbols_of_the_irdl_file_are_distinct() -> None:
    names = re.findall(r"irdl\.(?:type|attribute|operation) @(\w+)", irdl_text())
    assert len(names) == len(set(names)) == len(TYPES) + len(ATTRIBUTES) + len(SIGNATURES)
