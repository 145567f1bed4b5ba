"""The timing model held to measurements of real chips: fitted on one part, measured on another.

Figures are fitted to four fifths of the groups of rows (layers, models, sweeps), errors are those
of the others: the median, what nine in ten stay below, and the correlation of ranks. Where there is
one group alone, they are those of the rows that were fitted, with a star. The tables are read where
they lie; nothing of them is kept but what nacre itself says of the networks.

    python -m benchmarks.silicon                   single tasks, transfers, language models
    python -m benchmarks.silicon --networks        whole networks too: an hour at first
    python -m benchmarks.silicon --data FOLDER     tables that lie elsewhere
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

# Before NumPy is loaded: its BLAS reads them once.
for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import numpy as np

from benchmarks.silicon import hexagon, intel, llm, rockchip
from benchmarks.silicon.fit_devices import fit_intel
from benchmarks.silicon.fits import (
    Errors,
    Rows,
    cross_validate,
    errors_of,
    fit_call_cost,
    fit_scale,
    predict_left_out,
)
from benchmarks.silicon.hexagon_report import error_lines, ratios, simple_networks
from benchmarks.silicon.networks import PRECISIONS, network_rows
from benchmarks.silicon.tasks import DATA, read_rows, task_rows

HEAD = f"{'':44}{'rows':>6}{'median':>9}{'90%':>9}{'ranks':>8}"


def print_line(what: str, errors: Errors, more: str = "") -> None:
    """One line of a table."""
    print(f"{what:<44}{errors}{more}", flush=True)


def tasks(folder: Path) -> None:
    """Single tasks of Intel's array, by device and class, one factor fitted."""
    print(f"Single tasks, one factor for each device and class\n{HEAD}")
    found = list(task_rows(folder))
    for one in found:
        name = f"{one.device} {one.kind}"
        print_line(f"{name}: today's model", cross_validate(one.today, fit_scale))
        print_line(f"{name}: MACs alone", cross_validate(one.macs, fit_scale))
    print(f"\nSingle tasks, one factor for each device\n{HEAD}")
    for device in ("npu27", "npu40"):
        parts = [one for one in found if one.device == device and one.kind in ("conv", "dw")]
        today, macs = joined([one.today for one in parts]), joined([one.macs for one in parts])
        print_line(f"{device} conv and dw: today's model", cross_validate(today, fit_scale))
        print_line(f"{device} conv and dw: MACs alone", cross_validate(macs, fit_scale))


def fitted_devices(folder: Path) -> None:
    """The second edition: a device for each chip, six figures fitted to all of its rows."""
    print(f"\nDevices fitted to tasks and transfers together, six figures each\n{HEAD}")
    for device in intel.DEVICES:
        found = fit_intel(device, folder)
        for kind, band in {**found.classes, "all": found.overall}.items():
            errors = Errors(band.rows, band.median, band.most, band.rank)
            inside = "" if band.inside is None else f"  {band.inside:.0%} in the band"
            span = f"  band {band.low:.2f} to {band.high:.2f}"
            print_line(f"intel_{device} {kind}", errors, span + inside)


def joined(parts: list[Rows]) -> Rows:
    """Rows of several classes as one set."""
    return Rows(
        np.concatenate([part.modelled for part in parts]),
        np.concatenate([part.measured for part in parts]),
        tuple(group for part in parts for group in part.groups),
    )


def transfers(folder: Path) -> None:
    """Transfers: bytes alone, and bytes with a latency."""
    print(f"\nTransfers: bytes over a rate, and with a latency\n{HEAD}")
    table = read_rows(folder / "vpunn_dma.csv")
    for sweep in sorted({(r["device"], r["source_memory"], r["target_memory"]) for r in table}):
        rows = [r for r in table if (r["device"], r["source_memory"], r["target_memory"]) == sweep]
        sizes = np.array([float(r["bytes"]) for r in rows])
        measured = np.array([float(r["measured_cycles"]) for r in rows])
        found = Rows(sizes, measured, tuple(str(place % 5) for place in range(len(rows))))
        name = f"{sweep[0]} {sweep[1]} to {sweep[2]}"
        print_line(f"{name}: bytes", cross_validate(found, fit_scale))
        print_line(f"{name}: latency + bytes", cross_validate(found, fit_call_cost))


def networks(folder: Path, precisions: list[str]) -> None:
    """Whole networks by chip: one factor, and a factor with a cost for each call."""
    fits: dict[str, Callable[[Rows], Errors]] = {
        "a factor": lambda rows: cross_validate(rows, fit_scale),
        "a factor and a cost per call": lambda rows: cross_validate(rows, fit_call_cost),
    }
    for title, fit in fits.items():
        print(f"\nWhole networks, {title} for each chip\n{HEAD}")
        for device, precision, models in network_rows(folder, precisions):
            for name, rows in models.items():
                print_line(f"{device[:24]} {precision}: {name}", fit(rows))


def fitted_networks(folder: Path) -> None:
    """Devices fitted to whole networks, beside simpler models of the same rows; ratios of two."""
    for chip in hexagon.CHIP_LIST:
        found = hexagon.fit_chip(chip.name, folder)
        print(f"\n{chip.name} ({chip.device}), networks left out\n{HEAD}")
        networks = simple_networks(tuple(hexagon.network_table(folder, chip)), chip)
        for name, errors in error_lines(found, networks):
            print_line(name, errors)
        print(f"{'ratios less the cost of a call':<44}{'measured':>9}{'ours':>9}{'off':>9}")
        for ratio in ratios(found):
            print(ratio, flush=True)


def decoding(folder: Path) -> None:
    """Tokens per second of language models: parameters over a rate, and bytes with a cost."""
    print(f"\nDecoding, tokens per second, architectures left out\n{HEAD}")
    for device, rows in llm.qualcomm_rows(folder):
        naive = cross_validate(rows["parameters"], llm.fit_parameters)
        print_line(f"{device}: parameters / rate", naive)
        for name in ("bytes", "bytes, by runtime"):
            print_line(f"{device}: {name}", cross_validate(rows[name], llm.fit_decoding))
    found = rockchip.decodings(folder)
    shared = rockchip.shared_rows(found)
    predicted = 1 / predict_left_out(shared, rockchip.fit_shared)
    for chip in rockchip.PINS:
        own = np.array([one.device == chip for one in found])
        rows = llm.decoding_rows([one for one in found if one.device == chip])
        naive = cross_validate(rows["parameters"], llm.fit_parameters)
        print_line(f"{chip}: parameters / rate", naive)
        print_line(f"{chip}: bytes", errors_of(predicted[own], 1 / shared.measured[own]))


def main() -> int:
    """Print the tables; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the tables")
    parser.add_argument("--networks", action="store_true", help="whole networks too")
    parser.add_argument("--precision", nargs="*", default=["float"], choices=list(PRECISIONS))
    chosen = parser.parse_args()
    if not (chosen.data / "vpunn.csv").is_file():
        print(f"{chosen.data} has no vpunn.csv", file=sys.stderr)
        return 2
    tasks(chosen.data)
    transfers(chosen.data)
    fitted_devices(chosen.data)
    decoding(chosen.data)
    if chosen.networks:
        fitted_networks(chosen.data)
        networks(chosen.data, chosen.precision)
    return 0


if __name__ == "__main__":
    sys.exit(main())
