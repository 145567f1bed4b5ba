"""Rules that promise behaviour, and those that a single case file cannot show.

`test_CODE_...` proves the rule CODE; `test_rule_pages.py` counts on these names.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from nacre.base.diagnostics import Diagnostic
from nacre.base.source import Source, read_source
from nacre.nem.checks.engine import CheckOptions, check_source
from nacre.nem.model.devices import Device
from nacre.nem.model.files import default_roots, load
from nacre.nem.model.linking import link
from nacre.nem.model.target import builtin_device
from nacre.nem.spec.limits import MAX_INCLUDED_FILES
from nacre.nem.syntax.parser import parse

BASELINE = 'include "nem_baseline_1.0.nem"\n'
PARENT = """
include "nem_baseline_1.0.nem"
device parent extends nem_baseline_1_0 {
    topology {
        num_engines = 2
        l2_size_bytes = 1048576
        device_units { sDMA = 3 WDM = 1 }
        per_engine { NMU = 2 VPU = 1 l1_size_bytes = 524288 }
    }
    unit_characteristics {
        NMU { int8_macs = 4096 fp16_macs = 2048 }
        SEQ { max_active_tokens = 16 }
    }
    opcode.mandatory { norm<f32>.default }
    opcode.extended { view<f32>.default softmax<f32>.default }
}
"""
SMALL_TOPOLOGY = """
topology {
    num_engines = 1
    l2_size_bytes = 4
    per_engine { NMU = 1 l1_size_bytes = 4 }
}
"""


def devices_of(text: str) -> dict[str, Device]:
    root = load(parse(Source("devices.nem", text)), default_roots(None))
    return link(root)[id(root)].devices


def child_of_parent(body: str) -> Device:
    return devices_of(f"{PARENT}device child extends parent {{\n{body}\n}}\n")["child"]


def check(path: Path, **options: object) -> list[Diagnostic]:
    source = read_source(path)
    assert isinstance(source, Source)
    return list(check_source(source, CheckOptions(**options)).diagnostics)  # type: ignore[arg-type]


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder / "main.nem"


# Devices


def test_dev18_unknown_characteristics_are_kept_with_their_values() -> None:
    device = child_of_parent("unit_characteristics { NMU { future_key = 7 } CSTL { lanes = 64 } }")
    assert device.characteristics["NMU"]["future_key"] == 7
    assert device.characteristics["CSTL"] == {"lanes": 64}


@pytest.mark.parametrize(("name", "limit"), [("npm_lite", 16), ("npm8k", 32)])
def test_dev20_the_token_limit_of_the_device_is_what_a_program_is_held_against(
    name: str, limit: int
) -> None:
    assert builtin_device(name).characteristics["SEQ"]["max_active_tokens"] == limit

    def findings(tasks: int) -> list[str]:
        text = "buffer A : DDR (size=64)\nbuffer B : L2 (size=64)\n" + "".join(
            f"t{i} = transfer.async(dst=region(B, {i}, 1), src=region(A, {i}, 1))\n"
            for i in range(tasks)
        )
        found = check_source(Source("t.nem", text), CheckOptions(device=name)).diagnostics
        return [d.code for d in found if d.severity != "info"]

    assert findings(limit) == []
    assert findings(limit + 1) == ["TOK07"]


def test_dev21_a_topology_without_device_units_has_none() -> None:
    device = child_of_parent(SMALL_TOPOLOGY)
    assert (device.count("sDMA"), device.count("WDM")) == (0, 0)


def test_dev07_a_unit_count_of_zero_is_kept_as_zero() -> None:
    device = child_of_parent(
        SMALL_TOPOLOGY.replace("per_engine", "device_units { WDM = 0 }\nper_engine")
    )
    assert device.topology is not None
    assert device.topology.device_units == {"WDM": 0}


def test_inh02_a_child_topology_replaces_every_figure_of_the_parent() -> None:
    device = child_of_parent(SMALL_TOPOLOGY)
    assert device.topology is not None
    assert (device.topology.num_engines, device.topology.l2_size_bytes) == (1, 4)
    assert dict(device.topology.per_engine) == {"NMU": 1}


def test_inh02_a_child_without_topology_has_the_parents() -> None:
    device = child_of_parent("")
    assert (device.num_engines, device.count("sDMA"), device.count("VPU")) == (2, 3, 1)


def test_inh04_characteristics_are_merged_key_by_key() -> None:
    device = child_of_parent("unit_characteristics { NMU { int8_macs = 1 } VPU { width = 32 } }")
    assert device.characteristics == {
        "NMU": {"int8_macs": 1, "fp16_macs": 2048},
        "SEQ": {"max_active_tokens": 16},
        "VPU": {"width": 32},
    }


def test_inh05_mandatory_variants_are_united() -> None:
    parent = child_of_parent("")
    device = child_of_parent("opcode.mandatory { norm<bf16>.default norm<f32>.default }")
    assert device.mandatory == (*parent.mandatory, "norm<bf16>.default")
    assert "norm<f32>.default" in parent.mandatory


def test_inh06_extended_variants_are_united() -> None:
    device = child_of_parent("opcode.extended { eltwise<f32>.default view<f32>.default }")
    assert device.extended == (
        "view<f32>.default",
        "softmax<f32>.default",
        "eltwise<f32>.default",
    )


def test_inh10_a_promoted_variant_leaves_the_extended_set() -> None:
    device = child_of_parent("opcode.mandatory { view<f32>.default }")
    assert "view<f32>.default" in device.mandatory
    assert device.extended == ("softmax<f32>.default",)


def test_inh11_a_chain_inherits_from_all_its_links() -> None:
    text = PARENT + "device a extends parent {\n opcode.extended { eltwise<f32>.default }\n}\n"
    text += "device b extends a {\n unit_characteristics { NMU { int8_macs = 1 } }\n}\n"
    text += "device c extends b {\n}\n"
    device = devices_of(text)["c"]
    assert device.num_engines == 2
    assert device.characteristics["NMU"] == {"int8_macs": 1, "fp16_macs": 2048}
    assert device.extended[-1] == "eltwise<f32>.default"
    assert device.spec_version == "NEM-1.0"


def test_inh11_a_chain_of_thousands_of_devices_resolves() -> None:
    links = "".join(f"device d{i + 1} extends d{i} {{\n}}\n" for i in range(3000))
    text = BASELINE + "device d0 extends nem_baseline_1_0 {\n" + SMALL_TOPOLOGY + "}\n" + links
    found = check_source(Source("chain.nem", text), CheckOptions()).diagnostics
    assert found == ()
    assert devices_of(text)["d3000"].num_engines == 1


def test_dvd03_an_inline_device_gives_the_findings_of_a_standalone_one() -> None:
    device = (
        BASELINE + "device d extends nem_baseline_1_0 {\n topology {\n num_engines = 0\n }\n}\n"
    )

    def findings(text: str) -> list[str]:
        return [str(d) for d in check_source(Source("d.nem", text), CheckOptions()).diagnostics]

    assert findings(device) == findings(device + "program p:\n") != []


# Includes


def test_inc03_points_at_the_first_error_of_the_included_file(tmp_path: Path) -> None:
    files = {
        "main.nem": 'include "a.nem"\nprogram p:\n',
        "a.nem": 'include "b.nem"\n',
        "b.nem": BASELINE + "device d extends x {\n}\ndevice e extends y {\n}\n",
    }
    found = check(write(tmp_path, files))
    related = {d.span.source.path: d.related for d in found if d.code == "INC03"}
    assert set(related) == {tmp_path / "main.nem", tmp_path / "a.nem"}
    for places in related.values():
        (place,) = places
        assert (place.location.file, place.location.line) == (str(tmp_path / "b.nem"), 2)
        assert place.message.startswith("INH07: ")


def test_inc08_without_a_project_the_root_is_the_folder_and_its_parent(tmp_path: Path) -> None:
    files = {
        "far.nem": "",
        "a/near.nem": "",
        "a/b/beside.nem": "",
        "a/b/below/below.nem": "",
        "a/b/main.nem": 'include "beside.nem"\ninclude "below/below.nem"\ninclude "../near.nem"\n'
        'include "../../far.nem"\nprogram p:\n',
    }
    write(tmp_path, files)
    found = check(tmp_path / "a/b/main.nem")
    assert [(d.code, d.location.line) for d in found] == [("INC08", 4)]


@pytest.mark.parametrize("mark", [".git", "pyproject.toml"])
def test_inc08_the_root_is_the_nearest_project_folder(tmp_path: Path, mark: str) -> None:
    include = 'include "../../../far.nem"\nprogram p:\n'
    files = {f"root/{mark}": "", "root/far.nem": "", "root/a/b/c/main.nem": include, "far.nem": ""}
    write(tmp_path, files)
    assert check(tmp_path / "root/a/b/c/main.nem") == []
    (tmp_path / "root/a" / mark).touch()
    assert [d.code for d in check(tmp_path / "root/a/b/c/main.nem")] == ["INC08"]


def test_inc08_links_are_followed_before_a_path_is_judged(tmp_path: Path) -> None:
    main = 'include "link.nem"\ninclude "linked/far.nem"\nprogram p:\n'
    write(tmp_path, {"outside/far.nem": "", "root/a/main.nem": main, "root/pyproject.toml": ""})
    (tmp_path / "root/a/link.nem").symlink_to(tmp_path / "outside/far.nem")
    (tmp_path / "root/a/linked").symlink_to(tmp_path / "outside")
    path = tmp_path / "root/a/main.nem"
    assert [(d.code, d.location.line) for d in check(path)] == [("INC08", 1), ("INC08", 2)]
    assert check(path, include_roots=(tmp_path / "outside",)) == []


def test_inc09_too_many_includes_are_reported_once(tmp_path: Path) -> None:
    count = MAX_INCLUDED_FILES + 20
    files = {f"f{i}.nem": "# nothing\n" for i in range(count)}
    includes = "".join(f'include "f{i}.nem"\n' for i in range(count))
    found = check(write(tmp_path, {**files, "main.nem": includes}))
    assert [(d.code, d.location.line) for d in found] == [("INC09", MAX_INCLUDED_FILES + 1)]


def test_inc09_as_many_includes_as_the_limit_allows_are_fine(tmp_path: Path) -> None:
    names = [f"f{i}.nem" for i in range(MAX_INCLUDED_FILES)]
    includes = "".join(f'include "{name}"\n' for name in names)
    files = dict.fromkeys(names, "# nothing\n")
    assert check(write(tmp_path, {**files, "main.nem": includes + includes})) == []


def test_inc02_a_file_that_is_included_twice_is_read_once(tmp_path: Path) -> None:
    files = {
        "main.nem": 'include "d.nem"\ninclude "sub/../d.nem"\ninclude "link.nem"\ndevice child\n'
        "program p:\n",
        "d.nem": PARENT + "device child extends parent {\n}\n",
        "sub/x.nem": "",
    }
    path = write(tmp_path, files)
    (tmp_path / "link.nem").symlink_to("d.nem")
    assert check(path) == []


# Programs

UNDERLINED = [
    ("const A = 4 $ 2", "LEX01", "$"),
    ("let A = 1.5.2", "LEX03", "1.5.2"),
    ("buffer A : L2 (size=2 * 1.5)", "LEX04", "1.5"),
    ("program p\nconst A = 1", "DOC05", "program p"),
    ("loop i in [0..1]:", "DOC06", "loop"),
    ("{AB}r = region(B, 0, 4) elem=i8, shape=[4], layout=C, strides=[1]", "DOC09", "strides=[1]"),
    ("{AB}r = region(B, 0, 4) elem=i8, layout=C, shape=[4]", "DOC08", "shape=[4]"),
    ("{AB}rellu.async in r out r", "DOC12", "rellu"),
    ("buffer A : L3 (size=4)", "DOC13", "L3"),
    ("buffer A : L2 (size=4, align=2 * 2)", "DOC14", "2 * 2"),
    ("buffer A : L2 (size=4, size=4)", "DOC15", "size"),
    ("{AB}transfer.async(dst=region(B, 0, 4))", "DOC18", "transfer"),
    ("{AB}transfer.sync(src=region(A, 0, 4), dst=region(B, 0, 4))", "DOC23", "dst"),
    ("const A = 1\nconst A = 2", "CST01", "A"),
    ("const A = 1 + 7 / (2 - 2)", "CST06", "(2 - 2)"),
    ("const A : i32 = 4", "CST14", ": i32"),
    ("const A = 1 + (9223372036854775807 * 2)", "CST16", "9223372036854775807 * 2"),
    ("{AB}r = region(C, 0, 4)", "NAM01", "C"),
    ("{AB}wait(A)", "NAM03", "A"),
    ("buffer A : L1[3] (size=4)", "BUF05", "L1[3]"),
    ("buffer A : L2 (size=4 - 8)", "BUF01", "4 - 8"),
    ("buffer A : L2 (size=4, align=3)", "BUF03", "3"),
    ('include "nope.nem"', "INC02", '"nope.nem"'),
    ("device nope\nprogram p:", "DVD01", "nope"),
    ("device d extends e {\n}", "INH07", "e"),
    ("device d extends d {\n}", "INH09", "d"),
    ("{BASE}device d extends nem_baseline_1_0 {\n topology {\n }\n}", "DEV10", "topology"),
    ("{BASE}device d extends nem_baseline_1_0 {\n opcode.extended { a<f32>.b }\n}",
     "DEV14", "a<f32>.b"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "code", "underlined"), UNDERLINED)
def test_a_finding_underlines_no_more_than_what_is_wrong(
    text: str, code: str, underlined: str
) -> None:
    buffers = "buffer A : DDR (size=4)\nbuffer B : L2 (size=4)\n"
    text = text.replace("{AB}", buffers).replace("{BASE}", BASELINE)
    source = Source("f.nem", text)
    found = check_source(source, CheckOptions(strict=code == "DOC23")).diagnostics
    spans = [d.span for d in found if d.code == code]
    assert [text[span.start : span.end] for span in spans] == [underlined]


@pytest.mark.parametrize(
    ("region", "code"),
    [
        ("region(A, 0, 17)", "EXT01"),
        ("region(A, 0, 15) elem=i8, shape=[16], layout=C", "EXT02"),
        ("region(A, 0, 2) elem=i4, shape=[5], layout=C", "EXT03"),
    ],
)
def test_buf04_a_region_that_does_not_fit_is_reported_by_its_own_rule(
    region: str, code: str
) -> None:
    text = f"buffer A : L2 (size=16)\nr = {region}\n"
    found = check_source(Source("r.nem", text), CheckOptions()).diagnostics
    assert [d.code for d in found] == [code]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("(3 - 10) / 2", -3),
        ("7 / -2", -3),
        ("-7 / -2", 3),
        ("(3 - 10) mod 2", -1),
        ("7 mod -2", 1),
        ("-7 mod -2", -1),
        ("6 / 3", 2),
        ("-6 mod 3", 0),
    ],
)
def test_cst13_division_truncates_and_the_remainder_has_the_dividends_sign(
    expression: str, value: int
) -> None:
    # The size is 1 exactly when the expression has the value; 0 and 2 are both found out.
    low = f"buffer A : L2 (size={expression} - ({value}) + 1)\n"
    high = f"buffer B : L2 (size=({value}) - ({expression}) + 1)\n"
    assert check_source(Source("d.nem", low + high), CheckOptions()).diagnostics == ()


def test_doc25_more_than_a_thousand_findings_are_cut_and_it_says_so() -> None:
    text = "".join(f"buffer B{n} : L2 (size=x)\n" for n in range(1500))
    found = check_source(Source("many.nem", text), CheckOptions()).diagnostics
    assert [d.code for d in found] == ["CST15"] * 1000 + ["DOC25"]


def test_a_chain_of_lets_cannot_double_without_end() -> None:
    lines = ["buffer B : DDR (size=64)", "loop i in [0..1]:", "let a0 = i mod 2"]
    lines += [f"let a{n + 1} = (a{n} + a{n}) mod 7" for n in range(60)]
    lines += ["r = region(B, a60, 4)", "endloop"]
    found = check_source(Source("lets.nem", "\n".join(lines)), CheckOptions()).diagnostics
    assert [d.code for d in found] == ["DOC20"]


def test_a_syntax_error_leaves_races_unjudged() -> None:
    text = "buffer A : DDR (size=8)\nbuffer B : DDR (size=8)\nwait()\n"
    text += "t = transfer.async(dst=region(B, 0, 8), src=region(A, 0, 8))\n"
    text += "u = transfer.async(dst=region(B, 0, 8), src=region(A, 0, 8))\n"
    found = check_source(Source("s.nem", text), CheckOptions()).diagnostics
    assert [d.code for d in found] == ["DOC07"]
