"""Files as tools look at them: the structure is sound, the promises behind it may be broken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from nacre.base.diagnostics import InputError, has_errors, in_order
from nacre.base.source import Source
from nacre.nac.checks.file import check_file
from nacre.nac.format import header
from nacre.nac.format.cursor import Broken
from nacre.nac.format.external import External
from nacre.nac.format.file import FileSource, map_file
from nacre.nac.format.scales import scale_problem
from nacre.nac.format.values import NacFile, Tensor
from nacre.nac.program.interface import program_interface
from nacre.nac.program.parameters import ParameterNames
from nacre.nac.spec.elements import DTYPES


@dataclass(frozen=True)
class OpenedFile:
    """A file, its weights where they lie beside it, and where its sections begin."""

    file: NacFile
    source: Source
    external: External | None  # None: the weights are inside, or cannot be read
    offsets: Mapping[str, int]  # of sections, in the order in which they lie
    size: int

    @property
    def name(self) -> str:
        """What the file is called."""
        return self.source.name

    @cached_property
    def tensors(self) -> dict[int, Tensor]:
        """The weights that can be had, by the id of their parameter."""
        return {tensor.id: tensor for tensor in self._tensors()}

    def _tensors(self) -> Iterator[Tensor]:
        if self.file.header.is_internal:  # verify says why one is left out, here and below
            yield from (t for t in self.file.data.tensors if scale_problem(t) is None)
        elif self.external is not None:
            for named in self.file.data.parameters:
                try:
                    yield self.external.tensor(named.text, named.id)
                except Broken:
                    continue

    @cached_property
    def parameters(self) -> dict[int, str]:
        """The names of parameters by id."""
        return {named.id: named.text for named in self.file.data.parameters}

    @cached_property
    def parameter_names(self) -> ParameterNames:
        """All names of parameters, those that share a tensor with others included."""
        return program_interface(self.file, self.source, self.external)[0].parameters

    @cached_property
    def inputs(self) -> dict[int, str]:
        """The names of inputs by instruction."""
        return {named.id: named.text for named in self.file.data.inputs}


def open_nac(source: FileSource) -> OpenedFile:
    """A file; InputError has all that is wrong with its structure."""
    examined, external, findings = check_file(source)
    if examined.file is None or has_errors(examined.findings):
        raise InputError(in_order(d for d in findings if d.severity == "error"))
    view = memoryview(source) if isinstance(source, bytes | memoryview) else map_file(Path(source))
    _, offsets = header.read(view)
    placed = dict(sorted(offsets.items(), key=lambda item: item[1]))
    return OpenedFile(examined.file, examined.source, external, placed, len(view))


def type_text(dtype: str, shape: tuple[int, ...]) -> str:
    """`f32[2, 3]`."""
    return f"{dtype}[{', '.join(map(str, shape))}]"


def true_shape(tensor: Tensor) -> tuple[int, ...]:
    """The shape that a tensor has in the program."""
    return tensor.true_shape if tensor.block else tensor.shape


def stored_type(tensor: Tensor) -> str:
    """The type of a tensor as it is stored."""
    return type_text(DTYPES[tensor.dtype], tensor.shape)
