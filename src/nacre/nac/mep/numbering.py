"""Slots, constants and labels of the text of a plan get their numbers."""

from __future__ import annotations

from dataclasses import dataclass, field

from nacre.base.diagnostics import Diagnostic
from nacre.base.digits import is_digits
from nacre.base.excerpt import backquote
from nacre.base.source import Source
from nacre.base.suggest import did_you_mean
from nacre.nac.format.values import Constant, Plan
from nacre.nac.mep.coding import Field, Step, encode_step
from nacre.nac.mep.operands import MOST_ID, Instruction, Label, NamedOperand
from nacre.nac.mep.table import SLOTS
from nacre.nac.rules.plans import NAC81, NAC83

MOST_FINDINGS = 100


@dataclass
class Assembly:
    """What has been read so far."""

    source: Source
    findings: list[Diagnostic] = field(default_factory=list)
    steps: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)  # the instruction that follows
    given: dict[int, Constant] = field(default_factory=dict)  # by the id that the text says
    named: dict[str, Constant] = field(default_factory=dict)  # ids come at the end


class NumberAllocator:
    """Gives slots, constants and labels their numbers."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._slots: dict[str, int] = {}
        taken = {o for step in assembly.steps for o in _slot_numbers(step)}
        if any(o.kind == "optional_out" for step in assembly.steps for o in step.row.operands):
            taken.add(0)  # which stands for none there
        self._free_slots = iter([n for n in range(SLOTS) if n not in taken])
        self._free_ids = (n for n in range(MOST_ID + 1) if n not in assembly.given)
        self._pool = list(assembly.given.values())
        self._ids: dict[object, int] = {}

    def plan(self) -> Plan:
        """The plan; findings go to the assembly."""
        for name, value in self._assembly.named.items():
            self._ids[f"${name}"] = self._constant_index(value)
        steps = [self._step(written) for written in self._assembly.steps]
        starts = [0]
        for step in steps:
            starts.append(starts[-1] + step.size)
        bytecode = []
        for index, (step, written) in enumerate(zip(steps, self._assembly.steps, strict=True)):
            fields = [
                self._jump(operand, starts, index) if isinstance(operand, Label) else number
                for operand, number in zip(written.operands, step.fields, strict=True)
            ]
            bytecode.append(encode_step(Step(step.row, tuple(fields))))
        return Plan(b"".join(bytecode), tuple(self._pool))

    def _step(self, written: Instruction) -> Step:
        numbers: list[Field] = []
        for operand in written.operands:
            if isinstance(operand, tuple):
                numbers.append(tuple([self._number(one) for one in operand]))
            else:
                numbers.append(self._number(operand))
        return Step(written.row, tuple(numbers))

    def _number(self, operand: int | NamedOperand | Label | Constant) -> int:
        if isinstance(operand, int):
            return operand
        if isinstance(operand, Constant):
            return self._constant_index(operand)
        if isinstance(operand, Label):
            return 0
        return self._constant(operand) if operand.name[0] == "$" else self._slot(operand)

    def _slot(self, named: NamedOperand) -> int:
        if named.name not in self._slots:
            number = next(self._free_slots, None)
            if number is None:
                message = f"{backquote('%' + named.name)} is one slot too many, at most {SLOTS}"
                self._report(named, message)
                return 0
            self._slots[named.name] = number
        return self._slots[named.name]

    def _constant(self, named: NamedOperand) -> int:
        name = named.name[1:]
        if is_digits(name) and len(name) <= 5 and int(name) in self._assembly.given:
            return int(name)
        index = self._ids.get(named.name)
        if index is None:
            hint = did_you_mean(name, self._assembly.named)
            self._report(named, f"there is no constant {backquote(named.name)}", hint)
        return index or 0

    def _constant_index(self, literal: Constant) -> int:
        key = (literal.tag, literal.payload, literal.ignored)
        if key not in self._ids:
            id_ = next(self._free_ids, None)
            if id_ is None:
                place = self._assembly.source.span(0, 0)
                message = f"there are more than {MOST_ID + 1:,} constants"
                self._assembly.findings.append(NAC83.at(place, message))
                return 0
            self._ids[key] = id_
            self._pool.append(Constant(id_, *key))
        return self._ids[key]

    def _jump(self, label: Label, starts: list[int], index: int) -> int:
        target = self._assembly.labels.get(label.name)
        if target is None:
            hint = did_you_mean(label.name, self._assembly.labels)
            self._report(label, f"there is no label {backquote(label.name)}", hint)
            return 0
        distance = starts[target] - starts[index + 1]
        if not -32768 <= distance <= 32767:
            message = f"label {backquote(label.name)} is {distance:,} bytes away, at most 32,767"
            self._assembly.findings.append(NAC83.at(label.span, message))
            return 0
        return distance

    def _report(self, where: NamedOperand | Label, message: str, help: str | None = None) -> None:
        if len(self._assembly.findings) < MOST_FINDINGS:
            self._assembly.findings.append(NAC81.at(where.span, message, help=help))


def _slot_numbers(step: Instruction) -> list[int]:
    """Slots that the text gives by number."""
    made: list[int] = []
    for operand, value in zip(step.row.operands, step.operands, strict=True):
        if operand.kind in ("slot", "out", "optional_out", "slots", "outs"):
            values = value if isinstance(value, tuple) else (value,)
            made += [one for one in values if isinstance(one, int)]
    return made
