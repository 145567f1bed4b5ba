"""A language model for a device: its plans, a tokenizer, a template; built, run, timed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nacre.base.stages import stage
from nacre.compile.bundle.bundle import Bundle
from nacre.compile.estimate.assumptions import clock_of
from nacre.compile.quantise.weight_only.shared_roundings import share_roundings
from nacre.compile.storage.checked_bundles import checked_bundles
from nacre.compile.target import target_of
from nacre.core.values import Array
from nacre.llm.bundle.batches import BatchRunner, generate_all
from nacre.llm.bundle.plan_compiler import PlanCompiler
from nacre.llm.bundle.precisions import PLAN_PRECISIONS, PlanPrecision, plan_precision
from nacre.llm.bundle.requests import require_abilities, require_draft, require_more_plans
from nacre.llm.bundle.runs import cache_dtype, run_of
from nacre.llm.bundle.sizes import ModelConfig, sizes_of
from nacre.llm.bundle.speculation import Check, SpeculativeRunner
from nacre.llm.bundle.storage import (
    BATCHED,
    ENCODER,
    VERIFY,
    StoredBundle,
    load_parts,
    save_parts,
    tokens_of,
)
from nacre.llm.bundle.times import LlmTime, SpeculationTime
from nacre.llm.chat import TextInterface, require_room
from nacre.llm.encoder_decoder.config import EncoderDecoderConfig
from nacre.llm.encoder_decoder.model import SourceInput, SourceRunner
from nacre.llm.gguf.file import GgufFile, parse_gguf
from nacre.llm.gguf.writing import metadata_bytes
from nacre.llm.model.problems import refusal
from nacre.llm.model.runner import Runner, StepKind
from nacre.llm.model.step import require_sizes
from nacre.llm.model.weights import ModelFile
from nacre.llm.rules.model import LLM09
from nacre.llm.rules.tokenizer import LLM10
from nacre.llm.sampling import Sampling
from nacre.llm.sources import decoder_of, open_model, with_source_rows
from nacre.llm.tokenizer.vocabulary import has_tokenizer
from nacre.nem.model.devices import Device
from nacre.nem.spec.limits import DEFAULT_DDR_BYTES

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
    verify: Bundle | None = None  # of several tokens, with the logits after each: checks a draft
    batched: Bundle | None = None  # of a token of each of several texts
    encoder: Bundle | None = None  # of a source, which steps then look at

    @property
    def config(self) -> ModelConfig:
        """The model in numbers."""
        return sizes_of(self.head)

    @property
    def draft_tokens(self) -> int:
        """How many guesses of a draft are checked at once; 0 without a plan for it."""
        return 0 if self.verify is None else tokens_of(self.verify) - 1

    @property
    def batch(self) -> int:
        """How many texts are written at once."""
        return 1 if self.batched is None else tokens_of(self.batched)

    def runner(self) -> Runner:
        """A text that is read and goes on, by the plans, bit-true."""
        return self._runner()

    def _runner(self, caches: Mapping[str, Array] | None = None) -> Runner:
        steps = {self.chunk: run_of(self.prefill), 1: run_of(self.decode)}
        shorter = {rows: run_of(plan) for rows, plan in self.shorter.items()}
        dtype = cache_dtype(self.decode, self.config)
        return Runner(self.head.name, self.config, self.context, steps, shorter, dtype, caches)

    def source_runner(self) -> SourceRunner:
        """A text about a source, which is read first; InputError without an encoder."""
        config = self.config
        if self.encoder is None or not isinstance(config, EncoderDecoderConfig):
            message = "the model has no encoder, so that there is no source to read"
            raise refusal(LLM09, self.head.name, message, "feed its tokens to `runner()`")
        return SourceRunner(config, run_of(self.encoder), self.runner())

    def speculative_runner(
        self, draft: LlmBundle, draft_tokens: int | None = None
    ) -> SpeculativeRunner:
        """The same text, whose tokens a smaller model guesses; InputError where it cannot.

        As many are guessed at a time as the plan `verify` checks, or `draft_tokens` if that is
        fewer.
        """
        verify = require_draft(self, draft, draft_tokens)
        check = Check(tokens_of(verify), run_of(verify))
        guesses = draft_tokens or self.draft_tokens
        return SpeculativeRunner(self.runner(), draft.runner(), check, guesses)

    def batch_runner(self) -> BatchRunner:
        """Several texts that go on together; InputError without a plan for it."""
        if self.batched is None:
            message = "there is no plan of several texts"
            raise refusal(LLM09, self.head.name, message, "build the model with `batch`")
        dtype = cache_dtype(self.batched, self.config)
        return BatchRunner(
            self.config, self.context, self.batch, run_of(self.batched), self._runner, dtype
        )

    def require_text(self) -> TextInterface:
        """What texts need; InputError where the model came without a tokenizer."""
        if self.text is None:
            message = "the model came without a tokenizer, so that no text can be read"
            raise refusal(LLM10, self.head.name, message, "feed its tokens to `runner()`")
        return self.text

    def stream(
        self,
        prompt: str | SourceInput,
        *,
        max_tokens: int = 256,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 0,
        system: str | None = None,
        draft: LlmBundle | None = None,
        draft_tokens: int | None = None,
        begin: Sequence[int] | None = None,
    ) -> Iterator[str]:
        """The answer to a prompt, piece by piece.

        Of a model with an encoder the prompt is its source: a text, tokens, or the features of a
        sound; texts then begin with the tokens `begin`, as a rule with the model's own.

        A smaller model `draft` guesses tokens that are checked several at a time: without
        temperature they are the same as without it.
        """
        sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
        text = self.require_text()
        if self.encoder is not None:
            about = self.source_runner()
            about.read(text.tokenizer.encode(prompt) if isinstance(prompt, str) else prompt)
            return text.generate(about, begin or [about.start], max_tokens, sampling)
        if not isinstance(prompt, str):
            raise TypeError(f"the prompt is a {type(prompt).__name__}, expected a text")
        ids = text.prompt_ids(prompt, system)
        require_room(text.name, ids, self.context)
        runner = self.speculative_runner(draft, draft_tokens) if draft else self.runner()
        return text.generate(runner, ids, max_tokens, sampling)

    def generate(self, prompt: str | SourceInput, **how: Any) -> str:  # noqa: ANN401 - as `stream` takes them
        """The whole answer; the arguments are those of `stream`."""
        return "".join(self.stream(prompt, **how))

    def generate_all(
        self,
        prompts: Sequence[str],
        *,
        max_tokens: int = 256,
        system: str | None = None,
        **how: Any,  # noqa: ANN401 - as `Sampling` takes them
    ) -> list[str]:
        """The answers to several prompts, as many at once as the plan `batched` has texts."""
        text = self.require_text()
        ids = [text.prompt_ids(prompt, system) for prompt in prompts]
        for prompt in ids:
            require_room(text.name, prompt, self.context)
        return generate_all(text.tokenizer, self.batch_runner(), ids, max_tokens, Sampling(**how))

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
        return LlmTime(
            prefill, decode, self.chunk, clock_mhz or clock_of(device),
            0 if self.verify is None else self.verify.time().cycles,
            0 if self.batched is None else self.batched.time().cycles,
            self.batch,
            0 if self.encoder is None else self.encoder.time().cycles,
        )  # fmt: skip

    def speculation_time(self, runner: SpeculativeRunner, draft: LlmBundle) -> SpeculationTime:
        """What a text with guesses took on the device since it began, but for reading prompts."""
        target, guessing = runner.runners
        cycles = self.step_cycles(target) + draft.step_cycles(guessing)
        return SpeculationTime(runner.counts, cycles, self.decode.time().cycles)

    def step_cycles(self, runner: Runner) -> int:
        """What the steps of a text took, but for chunks of its prompt."""
        decodes = {**self.shorter, self.context: self.decode}
        plans: dict[tuple[StepKind, int], Bundle] = {
            ("token", rows): plan for rows, plan in decodes.items()
        }
        if self.verify is not None:
            plans["check", self.context] = self.verify
        taken = {kind: count for kind, count in runner.step_counts.items() if kind in plans}
        return sum(count * plans[kind].time().cycles for kind, count in taken.items())

    @property
    def weight_losses(self) -> WeightLosses:
        """What weights lost on their way from the file to integers of the plans."""
        ratios = [loss.sqnr for loss in self.decode.manifest.losses]
        return WeightLosses(len(ratios), sorted(r for r in ratios if r < _ROUNDED_DB))

    def save(self, folder: str | Path, *, cache: bool = False) -> None:
        """Write the bundle into a folder, which is made.

        With `cache` it is remembered that its plans were checked.
        """
        more = {VERIFY: self.verify, BATCHED: self.batched, ENCODER: self.encoder}
        save_parts(
            StoredBundle(
                self.prefill, self.decode, self.context, self.chunk, self.head, self.shorter,
                {kind: plan for kind, plan in more.items() if plan is not None},
            ),
            Path(folder),
            checked_bundles() if cache else None,
        )  # fmt: skip

    @staticmethod
    def load(folder: str | Path, *, cache: bool = False) -> LlmBundle:
        """Read a bundle; InputError says what is wrong with it.

        With `cache` plans are not checked again where this nacre has done that before.
        """
        parts = load_parts(Path(folder), checked_bundles() if cache else None)
        text = _text_of(parts.head)
        return LlmBundle(
            parts.prefill, parts.decode, parts.context, parts.chunk, parts.head, text,
            parts.shorter, parts.optional.get(VERIFY), parts.optional.get(BATCHED),
            parts.optional.get(ENCODER),
        )  # fmt: skip


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
    batch: int = 1,
    draft_tokens: int = 0,
    source_rows: int | None = None,
) -> LlmBundle:
    """Compile a model to plans for a device.

    - `source`: a GGUF file, a folder that `save_pretrained` of transformers wrote, or such a model
      in memory, with its fast `tokenizer` where texts are wanted; an ONNX file with past and
      present, or a folder with one
    - `context`: rows of the cache
    - `chunk`: tokens of a prompt that are read at once
    - `precision`: `f16`, `f32`, or `w8f16` and `w4f16`, whose weights share a scale in groups of at
      most `group_size`
    - `keeps_blocks`: whether these precisions take weights of Q4_0, Q4_1 and Q8_0 as the file has
      them, in 4 or 8 bits; otherwise, and all others, they are rounded anew
    - `classes`: whether texts that are shorter get plans of 512, 1,024, ... rows, where a token
      takes a twentieth fewer cycles by them
    - `batch`: of how many texts a further plan writes a token each, which reads the weights once
    - `draft_tokens`: how many guesses of a smaller model a further plan checks at once
    - `source_rows`: tokens of a source at most, of a model with an encoder

    InputError lists what stands in the way.
    """
    file = with_source_rows(open_model(source, tokenizer), source_rows)
    known = _known_precision(precision, file.name)
    target_of(device)  # refused before weights are read
    head = parse_gguf(metadata_bytes(file.metadata), file.name)
    require_sizes(sizes_of(head), file.name, context, chunk)
    require_more_plans(file.name, context, batch, draft_tokens)
    text = _text_of(head)
    with stage("reading the weights"):
        decoder = decoder_of(file)
    require_abilities(decoder, batch, draft_tokens)
    plans_of = PlanCompiler(decoder, device, known, context, group_size, keeps_blocks, ddr_bytes)
    with share_roundings():
        plans = {size: plans_of.plan(context, size) for size in sorted({1, chunk})}
        rows_of_shorter = plans_of.shorter_contexts() if classes else ()
        shorter = {rows: plans_of.plan(rows, 1) for rows in rows_of_shorter}
        verify = plans_of.plan(context, draft_tokens + 1, all_logits=True) if draft_tokens else None
        batched = plans_of.plan(context, 1, batch) if batch > 1 else None
    return LlmBundle(
        plans[chunk], plans[1], context, chunk, head, text, shorter, verify, batched,
        plans_of.encoder(),
    )  # fmt: skip


def _text_of(head: GgufFile) -> TextInterface | None:
    return TextInterface.from_gguf(head) if has_tokenizer(head.metadata) else None


def _known_precision(precision: str, name: str) -> PlanPrecision:
    known = plan_precision(precision)
    if known is None:
        message = f"the precision is {precision!r}, expected one of {', '.join(PLAN_PRECISIONS)}"
        raise refusal(LLM09, name, message)
    return known
