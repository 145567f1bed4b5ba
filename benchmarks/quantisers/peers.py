"""Three quantisers on one network with one set of calibration data: ours, onnxruntime's, NNCF.

Each peer is tried with several of its options, and its best result on the unseen inputs counts.
NNCF runs in an environment of its own: NNCF_PYTHON names its interpreter.
"""

from __future__ import annotations

import logging
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import nacre
from benchmarks.quantisers.networks import Feeds, Network
from nacre.core.values import Array

MOST_DB = 80.0
NNCF = "NNCF_PYTHON"
_SECONDS = 1800
_LEAST_OPSET = 13  # of which NNCF takes models, and the first that has scales by channel
_NNCF_RUN = """
import sys, numpy as np, onnx, nncf
source, data, target, preset, correct = sys.argv[1:]
arrays = np.load(data, allow_pickle=False)
names = sorted({key.rpartition("/")[0] for key in arrays.files})
count = len(arrays.files) // len(names)
feeds = [{name: arrays[f"{name}/{index}"] for name in names} for index in range(count)]
made = nncf.quantize(
    onnx.load(source), nncf.Dataset(feeds), preset=nncf.QuantizationPreset(preset),
    subset_size=count, fast_bias_correction=correct == "fast",
)
onnx.save(made, target)
"""


def fixed_model(network: Network, target: Path) -> Path:
    """The model with the sizes that it is run at, for everybody."""
    import onnx
    import onnx.version_converter

    model = onnx.load(network.path)
    weights = {initialiser.name for initialiser in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in weights]
    kept = [onnx.ValueInfoProto.FromString(value.SerializeToString()) for value in inputs]
    del model.graph.input[:], model.graph.value_info[:]
    for value in kept:
        shape = network.shapes.get(value.name)
        for dim, size in zip(value.type.tensor_type.shape.dim, shape or (), strict=False):
            dim.Clear()
            dim.dim_value = size
    model.graph.input.extend(kept)
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    if any(not one.domain and one.version < _LEAST_OPSET for one in model.opset_import):
        model = onnx.version_converter.convert_version(model, _LEAST_OPSET)
    model = onnx.shape_inference.infer_shapes(model)
    onnx.save(model, target)
    return target


def run_onnx(path: Path, feeds: Feeds) -> list[list[Array]]:
    """The outputs by onnxruntime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return [session.run(None, one) for one in feeds]


def mean_sqnr(found: list[list[Array]], wanted: list[list[Array]]) -> float:
    """The mean over outputs of reals of signal over noise, over all runs together."""
    ratios = []
    for at, expected in enumerate(zip(*wanted, strict=True)):
        if expected[0].dtype.kind != "f" or expected[0].size < 2:
            continue
        signal = noise = 0.0
        for run, one in zip(found, expected, strict=True):
            signal += float(np.sum(np.square(one, dtype=np.float64)))
            noise += float(np.sum(np.square(run[at].astype(np.float64) - one)))
        if signal:
            ratios.append(min(MOST_DB, 10 * np.log10(signal / noise) if noise else MOST_DB))
    return float(np.mean(ratios))


def ours(path: Path, calibration: Feeds, unseen: Feeds) -> tuple[list[list[Array]], str]:
    """A plan in i8 as `nacre compile` makes it, and how much of it is floats."""
    bundle = nacre.compile(path, "npm16k", "i8", calibration=calibration, cache=True)
    return [list(bundle.run(one).values()) for one in unseen], f"{100 * bundle.float_share:.0f} %"


def onnxruntimes(path: Path, calibration: Feeds, room: Path) -> Mapping[str, Callable[[], Path]]:
    """Its static quantisation, by options; whole where symbolic shapes allow."""
    from onnxruntime import quantization as q
    from onnxruntime.quantization.shape_inference import quant_pre_process

    logging.disable(logging.WARNING)
    source = room / "prepared.onnx"
    try:
        quant_pre_process(str(path), str(source), skip_symbolic_shape=True)
    except Exception:  # of onnxruntime's own checks: the model as it is will do
        source = path

    class Reader(q.CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self._left = iter(calibration)

        def get_next(self) -> Any:  # noqa: ANN401
            return next(self._left, None)

    def quantise(method: str, activations: str, **more: Any) -> Path:  # noqa: ANN401
        target = room / f"ort-{method}-{activations}.onnx"
        q.quantize_static(
            str(source), str(target), Reader(), quant_format=q.QuantFormat.QDQ, per_channel=True,
            activation_type=q.QuantType[activations], weight_type=q.QuantType.QInt8,
            calibrate_method=q.CalibrationMethod[method], extra_options=more,
        )  # fmt: skip
        return target

    return {
        "MinMax u8": lambda: quantise("MinMax", "QUInt8"),
        "MinMax i8": lambda: quantise("MinMax", "QInt8"),
        "Percentile u8": lambda: quantise("Percentile", "QUInt8", CalibPercentile=99.99),
        "Entropy u8": lambda: quantise("Entropy", "QUInt8"),
    }


def nncfs(path: Path, calibration: Feeds, room: Path) -> Mapping[str, Callable[[], Path]]:
    """NNCF's, by options; none where no interpreter is named."""
    python = os.environ.get(NNCF)
    if not python:
        return {}
    data = room / "calibration.npz"
    arrays: dict[str, Any] = {
        f"{n}/{i}": array for i, one in enumerate(calibration) for n, array in one.items()
    }
    np.savez(data, **arrays)

    def quantise(preset: str, correction: str) -> Path:
        target = room / f"nncf-{preset}-{correction}.onnx"
        command = [python, "-c", _NNCF_RUN, str(path), str(data), str(target), preset, correction]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
        if done.returncode:
            raise RuntimeError(done.stderr.strip().rpartition("\n")[2])
        return target

    return {
        "mixed, fast": lambda: quantise("mixed", "fast"),
        "performance, fast": lambda: quantise("performance", "fast"),
        "mixed, full": lambda: quantise("mixed", "full"),
    }


def compare(network: Network) -> tuple[str, ...]:
    """One row: ours, both peers with the options that did best, how much of ours is floats."""
    with tempfile.TemporaryDirectory() as folder:
        room = Path(folder)
        path = fixed_model(network, room / "model.onnx")
        calibration, unseen = network.feeds(False), network.feeds(True)
        wanted = run_onnx(path, unseen)
        try:
            found, floats = ours(path, calibration, unseen)
            mine = f"{mean_sqnr(found, wanted):.1f} dB"
        except nacre.InputError as error:
            mine, floats = error.diagnostics[0].code, ""
        peers = [
            _best(tried(path, calibration, room), unseen, wanted) for tried in (onnxruntimes, nncfs)
        ]
        return network.name, mine, *peers, floats


def _best(ways: Mapping[str, Callable[[], Path]], unseen: Feeds, wanted: list[list[Array]]) -> str:
    """The best of several options; what went wrong where none worked."""
    results, problem = [], "-"
    for name, quantise in ways.items():
        try:
            results.append((mean_sqnr(run_onnx(quantise(), unseen), wanted), name))
        except Exception as error:  # a peer's own failure is a result too
            problem = f"{type(error).__name__}: {error}"[:60]
    if not results:
        return problem
    ratio, name = max(results)
    return f"{ratio:.1f} dB ({name})"
