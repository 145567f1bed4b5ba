"""`nacre devices`: list the built-in devices, or describe one."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import click
from rich import box
from rich.console import Console
from rich.table import Table

from nacre.base.diagnostics import has_errors
from nacre.base.excerpt import safe
from nacre.base.rendering import render_by_cause
from nacre.cli.exit_status import ERRORS_FOUND, OK
from nacre.cli.options import include_root_option
from nacre.cli.terminal.streams import unfiltered_stream
from nacre.nem.checks.engine import named_device
from nacre.nem.model.builtins import builtin_names
from nacre.nem.model.devices import Device
from nacre.nem.model.provenance import Figure, figures
from nacre.nem.model.target import UnknownDeviceError, builtin_device


@click.command()
@click.argument("name", required=False)
@click.option("--timing", is_flag=True, help="What its units cost, figure by figure.")
@include_root_option
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text")
def devices(name: str | None, timing: bool, include_roots: tuple[Path, ...], output: str) -> int:
    """List the built-in devices; with NAME (or a file), describe one figure by figure."""
    if name is None:
        if timing:
            raise click.UsageError("--timing needs the NAME of a device")
        listed = [builtin_device(known) for known in builtin_names()]
        if output == "json":
            click.echo(json.dumps([_as_json(device) for device in listed], indent=2))
        else:
            _print(_overview(listed))
        return OK
    try:
        is_builtin = name in builtin_names()
        device = builtin_device(name) if is_builtin else _from_file(name, include_roots)
    except UnknownDeviceError as error:
        raise click.UsageError(safe(str(error))) from None
    if device is None:
        return ERRORS_FOUND
    if timing:
        _show_timing(device, output)
    elif output == "json":
        click.echo(json.dumps(_as_json(device), indent=2))
    else:
        _describe(device)
    return OK


def _show_timing(device: Device, output: str) -> None:
    """Every figure that the timed machine uses, and where it comes from."""
    from nacre.nem.run.timing.profile import timing_figures

    rows = timing_figures(device)
    if output == "json":
        click.echo(json.dumps([dataclasses.asdict(row) for row in rows], indent=2))
        return
    table = Table(box=box.SIMPLE, pad_edge=False)
    for heading in ("unit", "figure"):
        table.add_column(heading)
    table.add_column("value", justify="right")
    table.add_column("measure")
    table.add_column("source")
    for row in rows:
        value = "-" if row.value is None else str(row.value)
        table.add_row(row.unit, row.key, value, row.measure, safe(row.source))
    _print(f"timing of device {device.name}\n", table)


def _from_file(name: str, include_roots: tuple[Path, ...]) -> Device | None:
    target = named_device(name, include_roots)
    if has_errors(target.diagnostics):
        click.echo(render_by_cause(target.diagnostics))
        return None
    return target.device


def _print(*parts: Table | str) -> None:
    # Names and reasons come from files: nothing in them is markup.
    width = None if _is_terminal() else 120
    console = Console(
        highlight=False, markup=False, emoji=False, width=width, file=unfiltered_stream()
    )
    for part in parts:
        console.print(part)


def _is_terminal() -> bool:
    return Console().is_terminal


def _overview(devices: list[Device]) -> Table:
    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column("device")
    for heading in ("engines", "NMU", "int8 MACs", "CSTL", "DMA", "sDMA", "L1", "L2", "variants"):
        table.add_column(heading, justify="right")
    for device in devices:
        topology = device.topology
        if topology is None:
            count = str(len(device.instances))
            table.add_row(device.name, "abstract", *[""] * 7, count)
            continue
        table.add_row(
            device.name,
            str(topology.num_engines),
            *(str(device.count(unit)) for unit in ("NMU",)),
            str(device.characteristics.get("NMU", {}).get("int8_macs", "")),
            *(str(device.count(unit)) for unit in ("CSTL", "DMA", "sDMA")),
            size_text(topology.l1_size_bytes),
            size_text(topology.l2_size_bytes),
            str(len(device.instances)),
        )
    return table


def size_text(size: int | None) -> str:
    """A number of bytes as people say it: `512 KiB`."""
    if size is None:
        return "?"
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor and size % factor == 0:
            return f"{size // factor} {unit}"
    return f"{size} B"


def _describe(device: Device) -> None:
    parent = f" extends {device.parent.name}" if device.parent is not None else ""
    _print(f"device {device.name}{parent}, {device.spec_version}\n")
    if device.is_abstract:
        _print("abstract: it has no topology and is there to be extended\n")
    rows = figures(device)
    if rows:
        _print(_figure_table(rows))
    _print(_types_table(device))


def _figure_table(rows: list[Figure]) -> Table:
    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column("figure")
    table.add_column("value", justify="right")
    table.add_column("basis")
    for row in rows:
        value = size_text(row.value) if row.name.endswith("_bytes") else str(row.value)
        reason = f": {safe(row.reason)}" if row.reason else ""
        table.add_row(row.name, value, row.basis + reason)
    return table


def _types_table(device: Device) -> Table:
    """Opcodes that take the same types share a row."""
    rows: dict[tuple[tuple[str, str], ...], list[str]] = {}
    extended = set(device.extended)
    for opcode, instances in device.effective_by_opcode.items():
        key = tuple((i.id, "extended" if i.id in extended else "") for i in instances)
        rows.setdefault(key, []).append(opcode)
    table = Table(box=box.SIMPLE, pad_edge=False, title="effective types", title_justify="left")
    table.add_column("opcodes", max_width=44)
    table.add_column("variants", no_wrap=True)
    for key, opcodes in rows.items():
        variants = "\n".join(f"{id_}{' (extended)' if mark else ''}" for id_, mark in key)
        table.add_row(" ".join(opcodes), variants or "none")
    return table


def _as_json(device: Device) -> dict[str, Any]:
    topology = device.topology
    return {
        "name": device.name,
        "extends": device.parent.name if device.parent is not None else None,
        "spec_version": device.spec_version,
        "topology": None
        if topology is None
        else {
            "num_engines": topology.num_engines,
            "l1_size_bytes": topology.l1_size_bytes,
            "l2_size_bytes": topology.l2_size_bytes,
            "per_engine": dict(topology.per_engine),
            "device_units": {name: device.count(name) for name in ("sDMA", "WDM")},
        },
        "unit_characteristics": {u: dict(e) for u, e in device.characteristics.items()},
        "mandatory": list(device.mandatory),
        "extended": list(device.extended),
        "effective": {
            op: [i.id for i in instances] for op, instances in device.effective_by_opcode.items()
        },
        "basis": {f.name: f.basis for f in figures(device)},
    }
