"""Estimates for people and for programs: one screen of text, or plain values."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from nacre.base.excerpt import safe
from nacre.base.grouping import merge_notes
from nacre.compile.estimate.layer_times import LayerTime, operation_times
from nacre.compile.estimate.losses_text import losses_text
from nacre.compile.estimate.result import Estimate

MOST_LAYERS = 12  # shown of one device; of several, each shows half as many
_MOST_PROBLEMS = 8
_MOST_NOTES = 6
_WIDTH = 100
_NODE = 28  # characters of a node's name
DERATING_FACTORS = {
    "NMU.lanes": "NMU as an array",
    "DDR.bandwidth": "DDR shared",
    "DMA.burst": "runs of copies",
}
Row = tuple[str, ...]


def estimate_text(
    model: str,
    estimates: Mapping[str, Estimate],
    most: int | None = None,
    *,
    shows_losses: bool = False,
) -> str:
    """Every device in a column, then their layers, problems and assumptions.

    `most` is how many layers of a device are shown, the costliest first.
    """
    parts = [_headline(model, estimates), *_times_text(estimates), _figures(estimates)]
    shown = most if most is not None else MOST_LAYERS if len(estimates) == 1 else MOST_LAYERS // 2
    for name, one in estimates.items():
        if one.plan is not None:
            parts += layer_tables(name, one, shown)
            parts += [losses_text(name, one.plan.losses, one.plan.layers)] if shows_losses else []
        else:
            parts.append(_problems(name, one))
    for name, one in estimates.items():
        if one.escaped:
            parts.append(_vpu_text(name, one.escaped))
        if one.plan is not None and one.bounds and one.plan.ideal.cycles < one.bounds.whole:
            parts.append(
                f"{safe(name)}: below the whole bound, which counts a store for each layer;\n"
                "  tensors that stay in L1 need none, and the floor leaves stores out"
            )
        if one.plan is not None and one.plan.bundle.manifest.notes:
            parts.append(_notes(name, one.plan.bundle.manifest.notes))
    parts.append(_assumptions_text(estimates))
    return "\n\n".join(parts)


def _headline(model: str, estimates: Mapping[str, Estimate]) -> str:
    """The model, the precision, and how sure of that one can be."""
    first = next(iter(estimates.values()))
    text = f"{safe(model)} in {first.precision}"
    precisions = {
        one.plan.bundle.precision_text for one in estimates.values() if one.plan is not None
    }
    if len(precisions) == 1:
        text = f"{safe(model)} in {precisions.pop()}"
    if first.precision == "i8" and any(one.most_cycles is not None for one in estimates.values()):
        ranges = [_range(one) for one in estimates.values() if one.most_cycles is not None]
        cycles = f"{ranges[0]} cycles, " if len(estimates) == 1 else ""
        text += f": {cycles}all on integers to all in f16, for without calibration data nothing "
        text += "says which layers stay f16"
    return text


def _range(one: Estimate) -> str:
    if one.most_cycles is None or one.cycles is None or one.most_cycles <= one.cycles:
        return _number(one.cycles)
    return f"{one.cycles:,} to {one.most_cycles:,}"


def _range_ms(one: Estimate) -> str:
    shown = _milliseconds(one.cycles, one)
    if one.most_cycles is None or one.cycles is None or one.most_cycles <= one.cycles:
        return shown
    return f"{shown} to {_milliseconds(one.most_cycles, one)}"


def _times_text(estimates: Mapping[str, Estimate]) -> list[str]:
    """By device: `2.31 ms (1.9 to 2.8, fitted to 214 rows)`."""
    lines = []
    for name, one in estimates.items():
        if one.plan is None or not one.plan.ideal.cycles:
            continue
        band, time = one.plan.band, one.plan.ideal.milliseconds or 0.0
        prefix = "" if band.is_calibrated else "not calibrated: "
        span = f"{band.low * time:.3g} to {band.high * time:.3g}"
        lines.append(f"{safe(name)}: {time:.3g} ms ({prefix}{span}, {band.basis})")
    return ["\n".join(lines)] if lines else []


# One column a device


def _figures(estimates: Mapping[str, Estimate]) -> str:
    clocks = {one.clock_mhz for one in estimates.values()}
    at_clock = f"ms at {clocks.pop():,.6g} MHz" if len(clocks) == 1 else "ms at its clock"
    columns = [_column(one, at_clock) for one in estimates.values()]
    titles = list(columns[0])
    rows = [(title, *(column[title] for column in columns)) for title in titles]
    used = [row for row in rows if any(cell for cell in row[1:])]
    return _table(("", *map(safe, estimates)), used)


def _column(one: Estimate, at_clock: str) -> dict[str, str]:
    plan, bounds = one.plan, one.bounds
    cycles = plan.ideal.cycles if plan is not None else None
    derated = plan.derated.cycles if plan is not None and plan.derating else None
    l2 = (one.device.topology and one.device.topology.l2_size_bytes) or 0
    return {
        "fits": "yes" if one.fits else "no",
        "cycles": _range(one),
        at_clock: _range_ms(one),
        "cycles, derated": _number(derated),
        **_derating_costs(one),
        f"{at_clock}, derated": _milliseconds(derated, one),
        "layer bound": _number(bounds.layer if bounds is not None else None),
        "over the layer bound": _times(cycles, bounds.layer if bounds is not None else None),
        "whole bound": _number(bounds.whole if bounds is not None else None),
        "over the whole bound": _times(cycles, bounds.whole if bounds is not None else None),
        "floor": _number(bounds.floor if bounds is not None else None),
        "over the floor": _times(cycles, bounds.floor if bounds is not None else None),
        "schedule bound": _number(bounds.schedule if bounds is not None else None),
        "over the schedule bound": _times(cycles, bounds.schedule if bounds is not None else None),
        "MAC utilisation": _share(one.mac_utilisation),
        "MACs of the model": _number(plan.bundle.manifest.macs) if plan is not None else "",
        "MACs of the plan on": _macs(one),
        "DDR traffic": size_text(plan.ddr_bytes) if plan is not None else "",
        "weights": size_text(len(plan.bundle.weights)) if plan is not None else "",
        "L2 peak": f"{size_text(plan.bundle.manifest.l2_peak)} of {size_text(l2)}" if plan else "",
        "VPU share": _share(plan.vpu_share if plan is not None else None),
        "busiest unit": _busiest(one),
    }


def _derating_costs(one: Estimate) -> dict[str, str]:
    """What each factor adds to the cycles, one after the other."""
    costs = one.plan.derating_costs if one.plan is not None else {}
    return {f"  {meaning}": f"{costs[key]:+,}" if key in costs else ""
            for key, meaning in DERATING_FACTORS.items()}  # fmt: skip


def _macs(one: Estimate) -> str:
    if one.plan is None:
        return ""
    macs = one.plan.ideal.macs_by_unit
    return ", ".join(f"{unit} {count:,}" for unit, count in macs.items()) or "none"


def _busiest(one: Estimate) -> str:
    if one.plan is None:
        return ""
    units, cycles = one.plan.ideal.units, max(1, one.plan.ideal.cycles)
    name = max(units, key=lambda unit: units[unit]["busy"])
    return f"{name} {_share(units[name]['busy'] / cycles)}"


# Layers


def layer_tables(name: str, one: Estimate, most: int = MOST_LAYERS) -> list[str]:
    """The layers that take longest, and the time of all by operation."""
    return [_layers(name, one, most), _operations(name, one)]


def _operations(name: str, one: Estimate) -> str:
    assert one.plan is not None
    total = max(1, one.plan.ideal.cycles)
    rows = [
        (
            safe(row.operation), f"{row.layers:,}", f"{row.macs:,}" if row.macs else "-",
            f"{row.cycles:,}", _share(row.cycles / total),
        )
        for row in operation_times(one.plan.layers)
    ]  # fmt: skip
    table = _table(("operation", "layers", "MACs", "cycles", "share"), rows)
    return f"operations on {safe(name)}\n{table}"


def _layers(name: str, one: Estimate, most: int) -> str:
    assert one.plan is not None
    layers, total = one.plan.layers, max(1, one.plan.ideal.cycles)
    costly = sorted(layers, key=lambda layer: -layer.cycles)[:most]
    heading: Row = ("layer", "operations", "MACs", "cycles", "share", "bound", "over", "limited by")
    title = f"layers on {safe(name)}"
    if len(layers) > len(costly):
        title += f": the {len(costly)} of {len(layers)} that take longest"
    rows = [_layer_row(layer, total) for layer in costly]
    words = (0, 1, 7, 8)
    if one.plan.band.is_calibrated:
        heading = (*heading[:4], "80 % band", *heading[4:])
        bands = [one.plan.layer_band(layer).values() for layer in costly]
        spans = [" to ".join(f"{cycles:,}" for cycles in band) for band in bands]
        rows = [(*row[:4], span, *row[4:]) for row, span in zip(rows, spans, strict=True)]
        words = (0, 1, 8, 9)
    if any(layer.nodes for layer in costly):
        heading = (*heading, "node")
        rows = [(*row, _node(layer)) for row, layer in zip(rows, costly, strict=True)]
    table = _table(heading, rows, words=words)
    return "\n".join([title, table, *map(_group, (each for each in costly if each.members))])


def _group(layer: LayerTime) -> str:
    members = ", ".join(safe(name) for name in layer.members)
    return _wrap(f"{safe(layer.name)} runs {members} depth first, tile by tile in L1")


def _node(layer: LayerTime) -> str:
    """The layer as the model calls it, by the end of the name: that is where names differ."""
    name = layer.nodes[0] if layer.nodes else ""
    return safe(name if len(name) <= _NODE else f"...{name[-_NODE + 3 :]}")


def _layer_row(layer: LayerTime, total: int) -> Row:
    over = layer.over_bound
    bound = layer.bound
    return (
        safe(layer.name),
        _shorten(" + ".join(layer.main_operations), 28),
        f"{layer.macs:,}" if layer.macs else "-",
        f"{layer.cycles:,}",
        _share(layer.cycles / total),
        f"{bound.cycles:,} {bound.limit}" if bound is not None and bound.limit else "-",
        f"{over:.2f}x" if over is not None else "-",
        _bottleneck_text(layer),
    )


def _bottleneck_text(layer: LayerTime) -> str:
    unit = max(layer.busy, key=lambda name: layer.busy[name], default=None)
    if unit is None or not layer.cycles:
        return layer.bottleneck
    busy = f"{unit} {_share(min(1.0, layer.busy[unit] / layer.cycles))}"
    return busy if unit == layer.bottleneck else f"{layer.bottleneck} ({busy})"


# What stands in the way, and what the numbers rest on


def _problems(name: str, one: Estimate) -> str:
    lines = [f"{safe(name)} cannot take the model:"]
    for problem in one.problems[:_MOST_PROBLEMS]:
        lines.append(_wrap(f"{problem.code}: {safe(problem.message)}"))
        if problem.help is not None:
            lines.append(_wrap(f"help: {safe(problem.help)}"))
    if len(one.problems) > _MOST_PROBLEMS:
        lines.append(f"  and {len(one.problems) - _MOST_PROBLEMS} more")
    return "\n".join(lines)


def _notes(name: str, notes: Sequence[str]) -> str:
    merged = merge_notes(notes)
    lines = [f"notes on {safe(name)}", *(_wrap(safe(note)) for note in merged[:_MOST_NOTES])]
    if len(merged) > _MOST_NOTES:
        lines.append(f"  and {len(merged) - _MOST_NOTES} more: --format json has them all")
    return "\n".join(lines)


def _vpu_text(name: str, escaped: Mapping[str, str]) -> str:
    lines = [f"on the VPU of {safe(name)}, for want of another form:"]
    return "\n".join([*lines, *(f"  {safe(op)}: {safe(why)}" for op, why in escaped.items())])


def _assumptions_text(estimates: Mapping[str, Estimate]) -> str:
    every = dict.fromkeys(line for one in estimates.values() for line in one.assumptions)
    return "\n".join(["assumptions", *(_wrap(safe(line)) for line in every)])


def _wrap(line: str) -> str:
    return textwrap.fill(line, _WIDTH, initial_indent="  ", subsequent_indent="    ")


# Numbers as text


def _table(heading: Row, rows: Sequence[Row], words: Sequence[int] = (0,)) -> str:
    """Columns of numbers to the right, those of words to the left."""
    lines = [heading, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(heading))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i in words else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _milliseconds(cycles: int | None, one: Estimate) -> str:
    return "" if cycles is None else f"{cycles / (1000 * one.clock_mhz):,.4g}"


def _times(cycles: int | None, bound: int | None) -> str:
    return "" if cycles is None or not bound else f"{cycles / bound:.2f}x"


def _share(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f} %"


def size_text(size: int) -> str:
    """A number of bytes as people say it: `312.5 KiB`."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor:
            return f"{size / factor:,.4g} {unit}"
    return f"{size} B"


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."
