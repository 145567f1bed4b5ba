"""Our codes as the public catalogue of the language numbers them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

# The catalogue is coarser than the rules: several of ours may share a number, and what it does
# not know has none.
E_CODES: Mapping[str, str] = MappingProxyType(
    {
        "MOD01": "E4001",
        "MOD02": "E4002",
        "MOD03": "E4003",
        "MOD07": "E4004",
        "MOD08": "E4004",
        "MOD12": "E3006",
        "CON04": "E4005",
        "CON05": "E4005",
        "CON06": "E3010",
        "CON07": "E4005",
        "BIN02": "E2004",
        "BIN03": "E3001",
        "RED01": "E3004",
        "RED02": "E3005",
        "SHP01": "E3007",
        "SHP02": "E3006",
        "SHP03": "E3007",
        "SHP04": "E3008",
        "SHP05": "E3008",
        "SHP07": "E3004",
        "SHP09": "E3009",
        "IDX01": "E4006",
        "IDX02": "E6001",
        "SLC01": "E4007",
        "SLC02": "E4008",
        "SLC04": "E3006",
        "GAT01": "E4011",
        "GAT04": "E6001",
        "GAT05": "E3002",
        "DOT01": "E3002",
        "DOT03": "E3003",
        "MAT01": "E3002",
        "MAT02": "E3003",
        "MAT03": "E3001",
        "MAT04": "E2004",
        "CNV01": "E3002",
        "CNV02": "E3002",
        "CNV03": "E4009",
        "CNV04": "E4010",
        "CNV06": "E2004",
        "CNV08": "E3006",
        "UNA01": "E2005",
        "UNA02": "E2005",
        "UNA03": "E2005",
        "UNA04": "E2005",
        "GRD01": "E5001",
        "GRD03": "E5005",
    }
)


def e_code(code: str) -> str | None:
    """The public code of one of ours, such as E3001 of BIN03; None where there is none."""
    return E_CODES.get(code)
