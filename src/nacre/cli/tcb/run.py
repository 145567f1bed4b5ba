"""`nacre tcb run`: an image run on bytes, with inputs and outputs in files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nacre.base.diagnostics import Diagnostic, InputError, has_errors
from nacre.base.elements import ELEMENT_TYPES, GRAPH_TYPES
from nacre.base.excerpt import backquote, safe
from nacre.base.files import write_whole
from nacre.base.rendering import summary, to_json
from nacre.base.source import Unreadable, read_bytes
from nacre.base.suggest import did_you_mean
from nacre.cli.array_values import read_array
from nacre.cli.arrays import (
    InputFile,
    OutputFile,
    WrongUsage,
    file_bytes,
    parse_input,
    parse_output,
    require_writable,
    unreadable_reason,
    write_all_or_none,
)
from nacre.cli.exit_status import ERRORS_FOUND, OK
from nacre.cli.machine import show_findings
from nacre.cli.options import WholeNumber, form_option, repeated_option
from nacre.cli.outputs import require_distinct_files
from nacre.cli.tcb.group import open_image, plural, tcb
from nacre.cli.terminal.progress import show_stages

if TYPE_CHECKING:
    from nacre.tcb.image import Image, Port
    from nacre.tcb.machine.memory import HostData
    from nacre.tcb.machine.run import ImageRun


@tcb.command()
@click.argument("file", metavar="FILE.tcb")
@repeated_option(
    "--input", "inputs", parse_input, "NAME=FILE", "Fill a port or a buffer; .npy, else raw bytes."
)
@repeated_option(
    "--output",
    "outputs",
    parse_output,
    "NAME[:ELEM[:SHAPE]]=FILE",
    "Write a port or a buffer after the run, as the image has it or as ELEM; .npy, else raw bytes.",
)
@click.option(
    "--seed",
    type=WholeNumber(),
    metavar="N",
    help="Run in a random order of those that tags allow.",
)
@form_option
def run(
    file: str,
    inputs: tuple[InputFile, ...],
    outputs: tuple[OutputFile, ...],
    seed: int | None,
    form: str,
) -> int:
    """Run an image, bit-true; without a seed in the order of the program.

    Arrays of a bundle in .npy files are the model's own values, or inputs as the memory has them;
    raw bytes are always as the memory has them.

    Exit status: 0 completed, 1 errors in the image, its inputs or its run, 2 wrong usage.
    """
    paths = [output.path for output in outputs]
    require_distinct_files(paths, [file, *(one.path for one in inputs)])
    for path in paths:
        require_writable(path)
    try:
        with show_stages():
            image = open_image(file)
            ports = _ports(image.image)
            views = [_output_port(one, ports) for one in outputs]
            result = image.run(_arrays(inputs, ports), seed=seed)
    except InputError as error:
        return _Report(file, form).report_refusal(error.diagnostics)
    report = _Report(file, form)
    if result.status == "completed":
        report.written = _write(result, outputs, views)
    return report.report_run(result)


def _ports(image: Image) -> dict[str, Port]:
    """Every port by its name, and every buffer that is none as a port of bytes."""
    from nacre.tcb.image import Port

    found = {
        place.buffer: Port(place.buffer, "inout", place.memory, place.address, place.size)
        for place in image.placements
    }
    return {**found, **{port.name: port for port in image.ports}}


def _find(name: str, ports: dict[str, Port]) -> Port:
    if name in ports:
        return ports[name]
    some = ", ".join(backquote(known) for known in list(ports)[:8])
    hint = did_you_mean(name, ports) or (f"there are {some}" if some else "it has none")
    raise click.UsageError(f"the image has no port or buffer {backquote(name)}; {hint}")


def _arrays(inputs: Sequence[InputFile], ports: dict[str, Port]) -> dict[str, HostData]:
    arrays: dict[str, HostData] = {}
    for one in inputs:
        if one.target in arrays:
            raise click.UsageError(f"{backquote(one.target)} is given two inputs")
        arrays[one.target] = _read_input(one.path, _find(one.target, ports))
    return arrays


def _read_input(path: Path, port: Port) -> HostData:
    reason = unreadable_reason(path)
    if reason is not None:
        raise WrongUsage(reason)
    if path.suffix == ".npy":
        return read_array(str(path), None if port.elem is None else GRAPH_TYPES[port.elem].dtype)
    raw = read_bytes(path, limit=port.size)
    if isinstance(raw, Unreadable):
        raise WrongUsage(f"{safe(str(path))} has more than the {port.size} bytes of {port.name}")
    return raw


def _output_port(output: OutputFile, ports: dict[str, Port]) -> Port:
    """The port that an option names, as the option would have it."""
    from math import prod

    from msgspec.structs import replace

    from nacre.base.elements import bytes_needed

    if output.name in ports:
        return ports[output.name]
    if output.problem is not None:
        raise click.UsageError(output.problem)
    port = _find(output.buffer, ports)
    element = ELEMENT_TYPES[output.elem or "u8"]
    shape = output.shape or (port.size * 8 // element.bits,)
    needed = bytes_needed(prod(shape), element)
    if needed != port.size:
        what = f"{'x'.join(map(str, shape))} of {element.name}"
        raise click.UsageError(
            f"{backquote(port.name)} has {port.size} bytes; {what} takes {needed}"
        )
    plain = replace(port, host_elem=None, scales=(), zero_points=())
    return replace(plain, elem=element.name, dims=shape)


@dataclass(frozen=True)
class _Written:
    path: Path
    port: Port


def _write(
    result: ImageRun, outputs: Sequence[OutputFile], ports: Sequence[Port]
) -> tuple[_Written, ...]:
    from nacre.tcb.machine.host_arrays import host_array, port_array

    written = []
    with write_all_or_none():
        for output, port in zip(outputs, ports, strict=True):
            is_array = output.path.suffix == ".npy"
            array = (host_array if is_array else port_array)(port, result.read(port.name))
            write_whole(output.path, [file_bytes(array, output.path)])
            written.append(_Written(output.path, port))
    return tuple(written)


class _Report:
    """How a run is told: as text or as JSON."""

    def __init__(self, file: str, form: str) -> None:
        self._file, self._form = file, form
        self.written: tuple[_Written, ...] = ()

    def report_refusal(self, findings: Sequence[Diagnostic]) -> int:
        """Nothing ran."""
        if self._form == "json":
            self._echo_json({"status": "error"}, findings)
        else:
            show_findings(findings)
            click.echo(f"did not run {safe(self._file)}: {summary(findings)}")
        return ERRORS_FOUND

    def report_run(self, result: ImageRun) -> int:
        """A run came to its end, or stopped before."""
        from nacre.tcb.machine.host_arrays import port_text

        findings, machine = result.diagnostics, result.instances.image.machine
        is_complete = result.status == "completed" and not has_errors(findings)
        if self._form == "json":
            about = {"status": result.status, "device": machine.device, "uarch": machine.uarch,
                     "instances": len(result.order)}  # fmt: skip
            self._echo_json(about, findings)
            return OK if is_complete else ERRORS_FOUND
        show_findings(findings)
        notes = f"; {summary(findings)}" if findings else ""
        instances = plural(len(result.order), "block")
        entry = result.instances.image.entry
        click.echo(f"ran {instances} of {safe(entry)} on {safe(machine.uarch)}: "
                   f"{result.status}{notes}")  # fmt: skip
        for one in self.written:
            what = f"{one.port.name} as {port_text(one.port)}"
            click.echo(f"wrote {safe(str(one.path))}: {safe(what)}")
        return OK if is_complete else ERRORS_FOUND

    def _echo_json(self, about: dict[str, Any], findings: Sequence[Diagnostic]) -> None:
        from nacre.tcb.machine.host_arrays import port_text

        outputs = {str(one.path): {"port": one.port.name, "type": port_text(one.port)}
                   for one in self.written}  # fmt: skip
        diagnostics = [to_json(d) for d in findings]
        document = {**about, "file": self._file, "diagnostics": diagnostics, "outputs": outputs}
        click.echo(json.dumps(document, indent=2))
