"""What the host puts into memory and takes out of it."""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.digits import is_digits
from nacre.base.elements import ELEMENT_TYPES, bytes_needed
from nacre.base.excerpt import backquote
from nacre.base.hints import setting
from nacre.base.packing import (
    NIBBLE_TYPES,
    UNPACKED_TYPES,
    nibbles_of_file,
    pack_i4,
    pack_nibbles,
    unpack_nibbles,
)
from nacre.base.source import Span
from nacre.base.suggest import did_you_mean
from nacre.kernels.interface.call import TensorType
from nacre.kernels.interface.layouts import Bytes
from nacre.nem.model.imports import Import
from nacre.nem.model.program import Buffer, Program
from nacre.nem.run.machine.findings import Findings
from nacre.nem.run.memory.arrays import RegionView
from nacre.nem.run.memory.host_span import HOST
from nacre.nem.run.memory.memory import Memory, MemoryLevel, Storage
from nacre.nem.run.memory.regions import LocatedRegion
from nacre.nem.run.memory.written import first_unwritten
from nacre.nem.run.sessions.gaps import Gap
from nacre.nem.run.sessions.references import Selection
from nacre.nem.run.sessions.stepper import Stepper
from nacre.nem.spec.rules.running import INI02, RUN05

_MOST_DIGITS = 18  # of an offset as text
_UNTYPED = np.dtype("V1")  # as NumPy's files keep `int4` and `uint4`
_UNTYPED_HELP = (
    "NumPy's files keep elements of 4 bits so: give `array.view(ml_dtypes.int4)`, which is packed, "
    "or `array.view(numpy.uint8)` for the bytes as they are"
)


def host_finding(message: str, help: str | None = None, place: Span = HOST) -> Diagnostic:
    """A diagnostic about what a caller asked for; the place is a file's where it is wrong."""
    return RUN05.at(place, message, help=help)


def host_error(message: str, help: str | None = None, place: Span = HOST) -> InputError:
    """The exception for what a caller asked for."""
    return InputError([host_finding(message, help, place)])


def raw_bytes(data: object) -> Bytes:
    """The bytes of an array of any type as memory holds it, or bytes themselves."""
    if isinstance(data, bytes | bytearray):
        return np.frombuffer(data, np.uint8)
    _require_unmasked(data)
    try:
        array = np.asarray(data)
    except (ValueError, TypeError) as error:
        raise host_error(f"the data is no array: {error}") from None
    if array.dtype.hasobject or array.dtype.kind in "USmM":
        raise host_error(f"the data is an array of {array.dtype}, expected one of numbers")
    if array.dtype.name in NIBBLE_TYPES:
        return pack_nibbles(array)
    if array.dtype == _UNTYPED:
        raise host_error("the data is an array of bytes whose type is lost", _UNTYPED_HELP)
    if array.dtype.name in UNPACKED_TYPES:
        known = ", ".join(ELEMENT_TYPES)
        raise host_error(f"the data is an array of {array.dtype}, expected one of {known}")
    if not array.dtype.isnative:  # memory is little-endian, as every machine that runs this
        array = array.astype(array.dtype.newbyteorder("="))
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _require_unmasked(data: object) -> None:
    if isinstance(data, np.ma.MaskedArray):
        raise host_error("the data is a masked array, expected one with all of its values")


def whole_number(value: object, what: str) -> int:
    """An integer of any kind; anything else is the caller's mistake."""
    if not isinstance(value, bool):  # an integer to Python, and a slip of whoever wrote it
        with contextlib.suppress(TypeError):
            return operator.index(value)  # type: ignore[arg-type]
    raise host_error(f"{what} is {backquote(str(value))}, expected a whole number")


class Host:
    """The host's side of a session."""

    def __init__(
        self,
        program: Program,
        memory: Memory,
        findings: Findings,
        stepper: Stepper,
        imports: tuple[Import, ...] = (),
    ) -> None:
        self.imports = {mark.name: mark for mark in imports}
        self._program = program
        self._memory = memory
        self._findings = findings
        self._stepper = stepper
        if imports:
            memory.levels["DDR"].add_guard(self._require_mutable_ddr)

    def require_imports(self) -> None:
        """Every imported buffer holds something when the run starts; InputError names the rest."""
        findings = []
        for name in self.imports:
            storage = self._memory.storage(self._buffer(name))
            gap = storage.first_gap(0, storage.data.size)
            if gap is not None:
                message = f"`{name}` is imported, but the host gave nothing for its bytes "
                help_ = f"give `{name}` as an input, or leave the import out"
                findings.append(host_finding(f"{message}{gap[0]}..{gap[1] - 1}", help_))
        if findings:
            raise InputError(findings)

    def _require_mutable_ddr(self, begin: int, end: int) -> None:
        """The same for bytes of DDR, which the host may write without naming a buffer."""
        if not self._memory.is_open:
            return
        for name in self.imports:
            buffer = self._buffer(name)
            base = self._memory.base(buffer)
            if buffer.level == "DDR" and base < end and begin < base + (buffer.size or 0):
                self._require_mutable(name)

    def _require_mutable(self, name: str) -> None:
        """A read-only import may not change while a program runs."""
        mark = self.imports.get(name)
        if mark is None or mark.is_mutable or not self._stepper.order or self._stepper.is_finished:
            return
        message = f"`{name}` is imported read-only: it may not change while the program runs"
        mutable = setting(f"`--import {name}:mutable`", f'`imports=["{name}:mutable"]`')
        raise host_error(message, f"give {mutable}, or write it before the first step")

    def _buffer(self, name: str) -> Buffer:
        buffer = self._memory.buffers.get(name)
        if buffer is None:
            raise InputError([self._unknown_buffer(str(name))])
        return buffer

    def _unknown_buffer(self, name: str) -> Diagnostic:
        names = list(self._memory.buffers)
        listed = ", ".join(f"`{n}`" for n in names[:8])
        help_ = did_you_mean(name, names) or f"the buffers are {listed}"
        return host_finding(f"the program has no buffer {backquote(name)}", help_)

    def fill(self, inputs: Mapping[str, Any]) -> None:
        """Fill buffers by name; every name and size is looked at before anything is written."""
        if not isinstance(inputs, Mapping):
            raise host_error("inputs are given as a dict of arrays by buffer")
        findings: list[Diagnostic] = []
        ready = []
        for key, data in inputs.items():
            try:
                ready.append(self._find_target(key, data))
            except InputError as error:
                findings += error.diagnostics
        if findings:
            raise InputError(findings)
        for buffer, offset, raw in ready:
            self._write_bytes(buffer, offset, raw)

    def write_buffer(self, key: str, data: object) -> None:
        """Fill a buffer, or with `NAME@OFFSET` a part of it."""
        self._write_bytes(*self._find_target(key, data))

    def _find_target(self, key: str, data: object) -> tuple[Buffer, int, Bytes]:
        name, at, offset_text = str(key).partition("@")
        buffer = self._buffer(name)
        self._require_mutable(name)
        _require_unmasked(data)
        size = buffer.size or 0
        packed = self._pack_part(buffer, data) if at else self._pack_whole(buffer, data)
        raw = raw_bytes(data) if packed is None else packed
        if not at:
            if raw.size != size:
                help_ = f"`{name}@OFFSET` fills a part" if raw.size < size else None
                raise host_error(f"`{name}` has {size} bytes, the data {raw.size}", help_)
            return buffer, 0, raw
        if not is_digits(offset_text) or len(offset_text) > _MOST_DIGITS:
            raise host_error(f"the offset in {backquote(key)} is no number")
        offset = int(offset_text)
        if offset + raw.size > size:
            raise host_error(
                f"`{name}` has {size} bytes; {raw.size} bytes from offset {offset} do not fit"
            )
        return buffer, offset, raw

    def _pack_whole(self, buffer: Buffer, data: object) -> Bytes | None:
        """Integers of whole bytes for a buffer of `i4`, one for each element; None for others."""
        size = buffer.size or 0
        if not isinstance(data, np.ndarray) or data.size not in (2 * size - 1, 2 * size):
            return None
        is_bytes = data.nbytes == size  # an array of as many bytes as the buffer has
        if data.dtype != _UNTYPED and (data.dtype.kind not in "iu" or is_bytes):
            return None
        if declared_elements(buffer, self._program) != {"i4"}:
            return None
        return _pack_elements(buffer, data)

    def _pack_part(self, buffer: Buffer, data: object) -> Bytes | None:
        """Elements for a part of a buffer of `i4`: bytes and elements must not be mistaken."""
        is_array = isinstance(data, np.ndarray) and data.dtype != np.uint8
        if not is_array or declared_elements(buffer, self._program) != {"i4"}:
            return None
        array = np.asarray(data)
        if array.dtype.kind in "iub":
            raise host_error(
                f"`{buffer.name}` holds i4, and a part of it is given as {array.dtype}",
                "give elements as `ml_dtypes.int4`, which are packed, or bytes as `uint8`",
            )
        return _pack_elements(buffer, array) if array.dtype == _UNTYPED else None

    def _write_bytes(self, buffer: Buffer, offset: int, raw: Bytes) -> None:
        storage = self._memory.storage(buffer)
        self._stepper.note_host_write(storage, offset, offset + raw.size)
        storage.data[offset : offset + raw.size] = raw
        storage.written[offset : offset + raw.size] = True
        if storage.missing:
            storage.missing = storage.written.size - int(np.count_nonzero(storage.written))

    def read_buffer(self, name: str) -> bytes:
        """A buffer's bytes."""
        storage = self._memory.storage(self._buffer(name))
        self._report_gap(name, storage, storage.first_gap(0, storage.data.size))
        return storage.data.tobytes()

    def peek(self, name: str, begin: int, end: int) -> bytes:
        """What lies in a part of a buffer, whether anybody wrote it or not: no finding says so."""
        return self._memory.storage(self._buffer(name)).data[begin:end].tobytes()

    def read_region(self, located: LocatedRegion) -> RegionView:
        """A copy of a region's elements."""
        storage = self._memory.storage(located.buffer)
        gap = first_unwritten(located.layout, storage, located.offset)
        self._report_gap(located.name, storage, gap)
        values = located.layout.array(storage.data, located.offset).copy()
        type_ = located.type or TensorType(ELEMENT_TYPES["u8"], values.shape)
        return RegionView.of(values, type_, located.name)

    def read_selection(self, selection: Selection, *, real: bool) -> RegionView:
        """A copy of some elements of a region, or of the values that they stand for."""
        storage = self._memory.storage(selection.located.buffer)
        self._report_gap(selection.name, storage, selection.first_unwritten(storage))
        if not real:
            return RegionView.of(selection.values(storage), selection.type, selection.name)
        real_type = TensorType(ELEMENT_TYPES["f32"], selection.shape)
        return RegionView.of(selection.real_values(storage), real_type, selection.name)

    def read_memory(self, level: str, offset: int, size: int | None, engine: int | None) -> bytes:
        """Raw bytes of a memory; to its end where no size is given."""
        name = f"L1[{engine or 0}]" if level == "L1" else str(level)
        memory = self._memory.levels.get(name)
        if memory is None:
            self._memory.require_open()
            known = ", ".join(self._memory.levels)
            raise host_error(f"no memory {backquote(name)}; there are {known}")
        return read_level(memory, offset, size)

    def _report_gap(self, name: str, storage: Storage, gap: tuple[int, int] | None) -> None:
        if gap is None:
            return
        origin = self._findings.origin(Gap(storage, *gap), None, 0)
        where = f"bytes {gap[0]}..{gap[1] - 1}{origin.sentence}"
        message = f"the host reads `{name}`, but nothing has written {where}"
        if any((d.code, d.message) == (INI02.code, message) for d in self._findings.diagnostics):
            return
        finding = INI02.at(HOST, message, help=origin.remedy if origin.sentence else None)
        self._findings.diagnostics.append(finding)


def _pack_elements(buffer: Buffer, array: np.ndarray[Any, Any]) -> Bytes:
    """Elements of 4 bits that came a byte each; InputError where one does not fit."""
    try:
        return (
            pack_nibbles(nibbles_of_file(array, "int4"))
            if array.dtype == _UNTYPED
            else pack_i4(array)
        )
    except ValueError as error:
        raise host_error(f"the data for `{buffer.name}` does not fit: {error}") from None


def declared_elements(buffer: Buffer, program: Program) -> set[str]:
    """The element types that regions over a buffer declare; else those it is copied from or to."""
    plain = [r for r in program.regions if r.compression is None and r.elem is not None]
    declared = {r.elem for r in plain if r.buffer is buffer and r.elem is not None}
    if declared:
        return declared
    copied: set[str] = set()
    for task in program.tasks:
        regions = [*task.regions("read"), *task.regions("write")]
        if task.op in ("transfer", "store") and any(r.buffer is buffer for r in regions):
            copied |= {r.elem for r in regions if r.elem is not None and r.compression is None}
    return copied


def read_level(level: MemoryLevel, offset: int, size: int | None) -> bytes:
    """Bytes of a memory; to its end where no size is given."""
    start = whole_number(offset, "the offset")
    length = max(level.size - start, 0) if size is None else whole_number(size, "the size")
    if not level.contains(start, length):
        raise host_error(
            f"{length} bytes at offset {start} do not lie in {level.name}, "
            f"which has {level.size} bytes"
        )
    return level.read(start, length)


def as_tensor(data: bytes, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Bytes as an array."""
    wanted = tensor_bytes(shape, dtype)
    if wanted != len(data):
        raise host_error(f"shape {list(shape)} of {dtype} takes {wanted} bytes, found {len(data)}")
    if not wanted:
        return np.zeros(shape, dtype)
    if dtype.name in NIBBLE_TYPES:
        return unpack_nibbles(np.frombuffer(data, np.uint8), shape, dtype)
    return np.frombuffer(data, dtype).reshape(shape).copy()


def tensor_bytes(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """The bytes of memory that an array takes there."""
    if dtype.name in NIBBLE_TYPES:
        return bytes_needed(math.prod(shape), ELEMENT_TYPES["i4"])
    return math.prod(shape) * dtype.itemsize
