"""Modules in files: canonical text, and big constants in a `.safetensors` beside it.

A constant of more than 64 elements is written as a reference in the place of its data:

    %3 = ConstTensor () {dtype=f32, file="m.core.0123456789abcdef.safetensors", key="3",
                         shape=[64, 64]} : ...

The file has the text's name with the hash of its contents and `.safetensors` behind it; it always
lies beside the text. Any other name in `.safetensors` is read as well. With `axes=[1, 0]` the
constant is the stored tensor with its axes in that order, reshaped to `shape` and converted to
`dtype`. `i4` and `u4` are stored as U8, two to a byte, and were as I8 and U8; the rest has its own
name. What is kept is the bits, NaN included.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import NamedTuple

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.base.excerpt import backquote
from nacre.base.files import file_set, is_stored_name_of, read_unchanged
from nacre.base.source import Source, Span, Unreadable, read_source, whole_file
from nacre.core.module import CoreOperation, Module, TensorType
from nacre.core.rules.storage import STO01, STO02, STO03
from nacre.core.tensor_file import (
    TensorFile,
    TensorProblem,
    parse_tensor_file,
    read_tensor_file,
    tensor_file_parts,
)
from nacre.core.text.printer import print_module
from nacre.core.text.reader import parse_source
from nacre.core.values import Array, Attributes, Literal, attributes, kind_of

INLINE_ELEMENTS = 64  # more than so many go into the file
_SUFFIX = ".safetensors"
_REFERENCE = ("file", "key")
_AXES = "axes"  # of a reference to a tensor that the constant follows from
_MOST_GROWTH = 8  # how much larger constants may be than the files that they follow from
_FILE = re.compile(r'\bfile="([^"\\\n]+)"')
_OTHER_FORMATS = "modules are text; other formats are known by their suffix, as .onnx and .pt2"


def save(module: Module, path: str | os.PathLike[str]) -> None:
    """Write a module: its text at `path`, and beside it what is too big for text.

    The text commits: until it is in its place, the old one stands with the constants that it names.
    """
    if not isinstance(module, Module):
        raise TypeError(f"what is to be saved is {kind_of(module)}, expected a Module")
    target = Path(path)
    if target.is_dir():  # before anything is written beside it
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    constants = stored_constants(module)
    with file_set(target) as files:
        old = _names_beside(target)
        name = ""
        if constants.tensors:
            parts = tensor_file_parts(constants.tensors)
            name = files.add(target.name + _SUFFIX, parts).stored
        references = {key: Reference(name, key) for key in constants.tensors}
        files.commit([referring_text(module, constants, references)], old=old)


class Reference(NamedTuple):
    """Where a constant lies.

    With `axes` it is the tensor there with its axes in that order, reshaped, in its own type.
    """

    file: str
    key: str
    axes: tuple[int, ...] | None = None


@dataclass(frozen=True)
class StoredConstants:
    """The constants of a module that are too big for text, by key, and who refers to which."""

    tensors: Mapping[str, tuple[str, Array]]
    keys: Mapping[int, str]  # by the place of the operation


def referring_text(
    module: Module, constants: StoredConstants, references: Mapping[str, Reference]
) -> str:
    """The module's text, in which big constants are references, by their keys."""
    operations = list(module.operations)
    for index, key in constants.keys.items():
        op, reference = operations[index], references[key]
        kept = {k: v for k, v in op.attributes.items() if k != "data"}
        given: dict[str, object] = {**kept, "file": reference.file, "key": reference.key}
        if reference.axes is not None:
            given["axes"] = list(reference.axes)
        operations[index] = _with_attributes(op, attributes(given))
    return print_module(Module(tuple(operations), module.outputs, module.states))


def stored_constants(module: Module) -> StoredConstants:
    """What of a module goes into the file beside its text."""
    tensors: dict[str, tuple[str, Array]] = {}
    keys: dict[int, str] = {}
    alike: dict[TensorType, list[str]] = {}  # equal arrays are stored once
    for index, op in enumerate(module.operations):
        data = op.attributes.get("data")
        if op.opcode != "ConstTensor" or not isinstance(data, Literal):
            continue
        if not _is_big(op, data.array):
            continue
        others = alike.setdefault(op.type, [])
        key = next((k for k in others if _is_same(tensors[k][1], data.array)), None)
        if key is None:
            key = str(op.value_id)
            while key in tensors:
                key += "+"
            tensors[key] = (op.type.dtype, data.array)
            others.append(key)
        keys[index] = key
    return StoredConstants(tensors, keys)


def _is_same(a: Array, b: Array) -> bool:
    """Whether two arrays of one type have the same bits."""
    if a is b:
        return True
    ends = ((0,) * a.ndim, (-1,) * a.ndim)  # which tell most apart
    return all(a[i].tobytes() == b[i].tobytes() for i in ends) and a.tobytes() == b.tobytes()


def _names_beside(target: Path) -> set[str]:
    """The files that the text at a place names, as far as they are called as ours are."""
    found = read_source(target)
    if isinstance(found, Unreadable):
        return set()
    own = target.name + _SUFFIX
    return {name for name in _FILE.findall(found.text) if is_stored_name_of(name, own)}


def _is_big(op: CoreOperation, array: Array) -> bool:
    """Whether a constant is stored apart. A wrong one is not: its text shows what is wrong."""
    is_as_declared = array.dtype == op.type.element.dtype and array.shape == op.type.shape
    is_free = not any(name in op.attributes for name in _REFERENCE)
    return array.size > INLINE_ELEMENTS and is_as_declared and is_free


def _with_attributes(op: CoreOperation, given: Attributes) -> CoreOperation:
    return CoreOperation(op.value_id, op.opcode, op.operands, given, op.type)


def load(path: str | os.PathLike[str]) -> Module:
    """Read a module; InputError says what is wrong with its text or its constants."""
    target = Path(path)
    return read_unchanged(target, lambda: _load(target))


def _load(target: Path) -> Module:
    source = read_source(target)
    if isinstance(source, Unreadable):
        span = source.span or whole_file(str(target))
        help_ = _OTHER_FORMATS if source.kind == "not text" else None
        raise InputError([STO01.at(span, f"{backquote(str(target))} {source.reason}", help=help_)])
    return load_source(source, target.parent)


def load_source(
    source: Source, folder: Path | None, contents: Mapping[str, bytes | TensorFile] | None = None
) -> Module:
    """A module from text that was read already; its constants lie in the folder.

    Text without a folder, such as standard input has it, cannot refer to constants elsewhere. With
    `contents` it can refer to these files alone, which were read already.
    """
    module = parse_source(source)
    if not any(_is_reference(op) for op in module.operations):
        return module
    resolver = _Resolver(folder, module, contents)
    operations = tuple(resolver.resolve(i, op) for i, op in enumerate(module.operations))
    if resolver.findings:
        raise InputError(resolver.findings)
    return Module(operations, module.outputs, module.states, module.source_spans)


def _is_reference(op: CoreOperation) -> bool:
    return op.opcode == "ConstTensor" and any(name in op.attributes for name in _REFERENCE)


class _Resolver:
    """Puts the stored arrays into the operations that refer to them; each file is read once."""

    def __init__(
        self, folder: Path | None, module: Module, contents: Mapping[str, bytes | TensorFile] | None
    ) -> None:
        self._folder = folder
        self._module = module
        self._contents = contents
        self._files: dict[str, TensorFile | None] = {}  # None: reported already
        self._literals: dict[tuple[str, Reference], Literal] = {}
        self._grown = 0  # bytes of constants that follow from others
        self.findings: list[Diagnostic] = []

    def resolve(self, index: int, op: CoreOperation) -> CoreOperation:
        """The operation with its data."""
        if not _is_reference(op):
            return op
        reference = _reference(op.attributes)
        if reference is None:
            message = f"constant %{op.value_id} needs a string `file`, a string `key` and no `data`"
            self.findings.append(STO03.at(self._span(index), message))
            return op
        file = self._file(reference.file, index)
        if file is None:
            return op
        try:
            literal = self._literal(file, reference, op)
        except TensorProblem as problem:
            message = f"constant %{op.value_id}: {problem}"
            self.findings.append(STO03.at(self._span(index), message))
            return op
        kept = {k: v for k, v in op.attributes.items() if k not in (*_REFERENCE, _AXES)}
        return _with_attributes(op, attributes({**kept, "data": literal}))

    def _literal(self, file: TensorFile, reference: Reference, op: CoreOperation) -> Literal:
        place = (str(op.type), reference)
        if place in self._literals:
            return self._literals[place]
        if reference.axes is None:
            array = file.tensor(reference.key, op.type)
        else:
            self._grown += op.type.element.dtype.itemsize * prod(op.type.shape)
            if self._grown > _MOST_GROWTH * sum(f.size for f in self._files.values() if f):
                raise TensorProblem("constants that follow from others are far larger than these")
            array = file.derived_tensor(reference.key, reference.axes, op.type)
        self._literals[place] = Literal(array)
        return self._literals[place]

    def _file(self, name: str, index: int) -> TensorFile | None:
        if name not in self._files:
            self._files[name] = self._read(name, index)
        return self._files[name]

    def _read(self, name: str, index: int) -> TensorFile | None:
        if self._folder is None and self._contents is None:
            message = f"constants lie in {backquote(name)}, and the text has no folder beside it"
            help_ = "give the name of the module's file"
            self.findings.append(STO02.at(self._span(index), message, help=help_))
            return None
        try:
            if self._contents is not None:
                return _parse_contents(self._contents, name)
            assert self._folder is not None
            path = _file_beside(self._folder, name)
            if path is None:
                message = (
                    f"constants lie in {backquote(name)}, expected a `{_SUFFIX}` beside the text"
                )
                self.findings.append(STO02.at(self._span(index), message))
                return None
            return read_tensor_file(path)
        except TensorProblem as problem:
            self.findings.append(STO01.at(self._span(index), f"{backquote(name)} {problem}"))
            return None

    def _span(self, index: int) -> Span:
        spans = self._module.source_spans
        assert spans is not None  # it was read from text just now
        return spans.source.span(*spans.operations[index])


def _parse_contents(contents: Mapping[str, bytes | TensorFile], name: str) -> TensorFile:
    if name not in contents:
        raise TensorProblem("is none of the files that belong to the text")
    found = contents[name]
    return found if isinstance(found, TensorFile) else parse_tensor_file(found)


def _reference(given: Attributes) -> Reference | None:
    """Where a constant lies; None where its attributes do not say it."""
    name, key = (given.get(part) for part in _REFERENCE)
    if not _is_string(name) or not _is_string(key) or "data" in given:
        return None
    axes = given.get(_AXES)
    if axes is None:
        return Reference(str(name), str(key))
    if not isinstance(axes, tuple) or not all(type(axis) is int for axis in axes):
        return None
    return Reference(str(name), str(key), axes)


def _is_string(value: object) -> bool:
    return type(value) is str  # a bare word is another type


def _file_beside(folder: Path, name: str) -> Path | None:
    """A file of that name in the folder; None for whatever could lead elsewhere."""
    if not name.endswith(_SUFFIX) or any(c in name for c in "/\\:\0") or name.startswith(".."):
        return None
    home = folder.resolve()
    try:
        path = (home / name).resolve()
    except (OSError, RuntimeError):  # links in a circle
        return None
    return path if path.parent == home else None
