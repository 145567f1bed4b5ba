"""Files of tiktoken and `tekken.json`: tokens of bytes with their ranks, as a program."""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from nacre.nac.tisa.characters import byte_alphabet
from nacre.nac.tisa.decoders import ByteLevel, TokenDecoder
from nacre.nac.tisa.files.problems import FileProblem, unsupported
from nacre.nac.tisa.files.written import WrittenTokenizer
from nacre.nac.tisa.instructions import (
    ISOLATE,
    JOINS_TEXTS,
    NO_ID,
    REMOVE,
    TAKES_WORDS,
    CutRule,
    Instruction,
    SoughtToken,
    step,
)
from nacre.nac.tisa.patterns.nodes import ANY, PatternError
from nacre.nac.tisa.patterns.reading import parse_pattern
from nacre.nac.tisa.patterns.scanner import Scanner
from nacre.nac.tisa.patterns.writing import chars_text, pattern_text
from nacre.nac.tisa.resources import MOST_ID, Entry, Vocabulary

_GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_SHORT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
# A file of tiktoken does not say how text is cut; what these names mean is known.
PATTERNS: Mapping[str, str] = MappingProxyType(
    {
        "gpt2": _GPT2,
        "r50k_base": _GPT2,
        "p50k_base": _GPT2,
        "cl100k_base": (
            r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
            r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
        ),
        "o200k_base": (
            rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_SHORT}"
            rf"|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_SHORT}"
            r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        ),
        "llama3": _LLAMA3,
        "qwen": _LLAMA3.replace("{1,3}", ""),
    }
)
# Special tokens of a tekken.json that lists none, in the order of their ids.
_TEKKEN_SPECIALS = (
    "<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]",
    "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]",
    "[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]",
    "[TOOL_CONTENT]",
)  # fmt: skip


def tiktoken_program(
    raw: bytes, pattern: str | None, special_tokens: Mapping[str, int], name: str
) -> WrittenTokenizer:
    """The program of lines with a token in base64 and its rank, which is its id.

    A text that has a special token has its id there, as tiktoken does it for those it allows.
    """
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(raw.split(b"\n"), 1):
        fields = line.split()
        if not fields:
            continue
        if len(fields) != 2 or not fields[1].isdigit() or len(fields[1]) > 9:
            raise FileProblem(f"line {number} is no token and its rank")
        _add(ranks, _decode(fields[0], f"line {number}"), int(fields[1]), f"line {number}")
    found = PATTERNS.get(name.partition(".")[0]) if pattern is None else pattern
    if found is None:
        raise unsupported(
            f"the file does not say how text is cut, and `{name}` is none of {', '.join(PATTERNS)}",
            "give the pattern with `pattern=`, or one of these names with it",
        )
    _check_request(found, special_tokens)
    return _program(ranks, PATTERNS.get(found, found), 0, special_tokens, is_sought=True)


def _check_request(pattern: object, special_tokens: object) -> None:
    """FileProblem for what cannot be a pattern, or tokens with their ids."""
    if not isinstance(pattern, str):
        raise FileProblem(f"`pattern` is a {type(pattern).__name__}, expected a text")
    if not isinstance(special_tokens, Mapping):
        found = type(special_tokens).__name__
        raise FileProblem(f"`special_tokens` is a {found}, expected ids by their tokens")
    for token, index in special_tokens.items():
        is_id = isinstance(index, int) and not isinstance(index, bool) and 0 <= index <= MOST_ID
        if not isinstance(token, str) or not is_id:
            message = f"`special_tokens` has {token!r} with {index!r}"
            raise FileProblem(f"{message}, expected texts with ids from 0 to {MOST_ID:,}")


def tekken_program(whole: object) -> WrittenTokenizer:
    """The program of a `tekken.json`: ids of special tokens come first; no text has them."""
    try:
        config, listed = whole["config"], whole["vocab"]  # type: ignore[index]
        count, size = config["default_num_special_tokens"], config["default_vocab_size"]
        pattern = config["pattern"]
        rows = [(row["token_bytes"], row["rank"]) for row in listed]
        special = whole.get("special_tokens")  # type: ignore[attr-defined]
        names = [row["token_str"] for row in special] if special else list(_TEKKEN_SPECIALS)
    except (KeyError, TypeError, AttributeError) as error:
        raise FileProblem(f"this is no tekken.json: {error!r}") from None
    is_sized = isinstance(count, int) and isinstance(size, int) and 0 <= count <= size <= MOST_ID
    if not is_sized or not isinstance(pattern, str) or not all(isinstance(n, str) for n in names):
        raise FileProblem(f"{count!r} special tokens of {size!r}, and a pattern {pattern!r}")
    names = names[:count] + [f"<SPECIAL_{index}>" for index in range(len(names), count)]
    ranks: dict[bytes, int] = {}
    for token, rank in rows:
        if not isinstance(token, str) or not isinstance(rank, int) or rank < 0:
            raise FileProblem(f"a token is {token!r} with the rank {rank!r}")
        if rank < size - count:
            _add(ranks, _decode(token, f"rank {rank}"), rank, f"rank {rank}")
    specials = {name: index for index, name in enumerate(names)}
    return _program(ranks, pattern, count, specials, is_sought=False)


def read_json(raw: bytes) -> object:
    """A JSON document; FileProblem where it is none."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise FileProblem(f"this is no JSON: {error}") from None


def _decode(text: bytes | str, where: str) -> bytes:
    try:
        token = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise FileProblem(f"{where}: the token is no base64") from None
    if not token:
        raise FileProblem(f"{where}: the token is empty")
    return token


def _add(ranks: dict[bytes, int], token: bytes, rank: int, where: str) -> None:
    if token in ranks or rank > MOST_ID:
        raise FileProblem(f"{where}: the token {token!r} is there twice, or its rank is too large")
    ranks[token] = rank


def _program(
    ranks: Mapping[bytes, int],
    pattern: str,
    first: int,
    specials: Mapping[str, int],
    is_sought: bool,
) -> WrittenTokenizer:
    letters = byte_alphabet()
    missing = [byte for byte in range(0x100) if bytes([byte]) not in ranks]
    if missing:
        raise FileProblem(f"there is no token for the byte {missing[0]:#04x}")
    texts = {"".join(letters[b] for b in token): rank for token, rank in ranks.items()}
    entries = [Entry(text, first + rank, -float(rank)) for text, rank in texts.items()]
    for name, index in specials.items():
        if name in texts:
            raise unsupported(f"{name!r} is a special token and a token of bytes, with two ids")
        entries.append(Entry(name, index, math.nan))
    if len({entry.id for entry in entries}) < len(entries):
        raise FileProblem("two tokens have the same id")
    sought = [SoughtToken(name, index) for name, index in specials.items() if name]
    steps = [
        *([step("FIND_TOKENS", tuple(sought))] if sought and is_sought else []),
        _cut(pattern),
        step("BYTE_ENCODE"),
        step("BPE_MODEL", NO_ID, TAKES_WORDS | JOINS_TEXTS, "", ""),
    ]
    ordered = tuple(sorted(entries, key=lambda entry: entry.token))
    special_ids = tuple(sorted(specials.values()))
    return WrittenTokenizer(
        tuple(steps), Vocabulary(ordered), TokenDecoder((ByteLevel(),), special_ids)
    )


def _cut(pattern: str) -> Instruction:
    """Matches alone become tokens; what no match has goes away."""
    try:
        tree = parse_pattern(pattern, "tiktoken")
        Scanner([tree])
        source = pattern_text(tree)
    except PatternError as error:
        message = f"the pattern `{pattern}` has {error.reason} (character {error.at + 1})"
        raise unsupported(message) from None
    except ValueError as error:
        raise unsupported(f"the pattern `{pattern}` has {error}") from None
    rules: Iterable[CutRule] = (
        CutRule(source, behaviour=ISOLATE),
        CutRule(chars_text(ANY), behaviour=REMOVE),
    )
    return step("PARTITION_RULES", tuple(rules))
