"""Whole networks on Qualcomm's NPUs: each built from its constructor, estimated once, kept."""

from __future__ import annotations

import ast
import importlib
import json
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.silicon.fits import Rows
from benchmarks.silicon.tasks import Row, read_rows
from nacre.compile.options import Precision
from tests.detection_names import define_detections

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "silicon"
LIBRARIES = ("timm", "torchvision", "transformers")
DEVICE = "npm16k"
PRECISIONS: Mapping[str, Precision] = {"float": "f16", "w8a8": "i8"}
RUNTIME = "qnn_dlc"
LEAST_ROWS = 8


@dataclass(frozen=True)
class Estimated:
    """What nacre says of a network in one precision."""

    cycles: int
    derated: int
    macs: int


def comparable(row: Row) -> bool:
    """Whether a row is of the graph that its constructor gives, all of it on the NPU."""
    return (
        row["fidelity"] == "same graph"
        and row["runtime"] == RUNTIME
        and row["layers_npu"] == row["layers_total"]
        and row["precision"] in PRECISIONS
    )


def build(constructor: str) -> Any:  # noqa: ANN401 - a module of PyTorch
    """The network of a constructor: a call of one of three libraries, with plain arguments."""
    define_detections()
    return _value(ast.parse(constructor, mode="eval").body)


def _value(node: ast.expr) -> Any:  # noqa: ANN401 - what a constructor takes
    if isinstance(node, ast.Call):
        given = {k.arg: _value(k.value) for k in node.keywords if k.arg is not None}
        return _function(node.func)(*map(_value, node.args), **given)
    return ast.literal_eval(node)


def _function(node: ast.expr) -> Any:  # noqa: ANN401 - a class or function
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in LIBRARIES:
        raise ValueError(f"a constructor of {LIBRARIES} is expected")
    found: Any = importlib.import_module(node.id)
    for name in reversed(names):
        found = getattr(found, name)
    return found


def example_inputs(inputs: str) -> tuple[Any, ...]:
    """Tensors as `image 1x3x224x224 f32` says."""
    import torch

    made = []
    for one in inputs.split(","):
        _, dims, kind = one.split()
        shape = [int(size) for size in dims.split("x")]
        whole = torch.ones(shape, dtype=torch.int32)
        made.append(whole if kind == "i32" else torch.randn(shape))
    return tuple(made)


def estimated(constructor: str, inputs: str, precision: str) -> Estimated:
    """What nacre says of a network, from what was kept if it was asked before."""
    key = f"{constructor} | {inputs} | {precision} | {DEVICE}"
    CACHE.mkdir(parents=True, exist_ok=True)
    file = CACHE / "estimates.json"
    known = json.loads(file.read_text()) if file.exists() else {}
    if key not in known:
        print(f"  estimating {constructor[:60]}", file=sys.stderr, flush=True)
        known[key] = _estimate(constructor, inputs, precision)
        file.write_text(json.dumps(known, indent=1))
    return Estimated(**known[key])


def first_tensor(network: Any) -> Any:  # noqa: ANN401 - modules of PyTorch
    """A network that gives the first tensor of all that one gives."""
    import torch

    class First(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, *given: Any) -> Any:  # noqa: ANN401
            found = self.network(*given)
            while not isinstance(found, torch.Tensor):
                found = next(iter(found.values())) if isinstance(found, dict) else found[0]
            return found

    return First()


def _estimate(constructor: str, inputs: str, precision: str) -> dict[str, int]:
    import torch

    import nacre

    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        network = first_tensor(build(constructor)).eval()
        found = nacre.estimate(
            network,
            DEVICE,
            PRECISIONS[precision],
            example_args=example_inputs(inputs),
        )
    plan = found.plan
    if plan is None:
        raise ValueError(f"{constructor} does not fit {DEVICE}")
    macs = plan.bundle.manifest.macs or 0
    return {"cycles": plan.ideal.cycles, "derated": plan.derated.cycles, "macs": macs}


def network_rows(
    folder: Path, precisions: Sequence[str]
) -> Iterator[tuple[str, str, Mapping[str, Rows]]]:
    """By chip and precision: rows of the model, of it derated, and of MACs alone."""
    table = [row for row in read_rows(folder / "qualcomm.csv") if comparable(row)]
    for precision in precisions:
        for device in sorted({row["device"] for row in table}):
            rows = [r for r in table if (r["device"], r["precision"]) == (device, precision)]
            if len(rows) < LEAST_ROWS:
                continue
            found = [estimated(r["constructor"], r["inputs"], precision) for r in rows]
            measured = np.array([float(r["latency_ms"]) for r in rows])
            groups = tuple(r["split_group"] for r in rows)
            yield (
                device,
                precision,
                {
                    name: Rows(np.array(values, np.float64), measured, groups)
                    for name, values in (
                        ("today", [one.cycles for one in found]),
                        ("derated", [one.derated for one in found]),
                        ("MACs", [one.macs for one in found]),
                    )
                },
            )
