"""Programs in files: read as they were saved, and read so that nothing of them runs."""

from __future__ import annotations

import io
import json
import pickle
import time
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nacre.base.diagnostics import InputError
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.torch.importer import from_torch
from nacre.core.torch.pt2.size_expressions import ExpressionBudget
from tests.core.torch.programs import Function, findings, open_program
from tests.effort import scaled

torch = pytest.importorskip("torch")

Loose = Any
Entries = dict[str, bytes]
MODEL = "models/model.json"
WEIGHTS = "data/weights/model_weights_config.json"
CONSTANTS = "data/constants/model_constants_config.json"
X = torch.randn(2, 4, generator=torch.Generator().manual_seed(4))


class Model(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
        self.two.weight = self.one.weight
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Loose) -> Loose:
        self.calls += 1
        return {"y": self.two(torch.relu(self.one(x))) + torch.tensor([1.0, 2, 3, 4])}


def stored(program: Loose) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own
        torch.export.save(program, buffer)
    return buffer.getvalue()


@pytest.fixture(scope="module")
def saved() -> bytes:
    torch.manual_seed(5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return stored(torch.export.export(Model(), (X,)))


def changed(raw: bytes, change: Callable[[Entries], None]) -> bytes:
    """The archive with other entries; names are without the folder."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        entries = {
            info.filename.partition("/")[2]: archive.read(info) for info in archive.infolist()
        }
    change(entries)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in entries.items():
            archive.writestr(f"archive/{name}", data)
    return buffer.getvalue()


def edited(entry: str, change: Callable[[Loose], None]) -> Callable[[Entries], None]:
    """A change of an entry of JSON."""

    def apply(entries: Entries) -> None:
        value = json.loads(entries[entry])
        change(value)
        entries[entry] = json.dumps(value).encode()

    return apply


def code_of(path: Path) -> tuple[str, str]:
    ((code, message, help_),) = findings(path)
    assert help_
    return code, message


def test_a_saved_program(tmp_path: Path, saved: bytes) -> None:
    path = tmp_path / "model.pt2"
    path.write_bytes(saved)
    module = from_torch(path)
    assert list(module.input_types) == ["calls", "x"]
    torch.manual_seed(5)
    with torch.no_grad():
        expected = Model()(X)["y"].numpy()
    np.testing.assert_allclose(evaluate(module, {"x": X.numpy()})[0], expected, rtol=1e-5)
    matrices = [op for op in module if op.opcode == "ConstTensor" and op.type.shape == (4, 4)]
    assert len(matrices) == 1


def test_a_saved_program_with_open_sizes(tmp_path: Path) -> None:
    path = tmp_path / "open.pt2"
    path.write_bytes(stored(open_program()))
    assert code_of(path)[0] == "TCH02"
    module = from_torch(str(path), shapes={"xs_0": (7, 4)})
    assert module.output_types[0].shape == (7, 7)


@settings(max_examples=scaled(15))
@given(part=st.floats(0, 0.999))
def test_a_file_that_is_cut_short(saved: bytes, tmp_path_factory: Loose, part: float) -> None:
    path = tmp_path_factory.mktemp("cut") / "cut.pt2"
    path.write_bytes(saved[: int(len(saved) * part)])
    assert code_of(path)[0] == "TCH03"


def test_files_of_another_kind(tmp_path: Path) -> None:
    path = tmp_path / "other.pt2"
    assert code_of(path) == ("TCH03", "cannot read the file: No such file or directory")
    assert code_of(tmp_path) == ("TCH03", "cannot read the file: Is a directory")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("word/document.xml", "<a/>")
    assert code_of(path) == ("TCH03", "this is no program of `torch.export.save`")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/archive_format", "pt2" * 1000)
    message = "entries of the archive are compressed or overlap, expected plain ones"
    assert code_of(path) == ("TCH03", message)
    torch.save({"w": torch.ones(2)}, path)
    assert code_of(path)[0] == "TCH03"


@settings(max_examples=scaled(20))
@given(place=st.floats(0, 0.9999), bit=st.integers(0, 7))
def test_a_file_with_a_bit_that_flipped(
    saved: bytes, tmp_path_factory: Loose, place: float, bit: int
) -> None:
    raw = bytearray(saved)
    raw[int(len(raw) * place)] ^= 1 << bit
    path = tmp_path_factory.mktemp("flipped") / "model.pt2"
    path.write_bytes(raw)
    try:
        assert len(from_torch(path).outputs) == 1
    except InputError as error:
        found = [(d.code[:3], bool(d.help)) for d in error.diagnostics]
        assert set(found) == {("TCH", True)}


def _overlapping(raw: bytes, copies: int) -> bytes:
    """The archive with a directory that names its largest entry again and again."""
    source = zipfile.ZipFile(io.BytesIO(raw))
    largest = max(source.infolist(), key=lambda info: info.file_size)
    buffer = io.BytesIO(raw)
    with zipfile.ZipFile(buffer, "a") as archive:
        for copy in range(copies):
            info = zipfile.ZipInfo(f"archive/data/weights/weight_{100 + copy}")
            for name in ("CRC", "compress_size", "file_size", "header_offset"):
                setattr(info, name, getattr(largest, name))
            archive.filelist.append(info)
            archive.NameToInfo[info.filename] = info
        archive._didModify = True  # type: ignore[attr-defined]
    return buffer.getvalue()


def test_a_file_that_would_be_far_larger_in_memory(tmp_path: Path, saved: bytes) -> None:
    path = tmp_path / "bomb.pt2"
    path.write_bytes(_overlapping(saved, 2000))
    code, message = code_of(path)
    assert code == "TCH03"
    assert "overlap" in message


@pytest.mark.parametrize("entry", [WEIGHTS, CONSTANTS])
def test_a_tensor_that_is_larger_than_the_file(tmp_path: Path, saved: bytes, entry: str) -> None:
    """Elements that lie on each other take no room in the file, but in memory they would."""

    def broadcast_to(config: Loose) -> None:
        meta = next(iter(config["config"].values()))["tensor_meta"]
        meta["sizes"] = [{"as_int": 1 << 20}, {"as_int": 1 << 20}]
        meta["strides"] = [{"as_int": 0}, {"as_int": 0}]

    path = tmp_path / "model.pt2"
    path.write_bytes(changed(saved, edited(entry, broadcast_to)))
    code, message = code_of(path)
    assert code == "TCH03"
    assert "elements, more than the file has bytes" in message


def test_a_line_of_the_model_is_kept_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "model.pt2"
    path.write_bytes(stored(torch.export.export(Function(torch.lgamma), (X,))))
    assert " at programs.py:" in code_of(path)[1]


@pytest.mark.heavy("PyTorch exports a network")
def test_layers_have_the_names_that_the_module_has(tmp_path: Path) -> None:
    path = tmp_path / "model.pt2"
    layers = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())
    model = torch.nn.Sequential(layers, torch.nn.ModuleList([torch.nn.Linear(3, 2)])[0])
    path.write_bytes(stored(torch.export.export(model, (X,))))
    names = [from_torch(*given).labels for given in ((model, (X,)), (path,))]
    assert names[0] is not None
    assert names[1] is not None
    assert dict(names[0].nodes) == dict(names[1].nodes)
    assert {"0.0", "0.1", "1"} <= set(names[1].nodes.values())


@pytest.mark.parametrize(
    "stack",
    ["", "one", "a,b", "a,b,c,d", "a(,b,c", "a,b,c;", ";" * 1000, 7, None, ["a,b,c"],
     "a,b,torch.nn.Linear" * 5000],
    ids=lambda stack: str(stack)[:20],
)  # fmt: skip
def test_odd_modules_around_a_node_are_left_out(
    tmp_path: Path, saved: bytes, stack: object
) -> None:
    """The names of layers are lost then, and nothing else."""

    def other_stack(model: Loose) -> None:
        for node in model["graph_module"]["graph"]["nodes"]:
            node["metadata"]["nn_module_stack"] = stack

    path = tmp_path / "model.pt2"
    path.write_bytes(changed(saved, edited(MODEL, other_stack)))
    found = from_torch(path).labels
    assert found is not None
    assert "linear" in found.nodes.values()


def test_a_trace_cannot_drive_the_terminal(tmp_path: Path) -> None:
    def changed_trace(model: Loose) -> None:
        for node in model["graph_module"]["graph"]["nodes"]:
            trace = 'File "a/\x1b[31mmodel.py", line 7, in forward'
            node["metadata"]["stack_trace"] = trace

    path = tmp_path / "model.pt2"
    raw = stored(torch.export.export(Function(torch.lgamma), (X,)))
    path.write_bytes(changed(raw, edited(MODEL, changed_trace)))
    message = code_of(path)[1]
    assert "model.py:7" in message
    assert "\x1b" not in message


class Bomb:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Loose:
        return Path.write_text, (self.path, "it ran")


def test_example_inputs_are_not_unpickled(tmp_path: Path, saved: bytes) -> None:
    mark, path = tmp_path / "mark", tmp_path / "model.pt2"
    bomb = pickle.dumps(Bomb(mark))
    path.write_bytes(changed(saved, lambda e: e.update({"data/sample_inputs/model.pt": bomb})))
    assert len(from_torch(path).outputs) == 1
    assert not mark.exists()


def _all(value: Loose, key: str) -> list[Loose]:
    """Every object of JSON that has a key."""
    found = []
    if isinstance(value, dict):
        found += [value] if key in value else []
        value = list(value.values())
    if isinstance(value, list):
        found += [one for part in value for one in _all(part, key)]
    return found


def _with_expression(model: Loose) -> None:
    meta = next(iter(model["graph_module"]["graph"]["tensor_values"].values()))
    expression = {"expr_str": "__import__('os').system('true')", "hint": None}
    meta["sizes"] = [{"as_expr": expression}]


def _with_sizes(*texts: object) -> Callable[[Loose], None]:
    """Sizes of values that are computed, the texts in turn."""

    def change(model: Loose) -> None:
        values = model["graph_module"]["graph"]["tensor_values"]
        for index, text in enumerate(texts):
            meta = {**next(iter(values.values()))}
            meta["sizes"] = [{"as_expr": {"expr_str": text, "hint": {"as_int": 4}}}]
            values[f"more_{index}"] = meta

    return change


def _of_many(function: str, count: int, form: str = "s{0}") -> str:
    return f"{function}({', '.join(form.format(i, i + 1) for i in range(count))})"


HOSTILE_SIZES: dict[str, list[object]] = {
    "the largest of many": [_of_many("Max", 400)],
    "the least of many": [_of_many("Min", 60, "Symbol('s{0}', positive=True, integer=True)")],
    "the largest of sums": [_of_many("Max", 20, "s{0}*s{1}+{0}")],
    "largest and least": [f"Max({', '.join(_of_many('Min', 9) for _ in range(9))})"],
    "one in the other": ["Max(s0, " * 90 + "s1" + ")" * 90],
    "divisions": ["FloorDiv(" * 60 + "s0" + " + 1, 2)" * 60],
    "remainders of products": [
        f"Mod({_of_many('Mul', 9, '(s{0}+s{1}+1)')}, {_of_many('Mul', 8, '(s{0}+2)')})"
    ],
    "many of them": [f"Max({', '.join(f's{i + j}' for j in range(9))})" for i in range(50)],
    "many small ones": [f"FloorDiv(FloorDiv(s0 + {i}, 3) + s1, 7)" for i in range(3000)],
    "the largest of multiples": [_of_many("Max", 89, "{1}*s0")],
    "many of four": [f"Max({', '.join(f's{i + j}' for j in range(4))})" for i in range(100)],
    "a power of a power": ["2**(2**40)"],
    "powers": ["s0**9**9**9"],
    "a power in words": ["Pow(Pow(s0, Integer(9)), Integer(99999))"],
    "a factorial": ["factorial(1000000)"],
    "cases": ["Piecewise((s0, True), (s1, False))"],
    "parentheses": ["(" * 1900 + "s0" + ")" * 1900],
    "signs": ["-" * 3000 + "s0"],
    "a large number": ["Mod(s0, " + "9" * 3000 + ")"],
    "a sum of many": ["+".join(f"s{i}" for i in range(600))],
    "a text of a megabyte": ["s0+" * 400_000 + "s0"],
    "no text": [["s0"]],
}


@pytest.mark.parametrize("name", HOSTILE_SIZES)
def test_a_size_that_would_keep_sympy_busy(tmp_path: Path, saved: bytes, name: str) -> None:
    path = tmp_path / "model.pt2"
    path.write_bytes(changed(saved, edited(MODEL, _with_sizes(*HOSTILE_SIZES[name]))))
    began = time.process_time()
    code, message = code_of(path)
    assert code == "TCH05"
    assert message.startswith("a size is ")
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    "text",
    [
        "Add(FloorDiv(Add(Symbol('s0', positive=True, integer=True), Integer(-1)), Integer(2)), 1)",
        "4*s0*s1 + (s0 - 1)*FloorDiv(s1, 2)",
        "Max(1, Min(s0, s1 + 2), s2)",
        "Mul(Pow(Symbol('s0', integer=True), Integer(2)), Rational(1, 2))",
        "FloorDiv(FloorDiv(FloorDiv(s0 + 1, 2) + 1, 2) + 1, 2)*Mod(s1, 3)",
    ],
)
def test_a_size_as_models_have_it_is_let_through(text: str) -> None:
    assert ExpressionBudget().problem(text) is None


OPEN = "Symbol('s31', positive=True, integer=True)"


def _open(text: str) -> dict[str, object]:
    return {"as_expr": {"expr_str": text, "hint": {"as_int": 3}}}


def _unused(*texts: str) -> Callable[[Loose], None]:
    """Values, ranges and numbers that nothing of the graph names."""

    def change(model: Loose) -> None:
        graph = model["graph_module"]["graph"]
        _with_sizes(*texts)(model)
        graph["sym_int_values"].update({f"n{i}": _open(text) for i, text in enumerate(texts)})
        ranges = {f"s{i}": {"min_val": 2, "max_val": 9} for i in range(len(texts))}
        model["range_constraints"].update(ranges)

    return change


@pytest.mark.heavy("PyTorch exports a network")
@pytest.mark.parametrize("text", ["FloorDiv(s0 + 1, 2)", OPEN, "Mod(s0, 0)"])
def test_sizes_that_nothing_asks_for_cost_nothing(tmp_path: Path, saved: bytes, text: str) -> None:
    path = tmp_path / "model.pt2"
    path.write_bytes(changed(saved, edited(MODEL, _unused(*[text] * 5000))))
    began = time.process_time()
    assert list(from_torch(path).input_types) == ["calls", "x"]
    assert time.process_time() - began < 4  # 6 s more before


def _asked(model: Loose) -> None:
    """Numbers that the graph names, all with one expression."""
    graph = model["graph_module"]["graph"]
    for index in range(3000):
        name = f"n{index}"
        graph["nodes"].append({**graph["nodes"][0], "name": name,
                               "outputs": [{"as_sym_int": {"as_name": name}}]})  # fmt: skip
        graph["sym_int_values"][name] = _open(OPEN)


def _axes(model: Loose) -> None:
    value = model["graph_module"]["graph"]["tensor_values"]["x"]
    value.update(sizes=[_open(OPEN)] * 60, strides=[{"as_int": 1}] * 60)


def _long_name(model: Loose) -> None:
    text = json.dumps(model).replace('"x"', f'"{"x" * 100_000}"')
    model.clear()
    model.update(json.loads(text))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_asked, "and with all places before it"),
        (_axes, "a value has 60 open sizes, expected at most 8"),
        (_long_name, "a name has 100,000 characters, expected at most 1,000: `xxx"),
    ],
)
def test_a_graph_that_would_keep_pytorch_busy(
    tmp_path: Path, saved: bytes, change: Callable[[Loose], None], words: str
) -> None:
    path = tmp_path / "model.pt2"
    path.write_bytes(changed(saved, edited(MODEL, change)))
    began = time.process_time()
    code, message = code_of(path)
    assert (code, words in message) == ("TCH05", True), message
    assert time.process_time() - began < 3
    assert len(message) < 400


def test_a_size_that_is_repeated_is_read_at_the_inputs_only(tmp_path: Path) -> None:
    def repeat(model: Loose) -> None:
        graph = model["graph_module"]["graph"]
        name = graph["nodes"][0]["outputs"][0]["as_tensor"]["name"]
        graph["tensor_values"][name]["sizes"] = [_open(OPEN)] * 4000

    path = tmp_path / "open.pt2"
    path.write_bytes(changed(stored(open_program()), edited(MODEL, repeat)))
    began = time.process_time()
    findings(path)
    assert time.process_time() - began < 3  # 4000 sizes took 7 s before


def _with_layout(model: Loose) -> None:
    spec = json.dumps(
        [1, {"type": "collections.defaultdict", "context": "{}", "children_spec": []}]
    )
    _all(model, "in_spec")[0]["in_spec"] = spec


def _with_call(model: Loose) -> None:
    model["graph_module"]["graph"]["nodes"][0]["target"] = "torch.ops.inductor._alloc_from_pool"


def _payload(**given: object) -> Callable[[Loose], None]:
    return lambda config: next(iter(config["config"].values())).update(given)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (edited(MODEL, _with_expression), "a size is \"__import__('os')"),
        (edited(MODEL, _with_layout), "`collections.defaultdict`"),
        (edited(MODEL, _with_call), "`torch.ops.inductor._alloc_from_pool`"),
        (edited(WEIGHTS, _payload(use_pickle=True)), "is a pickled object"),
        (edited(CONSTANTS, _payload(path_name="opaque_obj_0")), "is a pickled object"),
        (edited(CONSTANTS, _payload(path_name="custom_obj_0")), "is a pickled object"),
        (edited(WEIGHTS, _payload(path_name="../../x")), "is a pickled object"),
        (lambda e: e.update({"data/aotinductor/model/x.so": b"\x7fELF"}), "x.so`, expected only"),
    ],
)  # fmt: skip
def test_a_file_that_would_run_code(
    tmp_path: Path, saved: bytes, change: Callable[[Entries], None], words: str
) -> None:
    path = tmp_path / "model.pt2"
    path.write_bytes(changed(saved, change))
    code, message = code_of(path)
    assert code == "TCH05"
    assert words in message


@pytest.mark.parametrize(
    "change",
    [
        edited(MODEL, lambda model: model.clear()),
        edited(MODEL, lambda model: model["graph_module"]["graph"].update(nodes=3)),
        edited(WEIGHTS, lambda config: config.update(config=[1])),
        lambda e: e.update({MODEL: b"{"}),
        lambda e: e.update({MODEL: b"[" * 100_000}),
        lambda e: e.update({"data/weights/weight_0": b"\0\0\0\0"}),
        lambda e: e.pop("data/weights/weight_0"),
        lambda e: e.pop(WEIGHTS),
    ],
)
def test_a_file_that_is_malformed(
    tmp_path: Path, saved: bytes, change: Callable[[Entries], None]
) -> None:
    path = tmp_path / "model.pt2"
    path.write_bytes(changed(saved, change))
    assert code_of(path)[0] == "TCH03"


@settings(max_examples=scaled(20))
@given(seed=st.integers(0, 1 << 30))
def test_a_graph_with_other_words(saved: bytes, tmp_path_factory: Loose, seed: int) -> None:
    """Some value of the JSON takes the place of another: a finding or a module, nothing else."""
    random = np.random.default_rng(seed)

    def mixed(model: Loose) -> None:
        places: list[tuple[Loose, Loose]] = []
        waiting = [model["graph_module"]]
        while waiting:
            value = waiting.pop()
            pairs = value.items() if isinstance(value, dict) else enumerate(value)
            for key, part in pairs:
                places.append((value, key))
                if isinstance(part, dict | list):
                    waiting.append(part)
        (one, a), (other, b) = (places[i] for i in random.integers(len(places), size=2))
        one[a] = json.loads(json.dumps(other[b]))

    path = tmp_path_factory.mktemp("mixed") / "model.pt2"
    path.write_bytes(changed(saved, edited(MODEL, mixed)))
    found = ["TCH"]
    try:
        from_torch(path)
    except InputError as error:
        found = [d.code[:3] for d in error.diagnostics]
    assert set(found) == {"TCH"}


def test_a_value_that_many_nodes_give_is_refused_at_once(saved: bytes, tmp_path: Path) -> None:
    def repeat(model: Loose) -> None:
        nodes = model["graph_module"]["graph"]["nodes"]
        nodes[:] = [*nodes[:1] * 5000, *nodes[1:]]

    path = tmp_path / "m.pt2"
    path.write_bytes(changed(saved, edited(MODEL, repeat)))
    start = time.process_time()
    with pytest.raises(InputError, match="two nodes give `"):
        from_torch(path)
    assert time.process_time() - start < 5


def test_what_pytorch_cannot_read_is_told_by_its_cause(saved: bytes, tmp_path: Path) -> None:
    def break_(model: Loose) -> None:
        model["graph_module"]["graph"]["nodes"][0]["target"] = "torch.ops.aten.no_such.default"

    path = tmp_path / "m.pt2"
    path.write_bytes(changed(saved, edited(MODEL, break_)))
    with pytest.raises(InputError) as error:
        from_torch(path)
    (found,) = error.value.diagnostics
    assert "no_such" in found.message
