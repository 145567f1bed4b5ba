"""Programs that are ready to run: text to ids, and ids to text."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property

from nacre.nac.format.cursor import Broken
from nacre.nac.format.positions import Position
from nacre.nac.rules.tokenizer import NAC66, NAC67, NAC70
from nacre.nac.tisa import manifest
from nacre.nac.tisa.budget import Budget, BudgetError
from nacre.nac.tisa.bundle import Bundle, broken_as_input_error, refusal, split
from nacre.nac.tisa.character_data import WHITE_SPACE
from nacre.nac.tisa.characters import code_points
from nacre.nac.tisa.composition import (
    Composer,
    pad_batch,
    requested_padding,
    requested_truncation,
    truncate_texts,
)
from nacre.nac.tisa.decoder_inference import infer_decoder
from nacre.nac.tisa.decoders import TokenDecoder, byte_of, clean_text, read_decoder
from nacre.nac.tisa.encoding import Encoding
from nacre.nac.tisa.fragments import Fragment
from nacre.nac.tisa.instructions import Instruction, Kind
from nacre.nac.tisa.loading import (
    ModelSource,
    check_order,
    check_unknown,
    make_model,
    steps_of,
    surrounding_ids,
)
from nacre.nac.tisa.models.extents import UnknownError
from nacre.nac.tisa.options import (
    PAD_TOKENS,
    EncodingOptions,
    Padding,
    Side,
    Truncation,
    read_options,
)
from nacre.nac.tisa.resources import VOCABULARY, Vocabulary, read_vocabulary
from nacre.nac.tisa.streaming import TextStream
from nacre.nac.tisa.text.spans import BytePositions, Spans, span_of

_WHITE = "".join(map(chr, code_points(WHITE_SPACE)))
Text = str | tuple[str, str]  # a text, or a pair of them
_ONE_TEXT = "`encode_whole(text)` takes one"


def load(raw: bytes, resources: Mapping[str, bytes] | None = None) -> TisaProgram:
    """A program out of its bytes: one piece, or a manifest with the files of its vocabulary."""
    bundle = split(bytes(raw))
    files = {**bundle.resources, **(resources or {})}
    with broken_as_input_error(len(raw)):
        instructions = manifest.read(bundle.manifest)
        vocabulary = _vocabulary(Bundle(raw, files))
        return TisaProgram(instructions, vocabulary, read_decoder(files), read_options(files))


def check_manifest(raw: bytes, resources: Mapping[str, bytes | memoryview]) -> None:
    """Take a manifest apart, with its vocabulary if it is there; `Broken` says what is wrong."""
    instructions = manifest.read(raw)
    if VOCABULARY in resources:
        vocabulary = read_vocabulary(resources)
        TisaProgram(instructions, vocabulary, read_decoder(resources), read_options(resources))
        return
    check_order(instructions)
    steps_of(instructions)


def _vocabulary(bundle: Bundle) -> Vocabulary:
    if VOCABULARY not in bundle.resources:
        message = f"the program has no vocabulary: there is no resource `{VOCABULARY}`"
        raise Broken(NAC66, Position(0, "RSRC"), message)
    return read_vocabulary(bundle.resources)


class TisaProgram:
    """A tokenizer."""

    def __init__(
        self,
        instructions: tuple[Instruction, ...],
        vocabulary: Vocabulary,
        decoding: TokenDecoder | None = None,
        options: EncodingOptions | None = None,
    ) -> None:
        check_order(instructions)
        self._said = decoding  # how ids become text, where that was said
        self.instructions = instructions
        self.vocabulary = vocabulary
        self.options = options or EncodingOptions()
        source = ModelSource(vocabulary)
        self._ids, self._unknown = source.ids, source.unknown
        by_kind = {kind: [i for i in instructions if i.operation.kind == kind] for kind in Kind}
        self._steps = steps_of(instructions)
        check_unknown(by_kind[Kind.ENCODE][0], self._ids)
        self._model = make_model(source, by_kind[Kind.ENCODE][0])
        self._template = surrounding_ids(by_kind[Kind.COMPOSE], self._ids)
        # A step that asks where a fragment begins needs places, also if nobody else does.
        self._asks_places = any(i.operation.name == "INSERT_FIRST" for i in instructions)

    def encode(
        self,
        text: str,
        pair: str | None = None,
        *,
        add_special_tokens: bool = True,
        max_length: int | None = None,
        truncate_from: Side = "right",
        pad_to: int | None = None,
        pad_id: int | None = None,
        pad_on: Side | None = None,
    ) -> list[int]:
        """The ids of a text or of a pair, cut and padded where that is asked for.

        Padding is what the tokenizer pads with, on its side, unless the call says otherwise;
        InputError (NAC70) where neither names an id.
        """
        cut, padding = self.options.truncation, self.options.padding
        if max_length is not None:
            cut = requested_truncation(max_length, truncate_from)
            added = (
                self._composer.special_token_count(1 if pair is None else 2)
                if add_special_tokens
                else 0
            )
            if max_length < added:
                message = f"{max_length} ids have no room for the {added} special tokens alone"
                raise refusal(NAC70, message)
        if pad_to is not None:
            padding = requested_padding(pad_to, pad_id, pad_on, self._usual_padding)
        if pair is not None or cut is not None or padding is not None:
            whole = text if pair is None else (text, pair)
            return self._encode_batch([whole], add_special_tokens, cut, padding, False)[0].ids
        ids = self._plain_ids(text)
        before, behind = self._template if add_special_tokens else ((), ())
        return [*before, *ids, *behind]

    def encode_whole(
        self, text: str, pair: str | None = None, *, add_special_tokens: bool = True
    ) -> Encoding:
        """Ids with their places in the text, tokens, types and masks."""
        return self.encode_batch(
            [text if pair is None else (text, pair)], add_special_tokens=add_special_tokens
        )[0]

    def encode_batch(
        self, texts: Iterable[Text], *, add_special_tokens: bool = True
    ) -> list[Encoding]:
        """Texts or pairs, padded to the longest of them where the tokenizer pads."""
        options = self.options
        return self._encode_batch(texts, add_special_tokens, options.truncation, options.padding)

    def _encode_batch(
        self,
        texts: Iterable[Text],
        add_special_tokens: bool,
        cut: Truncation | None,
        padding: Padding | None,
        keeps_rest: bool = True,
    ) -> list[Encoding]:
        if isinstance(texts, str):  # whose characters would be texts
            raise refusal(NAC70, "a list of texts is expected, found one text", _ONE_TEXT)
        composer = self._composer
        encodings: list[Encoding] = []
        for each in texts:
            listed = tuple(each) if isinstance(each, tuple | list) else (each,)
            if len(listed) not in (1, 2):
                raise refusal(NAC70, f"a text or a pair is expected, found {len(listed)} texts")
            parts = [
                replace(self._places(text), type_ids=[]).with_type(index)
                for index, text in enumerate(listed)
            ]
            added = composer.special_token_count(len(parts)) if add_special_tokens else 0
            parts = truncate_texts(parts, cut, added, keeps_rest)
            encodings.append(composer.compose(parts, add_special_tokens))
        return pad_batch(encodings, padding)

    @cached_property
    def _composer(self) -> Composer:
        before, behind = ([(i, self.token(i)) for i in ids] for ids in self._template)
        return Composer(self.options, before, behind)

    def decode(
        self, ids: Iterable[int], *, skip_special_tokens: bool = True, clean_up: bool = False
    ) -> str:
        """The text of ids; `clean_up` takes the spaces away that tokens have before punctuation."""
        tokens: list[str] = []
        changed = self.token_decoder.texts
        for index in ids:
            if not isinstance(index, Hashable):  # a row of an array with two axes
                message = f"a list of ids is expected, found one of {type(index).__name__}"
                raise refusal(NAC70, message, "`decode_batch` takes several lists")
            token = changed.get(index) or self._tokens.get(index)
            if token is None:
                raise refusal(NAC70, f"no token has the id {index!r}")
            if not (skip_special_tokens and index in self._special):
                tokens.append(token)
        text = self.token_decoder.text_of(tokens)
        return clean_text(text) if clean_up else text

    def decode_batch(
        self, batch: Iterable[Iterable[int]], *, skip_special_tokens: bool = True
    ) -> list[str]:
        """The text of every list of ids."""
        return [self.decode(ids, skip_special_tokens=skip_special_tokens) for ids in batch]

    def stream(self, *, skip_special_tokens: bool = True) -> TextStream:
        """Decodes ids that come one after another, such as those that a model generates."""
        return TextStream(
            lambda ids: self.decode(ids, skip_special_tokens=False),
            self._special if skip_special_tokens else frozenset(),
            {i: byte for i, t in self._tokens.items() if (byte := byte_of(t)) is not None}
            if self.token_decoder.joins_bytes
            else {},
        )

    @property
    def pad_id(self) -> int | None:
        """The id that texts are padded with, None where the tokenizer names none."""
        return None if self._usual_padding is None else self._usual_padding.id

    @cached_property
    def _usual_padding(self) -> Padding | None:
        if self.options.padding is not None:
            return self.options.padding
        known = ((self._ids.get(token), token) for token in PAD_TOKENS)
        return next((Padding(None, i, token=t) for i, t in known if i in self._special), None)

    def token_id(self, token: str) -> int | None:
        """The id of a token as it stands in the vocabulary."""
        return self._ids.get(token)

    def token(self, index: int) -> str:
        """The token of an id, empty where there is none."""
        return self._tokens.get(index, "")

    def fragments(self, text: str) -> list[tuple[str, bool]]:
        """What the text is cut into before it is encoded, and what of it is a token already."""
        check_text(text)
        cut = self._cut(text, Budget(len(text)), 0 if self._asks_places else None)
        return [(part, token is not None) for part, token, _ in cut]

    @cached_property
    def _tokens(self) -> dict[int, str]:
        return {entry.id: entry.token for entry in self.vocabulary.entries}

    @cached_property
    def token_decoder(self) -> TokenDecoder:
        """How ids become text."""
        if self._said is not None:
            return self._said
        before, behind = self._template
        return infer_decoder(self.instructions, self._ids, (*before, *behind))

    @cached_property
    def _special(self) -> frozenset[int]:
        return frozenset(self.token_decoder.special)

    def _plain_ids(self, text: str) -> list[int]:
        """Ids alone, in the shortest way."""
        check_text(text)
        budget = Budget(len(text))
        ids: list[int] = []
        model = self._model
        with _limits(text):
            for part, token, _ in self._cut(text, budget, 0 if self._asks_places else None):
                if token is None:
                    ids += model(part, budget)
                else:
                    ids.append(self._protected_id(part, token))
        return ids

    def _places(self, text: str) -> Encoding:
        """Ids with all that is known of them."""
        check_text(text)
        budget = Budget(len(text))
        rows: list[tuple[int, tuple[int, int], str, int]] = []
        outside = BytePositions(text)
        with _limits(text):
            for word, (part, token, spans) in enumerate(self._cut(text, budget, 0)):
                if token is None:
                    for index, start, end, shown, is_outside in self._model.extents(part, budget):
                        found = self._tokens[index] if shown is None else shown
                        place = (
                            outside.span(start, end) if is_outside else span_of(spans, start, end)
                        )
                        rows.append((index, place, found, word))
                else:
                    index = self._protected_id(part, token)
                    rows.append((index, span_of(spans, 0, len(part)), part, word))
        count = len(rows)
        return Encoding(
            [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows],
            [0] * count, [row[3] for row in rows], [0] * count, [1] * count,
        )  # fmt: skip

    def _cut(self, text: str, budget: Budget, spans: Spans) -> list[Fragment]:
        fragments: list[Fragment] = [(text, None, spans)] if text else []
        for run in self._steps:
            fragments = run(fragments, budget)
        return fragments

    def _protected_id(self, part: str, token: int) -> int:
        """The id of a token, which may have white space around it."""
        if token >= 0:
            return token
        for text in (part, part[1:] if part.startswith(" ") else part, part.strip(_WHITE)):
            if text in self._ids:
                return self._ids[text]
        return self._unknown


class _limits:  # noqa: N801 - used like a function
    """Let what a text may not cause become what users see."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, BudgetError):
            size = len(self._text)
            message = f"the program needs {error} for a text of {size:,} characters"
            raise refusal(NAC67, message) from None
        if isinstance(error, UnknownError):
            raise refusal(NAC70, str(error)) from None


def check_text(text: str) -> None:
    """Refuse what is no Unicode."""
    if not isinstance(text, str):
        raise TypeError(f"a text is expected, found {type(text).__name__}")
    if text.isascii():
        return
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        shown = f"U+{ord(text[error.start]):04X}"
        message = f"character {error.start + 1:,} of the text, {shown}, is half of a surrogate pair"
        raise refusal(NAC70, message) from None
