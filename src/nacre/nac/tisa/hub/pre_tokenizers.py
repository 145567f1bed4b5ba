"""Pre-tokenisers as instructions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from nacre.nac.tisa.character_data import DIGITS_BESIDE, IDEOGRAPHS, PUNCTUATION
from nacre.nac.tisa.hub.parts import Part
from nacre.nac.tisa.instructions import ISOLATE, REMOVE, CutRule, Instruction, step
from nacre.nac.tisa.pattern_text import chars_text, pattern_text
from nacre.nac.tisa.patterns import (
    ANY,
    WORD,
    Chars,
    Node,
    PatternError,
    Repeat,
    literal,
    negate,
    only_character,
    parse_pattern,
    quote,
)
from nacre.nac.tisa.scanner import Scanner

Steps = list[Instruction]
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_SPACES = CutRule(r"\s+", behaviour=REMOVE)
_DROP_SPACES = ("BertPreTokenizer", "Whitespace", "WhitespaceSplit")


def pre_tokenizer_steps(part: Part) -> Steps:
    """What a pre-tokeniser does; nothing for none."""
    if not part:
        return []
    kind = part["type"].text()
    make = _MAKERS.get(kind)
    if make is None:
        raise part.unsupported(f"TISA has no instruction for `{kind}`")
    return make(part)


def ideograph_steps(part: Part) -> Steps:
    """Cut ideographs off, instead of the spaces that a normaliser puts around them."""
    first = part
    while first and first["type"].value == "Sequence":
        first = next(first["pretokenizers"].list(), Part(None, part.path))
    if not first or first["type"].value not in _DROP_SPACES:
        raise part.unsupported(
            "`handle_chinese_chars` of the normaliser inserts spaces, which TISA cannot, and this"
            " does not drop them at once"
        )
    return [_partition(CutRule(chars_text(Chars(IDEOGRAPHS)), behaviour=ISOLATE))]


def _partition(*rules: CutRule) -> Instruction:
    return step("PARTITION_RULES", rules)


def _sequence(part: Part) -> Steps:
    return [made for inner in part["pretokenizers"].list() for made in pre_tokenizer_steps(inner)]


def _byte_level(part: Part) -> Steps:
    made: Steps = []
    if part.get("add_prefix_space", True).flag():
        made.append(step("PREPEND", " "))
    if part.get("use_regex", True).flag():
        made.append(_partition(CutRule(GPT2, behaviour=ISOLATE)))
    return [*made, step("BYTE_ENCODE")]


def _whitespace(part: Part) -> Steps:
    word = chars_text(WORD)
    other = f"[^{word[1:-1]}\\s]"
    kept = (CutRule(f"{word}+", behaviour=ISOLATE), CutRule(f"{other}+", behaviour=ISOLATE))
    return [_partition(*kept, _SPACES)]


def _bert(part: Part) -> Steps:
    return [_partition(_SPACES, CutRule(chars_text(Chars(PUNCTUATION)), behaviour=ISOLATE))]


def _metaspace(part: Part) -> Steps:
    mark = part.get("replacement", "\u2581").text()
    if len(mark) != 1:
        raise part.wrong(f"the replacement {mark!r} is not one character")
    steps = [step("REPLACE", " ", mark)]
    if metaspace_scheme(part) == "first":
        raise part["prepend_scheme"].unsupported(
            "PREPEND is for every fragment; it cannot tell the first one from those behind an"
            " added token",
            help="the scheme `always` is the same for texts without added tokens",
        )
    if metaspace_scheme(part) == "always":
        steps.append(step("PREPEND", mark))
    if part.get("split", True).flag():
        steps.append(_behaviour(part, literal(mark), "MergedWithNext"))
    return steps


def metaspace_scheme(part: Part) -> str:
    """Where the mark goes, of pre-tokenisers and of decoders: `always`, `first` or `never`."""
    scheme = part.get("prepend_scheme")
    if not scheme:  # as files of old versions say it
        return "always" if part.get("add_prefix_space", True).flag() else "never"
    if scheme.text() not in ("always", "first", "never"):
        raise scheme.wrong(f"`{scheme.text()}` is none of always, first and never")
    return scheme.text()


def _digits(part: Part) -> Steps:
    digits = Chars(DIGITS_BESIDE, ("N",))
    name = "Isolated" if part.get("individual_digits", False).flag() else "Contiguous"
    return [_behaviour(part, digits, name)]


def _punctuation(part: Part) -> Steps:
    return [_behaviour(part, Chars(PUNCTUATION), part.get("behavior", "Isolated").text())]


def _delimiter(part: Part) -> Steps:
    return [_behaviour(part, literal(part["delimiter"].text()), "Removed")]


def _split(part: Part) -> Steps:
    pattern, behaviour = part["pattern"], part["behavior"].text()
    if pattern.has("String"):
        wanted = pattern["String"].text()
        if not wanted:
            raise part.unsupported("the empty text matches everywhere")
        tree = literal(wanted)
        source = quote(wanted)
    else:
        source = pattern["Regex"].text()
        tree = _parse_checked(part, source)
    if not part.get("invert", False).flag() or behaviour in ("Isolated", "Contiguous"):
        return [_behaviour(part, tree, behaviour, source)]
    if behaviour == "Removed":
        kept = CutRule(_pattern_source(part, tree, source), behaviour=ISOLATE)
        return [_partition(kept, CutRule(chars_text(ANY), behaviour=REMOVE))]
    raise part.unsupported(f"{behaviour} of all that a pattern does not match")


def _parse_checked(part: Part, source: str) -> Node:
    try:
        tree = parse_pattern(source, "hub")
        Scanner([tree])
    except PatternError as error:
        raise part.unsupported(
            f"the pattern `{source}` has {error.reason} (character {error.at + 1}), which is not"
            " matched in linear time or not the same everywhere"
        ) from None
    return tree


def _pattern_source(part: Part, tree: Node, source: str | None) -> str:
    """The pattern as it stands where that means the same, else written out."""
    if source is not None and parse_pattern(source) == tree:
        return source
    try:
        return pattern_text(tree)
    except ValueError as error:
        raise part.unsupported(f"the pattern `{source}` has {error}") from None


def _behaviour(part: Part, tree: Node, name: str, source: str | None = None) -> Instruction:
    """What becomes of matches, in the words of the library."""
    if name in ("Isolated", "Removed"):
        behaviour = ISOLATE if name == "Isolated" else REMOVE
        return _partition(CutRule(_pattern_source(part, tree, source), behaviour=behaviour))
    if name == "Contiguous":
        if not isinstance(tree, Chars) and not _is_literal(tree):
            raise part.unsupported("matches of several lengths in a row are not one match")
        return _partition(CutRule(pattern_text(Repeat(tree, 1, None)), behaviour=ISOLATE))
    if name not in ("MergedWithPrevious", "MergedWithNext"):
        raise part.wrong(f"`{name}` is no behaviour")
    if not isinstance(tree, Chars):
        raise part.unsupported(f"{name} of a pattern of several characters")
    mark, rest = chars_text(tree), chars_text(negate(tree))
    joined = f"{rest}*{mark}" if name == "MergedWithPrevious" else f"{mark}{rest}*"
    return _partition(CutRule(f"{joined}|{rest}+", behaviour=ISOLATE))


def _is_literal(tree: Node) -> bool:
    return all(only_character(part) for part in getattr(tree, "parts", (tree,)))


_MAKERS: Mapping[str, Callable[[Part], Steps]] = MappingProxyType(
    {
        "Sequence": _sequence,
        "ByteLevel": _byte_level,
        "Whitespace": _whitespace,
        "WhitespaceSplit": lambda _: [_partition(_SPACES)],
        "BertPreTokenizer": _bert,
        "Metaspace": _metaspace,
        "Punctuation": _punctuation,
        "Digits": _digits,
        "Split": _split,
        "CharDelimiterSplit": _delimiter,
    }
)
