"""Fourth stage: how many rows and columns a tile has, by a model of what it costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import ceil

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.compile.legalise.origins import nodes_text, place_of
from nacre.compile.options import Options
from nacre.compile.partition.layers import Cut, Layer
from nacre.compile.partition.stage import Partition
from nacre.compile.partition.support import tile_contents
from nacre.compile.rules import CMP02
from nacre.compile.tiling.costs import TileCosts, tile_costs, weight_cycles
from nacre.compile.tiling.residency import Residency, residency
from nacre.compile.tiling.spaces import ALIGN, Spaces, align_up, space_bytes, spaces_of
from nacre.compile.tiling.tiling import Split, Tiling

_GRAIN = 16  # columns come in multiples of this, as long as there are several blocks
_FINE = (8, 4, 2, 1)  # columns of blocks where not even that fits
_MOST_SLOTS = 8
MOST_WRITTEN_OUT = 6  # tiles of an engine; more are a loop
_TASK_CYCLES = 2  # for which a task more is not worth it: people read the plan, and it is run
_SPARE_TOKENS = 5  # for weights and what is loaded ahead

# Parts of L1 for tensors that stay there, and the MACs of layers that give up engines for them.
_ZONES = ((0.5, 1 << 40), (0.25, 1 << 40), (0.5, 1 << 19), (0.0, 0))


@dataclass(frozen=True)
class Footprint:
    """What a layer takes in L1: a ring of tiles, what all tiles share, blocks of weights."""

    spaces: Spaces
    sizes: tuple[int, ...]  # of spaces
    w_bytes: int  # a block

    @cached_property
    def ring(self) -> int:
        """Bytes of one tile."""
        return sum(s for s, fixed in zip(self.sizes, self.spaces.fixed, strict=True) if not fixed)

    @cached_property
    def shared_bytes(self) -> int:
        """Bytes of what is loaded once."""
        return sum(s for s, fixed in zip(self.sizes, self.spaces.fixed, strict=True) if fixed)

    def total(self, tiling: Tiling) -> int:
        """All of it."""
        return tiling.slots * self.ring + self.shared_bytes + tiling.w_slots * self.w_bytes


@lru_cache(maxsize=256)
def _spaces(layer: Layer, cut: Cut, resident: frozenset[int]) -> Spaces:
    return spaces_of(layer, cut, resident)


def footprint(layer: Layer, tiling: Tiling, resident: Residency) -> Footprint:
    """What a layer takes in L1 with tiles of a size, beside the tensors that stay there."""
    spaces = _spaces(layer, layer.cut(tiling.rows, tiling.columns), resident.of(layer))
    size = layer.size(tiling.rows, tiling.columns)
    w_bytes = 0
    if layer.packed is not None and not resident.holds_weights(layer):
        w_bytes = align_up(layer.packed.block_bytes(tiling.columns))
    return Footprint(spaces, space_bytes(layer, spaces, size), w_bytes)


@dataclass(frozen=True, eq=False)
class Tilings:
    """A tiling for every layer, and the tensors that stay in L1."""

    layers: tuple[Tiling, ...]
    resident: Residency
    cycles: float  # about how long all layers take

    def describe(self, partition: Partition) -> str:
        """The tiling of every layer by name, and what stays in L1."""
        pairs = zip(partition.layers, self.layers, strict=True)
        lines = [f"{layer.name}: {t}\n" for layer, t in pairs if layer.main != "copy"]
        kept = [f"%{tensor}" for tensor in self.resident.offsets]
        kept += [f"weights of {name}" for name in self.resident.loaded_by.values()]
        most = max((self.resident.zone, *self.resident.begins.values()))
        return "".join(lines) + f"in L1: {', '.join(kept) or 'nothing'}, {most} bytes\n"


def tile(partition: Partition, options: Options) -> Tilings:
    """The cheapest tiling of every layer that fits; InputError names the layers without one.

    Several sizes of the zone for tensors that stay in L1 are tried.
    """
    best: Tilings | None = None
    tried: list[Residency] = []
    zones = _ZONES[-1:] if "residency" in options.disabled else _ZONES
    for part, most_macs in zones:
        resident = residency(partition, options, int(options.l1_bytes * part), most_macs)
        if any((resident.offsets, resident.weights) == (t.offsets, t.weights) for t in tried):
            continue
        tried.append(resident)
        tilings = _tile_layers(partition, options, resident, is_last=False)
        if tilings is not None and (best is None or tilings.cycles < best.cycles):
            best = tilings
    if best is None:  # not even without a zone: which layers it is, is an error
        best = _tile_layers(partition, options, Residency(), is_last=True)
    assert best is not None
    return best


def _tile_layers(
    partition: Partition, options: Options, resident: Residency, *, is_last: bool
) -> Tilings | None:
    """Tilings beside some tensors that stay in L1; None where a layer does not fit.

    From the last layer to the first: a layer leaves room for the weights of the next one, if that
    costs it less than waiting for them would.
    """
    tilings: list[Tiling] = []
    refused: list[Diagnostic] = []
    next_weights, total = 0, 0.0
    loaded_by = set(resident.loaded_by.values())
    for layer in reversed(partition.layers):
        if layer.main == "copy":
            tilings.append(Tiling(1, 1))
            continue
        chosen = best_tiling(layer, partition, options, resident, next_weights)
        if chosen is None:
            chosen = best_tiling(
                layer, partition, options, resident, next_weights, narrow_columns=True
            )
        if chosen is None and not is_last:
            return None
        if chosen is None:
            refused.append(_no_fit(layer, partition, options))
            continue
        total += chosen[0]
        if layer.packed is not None and layer.name in loaded_by:
            total += weight_cycles(layer.packed, layer.columns, options)
        tilings.append(chosen[1])
        next_weights = footprint(layer, chosen[1], resident).w_bytes
    if refused:
        raise InputError(refused[::-1])
    return Tilings(tuple(tilings[::-1]), resident, total)


def fits(layer: Layer, options: Options, *, narrow_columns: bool = False) -> bool:
    """Whether a layer has a tile that fits in L1."""
    none = Residency()
    shapes = _tile_shapes(layer, none, narrow_columns=narrow_columns)
    return any(footprint(layer, s, none).total(s) <= _usable_l1_bytes(options) for s in shapes)


def _usable_l1_bytes(options: Options) -> int:
    """Bytes of L1 as far as they can be used."""
    return options.l1_bytes // ALIGN * ALIGN


def best_tiling(
    layer: Layer,
    partition: Partition,
    options: Options,
    resident: Residency,
    next_weights: int = 0,
    *,
    narrow_columns: bool = False,
) -> tuple[float, Tiling] | None:
    """The cheapest tiling that fits beside what is resident, and its cycles; None where none does.

    With `narrow_columns`, of blocks of few columns.
    """
    best: tuple[float, int, Tiling] | None = None
    room = _usable_l1_bytes(options) - resident.begin(layer)
    for shape in _tile_shapes(layer, resident, narrow_columns=narrow_columns):
        needed = footprint(layer, shape, resident)
        if needed.total(shape) > room:
            continue
        costs = tile_costs(layer, shape, partition, options, resident)
        for tiling in _candidates(layer, shape, options, resident):
            if needed.total(tiling) > room:
                tiling = replace(tiling, w_slots=1)
            total = needed.total(tiling)
            if total > room:
                continue
            late = next_weights / 32 if total + next_weights > room else 0.0
            key = (cycles(layer, tiling, costs, options) + late, -tiling.rows * tiling.columns)
            if best is None or key < best[:2]:
                best = (*key, tiling)
    return None if best is None else (best[0], best[2])


def cycles(layer: Layer, tiling: Tiling, costs: TileCosts, options: Options) -> float:
    """About how long a layer takes: the busiest unit, and filling and draining the pipe."""
    device = options.device
    blocks = ceil(layer.columns / tiling.columns)
    tiles = layer.images * ceil(layer.rows / tiling.rows)
    by_rows = tiling.split == "rows"
    share = ceil(tiles / tiling.engines) if by_rows else tiles
    own_blocks = blocks if by_rows else ceil(blocks / tiling.engines)
    count = share * own_blocks  # of one engine
    weight_loads = own_blocks * costs.weights + costs.shared
    work = {
        "NMU": count * costs.nmu,
        "CSTL": count * costs.cstl,
        "VPU": count * costs.vpu,
        "DMA": count * costs.dma + weight_loads,
    }
    busiest = max(used / max(1, device.count(unit)) for unit, used in work.items())
    outside = tiling.engines * (count * costs.sdma + weight_loads)
    busiest = max(busiest, outside / max(1, device.count("sDMA")))
    busiest = max(busiest, ceil(count / tiling.slots) * costs.chain)
    if costs.sdma and device.count("sDMA") <= tiling.engines:
        # Behind a block of weights waits what tiles bring to DDR: but for those that have slots,
        # they run when it is there, and the next one not yet on its way.
        waiting = ceil(share / tiling.slots) - 1
        busiest = max(busiest, own_blocks * (costs.weights + waiting * costs.chain))
    # Loops drain. So do, more or less, many blocks that wait for weights or come in pieces.
    rounds = share if layer.main == "matmul" else count
    drains = own_blocks if rounds > MOST_WRITTEN_OUT else 1
    if tiling.w_slots < min(2, own_blocks):  # each block's weights come when the last is done
        busiest += own_blocks * costs.weights
    if layer.images > 1 and tiling.rows < layer.rows:
        drains *= layer.images  # each is complete before the next begins
    tasks = len(layer.operands) + len(layer.steps) + len(layer.results)
    late = (costs.weights + costs.shared) / 4
    return busiest + drains * costs.chain + late + _TASK_CYCLES * count * tasks


def _tile_shapes(
    layer: Layer, resident: Residency, *, narrow_columns: bool = False
) -> Iterator[Tiling]:
    """Sizes of tiles, one in L1 at a time; weights that stay there are not cut."""
    sizes = [layer.columns] if resident.holds_weights(layer) else _column_sizes(layer)
    if narrow_columns:
        sizes = [size for size in _FINE if _allows_narrow_columns(layer) and size < layer.columns]
    for columns in sizes:
        for rows in equal_parts(layer.rows):
            if layer.window is None or layer.window.is_sound(layer.rows, rows):
                yield Tiling(rows, columns)


def _allows_narrow_columns(layer: Layer) -> bool:
    """Whether few columns at a time make sense: elsewhere operands would come in tiny pieces."""
    x = layer.steps[0].inputs[0].local
    return layer.cuts_columns and layer.packed is not None and "columns" not in layer.locals[x].axes


def _candidates(
    layer: Layer, shape: Tiling, options: Options, resident: Residency
) -> Iterator[Tiling]:
    """How engines share out tiles of a size, and how many of them each has in flight."""
    limit = _token_limit(options)
    engines = 1 if resident.keeps_together(layer) else options.device.num_engines
    fixed = layer.fixed_locals(layer.cut(shape.rows, shape.columns))
    loads = sum(not a.stays and i not in fixed for i, a in enumerate(layer.operands))
    lanes = max(1, loads + len(layer.results) - 1)
    blocks = ceil(layer.columns / shape.columns)
    tiles = layer.images * ceil(layer.rows / shape.rows)
    for split, used in _splits(engines, tiles, blocks):
        own = blocks if split == "rows" else ceil(blocks / used)
        count = (ceil(tiles / used) if split == "rows" else tiles) * own
        most = 1 if "slots" in options.disabled else _MOST_SLOTS
        for slots in range(1, min(most, count) + 1):
            if slots > 1 + (not options.token_reserve) and slots * lanes > limit:
                break
            yield Tiling(shape.rows, shape.columns, slots, min(2, own), used, split)


def _splits(engines: int, tiles: int, blocks: int) -> Iterator[tuple[Split, int]]:
    yield "rows", max(1, min(engines, tiles))
    if engines > 1 and blocks > 1:
        yield "columns", min(engines, blocks)


def _token_limit(options: Options) -> int:
    return max(1, (options.tokens - _SPARE_TOKENS) // (1 + options.token_reserve))


def _column_sizes(layer: Layer) -> list[int]:
    if not layer.cuts_columns:
        return [layer.columns]
    cut = {-(-size // _GRAIN) * _GRAIN for size in equal_parts(layer.columns)}
    return sorted({layer.columns, *(size for size in cut if size < layer.columns)})


def equal_parts(size: int) -> list[int]:
    """Sizes of about equal parts, from the whole down to one; ever fewer as they get small."""
    sizes: list[int] = []
    count = 1
    while True:
        part = -(-size // count)
        if not sizes or part < sizes[-1]:
            sizes.append(part)
        if part == 1:
            return sizes
        count = max(count + 1, count * 5 // 4)


def _no_fit(layer: Layer, partition: Partition, options: Options) -> Diagnostic:
    values = [op.value_id for op in layer.operations]
    name = f"`{layer.name}`{nodes_text(partition.legal, values)}"
    span = place_of(partition.legal, values)
    none = Residency()
    shapes = (*_tile_shapes(layer, none), *_tile_shapes(layer, none, narrow_columns=True))
    least = min(shapes, key=lambda t: footprint(layer, t, none).total(t), default=None)
    if least is None:
        message = f"every tile of {name} has rows that see nothing but padding"
        help_ = "pad by less than the window's height"
        return CMP02.at(span, message, help=help_)
    if layer.main == "escape":  # by name on the VPU: where it cannot be cut, all of it is one tile
        message = (
            f"{name} does not fit in the {options.l1_bytes} bytes of L1: the smallest part that "
            f"can be computed by itself holds {tile_contents(layer, least.rows, least.columns)}"
        )
        return CMP02.at(span, message, help=f"a device with more L1 than {options.device.name}")
    needed = footprint(layer, least, none)
    message = (
        f"no tile of {name} fits in the {options.l1_bytes} bytes of L1: the smallest, "
        f"{least.rows} rows by {least.columns} columns, takes {needed.total(least)} "
        f"({needed.ring} a tile, {needed.shared_bytes} for all tiles, {needed.w_bytes} a block of "
        "weights)"
    )
    help_ = f"a device with more L1 than {options.device.name}, or a narrower layer"
    return CMP02.at(span, message, help=help_)
