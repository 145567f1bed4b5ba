"""Which section of docs/language.md a rule is about."""

from __future__ import annotations

from nacre.base.rules import Rule

PAGE = "docs/language.md"

_SECTION_OF_GROUP = {
    "LEX": "words",
    "DOC": "documents",
    "BYT": "bytecode",
    "CST": "constants-and-expressions",
    "INC": "includes",
    "DVD": "the-device-of-a-program",
    "DEV": "devices",
    "INH": "inheritance",
    "NAM": "names",
    "BUF": "buffers",
    "EXT": "regions",
    "QNT": "quantisation",
    "TYP": "type-families",
    "SIG": "compute",
    "TOK": "tasks-and-tokens",
    "HAZ": "hazards",
    "INI": "hazards",
    "LOP": "loops",
    "DEC": "decorators",
    "PLC": "placement",
    "RUN": "running",
    "WDM": "compressed-regions",
}

# Codes of a group that is about several things.
_SECTION_OF_CODE = {
    "DOC06": "loops",
    "DOC07": "tasks-and-tokens",
    "DOC08": "types",
    "DOC09": "types",
    "DOC10": "compute",
    "DOC11": "tasks-and-tokens",
    "DOC12": "compute",
    "DOC13": "buffers",
    "DOC14": "buffers",
    "DOC15": "buffers",
    "DOC16": "types",
    "DOC17": "compute",
    "DOC18": "transfers-and-stores",
    "DOC19": "grammar",
    "DOC20": "limits",
    "DOC21": "strict-mode",
    "DOC22": "strict-mode",
    "DOC23": "strict-mode",
    "DOC24": "constants-and-expressions",
    "DOC25": "limits",
    "LEX09": "limits",
    "INC09": "limits",
    "LOP06": "limits",
    "CST17": "strict-mode",
    "EXT06": "types",
    "EXT09": "types",
    "EXT10": "types",
    "EXT11": "types",
    "EXT12": "types",
    "EXT13": "types",
    "SIG20": "wait",
    "TOK04": "order",
    "TOK05": "transfers-and-stores",
    "TOK06": "transfers-and-stores",
    "TOK08": "transfers-and-stores",
    "HAZ04": "transfers-and-stores",
    "HAZ06": "loops",
    "DEC04": "placement",
    "DEC05": "placement",
    "DEC06": "placement",
    "DEC07": "placement",
    "DEC08": "placement",
    "DEC09": "placement",
    "DEC10": "placement",
    "DEC15": "placement",
}


def section_of(rule: Rule) -> str | None:
    """The anchor of the section, or None of a rule that is about another language."""
    if rule.language != "NEM":
        return None
    return _SECTION_OF_CODE.get(rule.code) or _SECTION_OF_GROUP.get(rule.group)


def address_of(rule: Rule) -> str | None:
    """The page with the section, as a link from the project's folder."""
    section = section_of(rule)
    return None if section is None else f"{PAGE}#{section}"
