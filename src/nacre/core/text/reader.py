"""Text to a module. A canonical line is one regular expression; others are read with care."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.excerpt import backquote
from nacre.base.source import Source
from nacre.core.module import CoreOperation, Module, SourceSpans, State, TensorType
from nacre.core.ops import SHORT_FORMS
from nacre.core.rules.text import TXT02, TXT05
from nacre.core.text.values import ValueProblem, read_attributes, read_integer, unescape
from nacre.core.values import NO_ATTRIBUTES, Attributes, Word, attributes, kind_of

_CANONICAL = re.compile(
    r"%(\d{1,18}) = (\w+) \(((?:%\d{1,18}(?:, %\d{1,18})*)?)\)( \{.*\})?"
    r" : (tensor<\w+\[[\d, ]*\]>)",
    re.ASCII,
)
_HEAD = re.compile(r"\s*%(\d{1,18})\s*=\s*(\w+)\s*", re.ASCII)
_OPERANDS = re.compile(r"\(\s*((?:%\d{1,18}\s*(?:,\s*%\d{1,18}\s*)*)?)\)\s*", re.ASCII)
_TYPE = re.compile(r"\s*:\s*tensor\s*<\s*(\w+)\s*\[([^\]]*)\]\s*>\s*(?:#.*)?", re.ASCII)
_OUTPUTS = re.compile(
    r"\s*outputs\s*:\s*((?:%\d{1,18}\s*(?:,\s*%\d{1,18}\s*)*)?)(?:#.*)?", re.ASCII
)
_STATE = re.compile(
    r'\s*state\s*:\s*"((?:[^"\\]|\\.)*)"\s*<-\s*%(\d{1,18})\s*=\s*%(\d{1,18})\s*(?:#.*)?', re.ASCII
)
_BLANK = re.compile(r"\s*(?:#.*)?")
_ID = re.compile(r"%(\d+)", re.ASCII)
_ALIASES = {name: attributes({"op": Word(name)}) for name in SHORT_FORMS}
_MOST_FINDINGS = 1000


def parse(text: str, name: str = "<text>") -> Module:
    """A module from its text; every syntax error in it is reported in one InputError."""
    if not isinstance(text, str):
        raise TypeError(f"the text of a module is {kind_of(text)}, expected a string")
    return parse_source(Source(name, text))


def parse_source(source: Source) -> Module:
    """A module from a source."""
    reader = _LineReader(source)
    reader.read()
    if reader.findings:
        raise InputError(reader.findings)
    spans = SourceSpans(source, tuple(reader.spans), reader.outputs_span, tuple(reader.state_spans))
    return Module(tuple(reader.operations), reader.outputs, tuple(reader.states), spans)


@dataclass(slots=True)
class _LineReader:
    source: Source
    operations: list[CoreOperation] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)
    outputs: tuple[int, ...] = ()
    outputs_span: tuple[int, int] = (0, 0)
    has_outputs: bool = False
    states: list[State] = field(default_factory=list)
    state_spans: list[tuple[int, int]] = field(default_factory=list)
    findings: list[Diagnostic] = field(default_factory=list)
    _types: dict[str, TensorType] = field(default_factory=dict)
    _attributes: dict[tuple[str, str], Attributes] = field(default_factory=dict)

    def read(self) -> None:
        """Every line; a wrong one is reported, and reading goes on with the next."""
        at = 0
        for line in self.source.text.split("\n"):
            start, at = at, at + len(line) + 1
            match = _CANONICAL.fullmatch(line)
            if match is not None and not self.has_outputs:
                try:
                    self._canonical(match, start)
                    continue
                except ValueProblem:
                    pass  # read again, with care, for the place
            if len(self.findings) < _MOST_FINDINGS:
                self._line(line.rstrip("\r"), start)
        if not self.has_outputs and not self.findings:
            end = len(self.source.text.rstrip())
            self._report(TXT02, "the module has no `outputs:` line", end, end)

    def _canonical(self, match: re.Match[str], start: int) -> None:
        number, opcode, operands, braces, type_text = match.groups()
        type_ = self._types.get(type_text)
        if type_ is None:
            type_ = self._types[type_text] = self._type(type_text)
        given = NO_ATTRIBUTES
        if braces is not None:
            key = (opcode, braces)
            cached = self._attributes.get(key)
            if cached is None:
                cached, end = read_attributes(opcode, braces, 0)
                if braces[end:].strip():
                    raise ValueProblem("more after the attributes", end)
                if len(braces) < 200:
                    self._attributes[key] = cached
            given = cached
        ids = tuple([int(i) for i in _ID.findall(operands)]) if operands else ()
        if opcode in _ALIASES and not given:
            opcode, given = "BinOp", _ALIASES[opcode]
        self.operations.append(CoreOperation(int(number), opcode, ids, given, type_))
        self.spans.append((start, start + match.end()))

    def _type(self, text: str) -> TensorType:
        match = _TYPE.fullmatch(": " + text)
        if match is None:
            raise ValueProblem("expected a type such as `tensor<f32[2, 3]>`", 0)
        return _tensor_type(match[1], match[2])

    def _line(self, line: str, start: int) -> None:
        """A line that is not canonical: an operation with other spaces, or something else."""
        if _BLANK.fullmatch(line):
            return
        try:
            if line.lstrip().startswith("outputs"):
                self._outputs(line, start)
            elif line.lstrip().startswith("state"):
                self._state(line, start)
            else:
                self._operation(line, start)
        except ValueProblem as problem:
            at = start + min(problem.at, len(line))
            self._report(TXT05, problem.message, at, max(at, start + len(line)))

    def _operation(self, line: str, start: int) -> None:
        head = _HEAD.match(line)
        if head is None:
            line_text = backquote(line.strip(), 40)
            at = len(line) - len(line.lstrip())
            raise ValueProblem(f"expected `%ID = Opcode (...) : type`, found {line_text}", at)
        operands = _OPERANDS.match(line, head.end())
        if operands is None:
            raise ValueProblem("expected operands such as `(%0, %1)`", head.end())
        at, given = operands.end(), NO_ATTRIBUTES
        opcode = head[2]
        if line[at : at + 1] == "{":
            given, at = read_attributes(opcode, line, at)
        type_ = _TYPE.fullmatch(line, at)
        if type_ is None:
            raise ValueProblem("expected `: tensor<dtype[d0, d1]>` at the end", at)
        if self.has_outputs:
            self._report(TXT02, "an operation after the `outputs:` line", start, start + len(line))
        if opcode in _ALIASES and not given:
            opcode, given = "BinOp", _ALIASES[opcode]
        ids = tuple(int(i) for i in _ID.findall(operands[1]))
        result_type = _tensor_type(type_[1], type_[2], type_.start(1))
        self.operations.append(CoreOperation(int(head[1]), opcode, ids, given, result_type))
        self.spans.append((start, start + len(line.rstrip())))

    def _outputs(self, line: str, start: int) -> None:
        match = _OUTPUTS.fullmatch(line)
        if match is None:
            raise ValueProblem("expected `outputs: %a, %b`", line.index("outputs"))
        if self.has_outputs:
            self._report(TXT02, "a second `outputs:` line", start, start + len(line))
            return
        self.has_outputs = True
        self.outputs = tuple(int(i) for i in _ID.findall(match[1]))
        self.outputs_span = (start, start + len(line.rstrip()))

    def _state(self, line: str, start: int) -> None:
        match = _STATE.fullmatch(line)
        if match is None:
            raise ValueProblem(
                'expected `state: "name" <- %output = %initial`', line.index("state")
            )
        self.states.append(State(unescape(match[1]), int(match[2]), int(match[3])))
        self.state_spans.append((start, start + len(line.rstrip())))

    def _report(self, rule: object, message: str, start: int, end: int) -> None:
        self.findings.append(rule.at(self.source.span(start, end), message))  # type: ignore[attr-defined]


def _tensor_type(dtype: str, dims: str, at: int = 0) -> TensorType:
    from nacre.base.elements import GRAPH_TYPES

    if dtype not in GRAPH_TYPES:
        raise ValueProblem(f"no element type `{dtype}`", at)
    parts = [part.strip() for part in dims.split(",")] if dims.strip() else []
    if not all(re.fullmatch(r"-?\d+", part, re.ASCII) for part in parts):
        raise ValueProblem(f"expected dimensions such as `2, 3`, found {backquote(dims, 40)}", at)
    return TensorType(dtype, tuple(read_integer(part) for part in parts))
