"""Sizes and cycles of plans with compressed weights: ordinary, pruned and clustered networks."""

from __future__ import annotations

import argparse

import numpy as np

import nacre
from nacre import core
from nacre.compile.options import COMPRESS
from nacre.core.module import Module
from nacre.core.values import Array

DEVICES = ("npm_pro", "npm16k")
NETWORKS = ("ordinary", "pruned", "clustered")
SHAPE = (16, 512)


def network(kind: str) -> Module:
    """Three products; a pruned one keeps a fifth of its weights, a clustered one 16 values."""
    rng = np.random.default_rng(0)
    builder = core.Builder("core-v1")
    value = builder.input("x", "f32", SHAPE)
    for rows, columns in ((512, 1024), (1024, 1024), (1024, 256)):
        value = builder.add("MatMul", value, builder.constant(weights(rng, kind, (rows, columns))))
        value = builder.add("Relu", value) if columns > 256 else value
    return builder.module(value)


def weights(rng: np.random.Generator, kind: str, shape: tuple[int, int]) -> Array:
    """Weights as training leaves them, with zeros, or of few values."""
    array = (rng.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32)
    if kind == "pruned":
        return np.where(rng.random(shape) < 0.2, array, np.float32(0))
    return rng.choice(array[0, :16], shape) if kind == "clustered" else array


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--precision", nargs="*", default=["f16", "i8"])
    precisions = parser.parse_args().precision
    data = {"x": np.random.default_rng(1).normal(size=(4, *SHAPE)).astype(np.float32)}
    head = ("device", "type", "network", "--compress", "bytes", "cycles", "SQNR")
    print("{:<8} {:<5} {:<10} {:<10} {:>10} {:>8} {:>8}".format(*head))
    for device in DEVICES:
        for precision in precisions:
            for kind in NETWORKS:
                for way in (None, *COMPRESS):
                    given = data if precision == "i8" else None
                    bundle = nacre.compile(
                        network(kind), device, precision, compress=way, calibration=given
                    )
                    found = bundle.validate({"x": data["x"][0]})
                    row = (device, precision, kind, way or "-")
                    ratio = min(found.sqnr_by_output.values())
                    size, cycles = len(bundle.weights), bundle.time().cycles
                    print(
                        "{:<8} {:<5} {:<10} {:<10}".format(*row),
                        f"{size:>10,} {cycles:>8,} {ratio:>5.1f} dB",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
