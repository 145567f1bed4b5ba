"""Make the table of Qualcomm's measurements again from the public package `qai_hub_models`.

    pip download qai_hub_models==0.65.0 --no-deps
    python -m tools.qualcomm_table qai_hub_models-0.65.0-py3-none-any.whl -o qualcomm.csv
    python -m tools.qualcomm_table WHEEL --compare TABLE      what differs from a table

The package has the times (`models/*/perf.yaml`), what networks are (`manifest.yaml`) and what chips
are (`devices_and_chipsets.yaml`). What builds the same graph without weights is in no file of it:
`qualcomm_networks.csv` beside this file names the public constructor, for part of the models, and
whether the package calls that very one. Devices are those of DEVICES; others stay in the package.
"""

from __future__ import annotations

import argparse
import csv
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

Row = dict[str, str]

NETWORKS = Path(__file__).resolve().parent / "qualcomm_networks.csv"
PACKAGE = "qai_hub_models"
DEVICES = (
    "Dragonwing IQ-9075 EVK",
    "Dragonwing RB3 Gen 2 Vision Kit",
    "Samsung Galaxy S22 5G",
    "Samsung Galaxy S24",
    "Samsung Galaxy S25",
    "Snapdragon X Elite CRD",
    "Snapdragon X2 Elite CRD",
)
COLUMNS = (
    "model", "component", "task", "library", "constructor", "inputs", "fidelity",
    "parameters_published", "device", "chipset", "hexagon", "form", "precision",
    "runtime", "latency_ms", "peak_memory_min_mb", "peak_memory_max_mb", "layers_npu",
    "layers_total", "unit", "qairt", "split_group",
)  # fmt: skip
KEY = ("model", "component", "device", "precision", "runtime")
_FORMS = {"Phone": "phone", "IoT": "iot", "Laptop": "laptop", "PC": "laptop", "Compute": "laptop"}
_FACTORS = {"K": 10**3, "M": 10**6, "B": 10**9}
_MOST_BYTES = 64 << 20  # of one file of the package


class Package:
    """The files of a wheel of the package."""

    def __init__(self, path: Path) -> None:
        self._archive = zipfile.ZipFile(path)

    def read(self, name: str) -> dict[str, Any]:
        """A file of YAML; empty where there is none."""
        import yaml

        full = f"{PACKAGE}/{name}"
        if full not in self._archive.namelist():
            return {}
        if self._archive.getinfo(full).file_size > _MOST_BYTES:
            raise ValueError(f"{full} is larger than {_MOST_BYTES} bytes")
        found = yaml.load(self._archive.read(full), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        return found if isinstance(found, dict) else {}


def networks() -> dict[str, list[Row]]:
    """What builds the graph of each model, by the model; several where it is in parts."""
    found: dict[str, list[Row]] = {}
    with NETWORKS.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            library = row["constructor"].partition(".")[0]
            found.setdefault(row["model"], []).append({**row, "library": library})
    return found


def table(package: Package) -> Iterator[Row]:
    """All rows of the networks that can be built."""
    chips = package.read("devices_and_chipsets.yaml")
    for model, parts in sorted(networks().items()):
        manifest = package.read(f"models/{model}/manifest.yaml")
        perf = package.read(f"models/{model}/perf.yaml")
        for precision, entry in perf.get("precisions", {}).items():
            for name, component in entry.get("components", {}).items():
                part = _part(parts, name)
                if part is not None:
                    about = {**part, **_about(manifest, part), "split_group": model}
                    for row in measurements(component, chips):
                        yield {**about, "precision": precision, **row}


def _part(parts: list[Row], name: str) -> Row | None:
    """The network of a component: the only one, or that which is named so."""
    if len(parts) == 1 and not parts[0]["component"]:
        return parts[0]
    return next((part for part in parts if part["component"] == name), None)


def _about(manifest: Mapping[str, Any], part: Row) -> Row:
    details = manifest.get("technical_details", {})
    parameters = "Number of parameters"
    count = details.get(f"{parameters} ({part['component']})", details.get(parameters, ""))
    return {"task": str(manifest.get("use_case", "")), "parameters_published": _number(str(count))}


def _number(text: str) -> str:
    """`11.7M` or `~600M` as an integer; nothing where it is none."""
    text = text.lstrip("~")
    factor = _FACTORS.get(text[-1:].upper(), 1)
    try:
        return str(round(float(text.rstrip("KMBkmb")) * factor))
    except ValueError:
        return ""


def measurements(component: Mapping[str, Any], chips: Mapping[str, Any]) -> Iterator[Row]:
    """Times of one network on the devices, whatever runtime."""
    for device, runtimes in component.get("performance_metrics", {}).items():
        if device not in DEVICES:
            continue
        about = chips["devices"][device]
        chipset = about["chipset"]
        where = {
            "device": device,
            "chipset": chipset,
            "hexagon": f"v{chips['chipsets'][chipset]['htp_version']}",
            "form": _FORMS.get(about["form_factor"], about["form_factor"]),
        }
        for runtime, found in runtimes.items():
            time = found.get("inference_time_milliseconds")
            if isinstance(time, int | float) and found.get("primary_compute_unit") == "NPU":
                yield {**where, "runtime": runtime, "latency_ms": str(time), **_details(found)}


def _details(found: Mapping[str, Any]) -> Row:
    memory = found.get("estimated_peak_memory_range_mb", {})
    layers = found.get("layer_counts", {})
    values = {
        "peak_memory_min_mb": memory.get("min"),
        "peak_memory_max_mb": memory.get("max"),
        "layers_npu": layers.get("npu"),
        "layers_total": layers.get("total"),
        "unit": found.get("primary_compute_unit"),
        "qairt": found.get("tool_versions", {}).get("qairt"),
    }
    return {name: "" if value is None else str(value) for name, value in values.items()}


def differences(made: list[Row], path: Path) -> list[str]:
    """Where a table differs from what was made, by cells; rows that only one of them has."""
    with path.open(newline="", encoding="utf-8") as file:
        there = {_key(row): row for row in csv.DictReader(file)}
    here = {_key(row): row for row in made}
    found = [f"not made: {' '.join(key)}" for key in there.keys() - here.keys()]
    found += [f"not in the table: {' '.join(key)}" for key in here.keys() - there.keys()]
    for key in here.keys() & there.keys():
        for column in COLUMNS:
            pair = here[key].get(column, ""), there[key].get(column, "")
            if pair[0] != pair[1]:
                found.append(f"{' '.join(key)}: {column} is {pair[0]!r}, in the table {pair[1]!r}")
    return sorted(found)


def _key(row: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(row.get(name, "") for name in KEY)


def main() -> int:
    """Write the table, or compare it; the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("package", type=Path, help="a wheel of qai_hub_models")
    parser.add_argument("-o", "--output", type=Path, help="where to write the table")
    parser.add_argument("--compare", type=Path, help="a table to compare with")
    chosen = parser.parse_args()
    rows = list(table(Package(chosen.package)))
    print(f"{len(rows)} rows of {len({row['model'] for row in rows})} models")
    if chosen.output is not None:
        with chosen.output.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    if chosen.compare is None:
        return 0
    found = differences(rows, chosen.compare)
    print("\n".join(found[:40]) or "no difference")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
