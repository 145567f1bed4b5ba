"""Schemas of calls that are kept by their names, from texts that a file may hold.

The notation is that of `core.aten.schemas`, `x:T n:i? dim:i=-1 * dtype:d?`; arguments behind a `*`
are given to a kernel by name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import msgspec

from nacre.core.aten.schemas import Schema, parse

_MOST_PARAMETERS = 255
# A list takes as many arguments as follow, so that only tensors may be one, and only once.
_PARAMETER = re.compile(r"[A-Za-z_]\w{0,63}:(T\??\*?|[ifnbsdIF]\??|a)(=\S+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class OpaqueSchema:
    """The arguments of a call, and which of them go by name."""

    schema: Schema
    keywords: frozenset[str]
    text: str


@lru_cache(maxsize=1024)
def parse_schema(call: str, text: str) -> OpaqueSchema:
    """A schema from its notation; ValueError where it is none."""
    words = text.split()
    if len(words) > _MOST_PARAMETERS or words.count("*") > 1:
        raise ValueError("a schema has at most 255 arguments, and one `*`")
    at = words.index("*") if "*" in words else len(words)
    words = [*words[:at], *words[at + 1 :]]
    for word in words:
        if not _PARAMETER.fullmatch(word):
            raise ValueError(f"`{word[:40]}` is no argument of a schema")
    names = [word.partition(":")[0] for word in words]
    if len(set(names)) < len(names) or sum("*" in word for word in words) > 1:
        raise ValueError("a schema has two arguments of one name, or two lists")
    try:
        schema = parse(call, " ".join(words))
    except msgspec.DecodeError as error:
        raise ValueError(f"a default of a schema is no JSON: {error}") from None
    return OpaqueSchema(schema, frozenset(names[at:]), text)
