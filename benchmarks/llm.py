"""Language models on devices: what steps take over what they must, and what making plans takes.

    python -m benchmarks.llm                               every part that is quick enough
    python -m benchmarks.llm steps --models 15m 135m --devices npm4k npm64k
    python -m benchmarks.llm estimate speed text

Weights are random but for `text`, which takes SmolLM2 from the package that brings it. Seconds are
of a processor.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import process_time
from types import MappingProxyType

import numpy as np

from nacre.compile.api import compile as compile_module
from nacre.llm.bundle.llm_bundle import build
from nacre.llm.chat import TextInterface
from nacre.llm.checkpoint.configuration import read_config_json
from nacre.llm.estimate.bounds import ModelEstimate, StepBound, estimate_model
from nacre.llm.estimate.probes import RandomWeights, plan_cycles
from nacre.llm.estimate.sizes import ModelSizes, Precision
from nacre.llm.gguf.file import read_gguf
from nacre.llm.model.layers import decoder_weights
from nacre.llm.model.runner import Decoder, Runner
from nacre.nem.model.target import builtin_device
from tools.fetch_models import Unavailable, model_path

Row = tuple[str, ...]

DDR_BYTES = 1 << 34
GROUP = 32  # weights that share a scale in the least bytes


@dataclass(frozen=True)
class Sizes:
    """A Llama by its numbers; its head is its embedding unless it says otherwise."""

    layers: int
    width: int
    heads: int
    kv_heads: int
    ff: int
    vocabulary: int
    is_tied: bool = True

    def config_json(self) -> str:
        """The same as transformers writes it."""
        said = {
            "model_type": "llama",
            "num_hidden_layers": self.layers,
            "hidden_size": self.width,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "intermediate_size": self.ff,
            "vocab_size": self.vocabulary,
            "tie_word_embeddings": self.is_tied,
            "max_position_embeddings": 8192,
        }
        return json.dumps(said)


MODELS = MappingProxyType(
    {
        "15m": Sizes(6, 288, 6, 6, 768, 32_000),
        "42m": Sizes(8, 512, 8, 8, 1376, 32_000),
        "135m": Sizes(30, 576, 9, 3, 1536, 49_152),
        "360m": Sizes(32, 960, 15, 5, 2560, 49_152),
        "0.5b": Sizes(24, 896, 14, 2, 4864, 151_936),
        "1b": Sizes(16, 2048, 32, 8, 8192, 128_256),
        "8b": Sizes(32, 4096, 32, 8, 14_336, 128_256, is_tied=False),
    }
)


def model_sizes(name: str) -> ModelSizes:
    """A model counted."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.json"
        path.write_text(MODELS[name].config_json(), encoding="utf-8")
        return ModelSizes(*read_config_json(path))


@cache
def decoder(name: str) -> Decoder:
    """A model of these sizes."""
    config = model_sizes(name).config
    return Decoder(config, decoder_weights(config, RandomWeights(name)), name)


@dataclass(frozen=True)
class Setting:
    """What is measured."""

    models: Sequence[str]
    devices: Sequence[str]
    precision: Precision
    context: int
    chunk: int
    tokens: int


# Steps: cycles over bounds, and what making the plans takes


def least(name: str, device: str, setting: Setting) -> ModelEstimate:
    """Bounds of a model, with scales of the smallest groups."""
    return estimate_model(
        model_sizes(name),
        builtin_device(device),
        setting.precision,
        context=setting.context,
        prompts=(setting.chunk,),
        group_size=GROUP,
        ddr_bytes=DDR_BYTES,
    )


def step_rows(setting: Setting) -> Iterator[Row]:
    """Both plans of each model on each device."""
    yield (
        "model", "device", "step", "cycles", "over bytes/MACs", "over layer bound", "over whole",
        "compile s", "weights MB",
    )  # fmt: skip
    for name in setting.models:
        for device in setting.devices:
            bounds = least(name, device, setting)
            for chunk, bound in ((1, bounds.decode[-1]), (setting.chunk, bounds.prefill[-1])):
                yield step_row(name, device, chunk, bound, setting)


def step_row(name: str, device: str, chunk: int, bound: StepBound, setting: Setting) -> Row:
    """A plan that is made and timed."""
    module = decoder(name).step(setting.context, chunk).module
    begun = process_time()
    plan = compile_module(module, device, setting.precision, ddr_bytes=DDR_BYTES)
    seconds = process_time() - begun
    found = plan.estimate()
    return (
        name,
        device,
        "decode" if chunk == 1 else f"prefill {chunk}",
        f"{found.cycles or 0:,}",
        f"{(found.cycles or 0) / bound.cycles:.3f}",
        f"{found.over_layer_bound or 0:.3f}",
        f"{found.over_whole_bound or 0:.3f}",
        f"{seconds:.1f}",
        f"{len(plan.weights) / 1e6:.1f}",
    )


# Estimates from a configuration


def estimate_rows(setting: Setting) -> Iterator[Row]:
    """What the largest model takes by its numbers alone, and how long the answer takes."""
    yield "model", "device", "seconds", "weights MB", "tokens/s", "ms to first of 128"
    for device in setting.devices:
        begun = process_time()
        found = estimate_model(
            model_sizes("8b"),
            builtin_device(device),
            setting.precision,
            context=setting.context,
            ddr_bytes=DDR_BYTES,
        )
        seconds = process_time() - begun
        yield (
            "8b",
            device,
            f"{seconds:.3f}",
            f"{found.weight_bytes / 1e6:,.0f}",
            f"{found.tokens_per_second(found.decode[-1]):,.1f}",
            f"{found.milliseconds(found.prefill[0]):,.1f}",
        )


def plan_estimate_rows(setting: Setting) -> Iterator[Row]:
    """Cycles that are estimated from small plans, beside those of whole plans."""
    yield "model", "device", "tokens", "estimated cycles", "of the plan", "error", "seconds"
    for name in setting.models:
        for device in setting.devices:
            for tokens in (1, setting.chunk):
                yield plan_estimate_row(name, device, tokens, setting)


def plan_estimate_row(name: str, device: str, tokens: int, setting: Setting) -> Row:
    """The cycles of one plan, estimated and as it is made."""
    rows, known = setting.context, builtin_device(device)
    begun = process_time()
    estimated = plan_cycles(model_sizes(name).config, known, setting.precision, tokens, rows).at(
        rows
    )
    seconds = process_time() - begun
    step = decoder(name).step(rows, tokens)
    plan = compile_module(step.module, device, setting.precision, ddr_bytes=DDR_BYTES)
    made = plan.time().cycles
    error = f"{100 * (estimated / made - 1):+.2f} %"
    return name, device, str(tokens), f"{estimated:,}", f"{made:,}", error, f"{seconds:.1f}"


# Speed of the machine that runs plans


def speed_rows(setting: Setting) -> Iterator[Row]:
    """Tokens a second by the plan of single tokens, once its tasks are bound."""
    yield "model", "tokens/s of a processor", "s for the first"
    for name in setting.models:
        model = decoder(name)
        plan = compile_module(
            model.step(setting.context).module,
            setting.devices[0],
            setting.precision,
            ddr_bytes=DDR_BYTES,
        )
        session = plan.session()
        runner = Runner(
            name,
            model.config,
            setting.context,
            {1: lambda given, run=session.run: list(run(given).values())},  # type: ignore[misc]
        )
        begun = process_time()
        runner.feed([1])
        first = process_time() - begun
        runner.feed([1, 1])  # what is computed once is held from the third token on
        begun = process_time()
        for token in range(setting.tokens):
            runner.feed([token])
        yield name, f"{setting.tokens / (process_time() - begun):.2f}", f"{first:.1f}"


# SmolLM2: tokens of plans against those of the model in f32

PROMPTS = (
    "What is the capital of France?",
    "Explain in two sentences why the sky is blue.",
    "Write a short story about a lighthouse keeper.",
    "List three uses of copper.",
    "How do I boil an egg?",
)


def text_rows(setting: Setting) -> Iterator[Row]:
    """Greedy tokens until a plan says another one, and how far logits are apart on one text."""
    path = model_path("smollm2")
    file = read_gguf(path)
    text, model = TextInterface.from_gguf(file), Decoder.from_gguf(file)
    bundle = build(
        file, setting.devices[0], setting.precision, context=setting.context, chunk=setting.chunk,
        ddr_bytes=DDR_BYTES,
    )  # fmt: skip
    runners = (model.runner(setting.context, setting.chunk), bundle.runner())
    yield "prompt", "equal tokens", "of", "logits apart", "tokens/s", "in f32"
    for prompt in PROMPTS:
        yield prompt, *compare(*runners, text.prompt_ids(prompt), text.tokenizer.ends, setting)


def compare(
    model: Runner, plans: Runner, ids: list[int], ends: frozenset[int], setting: Setting
) -> Row:
    """Both say what comes next on the text of the model; logits are compared until they differ."""
    most = min(setting.tokens, setting.context - len(ids))
    for runner in (model, plans):
        runner.reset()
    expected, found = model.feed(ids), plans.feed(ids)
    same, apart, seconds = 0, 0.0, [0.0, 0.0]
    while same < most and expected.argmax() == found.argmax():
        apart = max(apart, float(np.abs(expected - found).max() / np.abs(expected).max()))
        token = int(expected.argmax())
        same += 1
        if token in ends or same == most:
            break
        begun = process_time()
        found = plans.feed([token])
        between = process_time()
        expected = model.feed([token])
        seconds = [seconds[0] + between - begun, seconds[1] + process_time() - between]
    rates = [f"{(same - 1) / spent:.2f}" if spent else "-" for spent in seconds]
    return str(same), str(most), f"{apart:.1e}", *rates


PARTS = MappingProxyType(
    {
        "estimate": estimate_rows,
        "plan-estimates": plan_estimate_rows,
        "steps": step_rows,
        "speed": speed_rows,
        "text": text_rows,
    }
)


def show(part: Callable[[Setting], Iterator[Row]], setting: Setting) -> None:
    """A table as its rows come; what is absent is said."""
    try:
        for number, row in enumerate(part(setting)):
            print("| " + " | ".join(row) + " |")
            if not number:
                print("|" + "---|" * len(row), flush=True)
    except Unavailable as problem:
        print(f"left out: {problem}")
    print(flush=True)


def main() -> None:
    """Print the tables that are asked for."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    reader.add_argument("--models", nargs="*", default=["15m"], choices=MODELS)
    reader.add_argument("--devices", nargs="*", default=["npm4k"])
    reader.add_argument("--precision", default="w4f16")
    reader.add_argument("--context", type=int, default=1024)
    reader.add_argument("--chunk", type=int, default=128)
    reader.add_argument("--tokens", type=int, default=10)
    said = vars(reader.parse_args())
    parts = said.pop("parts") or list(PARTS)
    for name in parts:
        show(PARTS[name], Setting(**said))


if __name__ == "__main__":
    main()
