"""Programs that are ready to run: text to ids, and ids to text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Literal, cast

from nacre.nac.format.cursor import Broken
from nacre.nac.format.positions import Position
from nacre.nac.rules.tokenizer import NAC63, NAC64, NAC65, NAC66, NAC67, NAC70
from nacre.nac.tisa import manifest
from nacre.nac.tisa.bpe import Bpe
from nacre.nac.tisa.budget import Budget, BudgetError
from nacre.nac.tisa.bundle import Bundle, broken_as_input_error, refusal, split
from nacre.nac.tisa.character_data import WHITE_SPACE
from nacre.nac.tisa.characters import code_points
from nacre.nac.tisa.decoder_inference import infer_decoder
from nacre.nac.tisa.decoders import TokenDecoder, read_decoder
from nacre.nac.tisa.fragments import Fragment, Step, fragment_steps
from nacre.nac.tisa.instructions import Instruction, Item, Kind
from nacre.nac.tisa.patterns import PatternError
from nacre.nac.tisa.pieces import Unigram, WordPiece
from nacre.nac.tisa.resources import MERGES, VOCABULARY, Vocabulary, read_vocabulary

_WHITE = "".join(map(chr, code_points(WHITE_SPACE)))
Side = Literal["left", "right"]
_UNKNOWN_TOKENS = ("<unk>", "[UNK]")
_UNKNOWN_UNIGRAM = 2  # the id where a Unigram vocabulary has no `<unk>`


def load(raw: bytes, resources: Mapping[str, bytes] | None = None) -> TisaProgram:
    """A program out of its bytes: one piece, or a manifest with the files of its vocabulary."""
    bundle = split(bytes(raw))
    files = {**bundle.resources, **(resources or {})}
    with broken_as_input_error(len(raw)):
        instructions = manifest.read(bundle.manifest)
        return TisaProgram(instructions, _vocabulary(Bundle(raw, files)), read_decoder(files))


def check_manifest(raw: bytes, resources: Mapping[str, bytes | memoryview]) -> None:
    """Take a manifest apart, with its vocabulary if it is there; `Broken` says what is wrong."""
    instructions = manifest.read(raw)
    if VOCABULARY in resources:
        TisaProgram(instructions, read_vocabulary(resources), read_decoder(resources))
        return
    _check_order(instructions)
    _fragment_steps(instructions)


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
    ) -> None:
        _check_order(instructions)
        self._said = decoding  # how ids become text, where that was said
        self.instructions = instructions
        self.vocabulary = vocabulary
        self._ids = {entry.token: entry.id for entry in vocabulary.entries}
        self._pieces = {e.token: e.id for e in vocabulary.entries if e.is_piece}
        self._unknown = next((self._ids[t] for t in _UNKNOWN_TOKENS if t in self._ids), 0)
        by_kind = {kind: [i for i in instructions if i.operation.kind == kind] for kind in Kind}
        self._steps = _fragment_steps(instructions)
        self._model = self._encoder(by_kind[Kind.ENCODE][0])
        self._template = self._surrounding_ids(by_kind[Kind.COMPOSE])

    def encode(
        self,
        text: str,
        *,
        add_special_tokens: bool = True,
        max_length: int | None = None,
        truncate_from: Side = "right",
        pad_to: int | None = None,
        pad_id: int = 0,
        pad_on: Side = "right",
    ) -> list[int]:
        """The ids of a text, cut and padded where that is asked for."""
        ids = self._encode(text)
        before, behind = self._template if add_special_tokens else ((), ())
        if max_length is not None:
            room = max_length - len(before) - len(behind)
            if room < 0:
                message = f"{max_length} ids have no room for the special tokens alone"
                raise refusal(NAC70, message)
            ids = ids[:room] if truncate_from == "right" else ids[max(0, len(ids) - room) :]
        ids = [*before, *ids, *behind]
        padding = [pad_id] * ((pad_to or 0) - len(ids))
        return ids + padding if pad_on == "right" else padding + ids

    def decode(self, ids: Iterable[int], *, skip_special_tokens: bool = True) -> str:
        """The text of ids."""
        tokens: list[str] = []
        for index in ids:
            token = self._tokens.get(index)
            if token is None:
                raise refusal(NAC70, f"no token has the id {index!r}")
            if not (skip_special_tokens and index in self._special):
                tokens.append(token)
        return self.token_decoder.text_of(tokens)

    def token_id(self, token: str) -> int | None:
        """The id of a token as it stands in the vocabulary."""
        return self._ids.get(token)

    def fragments(self, text: str) -> list[Fragment]:
        """What the text is cut into before it is encoded, and what of it is protected."""
        _check_text(text)
        return self._cut(text, Budget(len(text)))

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

    def _encode(self, text: str) -> list[int]:
        _check_text(text)
        budget = Budget(len(text))
        try:
            fragments = self._cut(text, budget)
            ids: list[int] = []
            for part, protected in fragments:
                if protected:
                    ids.append(self._protected_id(part))
                else:
                    ids += self._model(part, budget)
        except BudgetError as error:
            message = f"the program needs {error} for a text of {len(text):,} characters"
            raise refusal(NAC67, message) from None
        return ids

    def _cut(self, text: str, budget: Budget) -> list[Fragment]:
        fragments = [(text, False)] if text else []
        for run in self._steps:
            fragments = run(fragments, budget)
        return fragments

    def _protected_id(self, token: str) -> int:
        """The id of a protected fragment, which may have white space around its token."""
        for text in (token, token[1:] if token.startswith(" ") else token, token.strip(_WHITE)):
            if text in self._ids:
                return self._ids[text]
        return self._unknown

    def _encoder(self, instruction: Instruction) -> Callable[[str, Budget], list[int]]:
        """What encodes a fragment."""
        match instruction.operation.name:
            case "BPE_ENCODE":
                return self._bpe(cast(str | None, instruction.operands[0]))
            case "WORDPIECE_ENCODE":
                return WordPiece(self._pieces, cast(str, instruction.operands[0]), self._unknown)
            case _:
                pairs = zip(self.vocabulary.entries, self.vocabulary.scores, strict=True)
                scores = {e.token: (e.id, score) for e, score in pairs if e.is_piece}
                return Unigram(scores, self._ids.get("<unk>", _UNKNOWN_UNIGRAM))

    def _bpe(self, suffix: str | None) -> Bpe:
        merges = self.vocabulary.merges
        if merges is None:
            message = f"BPE has no merges: there is no resource `{MERGES}`"
            raise Broken(NAC66, Position(0, "RSRC"), message)
        for first, second in merges:
            for token in (first, second, first + second):
                if token not in self._pieces:
                    message = f"{first!r} and {second!r} merge, but {token!r} is no token"
                    raise Broken(NAC65, Position(0, "RSRC"), message)
        return Bpe(self._pieces, merges, self._unknown, suffix or "")

    def _surrounding_ids(
        self, compositions: Sequence[Instruction]
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The ids before and behind those of a text."""
        items = cast(tuple[Item, ...], compositions[0].operands[0]) if compositions else (Item(),)
        slots = [index for index, item in enumerate(items) if item.value is None]
        if len(slots) != 1:
            message = f"COMPOSE has the ids of the text {len(slots)} times, not once"
            raise Broken(NAC64, Position(0, "PROC"), message)
        return self._fixed_ids(items[: slots[0]]), self._fixed_ids(items[slots[0] + 1 :])

    def _fixed_ids(self, items: Sequence[Item]) -> tuple[int, ...]:
        ids: list[int] = []
        for item in items:
            index = self._ids.get(item.value) if isinstance(item.value, str) else item.value
            if index is None:
                message = f"COMPOSE names {item.value!r}, which is no token"
                raise Broken(NAC66, Position(0, "PROC"), message)
            ids.append(index)
        return tuple(ids)


def _fragment_steps(instructions: tuple[Instruction, ...]) -> list[Step]:
    """What changes and cuts a text."""
    try:
        return fragment_steps(i for i in instructions if i.operation.kind <= Kind.CUT)
    except PatternError as error:
        message = f"{error.reason} (character {error.at + 1})"
        raise Broken(NAC63, Position(0, "PROC"), message) from None


def _check_text(text: str) -> None:
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


def _check_order(instructions: tuple[Instruction, ...]) -> None:
    """Text steps and cuts in any order, one that encodes, and COMPOSE behind it."""
    kinds = [max(instruction.operation.kind, Kind.CUT) for instruction in instructions]
    encoding = kinds.count(Kind.ENCODE)
    if encoding != 1:
        message = f"the program has {encoding} instructions that encode; it needs one"
        raise Broken(NAC64, Position(0, "PROC"), message)
    if kinds != sorted(kinds) or kinds.count(Kind.COMPOSE) > 1:
        at = next((i for i, k in enumerate(kinds) if i and k < kinds[i - 1]), len(kinds) - 1)
        name = instructions[at].operation.name
        message = f"{name} as step {at} stands where it has no meaning"
        raise Broken(NAC64, Position(0, "PROC"), message)
