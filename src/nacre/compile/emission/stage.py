"""Seventh stage: the program as NEM text, formatted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nacre.base.diagnostics import InternalError
from nacre.compile.emission.names import SharedNames, float_text, shared_names
from nacre.compile.emission.regions import regions_declared_once, regions_in_copies
from nacre.compile.program import (
    Comment,
    Compute,
    Copy,
    Let,
    Loop,
    Program,
    Region,
    Statement,
    Wait,
)
from nacre.compile.target import Target
from nacre.nem.api.documents import format as format_nem


def emit(program: Program, target: Target) -> str:
    """The text: device, buffers, layers."""
    lines = [*target.head, "", f"program {program.name}:", ""]
    for buffer in program.buffers:
        comment = f"  # {buffer.comment}" if buffer.comment else ""
        lines.append(
            f"buffer {buffer.name} : {buffer.level} (size={buffer.size}, align=64){comment}"
        )
    statements = regions_declared_once(regions_in_copies(program.statements))
    lines += _Writer(shared_names(statements)).lines(statements, "")
    return format_nem("\n".join(lines) + "\n")


def statements_text(program: Program) -> str:
    """The statements as they come out of the schedule, not yet formatted."""
    return "\n".join(_Writer(SharedNames()).lines(program.statements, "")) + "\n"


@dataclass(frozen=True)
class _Writer:
    """Writes statements; what several regions share has names."""

    names: SharedNames

    def lines(self, statements: Sequence[Statement], indent: str) -> Iterator[str]:
        """The lines of some statements, and before those of the top level what they name first."""
        for statement in statements:
            if isinstance(statement, Comment):
                yield ""
            if not indent:
                yield from self.names.declarations(statement)
            for line in self._statement(statement):
                yield indent + line

    def _statement(self, statement: Statement) -> Iterator[str]:
        match statement:
            case Comment():
                yield f"# {statement.text}"
            case Let():
                yield f"let {statement.name} = {self._region(statement.region)}"
            case Copy():
                yield self._copy(statement)
            case Compute():
                yield _compute(statement)
            case Wait():
                yield f"wait({', '.join(statement.tokens)})"
            case Loop():
                yield from self._loop(statement)

    def _copy(self, statement: Copy) -> str:
        sides = (statement.dst, statement.src)
        dst, src = (s if isinstance(s, str) else self._region(s) for s in sides)
        deps = f", deps=[{', '.join(statement.deps)}]" if statement.deps else ""
        head = f"{statement.token} = {statement.op}.async(dst={dst}, src={src}{deps})"
        engine = "" if statement.engine is None else f" @seq_engine({statement.engine})"
        return head + engine + _debug(statement.debug)

    def _loop(self, statement: Loop) -> Iterator[str]:
        window = f" @max_in_flight({statement.window})" if statement.window > 1 else ""
        yield f"loop {statement.variable} in [{statement.first}..{statement.last}]{window}:"
        yield from self.lines(statement.body, "    ")
        yield "endloop"

    def _region(self, region: Region) -> str:
        text = f"region({region.buffer}, {region.offset}, {region.size})"
        if not region.elem:
            return text
        if region.compressed is not None:
            return f"{text} {self.names.written_type(region)}{_compressed(region)}"
        return f"{text} {self.names.type_text(region)}"


def _compute(statement: Compute) -> str:
    given = "".join(f" {key}={_attribute_text(key, v)}" for key, v in statement.attributes.items())
    deps = f" deps=[{', '.join(statement.deps)}]" if statement.deps else ""
    return (
        f"{statement.token} = {statement.op}.async in {', '.join(statement.inputs)} "
        f"out {statement.output}{deps}{given}{_debug(statement.debug)}"
    )


def _debug(name: str) -> str:
    return f" @debug({name})" if name else ""


def _compressed(region: Region) -> str:
    form = region.compressed
    if form is None:
        return ""
    if form.name == "sparse":
        return ", compressed=sparse"
    tables = f", tables={form.tables}" if form.tables > 1 else ""
    return f", compressed=palette(bits={form.bits}{tables})"


def _attribute_text(key: str, value: object) -> str:
    """The operation of a generic task is a string, and so is what is no word."""
    is_text = isinstance(value, str) and (key == "op" or not value.isidentifier())
    return f'"{value}"' if is_text else _value(value)


def _value(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, int | str):
        return str(value)
    raise InternalError(f"no NEM for {value!r}")
