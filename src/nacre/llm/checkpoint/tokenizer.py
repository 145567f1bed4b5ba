"""Tokenizers of checkpoints as keys of GGUF: `tokenizer.json` whole, and what else is said."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeGuard

from nacre.base.excerpt import backquote
from nacre.base.source import Unreadable, read_source
from nacre.llm.checkpoint.json_files import JsonObject, parse_json_object, read_json_object
from nacre.llm.gguf.limits import MAX_TEXT_BYTES
from nacre.llm.gguf.metadata import Value
from nacre.llm.model.problems import refusal
from nacre.llm.rules.tokenizer import LLM10, LLM11
from nacre.llm.tokenizer.vocabulary import DOCUMENT, TokenType

TOKENIZER, SETTINGS = "tokenizer.json", "tokenizer_config.json"
GENERATION, TEMPLATE = "generation_config.json", "chat_template.jinja"
_PREFIX = "tokenizer.ggml."
_ENDS = ("eos", "eot", "eom")  # GGUF has a key for each of so many
_MOST_TOKENS = 1 << 22


def folder_tokenizer_keys(folder: Path, values: JsonObject) -> dict[str, Value]:
    """Keys for the tokenizer of a folder; none where it has no tokenizer."""
    path = folder / TOKENIZER
    if not _is_there(path):
        return {}
    source = read_source(path, limit=MAX_TEXT_BYTES)
    if isinstance(source, Unreadable):
        raise refusal(LLM10, str(path), f"the file {source.reason}")
    settings = _read_object(folder / SETTINGS)
    template = _text_of(folder / TEMPLATE) or _template(settings)
    parsed = {**values, **_read_object(folder / GENERATION)}
    return _keys(str(path), source.text, settings, template, parsed)


def tokenizer_keys(name: str, tokenizer: Any, values: JsonObject) -> dict[str, Value]:  # noqa: ANN401
    """Keys for a tokenizer of transformers or of `tokenizers`."""
    inner = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not hasattr(inner, "to_str"):
        message = f"a {type(tokenizer).__name__} is no tokenizer that can be written as JSON"
        raise refusal(LLM10, name, message, "give a fast one, of the package `tokenizers`")
    roles = {
        f"{role}_token": str(text)
        for role in ("bos", "eos")
        if (text := getattr(tokenizer, f"{role}_token", None)) is not None
    }
    template = getattr(tokenizer, "chat_template", None)
    return _keys(name, inner.to_str(), roles, template if isinstance(template, str) else "", values)


def _keys(
    name: str, document: str, settings: JsonObject, template: str, values: JsonObject
) -> dict[str, Value]:
    parsed = parse_json_object(document, name)
    rows = dict(_rows(name, parsed))
    known = max(rows, default=-1) + 1
    size = values.get("vocab_size")
    # Models have rows for tokens that are not there, up to a round number.
    count = max(known, size) if isinstance(size, int) and size <= _MOST_TOKENS else known
    if not rows or count > _MOST_TOKENS:
        raise refusal(LLM11, name, f"the tokenizer has {count:,} tokens, expected 1 or more")
    tokens: list[Value] = []
    types: list[Value] = []
    for at in range(count):
        text, type_ = rows.get(at, (f"\0unused {at}", TokenType.UNUSED))
        tokens.append(text)
        types.append(int(type_))
    keys: dict[str, Value] = {
        DOCUMENT: document,
        f"{_PREFIX}tokens": tokens,
        f"{_PREFIX}token_type": types,
    }
    places = {text: at for at, (text, _) in rows.items()}
    before, behind = _control_tokens(name, parsed.get("post_processor"), places)
    begin = before if before is not None else _role(settings, values, "bos", places)
    if begin is not None:
        keys[f"{_PREFIX}bos_token_id"] = begin
    ends = dict.fromkeys(
        [*([] if behind is None else [behind]), *_end_tokens(settings, values, places)]
    )
    for role, at in zip(_ENDS, ends, strict=False):
        keys[f"{_PREFIX}{role}_token_id"] = at
    keys[f"{_PREFIX}add_bos_token"] = before is not None
    keys[f"{_PREFIX}add_eos_token"] = behind is not None
    if template:
        keys["tokenizer.chat_template"] = template
    return keys


def _rows(name: str, parsed: JsonObject) -> Iterator[tuple[int, tuple[str, TokenType]]]:
    """Tokens by their places; those that were added stand last."""
    model = parsed.get("model")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    if isinstance(vocabulary, dict):
        pairs: Iterable[tuple[object, object]] = vocabulary.items()
    elif isinstance(vocabulary, list):
        pairs = ((row[0], at) for at, row in enumerate(vocabulary) if isinstance(row, list) and row)
    else:
        raise refusal(LLM10, name, "the tokenizer has no vocabulary: `model.vocab`")
    for text, at in pairs:
        yield _place(name, text, at), (str(text), TokenType.NORMAL)
    added = parsed.get("added_tokens")
    for row in added if isinstance(added, list) else ():
        if isinstance(row, dict):
            kind = TokenType.CONTROL if row.get("special") is True else TokenType.USER
            text, at = row.get("content"), row.get("id")
            yield _place(name, text, at), (str(text), kind)


def _place(name: str, text: object, at: object) -> int:
    if not isinstance(text, str) or not _is_id(at):
        message = f"a token is {backquote(str(text)[:40])} at {backquote(str(at)[:20])}"
        raise refusal(LLM11, name, message)
    if not 0 <= at < _MOST_TOKENS:
        raise refusal(LLM11, name, f"the token {backquote(text[:40])} has the id {at}")
    return at


def _control_tokens(
    name: str, processor: object, places: Mapping[str, int]
) -> tuple[int | None, int | None]:
    """The tokens that a tokenizer puts before and behind a text."""
    before: list[str] = []
    behind: list[str] = []
    for one in _processors(name, processor):
        kind = one.get("type")
        if kind in ("BertProcessing", "RobertaProcessing"):
            before.append(_first_text(one.get("cls")))
            behind.append(_first_text(one.get("sep")))
        elif kind == "TemplateProcessing":
            seen = before
            for piece in _mappings(name, one.get("single")):
                if "Sequence" in piece:
                    seen = behind
                    continue
                token = piece.get("SpecialToken")
                seen.append(str(token.get("id") if isinstance(token, dict) else token))
    for texts in (before, behind):
        if len(texts) > 1 or any(text not in places for text in texts):
            message = f"the tokenizer puts {', '.join(map(backquote, texts))} at an end of texts"
            raise refusal(LLM10, name, message, "one token at each end is built")
    return (
        places[before[0]] if before else None,
        places[behind[0]] if behind else None,
    )


def _processors(name: str, processor: object) -> Iterator[dict[str, Any]]:
    for one in _mappings(name, [] if processor is None else [processor]):
        if one.get("type") == "Sequence":
            for inner in _mappings(name, one.get("processors")):
                yield from _processors(name, inner)
        else:
            yield one


def _mappings(name: str, parsed: object) -> list[dict[str, Any]]:
    """The parts of a post-processor; InputError where one is no mapping."""
    rows = [] if parsed is None else parsed
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        message = f"a part of the post-processor is {backquote(str(parsed))}, expected mappings"
        raise refusal(LLM10, name, message)
    return rows


def _first_text(pair: object) -> str:
    return str(pair[0]) if isinstance(pair, list) and pair else ""


def _role(
    settings: JsonObject, values: JsonObject, role: str, places: Mapping[str, int]
) -> int | None:
    """The token of a role: by its text in the tokenizer's settings, or by its id elsewhere."""
    text = settings.get(f"{role}_token")
    text = text.get("content") if isinstance(text, dict) else text
    if isinstance(text, str) and text in places:
        return places[text]
    at = values.get(f"{role}_token_id")
    return at if _is_id(at) and at in set(places.values()) else None


def _is_id(at: object) -> TypeGuard[int]:
    return isinstance(at, int) and not isinstance(at, bool)


def _end_tokens(settings: JsonObject, values: JsonObject, places: Mapping[str, int]) -> list[int]:
    """The tokens that end an answer: a model may have several."""
    listed = values.get("eos_token_id")
    known = set(places.values())
    several = (
        [at for at in listed if _is_id(at) and at in known] if isinstance(listed, list) else []
    )
    one = _role(
        settings, {**values, "eos_token_id": several[0] if several else listed}, "eos", places
    )
    return [*([] if one is None else [one]), *several]


def _template(settings: JsonObject) -> str:
    """The chat template in the tokenizer's settings; of several the one that is the default."""
    found = settings.get("chat_template")
    if isinstance(found, list):
        rows = [row for row in found if isinstance(row, dict)]
        found = next((row.get("template") for row in rows if row.get("name") == "default"), None)
    return found if isinstance(found, str) else ""


def _is_there(path: Path) -> bool:
    """Whether a folder has such a file; a link to nowhere is one that cannot be read."""
    return os.path.lexists(path)


def _read_object(path: Path) -> JsonObject:
    return read_json_object(path, MAX_TEXT_BYTES) if _is_there(path) else {}


def _text_of(path: Path) -> str:
    if not _is_there(path):
        return ""
    source = read_source(path, limit=MAX_TEXT_BYTES)
    if isinstance(source, Unreadable):
        raise refusal(LLM10, str(path), f"the file {source.reason}")
    return source.text
