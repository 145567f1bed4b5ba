"""Files of NAC beside what else holds a network: size, load and run.

One thread each. Every model has a process of its own; in it the tools take turns, and the best
processor time of each counts. Loading ends when every weight is an array: ours are views of the
mapped file, those of safetensors are copies, onnxruntime also plans its run. All files are in the
page cache. The state_dict is torch.save's file; GPT-2 ties its weights. `evaluator` is a session of
Core IR on the optimised module, `as written` the program instruction by instruction, `first` the
first run of a model, which rewrites it.

    python benchmarks/nac.py              every model
    python benchmarks/nac.py mlp minilm   some
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

# Before NumPy is loaded: its BLAS reads them once.
for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.networks.libraries import load_transformers
from tools.fetch_models import Unavailable, model_path

ROUNDS = 12
ENOUGH_SECONDS = 4.0  # for one tool and model
LENGTH = 64
TEXT = {
    "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 512,
    "vocab_size": 1000,
}  # fmt: skip
Made = tuple[Any, tuple[Any, ...]]  # a module of PyTorch and what it is given


def mlp() -> Made:
    """As in the fixtures: 64 - 256 - 256 - 10."""
    import torch
    from torch import nn

    net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.Tanh(),
                        nn.Linear(256, 10))  # fmt: skip
    return net, (torch.randn(4, 64),)


def cnn() -> Made:
    """As in the fixtures: two convolutions with norms, a pooling, a classifier."""
    import torch
    from torch import nn

    net = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(32, 10),
    )  # fmt: skip
    return net, (torch.randn(1, 3, 32, 32),)


def _picked(model: Any, key: str, **given: object) -> Any:  # noqa: ANN401
    import torch

    class Picked(torch.nn.Module):  # type: ignore[misc]
        """A model that gives one of its outputs."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *inputs: Any) -> Any:  # noqa: ANN401
            return getattr(self.model(*inputs, **given), key)

    return Picked()


def resnet() -> Made:
    """ResNet-18 on a picture of 64 x 64."""
    import torch

    transformers = load_transformers()

    config = transformers.ResNetConfig(
        embedding_size=64, hidden_sizes=[64, 128, 256, 512], depths=[2, 2, 2, 2],
        layer_type="basic",
    )  # fmt: skip
    model = transformers.ResNetForImageClassification(config)
    return _picked(model, "logits"), (torch.randn(1, 3, 64, 64),)


def mobilenet() -> Made:
    """As MobileNetV2: inverted bottlenecks, depthwise convolutions; a picture of 128 x 128."""
    import torch
    from torch import nn

    def step(inputs: int, outputs: int, window: int, stride: int = 1, groups: int = 1) -> list[Any]:
        weights = nn.Conv2d(inputs, outputs, window, stride, window // 2, groups=groups, bias=False)
        return [weights, nn.BatchNorm2d(outputs), nn.ReLU6()]

    class Bottleneck(nn.Module):  # type: ignore[misc]
        """Wider, one channel at a time, narrower; added to what came in."""

        def __init__(self, inputs: int, outputs: int, stride: int, factor: int) -> None:
            super().__init__()
            width = inputs * factor
            wider = step(inputs, width, 1) if factor > 1 else []
            narrower = step(width, outputs, 1)[:2]
            self.body = nn.Sequential(*wider, *step(width, width, 3, stride, width), *narrower)
            self.is_added = stride == 1 and inputs == outputs

        def forward(self, x: Any) -> Any:  # noqa: ANN401
            return x + self.body(x) if self.is_added else self.body(x)

    stages = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
              (6, 160, 3, 2), (6, 320, 1, 1)]  # fmt: skip
    layers, width = step(3, 32, 3, 2), 32
    for factor, outputs, count, stride in stages:
        for at in range(count):
            layers.append(Bottleneck(width, outputs, stride if at == 0 else 1, factor))
            width = outputs
    layers += [*step(width, 1280, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000)]
    return nn.Sequential(*layers), (torch.randn(1, 3, 128, 128),)


def bert() -> Made:
    """Two layers of 128, 64 tokens."""
    import torch

    transformers = load_transformers()

    model = transformers.BertModel(transformers.BertConfig(**TEXT))
    tokens = torch.randint(3, 999, (1, LENGTH))
    return _picked(model, "last_hidden_state"), (tokens, torch.ones(1, LENGTH, dtype=torch.int64))


def gpt2() -> Made:
    """Two layers of 128, 64 tokens, tied embeddings."""
    import torch

    transformers = load_transformers()

    config = transformers.GPT2Config(n_embd=128, n_layer=2, n_head=4, n_positions=128,
                                     vocab_size=1000)  # fmt: skip
    model = transformers.GPT2LMHeadModel(config)
    return _picked(model, "logits", use_cache=False), (torch.randint(3, 999, (1, LENGTH)),)


def minilm() -> Made:
    """Trained, 6 layers of 384, 128 tokens."""
    import torch

    from tests.core.models.minilm import minilm as made
    from tests.core.models.minilm import sentence

    ids, mask = sentence(128)
    return made(model_path("minilm")), (torch.from_numpy(ids), torch.from_numpy(mask))


MODELS: Mapping[str, Callable[[], Made]] = {
    "mlp": mlp, "cnn": cnn, "resnet": resnet, "mobilenet": mobilenet, "bert": bert,
    "gpt2": gpt2, "minilm": minilm,
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """What was measured of one model: bytes, and seconds."""

    name: str
    size: int
    onnx_size: int | None
    state_size: int
    load: float
    safetensors_load: float
    onnx_load: float | None
    run: float
    torch_run: float
    onnx_run: float | None
    evaluator_run: float
    written_run: float
    first_run: float  # of a model that was just loaded
    error: float  # largest difference to torch, over the largest output


def best_times(tools: Mapping[str, Callable[[], object]], rounds: int = ROUNDS) -> dict[str, float]:
    """The shortest run of each, in rounds; one that has had enough time drops out."""
    best, spent = dict.fromkeys(tools, math.inf), dict.fromkeys(tools, 0.0)
    for call in tools.values():
        call()
    for _ in range(rounds):
        for name, call in tools.items():
            for _ in range(3):
                if spent[name] > ENOUGH_SECONDS:
                    break
                # Of the processor: on a machine with other work the wall clock counts that too.
                start = time.process_time()
                call()
                taken = time.process_time() - start
                best[name] = min(best[name], taken)
                spent[name] += taken
    return best


def exported(network: Any, args: tuple[Any, ...], path: Path) -> bool:  # noqa: ANN401
    """Whether torch can write the network as ONNX."""
    import torch

    try:
        torch.onnx.export(network, args, str(path), opset_version=17, dynamo=False)
    except Exception:  # whatever it fails with
        return False
    return True


def loaded(path: Path) -> object:
    """A file with every weight as an array."""
    from nacre import nac

    model = nac.load(path)
    return [model.weights[id_] for id_ in model.weights.names]


def session_of(path: Path) -> Any:  # noqa: ANN401 - onnxruntime has no types
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options)


def measure(name: str) -> Row:
    """One model in this process."""
    import numpy as np
    import torch
    from safetensors.numpy import load_file, save_file

    from nacre import core, nac

    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    network, args = MODELS[name]()
    network = network.eval()
    with tempfile.TemporaryDirectory() as folder:
        paths = {kind: Path(folder) / f"m.{kind}" for kind in ("nac", "onnx", "pt", "safetensors")}
        nac.save(nac.build(network, example_args=args), paths["nac"])
        torch.save(network.state_dict(), paths["pt"])
        save_file({n: t.numpy().copy() for n, t in network.state_dict().items()},
                  paths["safetensors"])  # fmt: skip
        # A first one, so that what is loaded once is not counted as the first run of the next.
        once, model = nac.load(paths["nac"]), nac.load(paths["nac"])
        feeds = {i.name: a.numpy() for i, a in zip(model.inputs, args, strict=True)}
        once.run(feeds)
        with torch.no_grad():
            wanted = network(*args).numpy()
        begun = time.process_time()
        found = model.run(feeds)[0]
        first = time.process_time() - begun
        error = float(np.abs(found - wanted).max() / np.abs(wanted).max())
        written = model.session(optimise=False)
        evaluator = core.optimise(nac.lift(model)).session()
        tools: dict[str, Callable[[], object]] = {
            "load": lambda: loaded(paths["nac"]),
            "safetensors": lambda: load_file(paths["safetensors"]),
            "run": lambda: model.run(feeds),
            "torch": lambda: network(*args),
            "evaluator": lambda: evaluator.run(feeds),
            "written": lambda: written.run(feeds),
        }
        has_onnx = exported(network, args, paths["onnx"])
        if has_onnx:
            session = session_of(paths["onnx"])
            given = {i.name: a.numpy() for i, a in zip(session.get_inputs(), args, strict=True)}
            tools["onnx load"] = lambda: session_of(paths["onnx"])
            tools["onnx run"] = lambda: session.run(None, given)
        with torch.inference_mode():
            best = best_times(tools)
        sizes = {kind: path.stat().st_size for kind, path in paths.items() if path.exists()}
    return Row(
        name, sizes["nac"], sizes.get("onnx"), sizes["pt"], best["load"], best["safetensors"],
        best.get("onnx load"), best["run"], best["torch"], best.get("onnx run"),
        best["evaluator"], best["written"], first, error,
    )  # fmt: skip


def in_own_process(name: str) -> Row | str:
    """What was measured, or why it could not be."""
    if name == "minilm":
        try:
            model_path(name)
        except Unavailable as reason:
            return str(reason)
    command = [sys.executable, __file__, "--one", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["it failed"])[-1]
    return Row(**json.loads(done.stdout.strip().splitlines()[-1]))


HEAD = (
    "model         bytes  /state_dict   /onnx     load      GB/s  safetensors  onnxruntime"
    "       run     torch  /torch  onnxruntime  /onnxruntime  /evaluator  as written     first"
    "   error"
)


def line(row: Row) -> str:
    """A row of the table."""
    onnx = "-" if row.onnx_size is None else f"{row.size / row.onnx_size:.3f}"
    onnx_load = "-" if row.onnx_load is None else f"{row.onnx_load * 1e3:.2f} ms"
    onnx_run = "-" if row.onnx_run is None else f"{row.onnx_run * 1e3:.3f} ms"
    onnx_ratio = "-" if row.onnx_run is None else f"{row.run / row.onnx_run:.2f}x"
    return (
        f"{row.name:<8} {row.size:>10,} {row.size / row.state_size:>12.3f} {onnx:>7} "
        f"{row.load * 1e3:>6.2f} ms {row.size / row.load / 1e9:>6.2f} "
        f"{row.safetensors_load * 1e3:>9.2f} ms {onnx_load:>12} {row.run * 1e3:>6.3f} ms "
        f"{row.torch_run * 1e3:>6.3f} ms {row.run / row.torch_run:>6.2f}x {onnx_run:>12} "
        f"{onnx_ratio:>13} {row.run / row.evaluator_run:>10.2f}x {row.written_run * 1e3:>8.3f} ms "
        f"{row.first_run * 1e3:>6.0f} ms {row.error:.1e}"
    )


def summary(rows: list[Row]) -> str:
    """The mean over all models."""
    mean = math.exp(sum(math.log(row.run / row.torch_run) for row in rows) / len(rows))
    return f"geometric mean: {mean:.2f} times the run time of torch eager"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
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
    print(HEAD)
    rows = []
    for name in chosen.names or MODELS:
        found = in_own_process(name)
        print(line(found) if isinstance(found, Row) else f"{name:<8} {found}", flush=True)
        rows += [found] if isinstance(found, Row) else []
    if rows:
        print("", summary(rows), sep="\n")


if __name__ == "__main__":
    main()
