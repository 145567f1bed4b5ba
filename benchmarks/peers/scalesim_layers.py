"""Cycles of single layers by SCALE-Sim, an array of 16 by 16: run with a Python that has it."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from scalesim.scale_sim import scalesim

SIDE = 16
CONFIG = f"""[general]
run_name = layers
[architecture_presets]
ArrayHeight = {SIDE}
ArrayWidth = {SIDE}
IfmapSramSzkB = 4096
FilterSramSzkB = 4096
OfmapSramSzkB = 4096
IfmapOffset = 0
FilterOffset = 10000000
OfmapOffset = 20000000
Dataflow = ws
Bandwidth = 10000
ReadRequestBuffer = 512
WriteRequestBuffer = 512
[layout]
IfmapCustomLayout = False
IfmapSRAMBankBandwidth = 10
IfmapSRAMBankNum = 10
IfmapSRAMBankPort = 2
FilterCustomLayout = False
FilterSRAMBankBandwidth = 10
FilterSRAMBankNum = 10
FilterSRAMBankPort = 2
[sparsity]
SparsitySupport = false
[run_presets]
InterfaceBandwidth = USER
UseRamulatorTrace = False
"""
_LAYOUT_COLUMNS = 20


def topology_line(place: int, layer: dict[str, Any]) -> str:
    """A layer as SCALE-Sim reads it; of a depthwise one, a single channel."""
    height, width = (
        (layer[out] - 1) * layer["stride"] + layer["kernel"] for out in ("out_h", "out_w")
    )
    depth, channels = (1, 1) if layer["depthwise"] else (layer["in_c"], layer["out_c"])
    sizes = (height, width, layer["kernel"], layer["kernel"], depth, channels, layer["stride"])
    return f"layer{place},{','.join(map(str, sizes))},1:1,\n"


def cycles_of(layers: list[dict[str, Any]], folder: Path) -> dict[str, dict[str, float]]:
    """Cycles of the array, and with what is fetched before it starts."""
    (folder / "config.cfg").write_text(CONFIG)
    lines = [topology_line(place, layer) for place, layer in enumerate(layers)]
    (folder / "layers.csv").write_text("".join(["name,h,w,fh,fw,c,n,s,sparsity,\n", *lines]))
    ones = "1," * _LAYOUT_COLUMNS
    rows = [f"layer{place},{ones}\n" for place in range(len(layers))]
    (folder / "layouts.csv").write_text("".join([f"name,{ones}\n", *rows]))
    os.chdir(folder)
    with contextlib.redirect_stdout(io.StringIO()):
        run = scalesim(
            save_disk_space=True,
            verbose=False,
            config="config.cfg",
            topology="layers.csv",
            layout="layouts.csv",
        )
        run.run_scale(top_path=str(folder))
    report = next(folder.rglob("COMPUTE_REPORT.csv"))
    with report.open(newline="") as file:
        found = list(csv.DictReader(file, skipinitialspace=True))
    return {
        layer["name"]: _scaled(row, layer["in_c"] if layer["depthwise"] else 1)
        for layer, row in zip(layers, found, strict=True)
    }


def _scaled(row: dict[str, str], times: int) -> dict[str, float]:
    total = float(row["Total Cycles"])
    return {
        "cycles": total * times,
        "with memory": float(row["Total Cycles (incl. prefetch)"]) * times,
    }


def main() -> None:
    layers = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as folder:
        found = cycles_of(layers, Path(folder))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
