"""Steps of a model become plans for one device, at one precision."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nacre.base.stages import stage
from nacre.compile.api import compile as compile_module
from nacre.compile.bundle.bundle import Bundle
from nacre.compile.options import GROUP_SIZE
from nacre.compile.target import target_of
from nacre.core.module import Module
from nacre.llm.bundle.classes import classes_of_counts, context_classes
from nacre.llm.bundle.precisions import PlanPrecision
from nacre.llm.encoder_decoder.model import EncoderDecoder
from nacre.llm.estimate.sizes import ModelSizes
from nacre.llm.model.runner import Decoder
from nacre.llm.model.step import Step
from nacre.llm.onnx_decoder.decoder import GraphDecoder
from nacre.llm.sources import AnyDecoder
from nacre.nem.model.devices import Device


@dataclass(frozen=True)
class PlanCompiler:
    """What all plans of a model are compiled for."""

    decoder: AnyDecoder
    device: str | Path | Device
    precision: PlanPrecision
    context: int
    group_size: int | None
    keeps_blocks: bool
    ddr_bytes: int

    def plan(self, rows: int, size: int, texts: int = 1, *, all_logits: bool = False) -> Bundle:
        """That of so many tokens after so many, of each text."""
        step = self._step(rows, size, texts, all_logits)
        of_texts = f" of {texts:,} texts" if texts > 1 else ""
        with stage(f"compiling the plan of {size:,} tokens after {rows:,}{of_texts}"):
            return self._compile(step.module)

    def encoder(self) -> Bundle | None:
        """That of the encoder, where the model has one."""
        if not isinstance(self.decoder, EncoderDecoder):
            return None
        with stage("compiling the plan of the encoder"):
            return self._compile(self.decoder.encoder())

    def shorter_contexts(self) -> tuple[int, ...]:
        """Rows of plans for shorter texts."""
        decoder, precision, context = self.decoder, self.precision, self.context
        if isinstance(decoder, GraphDecoder):
            return classes_of_counts(decoder.weights, decoder.cache_row, precision, context)
        if isinstance(decoder, EncoderDecoder):
            return ()
        sizes = ModelSizes(decoder.config, decoder.weights.is_tied)
        device = target_of(self.device).device
        return context_classes(sizes, device, precision, context, self.ddr_bytes)

    def _step(self, rows: int, size: int, texts: int, all_logits: bool) -> Step:
        """The step of a plan; `require_abilities` has asked whether the decoder has it."""
        if not isinstance(self.decoder, Decoder):
            return self.decoder.step(rows, size)
        return self.decoder.step(
            rows, size, keeps_blocks=self.keeps_blocks and self._is_grouped,
            of_context=self.context, texts=texts, all_logits=all_logits,
        )  # fmt: skip

    @property
    def _is_grouped(self) -> bool:
        return self.precision in GROUP_SIZE

    def _compile(self, module: Module) -> Bundle:
        group = self.group_size if self._is_grouped else None
        return compile_module(
            module, self.device, self.precision, ddr_bytes=self.ddr_bytes, group_size=group
        )
