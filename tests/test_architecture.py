"""Promises about the code as a whole: who imports whom, sizes, output, tables, generated pages."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from statistics import median
from types import ModuleType

import pytest

from nacre.base.elements import ELEMENT_TYPES
from nacre.base.rules import RULES, Check
from nacre.base.source import Source
from nacre.kernels.registry import PRIMITIVES
from nacre.nem.checks.engine import CheckOptions, check_source
from nacre.nem.checks.rule_sets import DEVICE_RULES, FAMILY_RULES, ORDER_RULES, STATEMENT_RULES
from nacre.nem.model.builtins import builtin, builtin_file, builtin_names
from nacre.nem.model.families import standard_families
from nacre.nem.model.target import builtin_device
from nacre.nem.spec.decorators import DECORATORS
from nacre.nem.spec.opcodes import OPCODES
from nacre.nem.spec.units import UNITS
from tests.effort import every
from tests.source_trees import ROOT, SOURCES, SRC, functions_in, nodes, tree_of, trees

GENERATED = SRC / "nacre/nem/spec/opcode_table.py"


# Who may import whom

_BINDER = {"tcb", "bind", "tcbcheck"}
ROOMS = {
    "base": {"base"},
    "kernels": {"base", "kernels"},
    "core": {"base", "kernels", "core"},
    "nem": {"base", "kernels", "nem"},
    "nac": {"base", "kernels", "core", "nac"},
    "compile": {"base", "kernels", "core", "nem", "nac", "compile"},
    "tcb": {"base", "kernels", "tcb"},
    "bind": {"base", "nem", "tcb", "bind"},
    "tcbcheck": {"base", "nem", "tcb", "tcbcheck"},
    "viz": {"base", "kernels", "core", "nem", "nac", "compile", *_BINDER, "viz"},
    "calibrate": {"base", "kernels", "core", "nem", "nac", "compile", "calibrate"},
    "llm": {"base", "kernels", "core", "nem", "nac", "compile", "llm"},
    "lsp": {"base", "nem", "lsp"},
    "dap": {"base", "nem", "dap"},
    "cli": {
        "base",
        "kernels",
        "core",
        "nem",
        "nac",
        "compile",
        "calibrate",
        "llm",
        *_BINDER,
        "binding",
        "viz",
        "lsp",
        "dap",
        "cli",
    },
}
# The front doors: what users import, and `python -m nacre`.
DOORS = {
    "nacre": (ROOMS["viz"] - {"viz"}) | {"binding", "calibrate", "llm"},
    "nacre.__main__": {"cli"},
    "nacre.binding": {"base", "nem", "compile", *_BINDER, "viz"},
    "nacre._version": set[str](),
    "neminterp": {"base", "nem"},
}
# Inside nem, in the order of the road from text to plan.
NEM_ROAD = ("spec", "syntax", "bytecode", "model", "plan")
NEM_ROOMS = {
    **{room: set(NEM_ROAD[: index + 1]) for index, room in enumerate(NEM_ROAD)},
    "checks": {*NEM_ROAD, "checks"},
    "run": {*NEM_ROAD, "run"},
    "mlir": {"spec", "syntax", "mlir"},
    "api": {*NEM_ROAD, "checks", "run", "mlir", "api"},
    "": {"api"},  # nem/__init__.py
}


def imports(tree: ast.AST) -> Iterator[str]:
    """Every module of ours that a tree names, wherever the import stands."""
    for node in nodes(tree, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in SOURCES)
    for source in nodes(tree, ast.ImportFrom):
        if source.module in SOURCES:
            inner = (f"{source.module}.{alias.name}" for alias in source.names)
            yield from (name if name in SOURCES else source.module for name in inner)


def room_of(module: str) -> str:
    return module.split(".")[1] if module.count(".") else ""


def nem_room_of(module: str) -> str:
    return module.split(".")[2] if module.count(".") >= 2 else ""


# Inside compile: what all stages share, the stages in their order, and what stands on them.
COMPILE_SHARED = (
    *("rules", "options", "quantise_stages", "target", "geometry", "plan_digest", "request"),
    *("accuracy", "sampling"),
)
COMPILE_STAGES = (
    *("legalise", "quantise", "partition", "program", "tiling", "placement", "schedule"),
    "emission",
)
COMPILE_RESULTS = {
    *("bundle", "storage", "plan_cache", "estimate", "blame", "labelled", "pipeline", "api"),
}


def compile_room_of(module: str) -> str:
    return module.split(".")[2] if module.count(".") >= 2 else ""


def test_stages_of_the_compiler_know_only_those_before_them() -> None:
    allowed: dict[str, set[str]] = {}
    for at, stage in enumerate(COMPILE_STAGES):
        allowed[stage] = {*COMPILE_SHARED, *COMPILE_STAGES[: at + 1]}
    for shared in COMPILE_SHARED:
        allowed[shared] = set(COMPILE_SHARED)
    rooms = {compile_room_of(m) for m in SOURCES if room_of(m) == "compile"} - {""}
    assert rooms == {*allowed, *COMPILE_RESULTS}
    upward = [
        (module, target)
        for module, path in SOURCES.items()
        if room_of(module) == "compile" and compile_room_of(module) in allowed
        for target in imports(tree_of(path))
        if room_of(target) == "compile"
        and compile_room_of(target) not in allowed[compile_room_of(module)]
    ]
    assert upward == []


# Decision 0019: what keeps every bit knows nothing of what may change the last ones.
def test_exact_rewrites_know_nothing_of_the_others() -> None:
    exact = ("nacre.core.rewrite.exact", "nacre.core.canonical", "nacre.core.passes.runner")
    others = ("nacre.core.rewrite.inexact", "nacre.core.rewrite.recover")
    found = [
        (module, target)
        for module, path in SOURCES.items()
        if module.startswith(exact)
        or module in ("nacre.core.canonical", "nacre.core.passes.runner")
        for target in imports(tree_of(path))
        if target.startswith(others)
    ]
    assert found == []
    assert all(any(module.startswith(part) for module in SOURCES) for part in (*exact, *others))


MAX_FOLDER_FILES = 25


@pytest.mark.parametrize("root", ["src", "tests", "tools", "benchmarks"])
def test_no_folder_has_more_files_than_a_glance_takes_in(root: str) -> None:
    folders = {path.parent for path in (ROOT / root).rglob("*.py")}
    counts = {str(f.relative_to(ROOT)): len(list(f.glob("*.py"))) for f in folders}
    assert {name: count for name, count in counts.items() if count > MAX_FOLDER_FILES} == {}


def test_every_room_is_known() -> None:
    rooms = {room_of(module) for module in SOURCES if module not in DOORS}
    assert rooms <= ROOMS.keys()
    nem_rooms = {nem_room_of(module) for module in SOURCES if room_of(module) == "nem"}
    assert nem_rooms <= NEM_ROOMS.keys()


def upward_imports(module: str) -> list[tuple[str, str]]:
    allowed = DOORS[module] if module in DOORS else ROOMS[room_of(module)]
    seen = {target for target in imports(tree_of(SOURCES[module])) if target != "nacre._version"}
    upward = {target for target in seen if room_of(target) not in allowed}
    if room_of(module) == "nem":
        inside = {target for target in seen if room_of(target) == "nem"}
        upward |= {t for t in inside if nem_room_of(t) not in NEM_ROOMS[nem_room_of(module)]}
    return [(module, target) for target in sorted(upward)]


@pytest.mark.heavy("every file is parsed")
@pytest.mark.parametrize("room", [*ROOMS, ""])
def test_imports_point_downwards(room: str) -> None:
    modules = [module for module in SOURCES if room_of(module) == room]
    assert [pair for module in modules for pair in upward_imports(module)] == []


def test_the_import_rules_catch_what_they_forbid() -> None:
    tree = ast.parse(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from nacre.cli import main\n"
        "def f() -> None:\n    from nacre.nem.checks import engine\n"
    )
    assert sorted(imports(tree)) == ["nacre.cli.main", "nacre.nem.checks.engine"]
    assert "cli" not in ROOMS["base"] | ROOMS["nem"] | ROOMS["lsp"] | ROOMS["viz"]
    assert "checks" not in NEM_ROOMS["plan"] | NEM_ROOMS["run"]


# What loads modules by their names, and whose strings so are imports too.
LOADERS = {"import_module", "load_on_use", "load_all"}


def called(tree: ast.AST) -> set[str]:
    """The last names of all functions that a tree calls."""
    functions = [node.func for node in nodes(tree, ast.Call)]
    return {getattr(f, "attr", getattr(f, "id", "")) for f in functions}


def imports_by_name(module: str, tree: ast.AST) -> Iterator[str]:
    """The modules of ours that a loader is given as text, whole or relative to a package."""
    if not called(tree) & LOADERS:
        return
    constants = [node.value for node in nodes(tree, ast.Constant)]
    words = {word for word in constants if isinstance(word, str)}
    packages = {word.rstrip(".") for word in words if word.endswith(".")} | {module}
    yield from (word for word in words if "." in word and word in SOURCES)
    if "load_all" in called(tree):
        folders = words & SOURCES.keys()
        yield from (m for m in SOURCES if m.rpartition(".")[0] in folders and m != module)
    for package in packages:
        yield from (name for word in words if (name := f"{package}.{word}") in SOURCES)


def import_graph() -> dict[str, set[str]]:
    """Who imports whom, at load time, in functions, for types alone, or by name."""
    graph = {module: set(imports(tree)) for module, tree in trees().items()}
    for module, targets in graph.items():
        targets |= set(imports_by_name(module, tree_of(SOURCES[module])))
    return graph


def circle_of(graph: dict[str, set[str]]) -> list[str]:
    """Modules that import each other in a circle; none where there is no such."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle
    return []


@pytest.mark.heavy("every file is parsed")
def test_modules_do_not_import_each_other_in_circles() -> None:
    assert circle_of(import_graph()) == []


def test_circles_are_found_wherever_the_imports_stand() -> None:
    """Each of these is a way to the module that is imported, however late it is taken."""
    ways = (
        "from nacre.core import module",
        "import nacre.core.module",
        "def f() -> None:\n    from nacre.core.module import Module",
        "if TYPE_CHECKING:\n    from nacre.core.module import Module",
        'load_on_use(__name__, {"Module": "module"})',
        'importlib.import_module("nacre.core.module")',
        'importlib.import_module(f"nacre.core.{name}")\nNAMES = ("module",)',
        'load_all("nacre.core")',
    )
    for way in ways:
        tree = ast.parse(way)
        targets = {*imports(tree), *imports_by_name("nacre.core", tree)}
        assert "nacre.core.module" in targets, way
        assert circle_of({"nacre.core": targets, "nacre.core.module": {"nacre.core"}}), way
    assert circle_of({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


HEAVY = ("torch", "onnx", "onnxruntime", "numba", "ml_dtypes", "rich", "click")


# The interpreter hands out arrays, so it may load NumPy.
@pytest.mark.parametrize(("package", "heavy"), [("nacre", (*HEAVY, "numpy")), ("neminterp", HEAVY)])
def test_importing_the_package_loads_nothing_heavy(package: str, heavy: tuple[str, ...]) -> None:
    code = f"import sys, {package}; print([m for m in {heavy} if m in sys.modules])"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert run.stdout == "[]\n"


# Output


# Their `dump_...` methods print by specification.
PRINTERS = {"nacre.nem.run.sessions.inspection", "nacre.nem.api.interpreter"}


def output_in(tree: ast.AST) -> Iterator[ast.Attribute | ast.Name]:
    yield from (node for node in nodes(tree, ast.Name) if node.id == "print")
    for node in nodes(tree, ast.Attribute):
        name = node.value.id if isinstance(node.value, ast.Name) else ""
        if name == "click" or (name, node.attr) in {("sys", "stdout"), ("sys", "exit")}:
            yield node


@pytest.mark.heavy("every file is parsed")
@pytest.mark.parametrize("room", [room for room in (*ROOMS, "") if room != "cli"])
def test_nothing_but_the_command_line_writes_output(room: str) -> None:
    places = [
        f"{path}:{node.lineno}"
        for module, path in SOURCES.items()
        if room_of(module) == room and module not in PRINTERS
        for node in output_in(tree_of(path))
    ]
    assert places == []


# Sizes

MAX_FILE_LINES = {"src": 400, "tools": 400, "tests": 600, "benchmarks": 400}
MAX_FUNCTION_LINES = 60
MEDIAN_FUNCTION_LINES = 7
MOST_FUNCTION_LINES = 35  # 99 of 100 are shorter
MAX_CLASS_LINES = 300


def lines_of(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def oversized(path: Path, most_lines: int) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    if text.count("\n") > most_lines:
        yield f"{path}: {text.count(chr(10))} lines"
    tree = tree_of(path)
    for node in (*functions_in(tree), *nodes(tree, ast.ClassDef)):
        most = MAX_CLASS_LINES if isinstance(node, ast.ClassDef) else MAX_FUNCTION_LINES
        if lines_of(node) > most:
            yield f"{path}:{node.lineno}: {node.name} has {lines_of(node)} lines"


@pytest.mark.heavy("every file is parsed")
@pytest.mark.parametrize("folder", MAX_FILE_LINES)
def test_files_classes_and_functions_are_short(folder: str) -> None:
    paths = [path for path in sorted((ROOT / folder).rglob("*.py")) if path != GENERATED]
    # The sources are parsed for other tests, too; what else there is has its turn with the commits.
    paths = paths if folder == "src" else [*every(4, paths)]
    most = MAX_FILE_LINES[folder]
    assert [found for path in paths for found in oversized(path, most)] == []


@pytest.mark.heavy("every file is parsed")
def test_most_functions_are_a_few_lines() -> None:
    lengths = sorted(lines_of(f) for tree in trees().values() for f in functions_in(tree))
    assert median(lengths) <= MEDIAN_FUNCTION_LINES
    assert lengths[len(lengths) * 99 // 100] < MOST_FUNCTION_LINES


# Tables: every row has what hangs off it


def test_every_opcode_that_computes_has_a_primitive() -> None:
    computed = {name for name, row in OPCODES.items() if row.category != "data_movement"}
    opcodes = {name for name in PRIMITIVES if not name.startswith("core.")}
    assert opcodes == computed - {"compute"}
    assert [name for name in opcodes if not PRIMITIVES[name].examples] == []
    assert all(name == row.name for name, row in PRIMITIVES.items())


@pytest.mark.parametrize("name", OPCODES)
def test_an_opcode_refers_to_families_units_and_operands_that_exist(name: str) -> None:
    opcode = OPCODES[name]
    assert opcode.summary
    assert set(opcode.families) <= standard_families().keys()
    assert set(opcode.eligible_units) <= UNITS.keys()
    assert opcode.unit in UNITS or opcode.unit == "varies"
    variants = {v for family in opcode.families for v in standard_families()[family].variants}
    assert set(opcode.variants) <= variants
    operands = {operand.name for operand in opcode.operands}
    for _, bound in (*opcode.bindings, *opcode.quant_on):
        assert set(bound) <= operands
    assert set(opcode.same_elem) <= operands


@pytest.mark.parametrize("name", DECORATORS)
def test_a_decorator_says_what_it_means_and_where_it_stands(name: str) -> None:
    decorator = DECORATORS[name]
    assert decorator.summary
    assert decorator.targets
    assert decorator.only_opcode is None or decorator.only_opcode in OPCODES
    assert decorator.minimum is None or decorator.argument in ("integer", "index")


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_says_what_it_does_and_some_task_uses_it(name: str) -> None:
    unit = UNITS[name]
    assert unit.role
    runs_tasks = any(name in opcode.eligible_units for opcode in OPCODES.values())
    assert runs_tasks or name in ("SEQ", "WDM")  # these serve other units


@pytest.mark.parametrize("name", ELEMENT_TYPES)
def test_an_element_type_has_an_array_type_and_a_range(name: str) -> None:
    element = ELEMENT_TYPES[name]
    assert element.dtype.itemsize * 8 >= element.bits
    assert element.lowest < element.highest


@pytest.mark.parametrize("name", builtin_names())
def test_a_built_in_device_is_without_fault(name: str) -> None:
    parsed = builtin(builtin_file(name))
    assert parsed is not None
    text = Source(builtin_file(name), parsed.source.text)
    assert check_source(text, CheckOptions(strict=True)).diagnostics == ()
    assert builtin_device(name).name == name


def declares_rules(tree: ast.Module) -> bool:
    called = (node.func for node in nodes(tree, ast.Call))
    return any(isinstance(f, ast.Name) and f.id in ("rule", "declare") for f in called)


def rule_modules() -> set[str]:
    """Those of NEM; Core IR has a catalogue of its own."""
    inside = [m for m in SOURCES if ".rules." in m and room_of(m) == "nem"]
    return {module for module in inside if declares_rules(tree_of(SOURCES[module]))}


def test_the_catalogue_loads_every_module_with_rules() -> None:
    # In a process of its own: here the tests have loaded everything already.
    code = (
        "import sys\nfrom nacre.nem.checks import catalogue\ncatalogue.load()\n"
        "print(*(m for m in sys.modules if '.rules.' in m))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert sorted(rule_modules() - set(run.stdout.split())) == []


def test_every_rule_function_is_asked() -> None:
    modules = [importlib.import_module(name) for name in rule_modules()]
    checks = [value for m in modules for value in vars(m).values() if isinstance(value, Check)]
    every = (*STATEMENT_RULES, *ORDER_RULES, *DEVICE_RULES, *FAMILY_RULES)
    asked = [c.code for c in every if isinstance(c, Check)]
    assert {c.code for c in checks} == set(asked)
    assert len(asked) == len(set(asked))
    assert all(RULES[c.code] is c for c in checks)


# Numbers that users write

_PATTERNS = ("compile", "match", "fullmatch", "search", "sub", "findall", "finditer", "split")
# Texts that a lexer of ASCII let through, bytes, names of ours, and Unicode that is meant.
_DIGITS_ALLOWED = {
    "nacre.base.digits",
    "nacre.base.files",
    "nacre.base.suggest",
    "nacre.calibrate.device_file",
    "nacre.core.aten.handlers.pooling",
    "nacre.core.mlir.export",
    "nacre.nac.tisa.files.byte_ranks",
    "nacre.nac.tisa.patterns.classes",
    "nacre.nem.syntax.buffers",
    "nacre.nem.syntax.devices",
    "nacre.nem.syntax.expressions",
    "nacre.nem.syntax.statement_forms",
}


def _takes_other_digits(call: ast.Call) -> bool:
    """Whether a call finds digits of any script, which `int` reads as numbers."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if name in ("isdigit", "isdecimal", "isnumeric"):
        return True
    if name not in _PATTERNS or not call.args:
        return False
    constants = [n.value for n in ast.walk(call.args[0]) if isinstance(n, ast.Constant)]
    flags = " ".join(ast.unparse(n) for n in (*call.args[1:], *(k.value for k in call.keywords)))
    is_open = any(isinstance(text, str) and "\\d" in text for text in constants)
    return is_open and "re.ASCII" not in flags


def test_numbers_of_users_have_the_digits_0_to_9_only() -> None:
    words = ("isdigit", "isdecimal", "isnumeric", "\\d")
    texts = {name: path.read_text(encoding="utf-8") for name, path in SOURCES.items()}
    taking = {
        name
        for name, text in texts.items()
        if any(word in text for word in words)
        for node in nodes(tree_of(SOURCES[name]), ast.Call)
        if _takes_other_digits(node)
    }
    assert taking <= _DIGITS_ALLOWED, "use [0-9], re.ASCII or nacre.base.digits.is_digits"


# Generated files


def load_tool(name: str) -> ModuleType:
    """A script of tools/, which is no package, as a module."""
    spec = importlib.util.spec_from_file_location(f"tool_{name}", ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("tool", "function", "path"),
    [
        ("generate_opcodes", "render_table", "src/nacre/nem/spec/opcode_table.py"),
        ("generate_opcodes", "render_docs", "docs/reference/opcodes.md"),
        ("generate_docs", "render_rules", "docs/reference/rules.md"),
        ("generate_docs", "render_devices", "docs/reference/devices.md"),
        ("generate_operations", "render_operations", "docs/reference/operations.md"),
        ("generate_plans", "render_plans", "docs/reference/plans.md"),
    ],
)
def test_generated_files_are_fresh(tool: str, function: str, path: str) -> None:
    text = getattr(load_tool(tool), function)()
    assert (ROOT / path).read_text(encoding="utf-8") == text, f"{path} is stale; run `make docs`"


def test_the_generator_says_what_is_stale_and_writes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tool = load_tool("generate_docs")
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    monkeypatch.setattr(tool, "RULES_PAGE", tmp_path / "reference/rules.md")
    monkeypatch.setattr(tool, "DEVICES_PAGE", tmp_path / "reference/devices.md")
    assert tool.main(["--check"]) == 1
    assert capsys.readouterr().out.count("is stale") == 2
    assert list(tmp_path.iterdir()) == []
    assert tool.main([]) == 0
    assert capsys.readouterr().out.count("written") == 2
    assert tool.main(["--check"]) == 0
    assert capsys.readouterr().out == ""


# What is published


def tracked_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def test_no_file_mentions_a_path_of_this_machine() -> None:
    places = [f"{Path.home()}/", "/" + "work/"]
    for path in tracked_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        assert [place for place in places if place in text] == [], path
