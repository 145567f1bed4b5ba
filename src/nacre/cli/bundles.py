"""Bundles that verbs are given: a program, its weights, inputs and outputs by the model's names."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from nacre.base.excerpt import backquote, safe
from nacre.base.suggest import did_you_mean
from nacre.cli.array_values import read_array
from nacre.cli.arrays import InputFile, OutputFile, WrongUsage, file_bytes, unreadable_reason
from nacre.cli.machine import Setup

if TYPE_CHECKING:
    import numpy as np

    from nacre.base.diagnostics import Diagnostic
    from nacre.compile.bundle.bundle import Bundle
    from nacre.compile.bundle.manifest import Port
    from nacre.core.module import Module
    from nacre.core.values import Array
    from nacre.nem.run.sessions.session import RunResult


@dataclass(frozen=True)
class OpenBundle:
    """A bundle as options name it: what fills its buffers, and which outputs are written where."""

    bundle: Bundle
    setup: Setup
    filled: dict[str, Any]
    targets: tuple[tuple[Port, Path], ...]
    inputs: Mapping[str, Array]
    losses: tuple[Diagnostic, ...] = ()  # what integers cannot hold of the inputs

    def files(self, result: RunResult) -> list[tuple[Path, bytes, str]]:
        """Every output that is asked for: its file, what goes there, and what that is."""
        from nacre.compile.bundle.compiled_model import from_memory

        files = []
        for port, path in self.targets:
            array = from_memory(result, port)
            what = f"{port.name} as {port.dtype} {'x'.join(map(str, port.shape))}"
            files.append((path, file_bytes(array, path), what))
        return files

    def not_finite_warnings(self, result: RunResult) -> list[Diagnostic]:
        """A warning for each output that is not finite though the inputs are."""
        from nacre.compile.bundle.compiled_model import from_memory
        from nacre.compile.bundle.not_finite import warn_of_infinite_outputs

        manifest = self.bundle.manifest
        arrays = [from_memory(result, port) for port in manifest.outputs]
        return warn_of_infinite_outputs(manifest, self.bundle.legal, self.inputs, arrays)


def open_bundle(
    setup: Setup, outputs: tuple[OutputFile, ...], *, needs_inputs: bool = True
) -> OpenBundle | None:
    """The bundle in a folder; None where the file is no folder, InputError where it is broken."""
    folder = Path(setup.file)
    if setup.file == "-" or not os.path.isdir(folder):  # which knows names that are none
        return None
    from nacre.compile.bundle.bundle import Bundle
    from nacre.compile.storage.names import program_path

    if setup.device is not None:
        raise click.UsageError("a bundle is for one device: compile the model for another")
    if click.get_current_context().get_parameter_source("ddr_size") is ParameterSource.COMMANDLINE:
        raise click.UsageError("a bundle brings the size of its DDR: `nacre compile --ddr-size`")
    bundle = Bundle.load(folder, cache=True)
    inside = replace(
        setup, file=str(program_path(folder)), inputs=(), ddr_size=bundle.manifest.ddr_bytes
    )
    ports = {port.name: port for port in bundle.manifest.outputs}
    ports |= {port.buffer: port for port in bundle.manifest.outputs}
    targets = tuple((_port(file, ports), file.path) for file in outputs)
    memory, arrays, lost = _fill_memory(bundle, setup) if needs_inputs else ({}, {}, [])
    return OpenBundle(bundle, inside, memory, targets, arrays, tuple(lost))


def require_bundle(folder: str) -> None:
    """WrongUsage for what is no folder, and so no bundle."""
    if not os.path.isdir(folder):
        raise WrongUsage(f"{safe(folder)} is no bundle, which is a folder that `compile` wrote")


def findings_to_show(bundle: OpenBundle | None, findings: list[Diagnostic]) -> list[Diagnostic]:
    """Findings about a program; what runs by name in a bundle was told when it was compiled."""
    if bundle is None:
        return findings
    return [*bundle.losses, *(d for d in findings if d.severity != "info")]


def _port(file: OutputFile, ports: dict[str, Port]) -> Port:
    if file.name in ports:
        return ports[file.name]
    if file.buffer not in ports:
        names = list(dict.fromkeys(port.name for port in ports.values()))
        hint = did_you_mean(file.name, names) or f"the outputs are {', '.join(names[:8])}"
        raise click.UsageError(f"the model has no output {backquote(file.name)}; {safe(hint)}")
    raise click.UsageError("outputs of a bundle have the model's own types and shapes")


def _fill_memory(
    bundle: Bundle, setup: Setup
) -> tuple[dict[str, Any], dict[str, Array], list[Diagnostic]]:
    """Weights and inputs as the device holds them, inputs as they came, and what that loses."""
    from nacre.compile.bundle.compiled_model import require_range
    from nacre.compile.bundle.not_finite import warn_of_lost_inputs
    from nacre.core.evaluation.evaluate import check_inputs
    from nacre.core.evaluation.plan import initial_values

    inputs = arrays_of(setup.inputs, bundle.source)
    state = initial_values(bundle.source)
    arrays = {**state, **check_inputs(bundle.source, inputs, state)}
    for port in bundle.manifest.inputs:
        require_range(port, arrays[port.name])
    memory: dict[str, Any] = {
        port.buffer: port.to_memory(arrays[port.name]) for port in bundle.manifest.inputs
    }
    if bundle.manifest.weights is not None:
        memory[bundle.manifest.weights] = bundle.weights
    return memory, arrays, warn_of_lost_inputs(bundle.manifest, arrays)


def arrays_of(files: Sequence[InputFile], module: Module | None = None) -> dict[str, Any]:
    """The arrays that options give by the model's names, in its types as far as files keep them."""
    arrays: dict[str, Any] = {}
    for file in files:
        if file.target in arrays:
            raise click.UsageError(f"{backquote(file.target)} is given twice")
        type_ = None if module is None else module.input_types.get(file.target)
        arrays[file.target] = _read_input(file.path, None if type_ is None else type_.element.dtype)
    return arrays


def _read_input(path: Path, dtype: np.dtype[Any] | None) -> np.ndarray[Any, Any]:
    reason = unreadable_reason(path)
    if reason is not None:
        raise WrongUsage(reason)
    if path.suffix != ".npy":
        raise WrongUsage(f"{safe(str(path))}: inputs of a bundle are .npy files")
    return read_array(str(path), dtype)
