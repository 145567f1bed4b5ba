"""Cycles of single layers by ZigZag, an array of 16 by 16: run with a Python that has it."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml
from zigzag.api import get_hardware_performance_zigzag

SIDE = 16
WIDE = 1 << 16  # bits in a cycle: memory is not what is compared
EQUATION = "O[b][g][k][oy][ox]+=W[g][k][c][fy][fx]*I[b][g][c][iy][ix]"


def _port(name: str, kind: str, most: int, *uses: str) -> dict[str, Any]:
    least = min(most, 32)
    return {
        "name": name,
        "type": kind,
        "bandwidth_min": least,
        "bandwidth_max": most,
        "allocation": list(uses),
    }


def _memory(size: int, operands: list[str], ports: list[dict[str, Any]], served: list[str]) -> Any:  # noqa: ANN401
    costs = {"r_cost": 1, "w_cost": 1, "area": 0, "latency": 1}
    return {
        "size": size,
        **costs,
        "operands": operands,
        "ports": ports,
        "served_dimensions": served,
    }


def accelerator() -> dict[str, Any]:
    """An array with sums beside each row of channels, and one wide memory."""
    sums = [
        _port("w_port_1", "write", 32, "O, fh"),
        _port("r_port_1", "read", 32, "O, tl"),
        _port("w_port_2", "write", 32, "O, fl"),
        _port("r_port_2", "read", 32, "O, th"),
    ]
    wide = [
        _port("rw_port_1", "read_write", WIDE, "I1, tl"),
        _port("rw_port_2", "read_write", WIDE, "I2, tl"),
        _port("rw_port_3", "read_write", WIDE, "O, tl", "O, fl"),
    ]
    return {
        "name": "array",
        "memories": {
            "sums": _memory(32, ["O"], sums, ["D2"]),
            "l1": _memory(1 << 30, ["I1", "I2", "O"], wide, ["D1", "D2"]),
        },
        "operational_array": {
            "input_precision": [8, 8],
            "unit_energy": 0.0,
            "unit_area": 1,
            "dimensions": ["D1", "D2"],
            "sizes": [SIDE, SIDE],
        },
    }


def mapping(is_depthwise: bool) -> list[dict[str, Any]]:
    """Channels of results beside each other, channels that are summed below each other."""
    channels = "G" if is_depthwise else "K"
    return [
        {
            "name": "default",
            "spatial_mapping": {"D1": [f"{channels}, {SIDE}"], "D2": [f"C, {SIDE}"]},
            "memory_operand_links": {"O": "O", "W": "I2", "I": "I1"},
        }
    ]


def workload(layer: dict[str, Any]) -> list[dict[str, Any]]:
    """A layer as loops."""
    is_depthwise, stride, kernel = layer["depthwise"], layer["stride"], layer["kernel"]
    groups, channels, depth = (
        (layer["in_c"], 1, 1) if is_depthwise else (1, layer["out_c"], layer["in_c"])
    )
    return [
        {
            "id": 0,
            "name": layer["name"],
            "operator_type": "Conv",
            "equation": EQUATION,
            "dimension_relations": [f"ix={stride}*ox+1*fx", f"iy={stride}*oy+1*fy"],
            "loop_dims": ["B", "G", "K", "C", "OY", "OX", "FY", "FX"],
            "loop_sizes": [
                1,
                groups,
                channels,
                depth,
                layer["out_h"],
                layer["out_w"],
                kernel,
                kernel,
            ],
            "operand_precision": {"O": 32, "O_final": 8, "W": 8, "I": 8},
            "operand_source": {"W": 0, "I": 0},
        }
    ]


def cycles_of(layer: dict[str, Any], folder: Path) -> dict[str, float]:
    """Cycles of the array, and with what its memory takes at the start and the end."""
    hardware, plan = folder / "array.yaml", folder / "mapping.yaml"
    hardware.write_text(yaml.safe_dump(accelerator(), sort_keys=False))
    plan.write_text(yaml.safe_dump(mapping(layer["depthwise"]), sort_keys=False))
    with contextlib.redirect_stdout(io.StringIO()):
        _, total, details = get_hardware_performance_zigzag(
            workload(layer),
            str(hardware),
            str(plan),
            dump_folder=str(folder / "dump"),
            loma_show_progress_bar=False,
        )
    one = details[0][1][0][0]
    return {"cycles": float(one.ideal_temporal_cycle), "with memory": float(total)}


def main() -> None:
    logging.disable(logging.CRITICAL)
    layers = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as folder:
        found = {layer["name"]: cycles_of(layer, Path(folder)) for layer in layers}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
