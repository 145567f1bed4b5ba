# ruff: noqa: RUF001 - patterns with characters of many scripts
"""Real families: the parts of each as its `tokenizer.json` has them, on a vocabulary of ours."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from functools import cache
from typing import Any

from tests.nac.tisa.charsmaps import precompiled
from tests.nac.tisa.corpus import CORPUS
from tests.nac.tisa.made import LLAMA3, Made, Tokenizer, models, pre_tokenizers, tokenizer, trainers

Json = dict[str, Any]
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
O200K = "|".join(
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+",
    )
)  # fmt: skip
TEKKEN = O200K.replace("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "").replace(r"\p{N}{1,3}", r"\p{N}")
CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
KIMI = "|".join(
    (
        r"[\p{Han}]+",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*"
        r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
        r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+",
    )
)  # fmt: skip
DEEPSEEK = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"
CLIP = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


def split(pattern: str, behaviour: str = "Isolated", invert: bool = False) -> Json:
    return {
        "type": "Split",
        "pattern": {"Regex": pattern},
        "behavior": behaviour,
        "invert": invert,
    }


def level(prefix: bool = False, regex: bool = False) -> Json:
    return {
        "type": "ByteLevel",
        "add_prefix_space": prefix,
        "trim_offsets": True,
        "use_regex": regex,
    }


def metaspace(scheme: str = "always", split: bool = True) -> Json:
    return {
        "type": "Metaspace",
        "replacement": "▁",
        "prepend_scheme": scheme,
        "split": split,
    }


def sequence(member: str, *parts: Json) -> Json:
    return {"type": "Sequence", member: list(parts)}


def pre(*parts: Json) -> Json:
    return sequence("pretokenizers", *parts)


def normalizers(*parts: Json) -> Json:
    return sequence("normalizers", *parts)


def replace(pattern: Json, content: str) -> Json:
    return {"type": "Replace", "pattern": pattern, "content": content}


def template(before: list[tuple[str, int]], behind: list[tuple[str, int]]) -> Json:
    def special(name: str) -> Json:
        return {"SpecialToken": {"id": name, "type_id": 0}}

    def text(name: str) -> Json:
        return {"Sequence": {"id": name, "type_id": 0}}

    first, last = [special(n) for n, _ in before], [special(n) for n, _ in behind]
    return {
        "type": "TemplateProcessing",
        "single": [*first, text("A"), *last],
        "pair": [*first, text("A"), *last, text("B"), *last],
        "special_tokens": {n: {"id": n, "ids": [i], "tokens": [n]} for n, i in before + behind},
    }


SPACES = replace({"Regex": " {2,}"}, " ")
TO_MARKS = replace({"String": " "}, "▁")
FALLBACK = [{"type": "ByteFallback"}, {"type": "Fuse"}]
LLAMA_DECODER = sequence(
    "decoders", replace({"String": "▁"}, " "), *FALLBACK,
    {"type": "Strip", "content": " ", "start": 1, "stop": 0},
)  # fmt: skip


@cache
def nmt_table() -> Json:
    """What SentencePiece's own table `nmt_nfkc` does, for the characters of two planes."""
    table: dict[str, str] = {}
    for point in [*range(0x20, 0xD800), *range(0xE000, 0x10000), *range(0x1D400, 0x1D800)]:
        normal = unicodedata.normalize("NFKC", chr(point))
        if normal != chr(point) and len(table) < 6000:
            table[chr(point)] = normal
        apart = unicodedata.normalize("NFD", chr(point))
        if point < 0x2000 and len(apart) == 2:
            table[apart] = chr(point)
    table |= dict.fromkeys(map(chr, [9, 10, 13, 0xA0, 0x2028, 0x3000]), " ")
    return precompiled(table | dict.fromkeys(map(chr, [1, 7, 0x1F, 0x7F, 0xAD, 0x200B]), ""))


def _bytes(base: str, **parts: Any) -> Json:  # noqa: ANN401 - parts of a file
    whole: Json = json.loads(tokenizer(base).to_str())
    return whole | {"post_processor": None} | parts


def _byte_family(pattern: str) -> Callable[[], Json]:
    return lambda: _bytes("gpt2", pre_tokenizer=pre(split(pattern), level()))


@cache
def _sentence_bpe() -> str:
    """BPE as SentencePiece trains it: over characters, with bytes for those that are unknown."""
    made = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    made.pre_tokenizer = pre_tokenizers.Metaspace(split=False)
    names = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(
        vocab_size=1200, special_tokens=names, show_progress=False, max_token_length=12
    )
    made.train_from_iterator(CORPUS[:8] * 3, trainer)
    whole = json.loads(made.to_str())
    whole["added_tokens"] = whole["added_tokens"][:3]
    return json.dumps(whole)


def _sentence(**parts: Any) -> Json:  # noqa: ANN401 - parts of a file
    return json.loads(_sentence_bpe()) | parts  # type: ignore[no-any-return]


def _t5() -> Json:
    tail = template([], [("</s>", 1)])
    return _bytes("t5", normalizer=nmt_table(), pre_tokenizer=metaspace(), post_processor=tail)


def _new_t5() -> Json:
    strip = {"type": "Strip", "strip_left": False, "strip_right": True}
    steps = normalizers(nmt_table(), strip, replace({"Regex": " {2,}"}, "▁"))
    return _bytes("t5", normalizer=steps, pre_tokenizer=metaspace("first"))


def _xlm_r() -> Json:
    return _bytes(
        "t5",
        normalizer=normalizers(nmt_table(), SPACES),
        pre_tokenizer=pre({"type": "WhitespaceSplit"}, metaspace()),
        post_processor=template([("<pad>", 0)], [("</s>", 1)]),
    )


def _albert() -> Json:
    quotes = [replace({"String": mark}, '"') for mark in ("``", "''")]
    plain = [{"type": name} for name in ("NFKD", "StripAccents", "Lowercase")]
    return _bytes(
        "t5",
        normalizer=normalizers(*quotes, *plain, nmt_table(), SPACES),
        pre_tokenizer=metaspace(),
        post_processor=template([("<pad>", 0)], [("</s>", 1)]),
    )


def _deberta() -> Json:
    strip = {"type": "Strip", "strip_left": True, "strip_right": True}
    whole = _bytes(
        "t5",
        normalizer=normalizers(strip, nmt_table(), SPACES),
        pre_tokenizer=pre(metaspace()),
        post_processor=template([("<pad>", 0)], [("</s>", 1)]),
    )
    whole["added_tokens"].append(
        {
            "id": len(whole["model"]["vocab"]), "content": "[MASK]", "single_word": False,
            "lstrip": False, "rstrip": False, "normalized": False, "special": True,
        }
    )  # fmt: skip
    return whole


def _llama2() -> Json:
    prepend = {"type": "Prepend", "prepend": "▁"}
    return _sentence(
        normalizer=normalizers(prepend, TO_MARKS),
        pre_tokenizer=None,
        post_processor=template([("<s>", 1)], []),
        decoder=LLAMA_DECODER,
    )


def _new_llama2() -> Json:
    return _sentence(
        normalizer=None, pre_tokenizer=metaspace("first", split=False), decoder=LLAMA_DECODER
    )


def _gemma() -> Json:
    pieces = {
        "type": "Split",
        "pattern": {"String": " "},
        "behavior": "MergedWithPrevious",
        "invert": False,
    }
    decoder = sequence("decoders", replace({"String": "▁"}, " "), *FALLBACK)
    return _sentence(normalizer=TO_MARKS, pre_tokenizer=pieces, decoder=decoder)


def _deepseek() -> Json:
    parts = [split(r"\p{N}{1,3}"), split("[一-龥぀-ゟ゠-ヿ]+"), split(DEEPSEEK), level()]
    return _bytes("gpt2", pre_tokenizer=pre(*parts))


def _deepseek_coder() -> Json:
    parts = [
        split("[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"), split(r"\s+$"),
        split("[一-龥ࠀ-一가-퟿]+"), {"type": "Digits", "individual_digits": True}, level(),
    ]  # fmt: skip
    return _bytes("gpt2", pre_tokenizer=pre(*parts))


def _clip() -> Json:
    steps = normalizers({"type": "NFC"}, replace({"Regex": r"\s+"}, " "), {"type": "Lowercase"})
    ends = {"sep": ["<s>", 0], "cls": ["<s>", 0], "trim_offsets": False, "add_prefix_space": False}
    return _bytes(
        "clip",
        normalizer=steps,
        pre_tokenizer=pre(split(CLIP, "Removed", invert=True), level()),
        post_processor={"type": "RobertaProcessing", **ends},
    )


def _falcon() -> Json:
    parts = [
        {"type": "Punctuation", "behavior": "Contiguous"}, level(regex=True),
        {"type": "Digits", "individual_digits": False}, split("[0-9][0-9][0-9]"),
    ]  # fmt: skip
    return _bytes("gpt2", pre_tokenizer=pre(*parts))


def _starcoder() -> Json:
    parts = [{"type": "Digits", "individual_digits": True}, level(regex=True)]
    return _bytes("gpt2", pre_tokenizer=pre(*parts))


def _llama3() -> Json:
    whole = _bytes("llama3", pre_tokenizer=pre(split(LLAMA3), level()))
    whole["model"] |= {"ignore_merges": True}
    whole["post_processor"] = sequence(
        "processors",
        {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True},
        template([("<|begin|>", 0)], []),
    )
    return whole


def _whisper() -> Json:
    return _bytes(
        "gpt2",
        pre_tokenizer=level(regex=True),
        post_processor=template([("<|endoftext|>", 0)], [("<|endoftext|>", 0)]),
    )


def _wav2vec2() -> Json:
    letters = {
        token: at for at, token in enumerate(("<pad>", "<s>", "</s>", "<unk>", "|", *"etao"))
    }
    whole = _bytes("bert_uncased", pre_tokenizer=split("", "Isolated"), normalizer=None)
    whole["pre_tokenizer"] = pre({"type": "FixedLength", "length": 1})
    whole["normalizer"] = replace({"String": " "}, "|")
    whole["model"] = {"type": "WordLevel", "vocab": letters, "unk_token": "<unk>"}
    whole["decoder"] = {
        "type": "CTC",
        "pad_token": "<pad>",
        "word_delimiter_token": "|",
        "cleanup": True,
    }
    return whole | {"added_tokens": []}


FAMILIES: dict[str, Callable[[], Json]] = {
    "gpt2": lambda: json.loads(tokenizer("gpt2").to_str()),
    "roberta": lambda: json.loads(tokenizer("roberta").to_str()),
    "bert": lambda: json.loads(tokenizer("bert_uncased").to_str()),
    "bert cased": lambda: json.loads(tokenizer("bert_cased").to_str()),
    "whisper": _whisper,
    "llama 3": _llama3,
    "qwen 2": lambda: _bytes(
        "gpt2", normalizer={"type": "NFC"}, pre_tokenizer=pre(split(QWEN2), level())
    ),
    "mistral tekken": _byte_family(TEKKEN),
    "gpt-4o": _byte_family(O200K),
    "gpt-4": _byte_family(CL100K),
    "kimi": _byte_family(KIMI),
    "bloom": _byte_family(BLOOM),
    "deepseek": _deepseek,
    "deepseek coder": _deepseek_coder,
    "falcon": _falcon,
    "starcoder": _starcoder,
    "clip": _clip,
    "t5": _t5,
    "t5, new": _new_t5,
    "xlm-r": _xlm_r,
    "albert": _albert,
    "deberta": _deberta,
    "llama 2": _llama2,
    "llama 2, new": _new_llama2,
    "gemma": _gemma,
    "wav2vec2": _wav2vec2,
}


@cache
def family(name: str) -> Made:
    """The library's tokenizer of a family."""
    return Tokenizer.from_str(json.dumps(FAMILIES[name]()))
