"""Runs of twenty convolutional networks of NAC beside onnxruntime and the evaluator of Core IR.

One thread each. Every network has a process of its own; in it the tools take turns, and the best
processor time of each counts. The evaluator runs the optimised module. Where the extra `fast` is
installed, loops of kernels are machine code, as in a process that runs for some seconds.

    python benchmarks/cnn_runs.py               every network
    python benchmarks/cnn_runs.py small lenet   some
"""

from __future__ import annotations

import argparse
import json
import logging
import subprocess
import sys
import tempfile
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.nac import best_times, session_of  # first: it sets how many threads BLAS has

ROUNDS = 400
HEAD = "network              run   onnxruntime  /onnxruntime  /evaluator    error"


@dataclass(frozen=True)
class Row:
    """What runs of one network take, in seconds."""

    name: str
    run: float
    onnx_run: float
    evaluator_run: float
    error: float  # largest difference to torch, over the largest output


def settle_norms(network: Any, pictures: tuple[Any, ...]) -> Any:  # noqa: ANN401
    """The network with norms as training would leave them: signals neither die nor blow up."""
    import torch
    from torch import nn

    for part in network.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.momentum = None  # the mean of all that is seen
    with torch.no_grad():
        network.train()(*(picture.repeat(4, 1, 1, 1) for picture in pictures))
    return network.eval()


def measure(name: str) -> Row:
    """One network in this process."""
    import numpy as np
    import torch

    from benchmarks.networks.cnns import CNNS
    from nacre import core, nac
    from nacre.base.loops import machine_code

    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    network, args = CNNS[name]()
    network = settle_norms(network, args)
    with torch.no_grad():
        wanted = network(*args).numpy()
    with tempfile.TemporaryDirectory() as folder:
        files = {kind: Path(folder) / f"m.{kind}" for kind in ("nac", "onnx")}
        nac.save(nac.build(network, example_args=args), files["nac"])
        torch.onnx.export(network, args, str(files["onnx"]), opset_version=17, dynamo=False)
        model, session = nac.load(files["nac"]), session_of(files["onnx"])
        picture = args[0].numpy()
        feeds, inputs = {model.inputs[0].name: picture}, {session.get_inputs()[0].name: picture}
        error = float(np.abs(model.run(feeds)[0] - wanted).max() / np.abs(wanted).max())
        evaluator = core.optimise(nac.lift(model)).session()
        evaluator.run(feeds)
        machine_code.load_all()  # of the kernels that are in use
        tools = {
            "run": lambda: model.run(feeds),
            "onnxruntime": lambda: session.run(None, inputs),
            "evaluator": lambda: evaluator.run(feeds),
        }
        best = best_times(tools, ROUNDS)
    return Row(name, best["run"], best["onnxruntime"], best["evaluator"], error)


def in_own_process(name: str) -> Row | str:
    """What was measured, or why it could not be."""
    command = [sys.executable, __file__, "--one", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["it failed"])[-1]
    return Row(**json.loads(done.stdout.strip().splitlines()[-1]))


def line(row: Row) -> str:
    """A row of the table."""
    return (
        f"{row.name:<14} {row.run * 1e3:>7.3f} ms {row.onnx_run * 1e3:>9.3f} ms "
        f"{row.run / row.onnx_run:>12.2f}x {row.run / row.evaluator_run:>10.2f}x {row.error:>8.1e}"
    )


def main() -> None:
    """Measure and print."""
    from benchmarks.networks.cnns import CNNS

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CNNS))
    parser.add_argument("--one", choices=list(CNNS), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    unknown = [name for name in chosen.names if name not in CNNS]
    if unknown:
        parser.error(f"no network `{unknown[0]}`, expected some of: {', '.join(CNNS)}")
    if chosen.one:
        warnings.simplefilter("ignore")  # of the tools that are measured
        print(json.dumps(asdict(measure(chosen.one))))
        return
    print(HEAD)
    for name in chosen.names or CNNS:
        row = in_own_process(name)
        print(line(row) if isinstance(row, Row) else f"{name:<14} {row}", flush=True)


if __name__ == "__main__":
    main()
