"""Added tokens: which there are, and the rules that find them before anything else does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nacre.nac.tisa.budget import Budget, BudgetError
from nacre.nac.tisa.character_data import IDEOGRAPHS, WHITE_SPACE
from nacre.nac.tisa.characters import CharacterSet
from nacre.nac.tisa.fragments import Fragment, Step, fragment_steps
from nacre.nac.tisa.hub.parts import Part, UnsupportedPart
from nacre.nac.tisa.instructions import (
    TAKES_LEFT,
    TAKES_RIGHT,
    WHOLE_WORD,
    CutRule,
    Instruction,
    SoughtToken,
    step,
)
from nacre.nac.tisa.patterns.nodes import WORD, quote
from nacre.nac.tisa.patterns.writing import chars_text
from nacre.nac.tisa.resources import MOST_ID

_SPACES = CharacterSet(WHITE_SPACE)
_IDEOGRAPHS = CharacterSet(IDEOGRAPHS)


@dataclass(frozen=True)
class AddedToken:
    """An added token."""

    part: Part
    content: str
    id: int
    is_word: bool  # found only where no letter touches it
    takes_left: bool  # takes the white space in front of it
    takes_right: bool
    is_normalized: bool  # looked for in the text that is normalised
    is_special: bool = False  # left out of decoded texts on request

    @property
    def pattern(self) -> str:
        """The rule that finds it."""
        text = quote(self.content)
        if self.is_word:
            text = f"(?<!{chars_text(WORD)}){text}(?!{chars_text(WORD)})"
        return ("\\s*" if self.takes_left else "") + text + ("\\s*" if self.takes_right else "")


def added_tokens(part: Part) -> list[AddedToken]:
    """All that the file lists."""
    if not part:
        return []
    tokens: list[AddedToken] = []
    for each in part.list():
        content = each["content"].text()
        flags = [each.get(name, False).flag() for name in ("single_word", "lstrip", "rstrip")]
        is_special = each.get("special", False).flag()
        is_normalized = each.get("normalized", not is_special).flag()
        index = each["id"].integer()
        if not 0 <= index <= MOST_ID:
            raise each.wrong(f"ids go from 0 to {MOST_ID:,}")
        word, left, right = flags
        tokens.append(
            AddedToken(each, content, index, word, left, right, is_normalized, is_special)
        )
    return [token for token in tokens if token.content]


def check_ids(tokens: Sequence[AddedToken], ids: Mapping[str, int]) -> None:
    """The library does not believe the ids of the file: it gives them out in its own way."""
    given: dict[str, int] = {}
    for token in tokens:
        largest = max(given.values(), default=-1)
        fresh = largest + 1 if given and largest >= len(ids) else len(ids)
        expected = given.get(token.content, ids.get(token.content, fresh))
        if token.id != expected:
            raise token.part.wrong(
                f"the token {token.content!r} has id {token.id}; the library gives it {expected}"
            )
        given[token.content] = token.id


def added_token_steps(
    tokens: Sequence[AddedToken],
    normalizer: Sequence[Instruction],
    ids: Mapping[str, int],
) -> list[Instruction]:
    """The instruction that finds some tokens in a text that some steps have changed.

    The longest one wins. The format's rules say it where nothing overlaps and every token is looked
    for as it is written; FIND_TOKENS says it always.
    """
    if not tokens:
        return []
    try:
        check_normalized(tokens, normalizer)
        _check_overlaps(tokens)
        check_lookup(tokens, ids)
    except UnsupportedPart:
        return [_find_tokens(tokens, normalizer)]
    ordered = sorted(tokens, key=lambda token: -len(token.content))
    return [step("PARTITION_RULES", tuple(CutRule(t.pattern, protected=True) for t in ordered))]


def _find_tokens(tokens: Sequence[AddedToken], normalizer: Sequence[Instruction]) -> Instruction:
    run = fragment_steps(normalizer)
    sought: list[SoughtToken] = []
    known: dict[str, AddedToken] = {}
    for token in sorted(tokens, key=lambda token: not token.is_special):
        text = _changed(token, run)
        if not text:
            raise token.part.unsupported(f"the normaliser leaves nothing of {token.content!r}")
        if (other := known.setdefault(text, token)).id != token.id:
            raise token.part.unsupported(
                f"{token.content!r} and {other.content!r} are both looked for as {text!r}; the"
                " library takes one or the other, by chance"
            )
        flags = (token.is_word, WHOLE_WORD), (token.takes_left, TAKES_LEFT)
        asked = sum(flag for wanted, flag in (*flags, (token.takes_right, TAKES_RIGHT)) if wanted)
        sought.append(SoughtToken(text, token.id, asked))
    return step("FIND_TOKENS", tuple(sought))


def decoded_texts(
    tokens: Sequence[AddedToken], normalizer: Sequence[Instruction]
) -> dict[int, str]:
    """The text of every added token on the way back."""
    run = fragment_steps(normalizer)
    return {t.id: _changed(t, run) if t.is_normalized else t.content for t in tokens}


def _changed(token: AddedToken, run: Sequence[Step]) -> str:
    """What a normaliser makes of a token."""
    fragments: list[Fragment] = [(token.content, None, None)]
    try:
        for change in run:
            fragments = change(fragments, Budget(len(token.content)))
    except BudgetError as error:
        raise token.part.unsupported(f"the normaliser needs {error} for it") from None
    return "".join(text for text, _, _ in fragments)


def _check_overlaps(tokens: Sequence[AddedToken]) -> None:
    """Refuse where the first rule that matches is not the token that the library finds.

    It looks for tokens alone and takes the white space later, and it gives up a place where the
    longest token is no word of its own.
    """
    edged = [t for t in tokens if _is_space(t.content[0]) or _is_space(t.content[-1])]
    for token in tokens:
        if (token.takes_left or token.takes_right) and edged:
            raise token.part.unsupported(
                f"{token.content!r} takes white space, which {edged[0].content!r} is a part of"
            )
        for other in tokens:
            if other is token:
                continue
            if (
                token.takes_left
                and not other.takes_left
                and other.content.startswith(token.content)
            ):
                raise token.part.unsupported(
                    f"{token.content!r} takes white space in front, {other.content!r}, which"
                    " begins with it, does not"
                )
            if token.is_word and _may_overlap(token.content, other.content):
                raise token.part.unsupported(
                    f"{token.content!r} is found as a whole word only, and overlaps"
                    f" {other.content!r}"
                )
        if token.is_word and _has_border(token.content):
            raise token.part.unsupported(f"{token.content!r}, a whole word, overlaps itself")


def _is_space(character: str) -> bool:
    return ord(character) in _SPACES


def _may_overlap(one: str, other: str) -> bool:
    """Whether both can be found in places that overlap."""
    if one in other or other in one:
        return True
    return _ends_with_start_of(one, other) or _ends_with_start_of(other, one)


def _ends_with_start_of(one: str, other: str) -> bool:
    return any(one.endswith(other[:size]) for size in range(1, min(len(one), len(other)) + 1))


def _has_border(text: str) -> bool:
    return any(text.endswith(text[:size]) for size in range(1, len(text)))


def check_normalized(tokens: Sequence[AddedToken], normalizer: Sequence[Instruction]) -> None:
    """What is looked for in normalised text must be its own normal form: that is what is found."""
    run = fragment_steps(normalizer)
    for token in tokens:
        after = _changed(token, run)
        if after != token.content:
            raise token.part.unsupported(
                f"{token.content!r} is looked for as {after!r}, and TISA takes the id of the text"
                " that it finds"
            )


def require_no_spaces(tokens: Sequence[AddedToken]) -> None:
    """Refuse tokens that are not found in the same way if ideographs have no spaces around them."""
    for token in tokens:
        if token.is_normalized and (token.is_word or any(_parts(c) for c in token.content)):
            raise token.part.unsupported(
                f"{token.content!r} is looked for where the normaliser has put spaces around"
                " ideographs, which the format's instructions cannot"
            )


def _parts(character: str) -> bool:
    return _is_space(character) or ord(character) in _IDEOGRAPHS


def check_lookup(tokens: Sequence[AddedToken], ids: Mapping[str, int]) -> None:
    """A token with white space around it is looked up as found, and must not be another one."""
    for token in tokens:
        if not (token.takes_left or token.takes_right):
            continue
        for known in ids:
            if known != token.content and known.strip() == token.content:
                raise token.part.unsupported(
                    f"{token.content!r} takes white space, and {known!r} is a token as well"
                )
