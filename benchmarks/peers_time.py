"""Cycles of single layers by nacre's timing model and by others, each on its own kind of array.

ZigZag and SCALE-Sim have an array of 16 by 16, Vela an Ethos-U55 of 256 MACs; each is described as
a device of nacre too. None of them is an oracle. They are run by Pythons that have them, for their
needs exclude each other:

    python3 -m venv PEERS && PEERS/bin/pip install zigzag-dse six ethos-u-vela
    python3 -m venv OTHERS && OTHERS/bin/pip install scalesim 'numpy<2'
    python -m benchmarks.peers_time --peers PEERS/bin/python OTHERS/bin/python
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from nacre.base.source import Source
from nacre.calibrate import Workload
from nacre.nem.api.programs import LoadedProgram
from nacre.nem.api.timing import time_plan
from nacre.nem.checks.engine import CheckOptions

SCRIPTS = Path(__file__).resolve().parent / "peers"
LONGEST = 480  # seconds of one model
DEVICE = """include "nem_baseline_1.0.nem"
device array extends nem_baseline_1_0 {{
    topology {{
        num_engines = 1
        l2_size_bytes = 4194304
        device_units {{ sDMA = 1  WDM = 0 }}
        per_engine {{ NMU = 1  CSTL = 1  DMA = 1  VPU = 1  SEQ = 1  l1_size_bytes = 4194304 }}
    }}
    unit_characteristics {{ NMU {{ int8_macs = 256  latency = 0  {figures} }} }}
}}
"""
_SQUARE = "tile_width = 1  tile_height = 1  tile_channels = 16  tile_depth = 16"


@dataclass(frozen=True)
class Layer:
    """A convolution without padding; a linear layer is one of a single place."""

    name: str
    out_h: int
    out_w: int
    kernel: int
    stride: int
    in_c: int
    out_c: int
    depthwise: bool = False

    @property
    def macs(self) -> int:
        """What all of them compute."""
        depth = 1 if self.depthwise else self.in_c
        return self.out_h * self.out_w * self.out_c * self.kernel**2 * depth

    @property
    def workload(self) -> Workload:
        """The task of nacre."""
        height, width = ((out - 1) * self.stride + self.kernel for out in (self.out_h, self.out_w))
        depth = 1 if self.depthwise else self.in_c
        shapes = ((1, height, width, self.in_c), (self.kernel, self.kernel, depth, self.out_c))
        groups = {"groups": self.in_c} if self.depthwise else {}
        return Workload("conv2d", shapes, "i8", {"strides": (self.stride, self.stride), **groups})


LAYERS = (
    Layer("conv 3x3, 64 to 64", 14, 14, 3, 1, 64, 64),
    Layer("conv 1x1, 128 to 128", 14, 14, 1, 1, 128, 128),
    Layer("conv 1x1, 24 to 40", 14, 14, 1, 1, 24, 40),
    Layer("stem 3x3, 3 to 32", 28, 28, 3, 2, 3, 32),
    Layer("depthwise 3x3 of 64", 14, 14, 3, 1, 64, 64, depthwise=True),
    Layer("linear, 512 to 1000", 1, 1, 1, 1, 512, 1000),
)


@dataclass(frozen=True)
class Peer:
    """Another model, and the array that it has as figures of nacre."""

    name: str
    package: str
    script: str
    figures: str


PEERS = (
    Peer("ZigZag", "zigzag", "zigzag_layers.py", _SQUARE),
    # A fold of 16 by 16 weights takes 46 cycles to load, fill and drain: 256 bytes in 46 cycles.
    Peer("SCALE-Sim", "scalesim", "scalesim_layers.py", f"{_SQUARE}  weight_bandwidth = 6"),
    Peer(
        "Vela",
        "ethosu.vela",
        "vela_layers.py",
        "tile_width = 2  tile_height = 2  tile_channels = 8  tile_depth = 8",
    ),
)


def own_cycles(layer: Layer, figures: str) -> int:
    """What nacre's timing model says of a layer on an array."""
    device = DEVICE.format(figures=figures)
    bare = LoadedProgram(Source("array.nem", device + "program empty:\n"), CheckOptions()).device
    text = device + layer.workload.program(bare)
    program = LoadedProgram(Source("layer.nem", text), CheckOptions())
    program.require_runnable()
    return int(time_plan(program.plan, program.device).cycles)


def python_with(package: str, pythons: Sequence[str]) -> str | None:
    """The first Python that has a package."""
    for python in pythons:
        asked = [python, "-c", f"import {package}"]
        try:
            done = subprocess.run(asked, capture_output=True, check=False, timeout=LONGEST)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0:
            return python
    return None


def peer_cycles(peer: Peer, python: str) -> Mapping[str, Mapping[str, float]]:
    """What another model says of the layers."""
    done = subprocess.run(
        [python, str(SCRIPTS / peer.script)],
        input=json.dumps([asdict(layer) for layer in LAYERS]),
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST,
    )
    if done.returncode:
        raise ValueError((done.stderr or done.stdout).strip().splitlines()[-1])
    found: Mapping[str, Mapping[str, float]] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def print_table(peer: Peer, found: Mapping[str, Mapping[str, float]]) -> None:
    """Layer by layer, both models and their quotient."""
    print(f"\n{peer.name:<24}{'MACs/256':>10}{'nacre':>10}{'theirs':>10}{'ratio':>8}{'all':>10}")
    for layer in LAYERS:
        own, theirs = own_cycles(layer, peer.figures), found[layer.name]
        least = -(-layer.macs // 256)
        line = f"{layer.name:<24}{least:>10}{own:>10}{theirs['cycles']:>10.0f}"
        print(f"{line}{own / theirs['cycles']:>8.2f}{theirs['with memory']:>10.0f}")


def main() -> int:
    """Print a table for each model that some Python has; the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--peers", nargs="*", default=[sys.executable], metavar="PYTHON")
    chosen = parser.parse_args()
    is_missing = False
    for peer in PEERS:
        python = python_with(peer.package, chosen.peers)
        if python is None:
            print(f"\n{peer.name}: no Python of --peers has `{peer.package}`", file=sys.stderr)
            is_missing = True
            continue
        try:
            print_table(peer, peer_cycles(peer, python))
        except (ValueError, subprocess.TimeoutExpired) as error:
            print(f"\n{peer.name}: {error}", file=sys.stderr)
            is_missing = True
    return 1 if is_missing else 0


if __name__ == "__main__":
    sys.exit(main())
