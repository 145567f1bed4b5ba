"""Seventh stage: the program as NEM text, formatted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nacre.base.diagnostics import InternalError
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
    lines += _lines(program.statements, "")
    return format_nem("\n".join(lines) + "\n")


def statements_text(program: Program) -> str:
    """The statements as they come out of the schedule, not yet formatted."""
    return "\n".join(_lines(program.statements, "")) + "\n"


def _lines(statements: Sequence[Statement], indent: str) -> Iterator[str]:
    for statement in statements:
        if isinstance(statement, Comment):
            yield ""
        for line in _statement_lines(statement):
            yield indent + line


def _statement_lines(statement: Statement) -> Iterator[str]:
    match statement:
        case Comment():
            yield f"# {statement.text}"
        case Let():
            yield f"let {statement.name} = {_region(statement.region)}"
        case Copy():
            yield _copy(statement)
        case Compute():
            yield _compute(statement)
        case Wait():
            yield f"wait({', '.join(statement.tokens)})"
        case Loop():
            yield from _loop(statement)


def _copy(statement: Copy) -> str:
    dst, src = (s if isinstance(s, str) else _region(s) for s in (statement.dst, statement.src))
    deps = f", deps=[{', '.join(statement.deps)}]" if statement.deps else ""
    head = f"{statement.token} = {statement.op}.async(dst={dst}, src={src}{deps})"
    return head + _debug(statement.debug)


def _compute(statement: Compute) -> str:
    given = "".join(f" {key}={_attribute_text(key, v)}" for key, v in statement.attributes.items())
    deps = f" deps=[{', '.join(statement.deps)}]" if statement.deps else ""
    return (
        f"{statement.token} = {statement.op}.async in {', '.join(statement.inputs)} "
        f"out {statement.output}{deps}{given}{_debug(statement.debug)}"
    )


def _loop(statement: Loop) -> Iterator[str]:
    window = f" @max_in_flight({statement.window})" if statement.window > 1 else ""
    yield f"loop {statement.variable} in [{statement.first}..{statement.last}]{window}:"
    yield from _lines(statement.body, "    ")
    yield "endloop"


def _debug(name: str) -> str:
    return f" @debug({name})" if name else ""


def _region(region: Region) -> str:
    text = f"region({region.buffer}, {region.offset}, {region.size})"
    if not region.elem:
        return text
    order = f"strides={_value(region.strides)}" if region.strides else f"layout={region.layout}"
    type_ = f"elem={region.elem}, shape={_value(region.shape)}, {order}{_quant(region)}"
    return f"{text} {type_}{_compressed(region)}"


def _compressed(region: Region) -> str:
    form = region.compressed
    if form is None:
        return ""
    if form.name == "sparse":
        return ", compressed=sparse"
    tables = f", tables={form.tables}" if form.tables > 1 else ""
    return f", compressed=palette(bits={form.bits}{tables})"


def _quant(region: Region) -> str:
    quant = region.quant
    if quant is None:
        return ""
    if quant.is_single:
        scale, zero = _float(quant.scales[0]), quant.zeros[0]
        return f", quant=per_tensor(scale={scale}, zero_point={zero})"
    scales = ", ".join(map(_float, quant.scales))
    zeros, axis = _value(quant.zeros), len(region.shape) - 1
    return f", quant=per_channel(axis={axis}, scales=[{scales}], zero_points={zeros})"


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
        return _float(value)
    if isinstance(value, int | str):
        return str(value)
    raise InternalError(f"no NEM for {value!r}")


def _float(value: float) -> str:
    """A number as NEM writes it, with a point."""
    text = repr(value)
    mantissa, mark, exponent = text.partition("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}{mark}{exponent}"
