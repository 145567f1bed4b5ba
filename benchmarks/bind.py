"""Binding: statements a second, sizes of images, the proof, and what hardware costs.

Rates count statements of the program, not iterations: the same loops with a hundred times as many
iterations are bound beside them. Sizes are those of the image without constants and origins, beside
the program's bytecode without comments and positions. Cycles are NEM's, on ideal hardware, on the
device's own, and there with chains. Times are processor time, the best of some runs. What tasks of
a kind cost is remembered from binding to binding; `anew` is the rate where nothing of that is.

    python benchmarks/bind.py                  the demo's network and generated programs
    python benchmarks/bind.py plan.nem ...     these plans
    python benchmarks/bind.py --resnet         ResNet-50 on npm4k and npm64k, which takes a minute
    python benchmarks/bind.py --timed          blocks timed a second: plain, compiled cold and warm
    python benchmarks/bind.py --saved magika   what chains and compressed weights save of a model
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import process_time

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from msgspec.structs import replace

import nacre
from nacre.base.loops.machine_code import is_available
from nacre.base.source import Source
from nacre.bind.forms import remembered_forms
from nacre.bind.pipeline import bind_plan
from nacre.bind.request import BindOptions
from nacre.bind.uarch.builtin import load_uarch
from nacre.nem.api.packing import pack_sources
from nacre.nem.api.programs import LoadedProgram
from nacre.nem.api.timing import time_plan
from nacre.nem.bytecode.packing import PackOptions
from nacre.nem.checks.engine import CheckOptions
from nacre.nem.model.devices import Device
from nacre.nem.plan.plan import Plan
from nacre.tcb.binary.encoding import decode, encode
from nacre.tcb.machine.timing import time_image
from nacre.tcbcheck.verify import verify_image

RUNS = 5
RATE, SIZE = 50_000, 1.2  # statements a second at least, times the bytecode at most
TIMED_RATE = 200_000  # blocks a second at least, with the extra `fast`


@dataclass(frozen=True)
class Row:
    """A program that was bound."""

    name: str
    statements: int
    instances: int
    bind: float
    bind_anew: float  # nothing remembered of kinds of tasks
    verify: float
    image_bytes: int
    bytecode_bytes: int
    cycles: list[int]  # NEM's, ideal, the device's, and with chains
    timed: float  # blocks a second


def generated(iterations: int) -> str:
    """Two hundred small loops, each a tile in, an activation, and the tile out."""
    lines = ['include "npm4k.nem"', "device npm4k", "program p:", "buffer X : DDR (size=65536)",
             "buffer Y : DDR (size=65536)", "buffer A : L1 (size=65536)"]  # fmt: skip
    for number in range(200):
        slot = f"(i mod 2) * 1024 + {number % 16 * 2048}"
        tile = f"region(A, {slot}, 1024) elem=i8, shape=[1024], layout=C"
        out = "region(Y, (i mod 2) * 1024, 1024)"
        lines += [
            f"loop i in [0..{iterations - 1}] @max_in_flight(2):",
            f"x{number} = transfer.async(dst={tile}, src=region(X, 0, 1024))",
            f"r{number} = relu.async in {tile} out {tile} deps=[x{number}]",
            f"y{number} = transfer.async(dst={out}, src={tile}, deps=[r{number}])",
            "endloop",
        ]
    return "\n".join(lines) + "\n"


def best(work: Callable[[], object]) -> float:
    """The shortest run."""
    found = float("inf")
    for _ in range(RUNS):
        start = process_time()
        work()
        found = min(found, process_time() - start)
    return found


def bind_anew(plan: Plan, name: str, device: Device) -> None:
    """Bind what is like nothing that was bound before."""
    remembered_forms.cache_clear()
    bind_plan(plan, name, device)


def measure(name: str, source: Source) -> Row:
    """Bind one program in all ways."""
    program = LoadedProgram(source, CheckOptions())
    program.require_runnable()
    plan, device = program.plan, program.device
    own = load_uarch(None, device.name)
    ideal = bind_plan(plan, name, device).image
    ways = [BindOptions(own, fuse, may_serialise=True) for fuse in (False, True)]
    images = [ideal, *(bind_plan(plan, name, device, way).image for way in ways)]
    bare = replace(ideal, origins=(), constants=())
    packed = pack_sources([source], PackOptions(comments=False, positions=False))
    timed = best(lambda: time_image(ideal))
    blocks = time_image(ideal).start.size
    if verify_image(plan, images[-1]):
        raise SystemExit(f"{name}: the image is not proved")
    return Row(
        name,
        len(plan.program.statements),
        plan.instances,
        best(lambda: bind_plan(plan, name, device)),
        best(lambda: bind_anew(plan, name, device)),
        best(lambda: verify_image(plan, images[-1])),
        len(encode(bare)),
        len(packed),
        [time_plan(plan, device).cycles, *(time_image(image).cycles for image in images)],
        blocks / timed,
    )


def table(rows: Iterator[Row]) -> None:
    """Print what was measured, and what falls short."""
    print("program                 statements  instances  statements/s    anew   proof s  /bytecode"
          "    NEM cycles  ideal     device  chained  timed blocks/s")  # fmt: skip
    short = []
    for row in rows:
        rate, size = row.statements / row.bind, row.image_bytes / row.bytecode_bytes
        nem, ideal, own, chained = row.cycles
        anew = row.statements / row.bind_anew
        print(f"{row.name:<24}{row.statements:>10,}{row.instances:>11,}{rate:>14,.0f}{anew:>8,.0f}"
              f"{row.verify:>10.2f}{size:>11.2f}{nem:>14,}{ideal / nem:>7.3f}{own / nem:>11.3f}"
              f"{chained / nem:>9.3f}{row.timed:>16,.0f}")  # fmt: skip
        short += [f"{row.name}: {rate:,.0f} statements/s, {RATE:,} are asked"] * (rate < RATE)
        short += [f"{row.name}: {size:.2f} of the bytecode, {SIZE} at most"] * (size > SIZE)
    print("\n".join(["", *short]) if short else "\nall within what is asked")


def plans(files: list[str], *, resnet: bool) -> Iterator[tuple[str, Source]]:
    """The programs to be bound."""
    if files:
        yield from ((Path(file).stem, Source(file, Path(file).read_text())) for file in files)
        return
    if resnet:
        from benchmarks.networks.made import resnet as made_resnet

        model, _ = made_resnet()
        for device in ("npm4k", "npm64k"):
            text = nacre.compile(model, device).program
            yield f"resnet-50 on {device}", Source("resnet.nem", text)
        return
    yield "loops of 10", Source("loops.nem", generated(10))
    yield "loops of 1,000", Source("loops.nem", generated(1000))
    folder = Path(nacre.__file__).parent / "demo"
    for device in ("npm4k", "npm16k"):
        bundle = nacre.compile(folder / "digits.onnx", device)
        yield f"digits on {device}", Source("digits.nem", bundle.program)


def timed_table() -> None:
    """Print how many blocks a second are timed: in a process without machine code, and with."""
    print("timed with                    blocks  seconds   blocks/s")
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "loops.tcb")
        source = Source("loops.nem", generated(1000))
        program = LoadedProgram(source, CheckOptions())
        own = BindOptions(load_uarch(None, program.device.name), may_serialise=True)
        for name, options in (("ideal", BindOptions()), ("npm4k", own)):
            image = bind_plan(program.plan, "loops", program.device, options).image
            Path(file).write_bytes(encode(image))
            ways = ("plain", "compiled cold", "compiled warm") if is_available() else ("plain",)
            for way in ways:
                environment = {**os.environ, "NUMBA_CACHE_DIR": f"{folder}/{name}"}
                command = [sys.executable, __file__, "--time", file, "--way", way]
                done = subprocess.run(command, env=environment, check=True, capture_output=True)
                blocks, seconds = done.stdout.split()
                rate = int(blocks) / float(seconds)
                is_slow = way == "compiled warm" and rate < TIMED_RATE
                short = f", {TIMED_RATE:,} are asked" if is_slow else ""
                print(f"{name + ', ' + way:<26}{int(blocks):>10,}{float(seconds):>9.2f}"
                      f"{rate:>11,.0f}{short}")  # fmt: skip


def time_once(file: str, *, compile: bool) -> None:
    """Blocks of an image, and the seconds that timing it takes with all that has to be loaded."""
    image = decode(Path(file).read_bytes())
    start = process_time()
    blocks = time_image(image, compile=compile).start.size
    print(blocks, process_time() - start)


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("files", nargs="*", metavar="PLAN")
    parser.add_argument("--resnet", action="store_true", help="ResNet-50's plans")
    parser.add_argument("--timed", action="store_true", help="blocks a second that are timed")
    parser.add_argument("--time", metavar="IMAGE", help=argparse.SUPPRESS)
    parser.add_argument("--way", default="plain", help=argparse.SUPPRESS)
    parser.add_argument("--saved", nargs="*", metavar="MODEL", help="cycles saved, by model")
    parser.add_argument("--device", default="npm4k", help="of `--saved`")
    chosen = parser.parse_args()
    if chosen.time:
        time_once(chosen.time, compile=chosen.way != "plain")
        return
    if chosen.saved is not None:
        from benchmarks.bind_models import print_models

        print_models(chosen.saved, [chosen.device])
        return
    if chosen.timed:
        timed_table()
        return
    table(measure(*plan) for plan in plans(chosen.files, resnet=chosen.resnet))


if __name__ == "__main__":
    main()
