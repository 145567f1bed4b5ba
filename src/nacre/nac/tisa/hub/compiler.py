"""From `tokenizer.json` to a program: what TISA cannot say is refused, all of it at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import replace as with_fields
from typing import TypeVar

from msgspec.structs import replace

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.nac.tisa import manifest
from nacre.nac.tisa.bundle import Bundle, broken_as_input_error
from nacre.nac.tisa.decoders import RESOURCE, TokenDecoder, encode_decoder
from nacre.nac.tisa.hub.added import (
    AddedToken,
    added_token_steps,
    added_tokens,
    check_ids,
    decoded_texts,
    require_no_spaces,
)
from nacre.nac.tisa.hub.decoders import decoder_steps
from nacre.nac.tisa.hub.lengths import padding_of, truncation_of
from nacre.nac.tisa.hub.models import Model, compile_model
from nacre.nac.tisa.hub.normalizers import normalizer_steps, sets_ideographs_apart
from nacre.nac.tisa.hub.parts import Part, UnsupportedPart, open_part
from nacre.nac.tisa.hub.post_processors import PostProcessing, post_processing
from nacre.nac.tisa.hub.pre_tokenizers import ideograph_steps, pre_tokenizer_steps
from nacre.nac.tisa.instructions import Instruction
from nacre.nac.tisa.options import RESOURCE as OPTIONS
from nacre.nac.tisa.options import EncodingOptions, encode_options
from nacre.nac.tisa.program import TisaProgram
from nacre.nac.tisa.resources import Entry, Vocabulary
from nacre.nac.tisa.scores import round_score

Result = TypeVar("Result")


def compile_hub_bundle(source: object, *, unlimited: bool = False) -> Bundle:
    """The manifest for PROC and the files for RSRC."""
    try:
        whole = open_part(source)
        tokens = added_tokens(whole.get("added_tokens"))
    except UnsupportedPart as unfit:
        raise unfit.refusal() from None
    return _TokenizerCompiler(whole, tokens).run(unlimited)


@dataclass(frozen=True)
class _TextSteps:
    """What normalisers and pre-tokenisers do."""

    changes: list[Instruction]
    cuts: list[Instruction]


class _TokenizerCompiler:
    """A tokenizer that is being compiled, and what was found to be wrong with it."""

    def __init__(self, whole: Part, tokens: list[AddedToken]) -> None:
        self._whole = whole
        self._tokens = tokens
        self._findings: list[Diagnostic] = []

    def run(self, unlimited: bool) -> Bundle:
        """Every part; InputError with all that cannot be said."""
        limits = EncodingOptions() if unlimited else self._attempt(self._limits, EncodingOptions())
        texts = self._attempt(self._text_steps, _TextSteps([], []))
        # Whether a model can be said depends on what comes before it.
        model = None if self._findings else self._attempt(lambda: self._model(texts), None)
        post_processor = self._whole.get("post_processor")
        after = self._attempt(lambda: post_processing(post_processor), PostProcessing())
        behind = self._steps(lambda: after.step(post_processor))
        decoding = self._attempt(self._token_decoder, TokenDecoder(None))
        before = self._steps(lambda: self._with_tokens(texts, model)) if model else []
        if self._findings or model is None:
            raise InputError(self._findings)
        said = after.options(self._known_ids(model))
        options = replace(
            said,
            truncation=limits.truncation,
            padding=limits.padding,
            numbers_texts=bool(post_processor) or limits == EncodingOptions(),
        )
        return self._bundle((*before, model.step, *behind), model, decoding, options)

    def _bundle(
        self,
        instructions: tuple[Instruction, ...],
        model: Model,
        decoding: TokenDecoder,
        options: EncodingOptions,
    ) -> Bundle:
        vocabulary = self._vocabulary(model)
        raw = manifest.write(instructions)
        with broken_as_input_error(len(raw)):
            # What is written can be run.
            program = TisaProgram(manifest.read(raw), vocabulary)
        resources = vocabulary.resources()
        if program.token_decoder != decoding:  # instructions do not tell it
            resources[RESOURCE] = encode_decoder(decoding)
        if options != EncodingOptions():
            resources[OPTIONS] = encode_options(options)
        return Bundle(raw, resources)

    def _token_decoder(self) -> TokenDecoder:
        """How ids become text: tokens that are normalised do so in that form, special or not."""
        decoder = decoder_steps(self._whole.get("decoder"))
        special = {token.content for token in self._tokens if token.is_special}
        if not any(token.is_normalized for token in self._tokens):
            left_out = {token.id for token in self._tokens if token.is_special}
            return TokenDecoder(decoder, tuple(sorted(left_out)))
        changes = normalizer_steps(self._whole.get("normalizer"), spaces_ideographs=True)
        shown = decoded_texts(self._tokens, changes)
        left_out = {index for index, text in shown.items() if text in special}
        changed = {t.id: shown[t.id] for t in self._tokens if shown[t.id] != t.content}
        return TokenDecoder(decoder, tuple(sorted(left_out)), changed)

    def _steps(self, make: Callable[[], list[Instruction]]) -> list[Instruction]:
        return self._attempt(make, list[Instruction]())

    def _attempt(self, make: Callable[[], Result], otherwise: Result) -> Result:
        try:
            return make()
        except UnsupportedPart as unfit:
            self._findings += unfit.refusal().diagnostics
            return otherwise

    def _limits(self) -> EncodingOptions:
        return EncodingOptions(
            truncation=truncation_of(self._whole.get("truncation")),
            padding=padding_of(self._whole.get("padding")),
        )

    def _text_steps(self) -> _TextSteps:
        """All that happens before fragments become ids, but for added tokens."""
        normalizer = self._whole.get("normalizer")
        pre_tokenizer = self._whole.get("pre_tokenizer")
        changes = self._steps(lambda: normalizer_steps(normalizer))
        cuts = self._steps(lambda: pre_tokenizer_steps(pre_tokenizer))
        if self._findings:
            return _TextSteps(changes, cuts)
        try:
            apart = sets_ideographs_apart(normalizer)
            if apart:
                require_no_spaces(self._tokens)
            before = ideograph_steps(pre_tokenizer) if apart else []
        except UnsupportedPart:
            return _TextSteps(normalizer_steps(normalizer, spaces_ideographs=True), cuts)
        return _TextSteps(changes, before + cuts)

    def _model(self, texts: _TextSteps) -> Model:
        added = {token.content: token.id for token in self._tokens}
        model = compile_model(self._whole["model"], [*texts.changes, *texts.cuts], added)
        check_ids(self._tokens, model.ids)
        return model

    def _known_ids(self, model: Model) -> dict[str, int]:
        return {**model.ids, **{token.content: token.id for token in self._tokens}}

    def _with_tokens(self, texts: _TextSteps, model: Model) -> list[Instruction]:
        """The same with added tokens, in the text as it is and in the one that is normalised."""
        ids = self._known_ids(model)
        normalized = [token for token in self._tokens if token.is_normalized]
        raw = [token for token in self._tokens if not token.is_normalized]
        return [
            *added_token_steps(raw, [], ids),
            *texts.changes,
            *added_token_steps(normalized, texts.changes, ids),
            *texts.cuts,
        ]

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
        return vocabulary if is_enough else with_fields(vocabulary, wide=wide)
