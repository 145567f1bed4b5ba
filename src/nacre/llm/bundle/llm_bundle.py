"""A language model for a device: two plans, a tokenizer, a template; built, run, timed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Any

from nacre.base.stages import stage
from nacre.compile.api import compile as compile_module
from nacre.compile.bundle.bundle import Bundle
from nacre.compile.estimate.assumptions import clock_of
from nacre.compile.options import GROUP_SIZE
from nacre.compile.quantise.weight_only.shared_roundings import share_roundings
from nacre.compile.storage.checked_bundles import checked_bundles
from nacre.compile.target import target_of
from nacre.llm.bundle.classes import context_classes
from nacre.llm.bundle.precisions import PLAN_PRECISIONS, PlanPrecision, plan_precision
from nacre.llm.bundle.runs import cache_dtype, run_of
from nacre.llm.bundle.storage import StoredBundle, load_parts, save_parts
from nacre.llm.chat import TextInterface, require_room
from nacre.llm.estimate.sizes import ModelSizes
from nacre.llm.gguf.file import GgufFile, parse_gguf
from nacre.llm.gguf.writing import metadata_bytes
from nacre.llm.model.config import Config, config_of
from nacre.llm.model.problems import refusal
from nacre.llm.model.runner import Decoder, Runner
from nacre.llm.model.step import require_sizes
from nacre.llm.model.weights import ModelFile
from nacre.llm.rules.model import LLM09
from nacre.llm.rules.tokenizer import LLM10
from nacre.llm.sampling import Sampling
from nacre.llm.sources import open_model
from nacre.llm.tokenizer.vocabulary import has_tokenizer
from nacre.nem.model.devices import Device
from nacre.nem.spec.limits import DEFAULT_DDR_BYTES


@dataclass(frozen=True)
class LlmTime:
    """What the plans of a bundle take on its device."""

    prefill_cycles: int  # of a chunk of a prompt
    decode_cycles: int  # of a token
    chunk: int
    clock_mhz: float

    @property
    def tokens_per_second(self) -> float:
        """Tokens that are written in a second."""
        return self.clock_mhz * 1e6 / self.decode_cycles

    def first_token_ms(self, prompt_tokens: int) -> float:
        """Milliseconds until the first token after a prompt."""
        return ceil(prompt_tokens / self.chunk) * self.prefill_cycles / self.clock_mhz / 1000


# What is as the file has it differs by roundings to f16, 60 dB and more; 8 bits reach 45 dB.
_ROUNDED_DB = 50.0


@dataclass(frozen=True)
class WeightLosses:
    """Products whose weights are integers, and the ratios in dB of those that were rounded anew."""

    products: int
    rounded: list[float]  # the worst first


@dataclass(frozen=True, eq=False)
class LlmBundle:
    """A language model for a device.

    Both plans take the cache as inputs and give its new rows, which the host puts in their places.
    """

    prefill: Bundle  # of a chunk of tokens; the same as `decode` where that is one
    decode: Bundle  # of one
    context: int
    chunk: int
    head: GgufFile  # what the model's file says, without its tensors
    text: TextInterface | None  # None: the model came without a tokenizer
    shorter: Mapping[int, Bundle] = field(default_factory=dict)  # as `decode`, of fewer rows

    @property
    def config(self) -> Config:
        """The model in numbers."""
        return config_of(self.head)

    def runner(self) -> Runner:
        """A text that is read and goes on, by the plans, bit-true."""
        steps = {self.chunk: run_of(self.prefill), 1: run_of(self.decode)}
        shorter = {rows: run_of(plan) for rows, plan in self.shorter.items()}
        dtype = cache_dtype(self.decode, self.config)
        return Runner(self.head.name, self.config, self.context, steps, shorter, dtype)

    def require_text(self) -> TextInterface:
        """What texts need; InputError where the model came without a tokenizer."""
        if self.text is None:
            message = "the model came without a tokenizer, so that no text can be read"
            raise refusal(LLM10, self.head.name, message, "feed its tokens to `runner()`")
        return self.text

    def stream(
        self,
        prompt: str,
        *,
        max_tokens: int = 256,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 0,
        system: str | None = None,
    ) -> Iterator[str]:
        """The answer to a prompt, piece by piece."""
        sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
        text = self.require_text()
        ids = text.prompt_ids(prompt, system)
        require_room(text.name, ids, self.context)
        return text.generate(self.runner(), ids, max_tokens, sampling)

    def generate(self, prompt: str, **how: Any) -> str:  # noqa: ANN401 - as `stream` takes them
        """The whole answer; the arguments are those of `stream`."""
        return "".join(self.stream(prompt, **how))

    def time(self, context: int | None = None, clock_mhz: float | None = None) -> LlmTime:
        """What the plans take; each reads all of its cache, at any place of its context."""
        plans = {**self.shorter, self.context: self.decode}
        if context is not None and context not in plans:
            known = ", ".join(f"{rows:,}" for rows in sorted(plans))
            message = f"there are plans for a context of {known}, not of {context:,}"
            raise refusal(LLM09, self.head.name, message, "build the model for that context")
        prefill = self.prefill.time().cycles
        decode = plans[context or self.context].time().cycles
        device = target_of(self.decode.manifest.device).device
        return LlmTime(prefill, decode, self.chunk, clock_mhz or clock_of(device))

    @property
    def weight_losses(self) -> WeightLosses:
        """What weights lost on their way from the file to integers of the plans."""
        ratios = [loss.sqnr for loss in self.decode.manifest.losses]
        return WeightLosses(len(ratios), sorted(r for r in ratios if r < _ROUNDED_DB))

    def save(self, folder: str | Path, *, cache: bool = False) -> None:
        """Write the bundle into a folder, which is made.

        With `cache` it is remembered that its plans were checked.
        """
        save_parts(
            StoredBundle(
                self.prefill, self.decode, self.context, self.chunk, self.head, self.shorter
            ),
            Path(folder),
            checked_bundles() if cache else None,
        )

    @staticmethod
    def load(folder: str | Path, *, cache: bool = False) -> LlmBundle:
        """Read a bundle; InputError says what is wrong with it.

        With `cache` plans are not checked again where this nacre has done that before.
        """
        parts = load_parts(Path(folder), checked_bundles() if cache else None)
        text = _text_of(parts.head)
        return LlmBundle(
            parts.prefill, parts.decode, parts.context, parts.chunk, parts.head, text, parts.shorter
        )


def build(
    source: str | os.PathLike[str] | ModelFile | object,
    device: str | Path | Device,
    precision: str = "f16",
    *,
    context: int = 512,
    chunk: int = 32,
    group_size: int | None = None,
    keeps_blocks: bool = True,
    classes: bool = True,
    ddr_bytes: int = DEFAULT_DDR_BYTES,
    tokenizer: object = None,
) -> LlmBundle:
    """Compile a model to plans for a device.

    - `source`: a GGUF file, a folder that `save_pretrained` of transformers wrote, or such a model
      in memory, with its fast `tokenizer` where texts are wanted
    - `context`: rows of the cache
    - `chunk`: tokens of a prompt that are read at once
    - `precision`: `f16`, `f32`, or `w8f16` and `w4f16`, whose weights share a scale in groups of at
      most `group_size`
    - `keeps_blocks`: whether these precisions take weights of Q4_0, Q4_1 and Q8_0 as the file has
      them, in 4 or 8 bits; otherwise, and all others, they are rounded anew
    - `classes`: whether texts that are shorter get plans of 512, 1,024, ... rows, where a token
      takes a twentieth fewer cycles by them

    InputError lists what stands in the way.
    """
    file = open_model(source, tokenizer)
    known = _known_precision(precision, file.name)
    own = target_of(device).device
    head = parse_gguf(metadata_bytes(file.metadata), file.name)
    require_sizes(config_of(head), file.name, context, chunk)
    text = _text_of(head)
    with stage("reading the weights"):
        decoder = Decoder.from_gguf(file)
    is_grouped = known in GROUP_SIZE

    def plan(rows: int, size: int) -> Bundle:
        step = decoder.step(
            rows, size, keeps_blocks=keeps_blocks and is_grouped, of_context=context
        )
        with stage(f"compiling the plan of {size:,} tokens after {rows:,}"):
            return compile_module(
                step.module, device, known, ddr_bytes=ddr_bytes,
                group_size=group_size if is_grouped else None,
            )  # fmt: skip

    sizes = ModelSizes(decoder.config, decoder.weights.is_tied)
    shorter = context_classes(sizes, own, known, context, ddr_bytes) if classes else ()
    with share_roundings():
        plans = {size: plan(context, size) for size in sorted({1, chunk})}
        of_shorter = {rows: plan(rows, 1) for rows in shorter}
    return LlmBundle(plans[chunk], plans[1], context, chunk, head, text, of_shorter)


def _text_of(head: GgufFile) -> TextInterface | None:
    return TextInterface.from_gguf(head) if has_tokenizer(head.metadata) else None


def _known_precision(precision: str, name: str) -> PlanPrecision:
    known = plan_precision(precision)
    if known is None:
        message = f"the precision is {precision!r}, expected one of {', '.join(PLAN_PRECISIONS)}"
        raise refusal(LLM09, name, message)
    return known
