"""Trained models through binding: what chains and compressed weights save, and that it is proved.

Every model at f16 and at i8, bound to the device's hardware in four ways: plain, with chains, with
compressed weights (WDM), with both. Cycles are the image's over those of NEM, `saved` is what both
take off the plain image, bytes are those that transfers read less. The image with both is proved,
and runs in random orders with the bytes of `Bundle.run`, bundle and image as they are read from
files; on ideal hardware an image takes exactly NEM's cycles. Cycles and bytes are the same on every
machine; seconds are processor time, of binding after the other ways have left what they found.

    python benchmarks/bind_models.py                   every model on npm4k
    python benchmarks/bind_models.py magika --device npm16k --orders 3
    python benchmarks/bind_models.py nudenet --device npm16k npm64k --precision i8
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

import nacre
from benchmarks.compile import MADE, TRAINED, real_model
from nacre.base.diagnostics import InputError
from nacre.binding import TcbImage
from nacre.compile.bundle.bundle import Bundle
from nacre.compile.options import Precision
from tools.fetch_models import Unavailable

PRECISIONS: tuple[Precision, ...] = ("f16", "i8")
HEAD = ("model", "device", "type", "statements", "NEM cycles", "plain", "chains", "WDM", "both",
        "saved", "bytes less", "bind s", "proof s", "orders")  # fmt: skip
WIDTHS = (17, 8, 5, 11, 12, 7, 7, 7, 7, 7, 12, 7, 8, 7)


def require_same_outputs(
    bundle: Bundle, image: TcbImage, feeds: Mapping[str, Any], orders: int
) -> None:
    """That blocks in any order that tags allow store what NEM's machine stores."""
    expected = bundle.run(dict(feeds))
    for seed in range(orders):
        found = image.run(dict(feeds), seed=seed).outputs
        for name, array in expected.items():
            if not np.array_equal(np.asarray(found[name]), np.asarray(array), equal_nan=True):
                raise SystemExit(f"output {name} differs in the order of seed {seed}")


def row(name: str, device: str, precision: Precision, orders: int) -> tuple[str, ...]:
    """One model bound in all ways."""
    module, feeds = MADE[name]() if name in MADE else real_model(name)
    calibration = {name: array[None] for name, array in feeds.items()}
    compiled = nacre.compile(
        module, device, precision, calibration=calibration if precision == "i8" else None
    )
    with tempfile.TemporaryDirectory() as folder:
        compiled.save(Path(folder) / "plan")
        bundle = Bundle.load(Path(folder) / "plan")
    images: dict[tuple[bool, bool], TcbImage] = {}
    begun = 0.0
    for fuse, wdm in itertools.product((False, True), repeat=2):
        begun = process_time()
        images[fuse, wdm] = nacre.bind(bundle, fuse=fuse, wdm=wdm, allow_serialise=True)
    bind_seconds = process_time() - begun  # of the last, which is the one with both
    both = images[True, True]
    with tempfile.TemporaryDirectory() as folder:
        both.save(Path(folder) / "plan.tcb")
        reread = TcbImage.load(Path(folder) / "plan.tcb")
    begun = process_time()
    findings = reread.verify(bundle)
    proof_seconds = process_time() - begun
    if findings:
        raise SystemExit(f"not proved: {findings[0]}")
    require_same_outputs(bundle, reread, feeds, orders)
    if nacre.bind(bundle, uarch="ideal").time().cycles != bundle.time().cycles:
        raise SystemExit("ideal hardware takes other cycles than NEM's machine")
    assert both.bound is not None
    assert both.request is not None
    nem = bundle.time().cycles
    plain, packed, chained, whole = (image.time().cycles for image in images.values())
    less = sum(group.saved_bytes for group in both.bound.weights.groups)
    statements = len(both.request.plan.program.statements)
    return (
        name, device, precision, f"{statements:,}", f"{nem:,}",
        *(f"{cycles / nem:.3f}" for cycles in (plain, chained, packed, whole)),
        f"{1 - whole / plain:.1%}", f"{less:,}",
        f"{bind_seconds:.1f}", f"{proof_seconds:.1f}", str(orders),
    )  # fmt: skip


def line(cells: tuple[str, ...]) -> str:
    """Cells in columns, the first three from the left."""
    pairs = enumerate(zip(cells, WIDTHS, strict=True))
    return "".join(f"{c:<{w}}" if at < 3 else f"{c:>{w}}" for at, (c, w) in pairs)


def print_models(
    names: Sequence[str],
    devices: Sequence[str],
    precisions: Sequence[Precision] = PRECISIONS,
    orders: int = 1,
) -> None:
    """Print what chains and compressed weights save of each model, side by side."""
    warnings.filterwarnings("ignore")
    print(line(HEAD))
    for name, device, precision in itertools.product(names or TRAINED, devices, precisions):
        try:
            print(line(row(name, device, precision, orders)), flush=True)
        except (InputError, Unavailable) as problem:
            said = str(problem).splitlines()[0]
            print(f"{name:<17}{device:<8}{precision:<5}{said}", flush=True)
        except SystemExit as problem:  # every plan is called `model` in what is said of it
            raise SystemExit(f"{name} on {device} at {precision}: {problem}") from None


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("models", nargs="*", choices=[[], *TRAINED, *MADE])
    parser.add_argument("--device", nargs="*", default=("npm4k",), metavar="DEVICE")
    parser.add_argument("--orders", type=int, default=1, help="random orders of blocks")
    parser.add_argument("--precision", nargs="*", default=PRECISIONS, choices=PRECISIONS)
    chosen = parser.parse_args()
    print_models(chosen.models, chosen.device, chosen.precision, chosen.orders)


if __name__ == "__main__":
    main()
