"""`--input` and `--output`: which buffer, which file, and what its bytes mean."""

from __future__ import annotations

import contextlib
import errno
import io
import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from nacre.base.elements import ELEMENT_TYPES, ElementType, bytes_needed
from nacre.base.excerpt import backquote, safe
from nacre.base.files import is_special, write_together
from nacre.base.source import Unreadable, read_bytes, whole_file
from nacre.base.suggest import did_you_mean
from nacre.cli.exit_status import MACHINE_FAULTS

if TYPE_CHECKING:
    import numpy as np

    from nacre.nem.model.program import Buffer, Program

T = TypeVar("T")

_TARGET = re.compile(r"(?P<buffer>[^@=:]+)(?:@[0-9]{1,18})?")
_SHAPE = re.compile(r"[0-9]{1,18}(?:x[0-9]{1,18})*")
_MOST_AXES = 64  # of a NumPy array

# What no NumPy file can hold, and the type that can hold its values.
_VALUES_OF = {"bf16": "f32", "i4": "i8"}


class WrongUsage(click.ClickException):
    """A file that a command was told to use is not there, or may not be used."""

    exit_code = 2

    def show(self, file: object = None) -> None:
        """Say it as the other verbs do."""
        click.echo(f"nacre: {self.message}", err=True)


class WriteFailed(WrongUsage):
    """A file cannot be written, though nothing is wrong with how it was asked for."""

    exit_code = 1


@dataclass(frozen=True, slots=True)
class InputFile:
    """`BUF=FILE`, or `BUF@OFFSET=FILE` for a part of a buffer; of a bundle `NAME=FILE`."""

    target: str
    path: Path

    @property
    def buffer(self) -> str:
        """The buffer's name."""
        return self.target.partition("@")[0]


@dataclass(frozen=True, slots=True)
class OutputFile:
    """`BUF[:elem[:d0xd1..]]=FILE`; of a bundle `NAME=FILE`, whatever is in the name."""

    name: str
    path: Path
    buffer: str
    elem: str | None = None
    shape: tuple[int, ...] | None = None
    problem: str | None = None  # why it cannot be an output of a program


@dataclass(frozen=True, slots=True)
class OutputView:
    """An output of a program: how the bytes are stored, and as what they are written."""

    file: OutputFile
    stored: ElementType
    elem: ElementType
    shape: tuple[int, ...]

    @property
    def kind(self) -> str:
        """`i8 4x14`."""
        return f"{self.elem.name} {shape_text(self.shape)}"


def option_value(parse: Callable[[str], T]) -> Callable[[str], T]:
    """A function that reads an option's value, made to complain as click does."""

    def convert(text: str) -> T:
        try:
            return parse(text)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None

    return convert


def parse_input(text: str) -> InputFile:
    """An input as a user writes it; ValueError says what is wrong with it."""
    return InputFile(*_split_sides(text, split_name(text), "BUF=FILE or BUF@OFFSET=FILE"))


def parse_output(text: str) -> OutputFile:
    """An output as a user writes it; ValueError says what is wrong with it."""
    target, path = _split_sides(
        text, text.partition("=")[::2], "BUF=FILE, BUF:ELEM=FILE or BUF:ELEM:SHAPE=FILE"
    )
    buffer, *rest = target.split(":")
    if len(rest) > 2:
        problem = f"{backquote(target)} has more parts than BUF:ELEM:SHAPE"
        return OutputFile(target, path, buffer, problem=problem)
    try:
        elem = _parse_elem(rest[0]) if rest else None
        shape = _parse_shape(rest[1]) if len(rest) == 2 else None
    except ValueError as error:  # models have names such as `output:0`
        return OutputFile(target, path, buffer, problem=str(error))
    return OutputFile(target, path, buffer, elem, shape)


def _split_sides(text: str, sides: Sequence[str], form: str) -> tuple[str, Path]:
    target, path = sides
    if not (target and path) or "\0" in path:
        raise ValueError(f"{backquote(text)} does not have the form {form}")
    return target, Path(path)


def split_name(text: str) -> tuple[str, str]:
    """The sides of `NAME=FILE`. Names of models may have a `=`: the first before a file counts."""
    signs = [i for i, letter in enumerate(text) if letter == "="]
    if not signs:
        return text, ""
    files = (i for i in signs if "\0" not in text and os.path.exists(text[i + 1 :]))
    sign = next(files, signs[0])
    return text[:sign], text[sign + 1 :]


def _parse_elem(text: str) -> str:
    if text in _VALUES_OF:
        raise ValueError(
            f"NumPy files have no {text}; `u8` writes the bytes, `{_VALUES_OF[text]}` the values"
        )
    if text not in ELEMENT_TYPES:
        known = ", ".join(name for name in ELEMENT_TYPES if name not in _VALUES_OF)
        raise ValueError(f"{backquote(text)} is no element type; there are {known}")
    return text


def _parse_shape(text: str) -> tuple[int, ...]:
    if _SHAPE.fullmatch(text) is None:
        raise ValueError(f"{backquote(text)} is no shape such as 4x16")
    shape = tuple(int(part) for part in text.split("x"))
    if len(shape) > _MOST_AXES:
        raise ValueError(f"a shape of {len(shape)} axes, more than {_MOST_AXES}")
    return shape


def shape_text(shape: tuple[int, ...]) -> str:
    """`4x16`."""
    return "x".join(map(str, shape))


# Inputs


def unreadable_reason(path: Path) -> str | None:
    """Why a file cannot be opened as one; None where it can."""
    content = read_bytes(path, limit=0)
    if isinstance(content, Unreadable) and content.kind != "too large":
        return f"{safe(str(path))} {content.reason}"
    return None


def load_input(file: InputFile, program: Program) -> Any:  # noqa: ANN401 - an array of any type, or bytes
    """What an input file holds; WrongUsage where it is not there, InputError where it is wrong."""
    from nacre.nem.api.ddr import load_npy
    from nacre.nem.run.memory.host import host_error

    if _TARGET.fullmatch(file.target) is None:
        raise click.UsageError(f"{backquote(file.target)} is neither BUF nor BUF@OFFSET")
    buffer = find_buffer(file.buffer, program)
    reason = unreadable_reason(file.path)
    if reason is not None:
        raise WrongUsage(reason)
    if file.path.suffix == ".npy":
        array = load_npy(file.path, backquote(f"--input {file.target}"))
        if array.dtype.kind in "USmMO":
            message = f"`{file.path}` holds {array.dtype}, expected numbers"
            raise host_error(message, place=whole_file(str(file.path)))
        return array
    size = buffer.size or 0
    raw = read_bytes(file.path, limit=size)
    if isinstance(raw, Unreadable):
        message = f"`{buffer.name}` has {size} bytes, `{file.path}` has more"
        raise host_error(message, place=whole_file(str(file.path)))
    return raw


def find_buffer(name: str, program: Program) -> Buffer:
    """The buffer that an option names."""
    buffers = {buffer.name: buffer for buffer in program.buffers}
    if name in buffers:
        return buffers[name]
    some = ", ".join(f"`{known}`" for known in list(buffers)[:8])
    hint = did_you_mean(name, buffers) or (f"the buffers are {some}" if some else "it has none")
    raise click.UsageError(f"the program has no buffer {backquote(name)}; {hint}")


# Outputs


def output_view(file: OutputFile, program: Program) -> OutputView:
    """What an output will hold; UsageError where type or shape do not fit the buffer."""
    if file.problem is not None:
        raise click.UsageError(file.problem)
    from nacre.nem.run.memory.host import declared_elements

    buffer = find_buffer(file.buffer, program)
    size = buffer.size or 0
    elem = ELEMENT_TYPES[file.elem or "u8"]
    stored = _stored_type(elem, declared_elements(buffer, program))
    what = elem.name if stored is elem else f"{stored.name}, which the program keeps there,"
    if file.shape is None:
        count, rest = divmod(size * 8, stored.bits)
        if rest:
            raise click.UsageError(
                f"`{buffer.name}` has {size} bytes, no whole number of {elem.name}"
            )
        return OutputView(file, stored, elem, (count,))
    needed = bytes_needed(math.prod(file.shape), stored)
    if needed != size:
        raise click.UsageError(
            f"`{buffer.name}` has {size} bytes; {shape_text(file.shape)} of {what} takes {needed}"
        )
    return OutputView(file, stored, elem, file.shape)


def _stored_type(elem: ElementType, declared: set[str]) -> ElementType:
    """Values of bf16 and i4 are converted where the program says that this is what they are."""
    for name, values in _VALUES_OF.items():
        if elem.name == values and declared == {name}:
            return ELEMENT_TYPES[name]
    return elem


def as_array(data: bytes, view: OutputView) -> np.ndarray[Any, Any]:
    """A buffer's bytes as the array that is asked for."""
    import numpy as np

    from nacre.base.packing import unpack_i4

    raw = np.frombuffer(data, np.uint8)
    if view.stored.bits < 8:
        return unpack_i4(raw, math.prod(view.shape)).reshape(view.shape)
    return raw.view(view.stored.dtype).reshape(view.shape).astype(view.elem.dtype)


def file_bytes(array: np.ndarray[Any, Any], path: Path) -> bytes:
    """An array as a file of that name holds it: .npy, or nothing but its bytes."""
    import numpy as np

    from nacre.base.packing import NIBBLE_TYPES

    if path.suffix != ".npy":
        return array.tobytes()
    if array.dtype.name in NIBBLE_TYPES:  # which NumPy's files cannot name: the values
        array = array.astype(np.int8 if array.dtype.name == "int4" else np.uint8)
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=False)
    return stream.getvalue()


@contextlib.contextmanager
def report_write_errors(path: Path | str | None = None) -> Iterator[None]:
    """Something is written; WrongUsage or WriteFailed says what cannot be, and why.

    A name that leads nowhere or may not be written is wrong usage; a disk that is full is not.
    """
    try:
        yield
    except OSError as error:
        name = path or error.filename2 or error.filename or "the output"
        kind = WriteFailed if error.errno in MACHINE_FAULTS else WrongUsage
        raise kind(f"cannot write {safe(str(name))}: {error.strerror or error}") from None


@contextlib.contextmanager
def write_all_or_none() -> Iterator[None]:
    """Files that a verb writes, all of them or none."""
    with report_write_errors(), write_together():
        yield


def require_writable(path: Path) -> None:
    """A folder that is missing or may not be written to is noticed before a run, not after it."""
    name = safe(str(path))
    try:
        if not path.parent.is_dir():
            remedy = "" if path.parent.exists() else "; make it first"
            parent = safe(str(path.parent))
            raise WrongUsage(f"cannot write {name}: {parent} is no folder{remedy}")
        if path.is_dir():
            raise WrongUsage(f"cannot write {name}: it is a folder")
        if not is_special(path) and not os.access(_folder_of(path), os.W_OK | os.X_OK):
            raise WrongUsage(f"cannot write {name}: {os.strerror(errno.EACCES)}")
    except OSError as error:
        raise WrongUsage(f"cannot write {name}: {error.strerror}") from None
    except ValueError as error:  # a name with a NUL byte
        raise WrongUsage(f"cannot write {name}: {error}") from None


def _folder_of(path: Path) -> str:
    """The folder in which a file is written: that of what a link leads to."""
    return os.path.dirname(os.path.realpath(path))
