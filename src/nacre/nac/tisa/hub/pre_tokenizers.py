"""Pre-tokenisers as instructions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from nacre.nac.tisa.character_data import DIGITS_BESIDE, IDEOGRAPHS, PUNCTUATION
from nacre.nac.tisa.hub.parts import Part
from nacre.nac.tisa.hub.written_patterns import parse_checked, pattern_source
from nacre.nac.tisa.instructions import (
    INVERTED,
    ISOLATE,
    REMOVE,
    SPLITS,
    CutRule,
    Instruction,
    step,
)
from nacre.nac.tisa.patterns.nodes import (
    ANY,
    WORD,
    Chars,
    Node,
    Repeat,
    literal,
    negate,
    only_character,
    quote,
)
from nacre.nac.tisa.patterns.writing import chars_text, pattern_text

Steps = list[Instruction]
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_SPACES = CutRule(r"\s+", behaviour=REMOVE)
_FIXED_LENGTH = 5  # what a file means that does not say it
_DROP_SPACES = ("BertPreTokenizer", "Whitespace", "WhitespaceSplit")


def pre_tokenizer_steps(part: Part) -> Steps:
    """What a pre-tokeniser does; nothing for none."""
    if not part:
        return []
    kind = part["type"].text()
    make = _MAKERS.get(kind)
    if make is None:
        raise part.unsupported(f"there is no pre-tokeniser `{kind}`")
    return make(part)


def ideograph_steps(part: Part) -> Steps:
    """Cut ideographs off, instead of the spaces that a normaliser puts around them."""
    first = part
    while first and first["type"].value == "Sequence":
        first = next(first["pretokenizers"].list(), Part(None, part.path))
    if not first or first["type"].value not in _DROP_SPACES:
        raise part.unsupported(
            "`handle_chinese_chars` of the normaliser inserts spaces, and this keeps them"
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
        steps.append(step("INSERT_FIRST", mark))
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
        tree = parse_checked(part, source)
    is_inverted = part.get("invert", False).flag()
    if not is_inverted or behaviour in ("Isolated", "Contiguous"):
        return [_behaviour(part, tree, behaviour, source, is_inverted)]
    if behaviour == "Removed":
        kept = CutRule(pattern_source(part, tree, source), behaviour=ISOLATE)
        return [_partition(kept, CutRule(chars_text(ANY), behaviour=REMOVE))]
    return [_split_step(part, tree, behaviour, source, is_inverted)]


def _behaviour(
    part: Part, tree: Node, name: str, source: str | None = None, is_inverted: bool = False
) -> Instruction:
    """What becomes of matches, in the words of the library; by rules where they say the same."""
    if name in ("Isolated", "Removed"):
        behaviour = ISOLATE if name == "Isolated" else REMOVE
        return _partition(CutRule(pattern_source(part, tree, source), behaviour=behaviour))
    is_one = isinstance(tree, Chars)
    if name == "Contiguous" and (is_one or _is_literal(tree)):
        return _partition(CutRule(pattern_text(Repeat(tree, 1, None)), behaviour=ISOLATE))
    if name not in ("MergedWithPrevious", "MergedWithNext") or not isinstance(tree, Chars):
        return _split_step(part, tree, name, source, is_inverted)
    mark, rest = chars_text(tree), chars_text(negate(tree))
    joined = f"{rest}*{mark}" if name == "MergedWithPrevious" else f"{mark}{rest}*"
    return _partition(CutRule(f"{joined}|{rest}+", behaviour=ISOLATE))


def _split_step(
    part: Part, tree: Node, name: str, source: str | None, is_inverted: bool
) -> Instruction:
    if name not in SPLITS:
        raise part.wrong(f"`{name}` is no behaviour")
    flags = SPLITS[name] | (INVERTED if is_inverted else 0)
    return step("SPLIT", pattern_source(part, tree, source), flags)


def _fixed_length(part: Part) -> Steps:
    length = part.get("length", _FIXED_LENGTH).integer()
    if length < 1:
        raise part.wrong(f"a fragment cannot have {length} characters")
    return [step("SPLIT_LENGTH", length)]


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
        "UnicodeScripts": lambda _: [step("SPLIT_SCRIPTS")],
        "FixedLength": _fixed_length,
    }
)
