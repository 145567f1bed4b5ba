"""Names in the text of a plan: types and quantisations that many regions share are written once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from nacre.compile.program import Affine, Compute, Copy, Let, Loop, Region, Statement

_FEWEST_OF_A_TYPE = 4  # fewer are written out: a reader sees at the region what a tile is
_NOWHERE = Region("", Affine(), 0)


@dataclass(frozen=True)
class SharedNames:
    """Names of types and quantisations, and before which statement each is declared."""

    types: Mapping[Region, str] = field(default_factory=dict)  # by a region that lies nowhere
    quants: Mapping[Region, str] = field(default_factory=dict)  # the same with a quant alone
    before: Mapping[int, Sequence[str]] = field(default_factory=dict)  # a statement's `id`

    def declarations(self, statement: Statement) -> Sequence[str]:
        """The declarations of what a statement of the top level is the first to use."""
        return self.before.get(id(statement), ())

    def type_text(self, region: Region) -> str:
        """The type of a region, or the name of it."""
        name = self.types.get(_type_key(region)) if self.types else None
        return f"type={name}" if name is not None else self.written_type(region)

    def written_type(self, region: Region) -> str:
        """The type of a region, its quantisation perhaps by its name."""
        order = f"layout={region.layout}"
        if region.strides:
            order = f"strides={_dims_text(region.strides)}"
        text = f"elem={region.elem}, shape={_dims_text(region.shape)}, {order}"
        if region.quant is None:
            return text
        name = self.quants.get(_quant_key(region)) if self.quants else None
        return f"{text}, quant={name or quant_text(region)}"


def shared_names(statements: Sequence[Statement]) -> SharedNames:
    """Names for what several regions of a program share, each after the first layer with it."""
    counts = Counter(_type_key(region) for region, _ in _typed(statements, {}))
    is_shared = {key for key, count in counts.items() if count >= _FEWEST_OF_A_TYPE}
    # A type that has a name is written once, another one as often as it stands there.
    written = Counter[Region]()
    for key, count in counts.items():
        if key.quant is not None:
            written[_quant_key(key)] += 1 if key in is_shared else count
    quants = {key for key, count in written.items() if count > 1}
    namer = _Namer(layers_of_regions(statements), _declared_names(statements), is_shared, quants)
    return namer.names(statements)


@dataclass(frozen=True)
class _Namer:
    layers: Mapping[str, str]  # of named regions
    taken: set[str]
    shared_types: set[Region]
    shared_quants: set[Region]
    numbers: Counter[str] = field(default_factory=Counter)

    def names(self, statements: Sequence[Statement]) -> SharedNames:
        types, quants, before = dict[Region, str](), dict[Region, str](), dict[int, list[str]]()
        found = SharedNames(types, quants, before)
        for statement in statements:
            for region, layer in _typed([statement], self.layers):
                key, lines = _type_key(region), before.setdefault(id(statement), [])
                if key in types:
                    continue
                quant = _quant_key(region) if region.quant is not None else None
                if quant in self.shared_quants and quant not in quants:
                    quants[quant] = self._free_name(layer, "q")
                    lines.append(f"let {quants[quant]} = {quant_text(region)}")
                if key in self.shared_types:
                    name = self._free_name(layer, "t")
                    lines.append(f"let {name} = {found.written_type(region)}")
                    types[key] = name
        return found

    def _free_name(self, layer: str, letter: str) -> str:
        stem = f"{layer}_{letter}" if layer else letter
        while True:
            name = f"{stem}{self.numbers[stem]}"
            self.numbers[stem] += 1
            if name not in self.taken:
                return name


def _type_key(region: Region) -> Region:
    return replace(region, buffer="", offset=_NOWHERE.offset, size=0)


def _quant_key(region: Region) -> Region:
    # The axis is the last one, so it follows from the rank.
    is_single = region.quant is not None and region.quant.is_single
    return replace(_NOWHERE, quant=region.quant, shape=() if is_single else (len(region.shape),))


def _typed(
    statements: Sequence[Statement], layers: Mapping[str, str]
) -> Iterator[tuple[Region, str]]:
    """Every region that has a type and holds it as it is, and the layer that it is of."""
    for region, layer in _regions(statements, layers):
        if region.elem and region.compressed is None:
            yield region, layer


def _regions(
    statements: Sequence[Statement], layers: Mapping[str, str]
) -> Iterator[tuple[Region, str]]:
    for statement in statements:
        if isinstance(statement, Loop):
            yield from _regions(statement.body, layers)
        elif isinstance(statement, Let):
            yield statement.region, layers.get(statement.name, "")
        elif isinstance(statement, Copy):
            for side in (statement.dst, statement.src):
                if isinstance(side, Region):
                    yield side, statement.debug


def layers_of_regions(statements: Sequence[Statement]) -> dict[str, str]:
    """The layer of the first task that uses a named region."""
    found: dict[str, str] = {}
    for statement in statements:
        if isinstance(statement, Loop):
            for name, layer in layers_of_regions(statement.body).items():
                found.setdefault(name, layer)
        elif isinstance(statement, Copy | Compute):
            for name in operand_names(statement):
                found.setdefault(name, statement.debug)
    return found


def operand_names(task: Copy | Compute) -> tuple[str, ...]:
    """The regions that a task names."""
    if isinstance(task, Compute):
        return (*task.inputs, task.output)
    return tuple(side for side in (task.dst, task.src) if isinstance(side, str))


def _declared_names(statements: Sequence[Statement]) -> set[str]:
    names: set[str] = set()
    for statement in statements:
        if isinstance(statement, Loop):
            names |= {statement.variable} | _declared_names(statement.body)
        elif isinstance(statement, Let):
            names.add(statement.name)
        elif isinstance(statement, Copy | Compute):
            names.add(statement.token)
    return names


def quant_text(region: Region) -> str:
    """A region's quantisation, written out."""
    quant = region.quant
    if quant is None:
        return ""
    if quant.is_single:
        return f"per_tensor(scale={_scale_text(quant.scales[0])}, zero_point={quant.zeros[0]})"
    scales, axis = ", ".join(map(_scale_text, quant.scales)), len(region.shape) - 1
    return f"per_channel(axis={axis}, scales=[{scales}], zero_points={_dims_text(quant.zeros)})"


def _dims_text(values: Sequence[int]) -> str:
    return f"[{', '.join(map(str, values))}]"


def _scale_text(scale: float) -> str:
    """The fewest digits that are this scale as an f32, which is what it is computed with."""
    short = float(str(np.float32(scale)))
    is_same = np.float32(short) == np.float32(scale)
    return float_text(short if is_same else scale)


def float_text(value: float) -> str:
    """A number as NEM writes it, with a point."""
    text = repr(value)
    mantissa, mark, exponent = text.partition("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}{mark}{exponent}"
