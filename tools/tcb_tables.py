"""Tables of docs/tcb-format.md and docs/binding.md, from what the code declares."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from nacre.tcb.binary.words import WORDS
from nacre.tcb.block_table import (
    BLOCK,
    BLOCK_KINDS,
    FEATURES,
    PERIODS,
    RECORDS,
    Field,
    Record,
)
from nacre.tcb.figures import FIGURES, FigureSpec
from tools.generated import markdown_table


def _name(record: Record) -> str:
    return record.statement or ("block" if record is BLOCK else record.of.__name__)


def _words(field: Field) -> str:
    if field.kind == "word":
        return ", ".join(f"`{word}`" for word in field.words)
    kind = RECORDS[field.of].of.__name__ if field.of is not None else field.kind
    return f"{kind}, several" if field.is_many else kind


def _default(field: Field) -> str:
    if field.default is ...:
        return "needed"
    return "" if field.default in ("", (), None, False) else f"`{field.default}`"


def _rows() -> Iterator[tuple[str, ...]]:
    for record in RECORDS.values():
        for at, field in enumerate(record.fields):
            blocks = "" if field.blocks == BLOCK_KINDS else ", ".join(field.blocks)
            name = f"**{_name(record)}**" if at == 0 else ""
            keyword = f"`{field.keyword}`" if field.keyword else ""
            meaning = f"{field.meaning}; {blocks}" if blocks else field.meaning
            yield name, keyword, _words(field), _default(field), meaning


def render_fields() -> str:
    """What texts have."""
    return markdown_table(("of", "keyword", "value", "without it", "meaning"), _rows())


def _layout(field: Field) -> str:
    kind = field.of.__name__ if field.of is not None else field.kind
    if field.kind == "word":
        kind = f"word({','.join(field.words)})"
    mark = ("*" if field.is_many else "") + ("?" if field.is_optional else "")
    feature = f"[{field.feature}]" if field.feature else ""
    return f"{field.name}={kind}{mark}{feature}"


def render_layout() -> str:
    """What files have: the fields of forms, and behind the bar those that are a record's own."""
    lines = []
    for record in RECORDS.values():
        parts = [
            " ".join(map(_layout, fields))
            for fields in (record.shared_fields, record.unshared_fields)
        ]
        lines.append(f"{record.of.__name__:15} {' | '.join(parts)}".rstrip())
    return "\n".join(["```", *lines, "```", ""])


def render_words() -> str:
    """The texts that files do not spell."""
    lines = textwrap.wrap(" ".join(WORDS), 100, break_on_hyphens=False)
    return "\n".join(["```", *lines, "```", ""])


def render_features() -> str:
    """The bits of a file's head."""
    rows = (
        (
            str(bit),
            f"`{feature}`",
            ", ".join(
                f"`{field.name}` of {record.of.__name__}"
                for record in RECORDS.values()
                for field in record.fields
                if field.feature == feature or (feature == PERIODS and field.kind == "count")
            ),
        )
        for bit, feature in enumerate(FEATURES)
    )
    return markdown_table(("bit", "name", "fields"), rows)


def _figure_value(spec: FigureSpec) -> str:
    """What a figure can be."""
    if spec.kind == "count":
        return f"{spec.measure}, at least {spec.least}" if spec.least else spec.measure
    some = "one of" if spec.kind == "word" else "some of"
    return f"{some} {', '.join(f'`{word}`' for word in spec.words)}"


def _figure_names(spec: FigureSpec) -> str:
    """The names that a file may give a figure by."""
    return f"`{spec.key}`, `{spec.other_name}`" if spec.other_name else f"`{spec.key}`"


def render_figures() -> str:
    """What a `.uarch` file may say."""
    rows = (
        (_figure_names(spec), f"`{spec.default}`" if spec.default != "" else "none",
         _figure_value(spec), spec.meaning)
        for spec in FIGURES.values()
    )  # fmt: skip
    return markdown_table(("figure", "without it", "value", "meaning"), rows)
