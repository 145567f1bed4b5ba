"""Rows of a table as measurements; everything that is wrong with them is told at once."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.digits import is_digits
from nacre.base.elements import ELEMENT_TYPES
from nacre.base.excerpt import backquote
from nacre.base.source import Span
from nacre.base.suggest import did_you_mean
from nacre.calibrate.measurements import (
    UNITS,
    Measurement,
    ModelFile,
    NemFile,
    Subject,
    time_problem,
)
from nacre.calibrate.rules import CAL02, CAL03, CAL04, CAL05
from nacre.calibrate.table import Table, TableRow, read_table
from nacre.calibrate.workloads import MEMORIES, Shape, Workload
from nacre.compile.options import PRECISIONS
from nacre.nem.spec.limits import MAX_DIAGNOSTICS
from nacre.nem.spec.opcodes import OPCODES, AttributeSpec

SUBJECTS = ("operation", "program", "model")
_OF_WORKLOADS = ("inputs", "elem", "weight_elem", "out_elem", "bytes", "from", "to")
COLUMNS = (*SUBJECTS, *_OF_WORKLOADS, "precision", "time", "unit", *UNITS, "group", "class")
_NOTE = "note"  # what columns for people begin with
_INTEGER = re.compile(r"-?[0-9]{1,15}")
_SHAPE = re.compile(r"[0-9]{1,9}(?:x[0-9]{1,9}){0,15}")
_LIST = re.compile(r"-?[0-9]{1,15}(?:x-?[0-9]{1,15}){0,31}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_WORD = re.compile(r"[A-Za-z_][\w.]{0,63}", re.ASCII)


def read_measurements(path: str | Path) -> tuple[Measurement, ...]:
    """The rows of a CSV file; paths in it are relative to its folder."""
    return measurements_of(read_table(Path(path)), Path(path).parent)


def measurements_of(table: Table, folder: Path) -> tuple[Measurement, ...]:
    """The rows of a table; InputError says what is wrong with all of them."""
    findings = list(_column_findings(table))
    if findings:
        raise InputError(findings)
    rows = [_RowReader(row, table.columns, folder) for row in table.rows]
    measurements = [reader.read(findings) for reader in rows]
    if findings:
        raise InputError(findings[:MAX_DIAGNOSTICS])
    return tuple(m for m in measurements if m is not None)


@cache
def _attributes() -> dict[str, AttributeSpec]:
    """Attributes that a column may give, by name; one name has one kind in all opcodes."""
    return {a.name: a for o in OPCODES.values() for a in o.attributes if a.type != "string"}


def _column_findings(table: Table) -> Iterator[Diagnostic]:
    span, columns = table.header_span, table.columns
    known = (*COLUMNS, *_attributes())
    for name in columns:
        if name not in known and not name.startswith(_NOTE):
            help_ = did_you_mean(name, known) or f"let its name begin with `{_NOTE}`"
            yield CAL02.at(span, f"nothing is known about column {backquote(name)}", help=help_)
    if not any(name in columns for name in SUBJECTS):
        yield CAL02.at(span, f"no column says what was measured: one of {_listed(SUBJECTS)}")
    times = [name for name in ("time", *UNITS) if name in columns]
    if not times:
        names = _listed(("time", *UNITS))
        yield CAL02.at(span, f"no column says how long it took: one of {names}")
    if len(times) > 1:
        yield CAL02.at(span, f"{_listed(times)} are several columns of times, expected one")
    if ("unit" in columns) != ("time" in columns):
        yield CAL02.at(span, "`time` and `unit` are given together, or the unit names the column")


def _listed(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


class _CellError(Exception):
    """A cell that says nothing sensible."""

    def __init__(self, column: str, message: str, help: str | None = None) -> None:
        super().__init__(message)
        self.column, self.message, self.help = column, message, help


@dataclass(frozen=True)
class _RowReader:
    """Reads one row; what is wrong with it goes into a list."""

    row: TableRow
    columns: tuple[str, ...]
    folder: Path

    def read(self, findings: list[Diagnostic]) -> Measurement | None:
        before = len(findings)
        unit, time = self._unit(findings), math.nan
        if unit is not None:
            time = self._time(unit, findings)
        subject = self._subject(findings)
        if len(findings) > before or subject is None or unit is None:
            return None
        group, kind = self.row.cells.get("group"), self.row.cells.get("class")
        return Measurement(subject, time, unit, group, kind, self.row.span)

    def _unit(self, findings: list[Diagnostic]) -> str | None:
        if "time" not in self.columns:
            return next(name for name in UNITS if name in self.columns)
        unit = self.row.cells.get("unit", "")
        if unit in UNITS:
            return unit
        found = backquote(unit) if unit else "missing"
        help_ = did_you_mean(unit, UNITS) or f"the units are {_listed(UNITS)}"
        message = f"the unit is {found}, expected one of {_listed(UNITS)}"
        findings.append(CAL04.at(self.row.cell_span("unit"), message, help=help_))
        return None

    def _time(self, unit: str, findings: list[Diagnostic]) -> float:
        column = "time" if "time" in self.columns else unit
        cell, span = self.row.cells.get(column, ""), self.row.cell_span(column)
        is_number = _NUMBER.fullmatch(cell) is not None and len(cell) < 64
        if not is_number:
            found = backquote(cell) if cell else "missing"
            findings.append(CAL03.at(span, f"the time is {found}, expected a positive number"))
            return math.nan
        problem = time_problem(float(cell), unit)
        if problem is not None:
            findings.append(CAL03.at(span, f"the time {problem}"))
        return float(cell)

    def _subject(self, findings: list[Diagnostic]) -> Subject | None:
        named = [name for name in SUBJECTS if name in self.row.cells]
        if len(named) != 1:
            found = f"names {_listed(named)}" if named else "names no workload"
            message = f"the row {found}, expected one of {_listed(SUBJECTS)}"
            findings.append(CAL05.at(self.row.span, message))
            return None
        try:
            return self._workload() if named == ["operation"] else self._file(named[0])
        except _CellError as error:
            span: Span = self.row.cell_span(error.column)
            findings.append(CAL05.at(span, error.message, help=error.help))
            return None

    def _file(self, column: str) -> Subject:
        beside = [c for c in (*_OF_WORKLOADS, *_attributes()) if c in self.row.cells]
        if beside:
            raise _CellError(beside[0], f"`{beside[0]}` is for operations, the row names a file")
        path = self.folder / self.row.cells[column]
        if column == "program":
            return NemFile(path)
        precision = self.row.cells.get("precision", "f16")
        if precision not in PRECISIONS:
            message = f"{backquote(precision)} is no precision, expected {_listed(PRECISIONS)}"
            raise _CellError("precision", message)
        return ModelFile(path, precision)

    def _workload(self) -> Workload:
        cells = self.row.cells
        name = cells["operation"]
        opcode = OPCODES.get(name)
        if opcode is None or name == "compute":
            message = f"{backquote(name)} is no operation"
            raise _CellError("operation", message, did_you_mean(name, OPCODES))
        if opcode.category == "data_movement":
            return self._copy(name)
        given = {
            column: _attribute(spec, cells[column])
            for column, spec in _attributes().items()
            if column in cells
        }
        if "inputs" not in cells:
            raise _CellError("operation", "`inputs` is missing: a shape for each input of the task")
        elem = self._choice("elem", tuple(ELEMENT_TYPES)) or "i8"
        weight_elem = self._choice("weight_elem", tuple(ELEMENT_TYPES))
        out_elem = self._choice("out_elem", tuple(ELEMENT_TYPES))
        return Workload(name, _shapes(cells["inputs"]), elem, given, weight_elem, out_elem)

    def _copy(self, name: str) -> Workload:
        size = self.row.cells.get("bytes", "")
        if not (is_digits(size) and len(size) < 14 and int(size) > 0):
            found = backquote(size) if size else "missing"
            raise _CellError("bytes", f"`bytes` is {found}, expected a positive integer")
        source, target = (self._choice(column, MEMORIES) for column in ("from", "to"))
        if source is None or target is None:
            missing = "from" if source is None else "to"
            raise _CellError("operation", f"`{missing}` is missing, expected {_listed(MEMORIES)}")
        return Workload(name, size_bytes=int(size), source=source, target=target)

    def _choice(self, column: str, known: tuple[str, ...]) -> str | None:
        cell = self.row.cells.get(column)
        if cell is None or cell in known:
            return cell
        message = f"`{column}` is {backquote(cell)}, expected one of {_listed(known)}"
        raise _CellError(column, message, did_you_mean(cell, known))


def _shapes(cell: str) -> tuple[Shape, ...]:
    """`1x56x56x64 3x3x64x64`: a shape for each input."""
    parts = cell.replace(";", " ").split()
    if not all(_SHAPE.fullmatch(part) for part in parts) or len(parts) > 64:
        message = f"{backquote(cell)} are no shapes such as `1x56x56x64 3x3x64x64`"
        raise _CellError("inputs", message)
    return tuple(tuple(map(int, part.split("x"))) for part in parts)


def _attribute(spec: AttributeSpec, cell: str) -> Any:  # noqa: ANN401 - ints, floats, words, tuples
    patterns = {"int": _INTEGER, "int_list": _LIST, "float": _NUMBER}
    pattern = patterns.get(spec.type, _WORD)
    if pattern.fullmatch(cell) is None or (spec.type == "bool" and cell not in ("true", "false")):
        raise _CellError(spec.name, f"`{spec.name}` is {backquote(cell)}, {_EXPECTED[spec.type]}")
    if spec.type == "int_list":
        return tuple(map(int, cell.split("x")))
    if spec.type == "bool":
        return cell == "true"
    return {"int": int, "float": float}.get(spec.type, str)(cell)


_EXPECTED = {
    "int": "expected an integer",
    "int_list": "expected integers such as `2x2`",
    "float": "expected a number",
    "bool": "expected `true` or `false`",
    "id": "expected a word",
    "elem_type": "expected an element type",
}
