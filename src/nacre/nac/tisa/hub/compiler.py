"""From `tokenizer.json` to a program: what TISA cannot say is refused, all of it at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.nac.tisa import manifest
from nacre.nac.tisa.bundle import Bundle, broken_as_input_error, join
from nacre.nac.tisa.decoders import RESOURCE, TokenDecoder, encode_decoder
from nacre.nac.tisa.hub.added import (
    AddedToken,
    added_token_steps,
    added_tokens,
    check_ids,
    check_lookup,
    check_normalized,
)
from nacre.nac.tisa.hub.decoders import decoder_steps
from nacre.nac.tisa.hub.models import Model, compile_model
from nacre.nac.tisa.hub.normalizers import normalizer_steps, sets_ideographs_apart
from nacre.nac.tisa.hub.parts import Part, UnsupportedPart, open_part
from nacre.nac.tisa.hub.post_processors import post_processor_steps
from nacre.nac.tisa.hub.pre_tokenizers import ideograph_steps, pre_tokenizer_steps
from nacre.nac.tisa.instructions import Instruction
from nacre.nac.tisa.program import TisaProgram
from nacre.nac.tisa.resources import Entry, Vocabulary
from nacre.nac.tisa.scores import round_score

Made = TypeVar("Made")
_LIMITS = ("truncation", "padding")


def compile_tokenizer(source: object, *, unlimited: bool = False) -> bytes:
    """A tokenizer as a manifest and its vocabulary in one piece.

    Args:
        source: A folder with `tokenizer.json`, its path, its text, or a `tokenizers.Tokenizer`.
        unlimited: Take a tokenizer that truncates or pads for one that does not. Both are options
            of `TisaProgram.encode`; TISA has no instructions for them.
    """
    bundle = compile_bundle(source, unlimited=unlimited)
    return join(bundle.manifest, bundle.resources)


def compile_bundle(source: object, *, unlimited: bool = False) -> Bundle:
    """The manifest for PROC and the files for RSRC."""
    try:
        whole = open_part(source)
        tokens = added_tokens(whole.get("added_tokens"))
    except UnsupportedPart as unfit:
        raise unfit.refusal() from None
    return _TokenizerCompiler(whole, tokens).run(unlimited)


class _TokenizerCompiler:
    """A tokenizer that is being compiled, and what was found to be wrong with it."""

    def __init__(self, whole: Part, tokens: list[AddedToken]) -> None:
        self._whole = whole
        self._raw = [token for token in tokens if not token.is_normalized]
        self._normalized = [token for token in tokens if token.is_normalized]
        self._tokens = tokens
        self._findings: list[Diagnostic] = []

    def run(self, unlimited: bool) -> Bundle:
        """Every part; InputError with all that cannot be said."""
        if not unlimited:
            self._attempt(self._check_limits, None)
        before = self._steps(self._text_steps)
        # Whether a model can be said depends on what comes before it.
        model = None if self._findings else self._attempt(lambda: self._model(before), None)
        behind = self._steps(lambda: post_processor_steps(self._whole.get("post_processor")))
        decoding = self._attempt(self._token_decoder, TokenDecoder(None))
        if self._findings or model is None:
            raise InputError(self._findings)
        vocabulary = self._vocabulary(model)
        instructions = (*before, model.step, *behind)
        raw = manifest.write(instructions)
        with broken_as_input_error(len(raw)):
            # What is written can be run.
            program = TisaProgram(manifest.read(raw), vocabulary)
        resources = vocabulary.resources()
        if program.token_decoder != decoding:  # instructions do not tell it
            resources[RESOURCE] = encode_decoder(decoding)
        return Bundle(raw, resources)

    def _token_decoder(self) -> TokenDecoder:
        special = {token.id for token in self._tokens if token.is_special}
        return TokenDecoder(decoder_steps(self._whole.get("decoder")), tuple(sorted(special)))

    def _steps(self, make: Callable[[], list[Instruction]]) -> list[Instruction]:
        return self._attempt(make, list[Instruction]())

    def _attempt(self, make: Callable[[], Made], otherwise: Made) -> Made:
        try:
            return make()
        except UnsupportedPart as unfit:
            self._findings += unfit.refusal().diagnostics
            return otherwise

    def _check_limits(self) -> None:
        for name in _LIMITS:
            part = self._whole.get(name)
            if part:
                raise part.unsupported(
                    "TISA has no instruction for it",
                    help="compile with `unlimited`, and give `encode` the lengths",
                )

    def _text_steps(self) -> list[Instruction]:
        """All that happens before fragments become ids."""
        normalizer = self._whole.get("normalizer")
        pre_tokenizer = self._whole.get("pre_tokenizer")
        changes = self._steps(lambda: normalizer_steps(normalizer))
        cuts = self._steps(lambda: pre_tokenizer_steps(pre_tokenizer))
        apart = self._attempt(lambda: sets_ideographs_apart(normalizer), False)
        if apart:
            cuts = self._steps(lambda: ideograph_steps(pre_tokenizer)) + cuts
        self._attempt(lambda: check_normalized(self._normalized, changes, apart), None)
        return [
            *added_token_steps(self._raw),
            *changes,
            *added_token_steps(self._normalized),
            *cuts,
        ]

    def _model(self, before: list[Instruction]) -> Model:
        added = {token.content: token.id for token in self._tokens}
        model = compile_model(self._whole["model"], before, added)
        check_ids(self._tokens, model.ids)
        check_lookup(self._tokens, {**model.ids, **added})
        return model

    def _vocabulary(self, model: Model) -> Vocabulary:
        scores = model.scores
        entries = {t: Entry(t, i, round_score(scores.get(t, 0.0))) for t, i in model.ids.items()}
        for token in self._tokens:
            if token.content not in entries:
                entries[token.content] = Entry(token.content, token.id, math.nan)
        ordered = sorted(entries.values(), key=lambda entry: entry.token)
        vocabulary = Vocabulary(tuple(ordered), model.merges)
        if not scores:
            return vocabulary
        wide = tuple(scores[e.token] if e.is_piece else math.nan for e in ordered)
        pairs = zip(wide, vocabulary.scores, strict=True)
        is_enough = all(one == other or math.isnan(one) for one, other in pairs)
        return vocabulary if is_enough else replace(vocabulary, wide=wide)
