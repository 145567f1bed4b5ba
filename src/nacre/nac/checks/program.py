"""Instructions against the tables: ids, signatures, constants, operands, inputs, outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from nacre.base.diagnostics import Diagnostic
from nacre.base.excerpt import backquote
from nacre.nac.checks.examination import Examination
from nacre.nac.format.positions import Position
from nacre.nac.format.values import Instruction
from nacre.nac.rules.container import NAC15
from nacre.nac.rules.program import (
    NAC21,
    NAC23,
    NAC24,
    NAC25,
    NAC26,
    NAC27,
    NAC28,
    NAC29,
    NAC30,
    NAC31,
)
from nacre.nac.spec.constants import FITS, TAGS
from nacre.nac.spec.instructions import (
    CONSTANT_CODES,
    FINAL,
    INPUT,
    LIFTED,
    MOST_INSTRUCTIONS,
    OUTPUT,
    PARAMETER,
    STATE,
    TENSOR_CODES,
    USER,
)

_INPUT_COUNT_AT = 5


def operations(case: Examination) -> Iterator[Diagnostic]:
    """Every operation has a name."""
    if not case.has("OPS ", "CMAP"):
        return
    names = case.file.name_of
    for index, instruction in enumerate(case.file.instructions):
        if not instruction.is_system and instruction.op not in names:
            message = f"operation {instruction.op} is no standard one and has no name in CMAP"
            yield case.at(NAC21, case.position("OPS ", index), message)


def constants(case: Examination) -> Iterator[Diagnostic]:
    """Field C has an id for every 0 of field D, and each is of the kind that its code says."""
    if not case.has("OPS ", "CNST", "PERM"):
        return
    for index, instruction in enumerate(case.file.instructions):
        if not instruction.is_system:
            yield from _constants_of(case, index, instruction)


def _constants_of(case: Examination, index: int, instruction: Instruction) -> Iterator[Diagnostic]:
    place, ids = case.position("OPS ", index), instruction.c[1:]
    zeros = [at for at, offset in enumerate(instruction.d) if offset == 0]
    if len(ids) != len(zeros):
        message = f"field C has {len(ids)} constants, field D asks for {len(zeros)}"
        yield case.at(NAC23, place, message)
        return
    signature = case.file.signature_of.get(instruction.variant, "")
    for id_, at in zip(ids, zeros, strict=True):
        constant = case.file.constant_of.get(id_)
        if constant is None:
            yield case.at(NAC24, place, f"constant {id_} is not in CNST")
            continue
        accepted = FITS.get(signature[at])
        if accepted is not None and constant.tag not in accepted:
            kind, code = TAGS[constant.tag].name, signature[at]
            message = f"argument {at} is {kind}, its code `{code}` says {CONSTANT_CODES[code]}"
            yield case.at(NAC26, place, message)


def codes(case: Examination) -> Iterator[Diagnostic]:
    """Signatures are made of the codes that the format has."""
    for index, named in enumerate(case.file.signatures):
        odd = [c for c in named.text if c not in TENSOR_CODES and c not in CONSTANT_CODES]
        if odd:
            message = f"signature {backquote(named.text)} has the code {backquote(odd[0])}"
            yield case.at(NAC26, case.position("PERM", index), message)


def operands(case: Examination) -> Iterator[Diagnostic]:
    """Operands are earlier results that the instruction can see."""
    if not case.has("OPS "):
        return
    instructions, blocks = case.file.instructions, case.blocks
    for index, offsets in enumerate(case.operands):
        is_regular = not instructions[index].is_system
        for offset in offsets:
            if offset == 0 and is_regular:
                continue
            target, place = index + offset, case.position("OPS ", index)
            if offset >= 0 or target < 0:
                message = f"an operand lies at offset {offset}, expected {-index} to -1"
                yield case.at(NAC25, place, message)
            elif instructions[target].op == OUTPUT:
                message = f"an operand is instruction {target}, which is an output"
                yield case.at(NAC25, place, message)
            elif not blocks.may_use(index, target):
                message = f"an operand is instruction {target}, which lies in a branch"
                yield case.at(NAC31, place, message)


def inputs(case: Examination) -> Iterator[Diagnostic]:
    """Inputs are counted, named, and what they load is there."""
    if not case.has("OPS ", "DATA"):
        return
    instructions = case.file.instructions
    users = [i for i, x in enumerate(instructions) if (x.op, x.variant) == (INPUT, USER)]
    counted = case.file.header.inputs
    if counted != len(users):
        message = f"the header counts {counted} inputs, the program has {len(users)}"
        yield case.at(NAC27, Position(_INPUT_COUNT_AT), message)
    named = {entry.id for entry in case.file.data.inputs if entry.text}
    for index in users:
        if index not in named:
            yield case.at(NAC28, case.position("OPS ", index), "the input has no name in DATA")
    for record, entry in enumerate(case.file.data.inputs):
        loads = entry.id < len(instructions) and instructions[entry.id]
        if not loads or loads.op != INPUT or loads.variant not in (USER, STATE, LIFTED):
            message = (
                f"{backquote(entry.text)} names instruction {entry.id}, which is no user input"
            )
            yield case.at(NAC28, case.position("DATA", record, "input"), message)


def parameters(case: Examination) -> Iterator[Diagnostic]:
    """Parameters and lifted constants that are loaded are there."""
    if not case.has("OPS ", "DATA", "CNST"):
        return
    data, header = case.file.data, case.file.header
    names = {entry.id for entry in data.parameters}
    is_whole = header.is_internal and case.has("DATA tensor")
    tensors = {tensor.id for tensor in data.tensors} if is_whole else names
    for index, instruction in enumerate(case.file.instructions):
        if instruction.op != INPUT or not instruction.c:
            continue
        id_, place = instruction.c[1], case.position("OPS ", index)
        if instruction.variant == PARAMETER and id_ not in names:
            yield case.at(NAC30, place, f"parameter {id_} has no name in DATA")
        elif instruction.variant == PARAMETER and id_ not in tensors:
            yield case.at(NAC30, place, f"parameter {id_} has no tensor in DATA")
        elif instruction.variant == LIFTED and id_ not in case.file.constant_of:
            yield case.at(NAC24, place, f"constant {id_} is not in CNST")
    for record, tensor in enumerate(data.tensors):
        if tensor.id not in names:
            message = f"tensor {tensor.id} has no name"
            yield case.at(NAC30, case.position("DATA", record, "tensor"), message)


def outputs(case: Examination) -> Iterator[Diagnostic]:
    """The program ends in its one output."""
    if not case.has("OPS ") or "OPS " not in case.file.sections:
        return
    instructions = case.file.instructions
    if len(instructions) > MOST_INSTRUCTIONS:
        message = (
            f"the program has {len(instructions):,} instructions, at most {MOST_INSTRUCTIONS:,}"
        )
        yield case.at(NAC15, case.position("OPS ", 0), message)
    finals = [i for i, x in enumerate(instructions) if (x.op, x.variant) == (OUTPUT, FINAL)]
    if not finals:
        yield case.at(NAC29, case.position("OPS ", 0), "the program has no <OUTPUT B=0>")
    for index in finals:
        if index != len(instructions) - 1:
            message = f"<OUTPUT B=0> stands before {len(instructions) - 1 - index} instructions"
            yield case.at(NAC29, case.position("OPS ", index), f"{message}, expected at the end")


def branches(case: Examination) -> Iterator[Diagnostic]:
    """Branches lie inside the program and end in their outputs."""
    if case.has("OPS "):
        for index, problem in case.blocks.problems:
            yield case.at(NAC31, case.position("OPS ", index), problem)


def states(case: Examination) -> Iterator[Diagnostic]:
    """A state is loaded by one instruction: its value is one during a run."""
    if not case.has("OPS "):
        return
    loads = Counter(
        x.c[1] for x in case.file.instructions if (x.op, x.variant) == (INPUT, STATE) and x.c
    )
    for index, instruction in enumerate(case.file.instructions):
        is_state = (instruction.op, instruction.variant) == (INPUT, STATE)
        if is_state and loads[instruction.c[1]] > 1:
            message = (
                f"state {instruction.c[1]} is loaded by {loads[instruction.c[1]]} instructions"
            )
            yield case.at(NAC28, case.position("OPS ", index), message)
