"""Small models drawn at random, over few letters: what real vocabularies have once in a while."""

from __future__ import annotations

from random import Random
from typing import Any

Json = dict[str, Any]
LETTERS = ("a", "b", "c", "e", "\u00e9", "\u4e2d", "\u2581", "\u0120", " ", "1", ".", "\U0001f600")
BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
UNKNOWN = "<unk>"


def drawn_model(draw: Random) -> Json:
    """BPE, Unigram, WordPiece or WordLevel."""
    make = draw.choice((_bpe, _bpe, _bpe, _unigram, _unigram, _word_piece, _word_level))
    return make(draw)


def _flip(draw: Random, chance: float = 0.5) -> bool:
    return draw.random() < chance


def _letters(draw: Random) -> list[str]:
    return draw.sample(LETTERS, draw.randrange(3, len(LETTERS) + 1))


def _byte_tokens(draw: Random) -> list[str]:
    """All of them, none, or all but some."""
    match draw.randrange(4):
        case 0:
            return []
        case 1:
            return [token for token in BYTES if _flip(draw, 0.9)]
        case _:
            return list(BYTES)


def _ids(draw: Random, tokens: list[str]) -> dict[str, int]:
    named = list(dict.fromkeys(tokens))
    if _flip(draw, 0.3):
        draw.shuffle(named)
    return {token: index for index, token in enumerate(named)}


def _bpe(draw: Random) -> Json:
    letters = _letters(draw)
    prefix = draw.choice((None, None, "", "##", "@"))
    suffix = draw.choice((None, None, "", "</w>", "_"))
    has_bytes = _flip(draw, 0.4)
    known = [
        mark + letter + end
        for letter in letters
        for mark in dict.fromkeys(("", prefix or ""))
        for end in dict.fromkeys(("", suffix or ""))
        if _flip(draw, 0.8)
    ]
    cut = len(prefix or "")
    byte_tokens = _byte_tokens(draw) if has_bytes else []
    pool = known + byte_tokens[:8] if _flip(draw, 0.1) else known
    merges: list[tuple[str, str]] = []
    for _ in range(draw.randrange(12) if len(pool) > 1 else 0):
        first, second = draw.choice(pool), draw.choice(pool)
        # The library cuts so many bytes off, and ends the process where that is half a letter.
        if len(second) <= cut or not second.startswith(prefix or ""):
            continue
        merges.append((first, second))
        pool = [*pool, first + second[cut:]]
    tokens = [UNKNOWN, *pool, *byte_tokens]
    return {
        "type": "BPE", "dropout": None, "unk_token": draw.choice((UNKNOWN, UNKNOWN, None)),
        "continuing_subword_prefix": prefix, "end_of_word_suffix": suffix,
        "fuse_unk": _flip(draw), "byte_fallback": has_bytes, "ignore_merges": _flip(draw, 0.3),
        "vocab": _ids(draw, tokens), "merges": [list(pair) for pair in dict.fromkeys(merges)],
    }  # fmt: skip


def _words(draw: Random, letters: list[str], count: int) -> list[str]:
    return ["".join(draw.choices(letters, k=draw.randrange(1, 5))) for _ in range(count)]


def _unigram(draw: Random) -> Json:
    letters = _letters(draw)
    has_bytes = _flip(draw, 0.4)
    tokens = [UNKNOWN, *letters[1:], *_words(draw, letters, 12)]
    tokens += _byte_tokens(draw) if has_bytes else []
    named = list(dict.fromkeys(tokens))
    scores = (-1.0, -2.0, -3.0, -1.5, -2.5, 0.0) if _flip(draw) else (-draw.random() * 9, -1.0)
    return {
        "type": "Unigram", "unk_id": draw.choice((0, 0, 0, None, 1)), "byte_fallback": has_bytes,
        "vocab": [[token, draw.choice(scores)] for token in named],
    }  # fmt: skip


def _word_piece(draw: Random) -> Json:
    letters = _letters(draw)
    marker = draw.choice(("##", "##", "", "@", "a"))
    words = [*letters[1:], *_words(draw, letters, 10)]
    tokens = ["[UNK]", *words, *(marker + word for word in words if _flip(draw, 0.7))]
    return {
        "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": marker,
        "max_input_chars_per_word": draw.choice((3, 100)), "vocab": _ids(draw, tokens),
    }  # fmt: skip


def _word_level(draw: Random) -> Json:
    tokens = [UNKNOWN, *_words(draw, _letters(draw), 20)]
    unknown = draw.choice((UNKNOWN, UNKNOWN, "gone"))
    return {"type": "WordLevel", "vocab": _ids(draw, tokens), "unk_token": unknown}


def drawn_text(draw: Random) -> str:
    """A text of few letters, some of which models do not know."""
    pool = (
        *LETTERS,
        "A",
        "\u00df",
        "\u0301",
        "\n",
        "\x01",
        "\u3000",
        "d",
        "<unk>",
        "[X]",
        "e\u0301",
    )
    return "".join(draw.choices(pool, k=draw.choice((0, 1, 2, 3, 5, 8, 20))))


def drawn_decoder(draw: Random) -> Json | None:
    """Any decoder, or several."""
    match draw.randrange(4):
        case 0:
            return None
        case 1:
            parts = [_one_decoder(draw) for _ in range(draw.randrange(4))]
            return {"type": "Sequence", "decoders": parts}
        case _:
            return _one_decoder(draw)


def _one_decoder(draw: Random) -> Json:
    cleanup = {"cleanup": _flip(draw)}
    match draw.randrange(9):
        case 0:
            return {"type": "WordPiece", "prefix": draw.choice(("##", "@", "")), **cleanup}
        case 1:
            scheme = draw.choice(("always", "never", "first"))
            mark: Json = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": scheme}
            return {**mark, "split": _flip(draw)}
        case 2:
            return {"type": "BPEDecoder", "suffix": draw.choice(("</w>", "_", ""))}
        case 3:
            content = draw.choice((" ", "a", "\u2581"))
            ends = {"start": draw.randrange(3), "stop": draw.randrange(3)}
            return {"type": "Strip", "content": content, **ends}
        case 4:
            wanted, content = draw.choice(("\u2581", "ab", "e")), draw.choice((" ", "", "xy"))
            return {"type": "Replace", "pattern": {"String": wanted}, "content": content}
        case 5:
            pad: Json = {"pad_token": draw.choice(("<unk>", "a", ""))}
            return {
                "type": "CTC",
                **pad,
                "word_delimiter_token": draw.choice(("|", "b")),
                **cleanup,
            }
        case 6:
            level = {"add_prefix_space": True, "trim_offsets": True, "use_regex": True}
            return {"type": "ByteLevel", **level}
        case _:
            return {"type": draw.choice(("Fuse", "ByteFallback"))}
