"""Fourth stage: how many rows and columns a tile has, by a model of what it costs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.compile.legalise.origins import nodes_text, place_of
from nacre.compile.options import Options
from nacre.compile.partition.layers import Layer
from nacre.compile.partition.stage import Partition
from nacre.compile.partition.support import tile_contents
from nacre.compile.rules import CMP02
from nacre.compile.tiling.candidates import cheapest_tiling, smallest_tile
from nacre.compile.tiling.costs import layer_weight_cycles
from nacre.compile.tiling.footprints import footprint
from nacre.compile.tiling.problems import tile_problem
from nacre.compile.tiling.residency import Residency, residency
from nacre.compile.tiling.spaces import ALIGN
from nacre.compile.tiling.tiling import Tiling

# Parts of L1 for tensors that stay there, and the MACs of layers that give up engines for them.
_ZONES = ((0.5, 1 << 40), (0.25, 1 << 40), (0.5, 1 << 19), (0.0, 0))


@dataclass(frozen=True, eq=False)
class Tilings:
    """A tiling for every layer, and the tensors that stay in L1."""

    layers: tuple[Tiling, ...]
    resident: Residency
    cycles_of: tuple[float, ...]  # about how long every layer takes
    weights: float = 0.0  # the same for weights that stay in L1

    @property
    def cycles(self) -> float:
        """About how long all layers take."""
        return sum(self.cycles_of) + self.weights

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
    cycles: list[float] = []
    next_weights, weights = 0, 0.0
    loaded_by = set(resident.loaded_by.values())
    first = next((layer.name for layer in partition.layers if layer.macs), None)
    for layer in reversed(partition.layers):
        is_first = layer.name == first
        if layer.main == "copy":
            tilings.append(Tiling(1, 1))
            cycles.append(0.0)
            continue
        chosen = best_tiling(layer, partition, options, resident, next_weights, is_first=is_first)
        if chosen is None or _is_single_buffered(layer, chosen[1], options, resident):
            narrow = best_tiling(
                layer, partition, options, resident, next_weights,
                narrow_columns=True, is_first=is_first,
            )  # fmt: skip
            chosen = min(filter(None, (chosen, narrow)), key=lambda found: found[0], default=None)
        if chosen is None and not is_last:
            return None
        if chosen is None:
            refused.append(_no_tile_finding(layer, partition, options))
            continue
        cycles.append(chosen[0])
        if layer.name in loaded_by:
            weights += layer_weight_cycles(layer, options)
        tilings.append(chosen[1])
        next_weights = footprint(layer, chosen[1], resident).w_bytes
    if refused:
        raise InputError(refused[::-1])
    return Tilings(tuple(tilings[::-1]), resident, tuple(cycles[::-1]), weights)


def _is_single_buffered(
    layer: Layer, tiling: Tiling, options: Options, resident: Residency
) -> bool:
    """Whether L1 holds one block of weights, or one tile, so that each waits for the last."""
    if tiling.w_slots == 1 and tiling.columns < layer.columns:
        return True
    if tiling.slots > 1 or not layer.cut(tiling.rows, tiling.columns).rows:
        return False
    needed = footprint(layer, tiling, resident).total(replace(tiling, slots=2))
    return needed > options.l1_bytes // ALIGN * ALIGN - resident.begin(layer)


def fits(layer: Layer, options: Options, *, narrow_columns: bool = False) -> bool:
    """Whether a layer has a tile that fits in L1."""
    least = smallest_tile(layer, narrow_columns=narrow_columns)
    if least is None:
        return False
    needed = footprint(layer, least, Residency()).total(least)
    return needed <= options.l1_bytes // ALIGN * ALIGN


def best_tiling(
    layer: Layer,
    partition: Partition,
    options: Options,
    resident: Residency,
    next_weights: int = 0,
    *,
    narrow_columns: bool = False,
    is_first: bool = False,
) -> tuple[float, Tiling] | None:
    """The cheapest tiling that fits beside what is resident, and its cycles; None where none does.

    With `narrow_columns`, of blocks of few columns.
    """
    return cheapest_tiling(
        tile_problem(
            layer,
            partition,
            options,
            resident,
            next_weights,
            narrow_columns=narrow_columns,
            is_first=is_first,
        )
    )


def _no_tile_finding(layer: Layer, partition: Partition, options: Options) -> Diagnostic:
    values = [op.value_id for op in layer.operations]
    name = f"`{layer.name}`{nodes_text(partition.legal, values)}"
    span = place_of(partition.legal, values)
    found = (smallest_tile(layer), smallest_tile(layer, narrow_columns=True))
    least = min(
        (tiling for tiling in found if tiling is not None),
        key=lambda tiling: footprint(layer, tiling, Residency()).total(tiling),
        default=None,
    )
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
    needed = footprint(layer, least, Residency())
    message = (
        f"no tile of {name} fits in the {options.l1_bytes} bytes of L1: the smallest, "
        f"{least.rows} rows by {least.columns} columns, takes {needed.total(least)} "
        f"({needed.ring} a tile, {needed.shared_bytes} for all tiles, {needed.w_bytes} a block of "
        "weights)"
    )
    help_ = f"a device with more L1 than {options.device.name}, or a narrower layer"
    return CMP02.at(span, message, help=help_)
