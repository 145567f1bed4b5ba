"""Each pass alone: what it rewrites, what it leaves, and that values stay bit for bit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.diagnostics import InputError, InternalError
from nacre.core.module import Module
from nacre.core.passes.hoist_inputs import hoist_inputs
from nacre.core.passes.runner import PIPELINE, Pass, passes_until, pipeline_text, run_passes
from nacre.core.rewrite.dead_code import dead_code
from nacre.core.rewrite.exact import fold_constants as folding
from nacre.core.rewrite.exact.common_subexpressions import common_subexpressions
from nacre.core.rewrite.exact.fold_constants import fold_constants
from nacre.core.rewrite.exact.identities import identities
from nacre.core.rewrite.exact.identity_ops import identity_ops
from nacre.core.rewrite.exact.inverse_pairs import inverse_pairs
from nacre.core.rewrite.exact.operand_order import operand_order
from nacre.core.rewrite.exact.settle import settle
from nacre.core.text.reader import parse
from nacre.core.verify import verify
from tests.core.modules import inputs_of, interpret, modules, same_bits


def module(*lines: str, outputs: str) -> Module:
    made = parse("\n".join([*lines, f"outputs: {outputs}"]) + "\n")
    assert verify(made, "nacre-1") == []
    return made


def body(made: Module) -> list[str]:
    """The lines without the types, which are not what these tests are about."""
    return [line.split(" : ")[0] for line in str(made).splitlines()]


X = '%0 = Input () {name="x"} : tensor<f32[2, 3]>'
N = '%0 = Input () {name="n"} : tensor<i64[2]>'


@pytest.mark.parametrize("one", PIPELINE, ids=lambda one: one.name)
@given(made=modules(), seed=st.integers(0, 1000))
def test_a_pass_keeps_values_inputs_and_validity(one: Pass, made: Module, seed: int) -> None:
    after = run_passes(made, [one])
    assert after.inputs == made.inputs
    assert after.output_types == made.output_types
    inputs = inputs_of(made, seed)
    pairs = zip(interpret(made, inputs), interpret(after, inputs), strict=True)
    assert all(same_bits(before, now) for before, now in pairs)
    assert one.run(after) is after, "a pass has nothing left to do after itself"
    assert {op.value_id for op in after} <= {op.value_id for op in made}


def test_inputs_move_up_and_ids_are_dealt_out_again() -> None:
    made = parse(
        "%0 = ConstI64 () {value=2} : tensor<i64[]>\n"
        '%4 = Input () {name="n"} : tensor<i64[2]>\n'
        "%5 = BinOp (%4, %0) {op=Sub} : tensor<i64[2]>\n"
        'outputs: %5, %0\nstate: "n" <- %5 = %4\n'
    )
    after = hoist_inputs(made)
    assert body(after) == [
        '%0 = Input () {name="n"}',
        "%4 = ConstI64 () {value=2}",
        "%5 = BinOp (%0, %4) {op=Sub}",
        "outputs: %5, %4",
        'state: "n" <- %5 = %0',
    ]


def test_inputs_that_come_first_keep_their_ids() -> None:
    made = module(N.replace("%0", "%3"), "%7 = Neg (%3) : tensor<i64[2]>", outputs="%7")
    assert hoist_inputs(made) is made


@pytest.mark.parametrize(
    ("op", "expected"), [("Add", "%0, %1"), ("Mul", "%0, %1"), ("Sub", "%1, %0")]
)
def test_operands_of_add_and_mul_ascend_and_those_of_sub_stay(op: str, expected: str) -> None:
    made = module(
        N,
        '%1 = Input () {name="m"} : tensor<i64[2]>',
        f"%2 = BinOp (%1, %0) {{op={op}}} : tensor<i64[2]>",
        outputs="%2",
    )
    assert body(operand_order(made))[2] == f"%2 = BinOp ({expected}) {{op={op}}}"


FOLDS = [
    ("ConstI64", "i64", "2", "Add", "3", "%2 = ConstI64 () {value=5}"),
    ("ConstI64", "i64", "2", "Sub", "3", "%2 = ConstI64 () {value=-1}"),
    ("ConstI64", "i64", "4611686018427387904", "Mul", "-2",
     "%2 = ConstI64 () {value=-9223372036854775808}"),
    ("ConstF32", "f32", "0.1", "Add", "0.2", "%2 = ConstF32 () {value=0.30000001192092896}"),
    ("ConstF64", "f64", "0.1", "Add", "0.2", "%2 = ConstF64 () {value=0.30000000000000004}"),
    ("ConstF64", "f64", "0.0", "Mul", "-1.0", "%2 = ConstF64 () {value=-0.0}"),
]  # fmt: skip


@pytest.mark.parametrize(("opcode", "dtype", "a", "op", "b", "expected"), FOLDS)
def test_scalars_fold_to_what_the_run_would_give(
    opcode: str, dtype: str, a: str, op: str, b: str, expected: str
) -> None:
    assert body(fold_constants(scalars(opcode, dtype, a, op, b)))[2] == expected


def scalars(opcode: str, dtype: str, a: str, op: str, b: str) -> Module:
    return module(
        f"%0 = {opcode} () {{value={a}}} : tensor<{dtype}[]>",
        f"%1 = {opcode} () {{value={b}}} : tensor<{dtype}[]>",
        f"%2 = BinOp (%0, %1) {{op={op}}} : tensor<{dtype}[]>",
        outputs="%2",
    )


UNSAFE = [
    ("ConstI64", "i64", "9223372036854775807", "Add", "1"),
    ("ConstI64", "i64", "-9223372036854775808", "Sub", "1"),
    ("ConstI64", "i64", "4611686018427387904", "Mul", "2"),
    ("ConstF32", "f32", "3e38", "Add", "3e38"),
    ("ConstF64", "f64", "1e300", "Mul", "1e300"),
    ("ConstF64", "f64", "inf", "Sub", "inf"),
    ("ConstF32", "f32", "nan", "Add", "1.0"),
]


@pytest.mark.parametrize(("opcode", "dtype", "a", "op", "b"), UNSAFE)
def test_what_wraps_or_leaves_the_finite_is_not_folded(
    opcode: str, dtype: str, a: str, op: str, b: str
) -> None:
    made = scalars(opcode, dtype, a, op, b)
    assert fold_constants(made) is made


def test_integers_whose_ends_do_not_meet_are_folded_exactly() -> None:
    made = module(
        "%0 = ConstTensor () {data=[2147483647, 0], dtype=i32, shape=[2]} : tensor<i32[2]>",
        "%1 = ConstTensor () {data=[0, 2147483647], dtype=i32, shape=[2]} : tensor<i32[2]>",
        "%2 = BinOp (%0, %1) {op=Add} : tensor<i32[2]>",
        "%3 = Sum (%2) {axes=[], keepdims=false} : tensor<i32[]>",
        outputs="%3",
    )
    assert body(fold_constants(made))[2:4] == [
        "%2 = ConstTensor () {data=[2147483647, 2147483647], dtype=i32, shape=[2]}",
        "%3 = Sum (%2) {axes=[], keepdims=false}",
    ]


def test_views_gathers_and_integer_sums_of_constants_fold() -> None:
    made = module(
        "%0 = ConstTensor () {data=[[1, 2], [3, 4]], dtype=i64, shape=[2, 2]} : tensor<i64[2, 2]>",
        "%1 = ConstTensor () {data=[1], dtype=i32, shape=[1]} : tensor<i32[1]>",
        "%2 = Gather (%0, %1) : tensor<i64[1, 2]>",
        "%3 = Transpose (%2) {permutation=[1, 0]} : tensor<i64[2, 1]>",
        "%4 = Sum (%3) {axes=[0], keepdims=false} : tensor<i64[1]>",
        "%5 = Index (%4) {indices=[0]} : tensor<i64[]>",
        outputs="%5",
    )
    assert body(fold_constants(made))[5] == "%5 = ConstI64 () {value=7}"


def test_a_gather_outside_and_float_sums_and_exponentials_are_left_to_the_run() -> None:
    made = module(
        "%0 = ConstTensor () {data=[1.0, 2.0], dtype=f32, shape=[2]} : tensor<f32[2]>",
        "%1 = ConstTensor () {data=[5], dtype=i32, shape=[1]} : tensor<i32[1]>",
        "%2 = Gather (%0, %1) : tensor<f32[1]>",
        "%3 = Sum (%0) {axes=[], keepdims=false} : tensor<f32[]>",
        "%4 = Exp (%0) : tensor<f32[2]>",
        outputs="%2, %3, %4",
    )
    assert fold_constants(made) is made


def test_results_beyond_the_limit_are_not_folded() -> None:
    def broadcast(count: int) -> Module:
        data = ", ".join(["1"] * count)
        return module(
            f"%0 = ConstTensor () {{data=[{data}], dtype=i64, shape=[{count}]}}"
            f" : tensor<i64[{count}]>",
            f"%1 = Reshape (%0) {{new_shape=[{count}, 1]}} : tensor<i64[{count}, 1]>",
            f"%2 = BinOp (%0, %1) {{op=Mul}} : tensor<i64[{count}, {count}]>",
            outputs="%2",
        )

    assert folding.MAX_ELEMENTS == 256 * 256
    assert fold_constants(broadcast(256)).operations[2].opcode == "ConstTensor"
    assert fold_constants(broadcast(257)).operations[2].opcode == "BinOp"


def test_one_walk_folds_no_more_than_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "_BUDGET", 3000)
    data = ", ".join(["1"] * 1200)
    made = module(
        f"%0 = ConstTensor () {{data=[{data}], dtype=i64, shape=[1200]}} : tensor<i64[1200]>",
        *(f"%{i} = BinOp (%0, %0) {{op=Add}} : tensor<i64[1200]>" for i in (1, 2, 3)),
        outputs="%1, %2, %3",
    )
    opcodes = [op.opcode for op in fold_constants(made)]
    assert opcodes == ["ConstTensor", "ConstTensor", "ConstTensor", "BinOp"]


def with_constant(dtype: str, op: str, value: str, *, left: bool = False) -> Module:
    constant = f"%1 = ConstTensor () {{data=[{value}], dtype={dtype}, shape=[1]}}"
    operands = "%1, %0" if left else "%0, %1"
    return module(
        f'%0 = Input () {{name="x"}} : tensor<{dtype}[2]>',
        f"{constant} : tensor<{dtype}[1]>",
        f"%2 = BinOp ({operands}) {{op={op}}} : tensor<{dtype}[2]>",
        outputs="%2",
    )


@pytest.mark.parametrize("dtype", ["i32", "i64", "f32", "f64"])
def test_times_one_and_minus_zero_are_dropped(dtype: str) -> None:
    point = "" if dtype.startswith("i") else ".0"
    assert identities(with_constant(dtype, "Mul", f"1{point}")).outputs == (0,)
    assert identities(with_constant(dtype, "Mul", f"1{point}", left=True)).outputs == (0,)
    assert identities(with_constant(dtype, "Sub", f"0{point}")).outputs == (0,)


def test_plus_zero_is_dropped_where_it_keeps_negative_zero() -> None:
    assert identities(with_constant("i32", "Add", "0")).outputs == (0,)
    assert identities(with_constant("f32", "Add", "-0.0")).outputs == (0,)
    for made in (with_constant("f32", "Add", "0.0"), with_constant("f32", "Sub", "-0.0")):
        assert identities(made) is made


def test_zero_minus_x_is_not_x() -> None:
    made = with_constant("i32", "Sub", "0", left=True)
    assert identities(made) is made


def test_times_zero_is_zero_for_integers_only() -> None:
    after = identities(with_constant("i32", "Mul", "0"))
    assert body(after)[2] == "%2 = ConstTensor () {data=[0, 0], dtype=i32, shape=[2]}"
    floats = with_constant("f32", "Mul", "0.0")
    assert identities(floats) is floats


def test_a_neutral_constant_that_widens_stays() -> None:
    made = module(
        '%0 = Input () {name="x"} : tensor<i64[1]>',
        "%1 = ConstTensor () {data=[1, 1], dtype=i64, shape=[2]} : tensor<i64[2]>",
        "%2 = BinOp (%0, %1) {op=Mul} : tensor<i64[2]>",
        outputs="%2",
    )
    assert identities(made) is made


def test_double_negation_goes_and_relu_stays_once() -> None:
    made = module(
        X,
        *(f"%{i} = Neg (%{i - 1}) : tensor<f32[2, 3]>" for i in (1, 2, 3)),
        *(f"%{i} = Relu (%{i - 1}) : tensor<f32[2, 3]>" for i in (4, 5, 6)),
        outputs="%6",
    )
    assert body(identities(made)) == [
        '%0 = Input () {name="x"}',
        "%1 = Neg (%0)",
        "%3 = Neg (%0)",
        "%4 = Relu (%3)",
        "outputs: %4",
    ]


def test_transposes_join_and_vanish_when_they_undo_each_other() -> None:
    made = module(
        '%0 = Input () {name="x"} : tensor<f32[2, 3, 4]>',
        "%1 = Transpose (%0) {permutation=[2, 0, 1]} : tensor<f32[4, 2, 3]>",
        "%2 = Transpose (%1) {permutation=[2, 0, 1]} : tensor<f32[3, 4, 2]>",
        "%3 = Transpose (%2) {permutation=[2, 0, 1]} : tensor<f32[2, 3, 4]>",
        outputs="%2, %3",
    )
    after = inverse_pairs(made)
    assert body(after)[2:] == [
        "%2 = Transpose (%0) {permutation=[1, 2, 0]}",
        "outputs: %2, %0",
    ]


def test_reshapes_join_and_inserted_axes_that_are_removed_vanish() -> None:
    made = module(
        X,
        "%1 = Reshape (%0) {new_shape=[6]} : tensor<f32[6]>",
        "%2 = Reshape (%1) {new_shape=[3, -1]} : tensor<f32[3, 2]>",
        "%3 = ExpandDims (%2) {axes=[0]} : tensor<f32[1, 3, 2]>",
        "%4 = Squeeze (%3) {axes=[0]} : tensor<f32[3, 2]>",
        "%5 = Reshape (%4) {new_shape=[2, 3]} : tensor<f32[2, 3]>",
        outputs="%4, %5",
    )
    after = inverse_pairs(made)
    assert body(after)[2] == "%2 = Reshape (%0) {new_shape=[3, -1]}"
    assert after.outputs == (2, 0)


@pytest.mark.parametrize(
    "line",
    [
        "Reshape (%0) {new_shape=[2, -1]}",
        "Transpose (%0) {permutation=[0, 1]}",
        "Slice (%0) {ends=[2, 9], starts=[0, -1], steps=[1, 1]}",
        "ExpandDims (%0) {axes=[]}",
        "Squeeze (%0) {axes=[]}",
    ],
)
def test_operations_that_change_nothing_go(line: str) -> None:
    made = module(X, f"%1 = {line} : tensor<f32[2, 3]>", outputs="%1")
    assert identity_ops(made).outputs == (0,)


@pytest.mark.parametrize(("dtype", "outputs"), [("i64", (0,)), ("f32", (1,))])
def test_a_sum_of_single_elements_goes_for_integers_only(
    dtype: str, outputs: tuple[int, ...]
) -> None:
    made = module(
        f'%0 = Input () {{name="x"}} : tensor<{dtype}[2, 1]>',
        f"%1 = Sum (%0) {{axes=[1], keepdims=true}} : tensor<{dtype}[2, 1]>",
        outputs="%1",
    )
    assert identity_ops(made).outputs == outputs


def test_a_transpose_of_equal_sizes_stays() -> None:
    made = module(
        '%0 = Input () {name="x"} : tensor<f32[2, 2]>',
        "%1 = Transpose (%0) {permutation=[1, 0]} : tensor<f32[2, 2]>",
        outputs="%1",
    )
    assert identity_ops(made) is made


def test_equal_expressions_are_computed_once() -> None:
    made = module(
        X,
        "%1 = Exp (%0) : tensor<f32[2, 3]>",
        "%2 = Exp (%0) : tensor<f32[2, 3]>",
        "%3 = Neg (%1) : tensor<f32[2, 3]>",
        "%4 = Neg (%2) : tensor<f32[2, 3]>",
        "%5 = Sum (%4) {axes=[0], keepdims=true} : tensor<f32[1, 3]>",
        "%6 = Sum (%3) {axes=[1], keepdims=true} : tensor<f32[2, 1]>",
        outputs="%3, %4, %5, %6",
    )
    after = common_subexpressions(made)
    assert [op.value_id for op in after] == [0, 1, 3, 5, 6]
    assert after.outputs == (3, 3, 5, 6)


def test_constants_are_joined_by_their_bits() -> None:
    made = module(
        "%0 = ConstF32 () {value=0.0} : tensor<f32[]>",
        "%1 = ConstF32 () {value=-0.0} : tensor<f32[]>",
        "%2 = ConstTensor () {data=[0.0], dtype=f32, shape=[1]} : tensor<f32[1]>",
        "%3 = ConstTensor () {data=[-0.0], dtype=f32, shape=[1]} : tensor<f32[1]>",
        "%4 = ConstF64 () {value=0.0} : tensor<f64[]>",
        "%5 = ConstF32 () {value=nan} : tensor<f32[]>",
        "%6 = ConstF32 () {value=nan} : tensor<f32[]>",
        outputs="%0, %1, %2, %3, %4, %5, %6",
    )
    assert common_subexpressions(made).outputs == (0, 1, 2, 3, 4, 5, 5)


def test_long_constants_are_joined_too() -> None:
    line = f"ConstTensor () {{data=[{', '.join(['7'] * 999)}], dtype=i64, shape=[999]}}"
    other = line.replace("7]", "8]")
    lines = [f"%{i} = {text} : tensor<i64[999]>" for i, text in enumerate([line, other, line])]
    assert common_subexpressions(module(*lines, outputs="%0, %1, %2")).outputs == (0, 1, 0)


def test_what_nobody_uses_goes_but_inputs_and_state_stay() -> None:
    made = module(
        N,
        '%1 = Input () {name="unused"} : tensor<i64[2]>',
        "%2 = ConstTensor () {data=[0, 0], dtype=i64, shape=[2]} : tensor<i64[2]>",
        "%3 = Neg (%0) : tensor<i64[2]>",
        "%4 = Neg (%3) : tensor<i64[2]>",
        "%5 = BinOp (%0, %0) {op=Add} : tensor<i64[2]>",
        outputs='%5\nstate: "n" <- %3 = %2',
    )
    assert [op.value_id for op in dead_code(made)] == [0, 1, 2, 3, 5]


def test_rewrites_that_lay_each_other_open_settle_in_one_walk() -> None:
    lines, depth = ['%0 = Input () {name="x"} : tensor<f32[2, 2]>'], 50
    ways = ["Transpose (%{}) {{permutation=[1, 0]}}", "Neg (%{})"]
    order = [*(i % 2 for i in range(depth)), *(i % 2 for i in reversed(range(depth)))]
    for value, way in enumerate(order, 1):
        lines.append(f"%{value} = {ways[way].format(value - 1)} : tensor<f32[2, 2]>")
    assert settle(module(*lines, outputs=f"%{2 * depth}")).outputs == (0,)


def test_the_runner_names_the_pass_that_breaks_a_module() -> None:
    def forget(made: Module) -> Module:
        return Module(made.operations[1:], made.outputs)

    made = module(N, "%1 = Neg (%0) : tensor<i64[2]>", outputs="%1")
    passes = [PIPELINE[1], Pass("forget", forget), PIPELINE[-1]]
    with pytest.raises(InternalError, match=r"pass `forget` broke the module: MOD01 %0"):
        run_passes(made, passes)


def test_the_runner_verifies_the_last_result_in_any_case() -> None:
    def forget(made: Module) -> Module:
        return Module(made.operations[1:], made.outputs)

    made = module(N, "%1 = Neg (%0) : tensor<i64[2]>", outputs="%1")
    with pytest.raises(InternalError, match="`forget`"):
        run_passes(made, [Pass("forget", forget)], verify_each=False)


def test_the_runner_refuses_a_module_that_is_not_valid() -> None:
    made = parse("%1 = Neg (%0) : tensor<i64[2]>\noutputs: %1\n")
    with pytest.raises(InputError, match="MOD01"):
        run_passes(made)


def test_the_pipeline_can_be_cut_and_watched() -> None:
    made = module(N, "%1 = Neg (%0) : tensor<i64[2]>", outputs="%1")
    names: list[str] = []
    run_passes(made, until="fold-constants", on_pass=lambda one, _: names.append(one.name))
    assert names == ["hoist-inputs", "operand-order", "fold-constants"]


def test_a_cut_at_a_pass_that_does_not_exist_names_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"no pass `dead-cod`; did you mean `dead-code`\?"):
        passes_until(PIPELINE, "dead-cod")
    with pytest.raises(ValueError, match="expected one of `hoist-inputs`, `operand-order`"):
        passes_until(PIPELINE, "zzzzzz")


def test_every_pass_lists_its_rewrites() -> None:
    assert all("\n- " in one.page for one in PIPELINE)
    assert len({one.name for one in PIPELINE}) == len(PIPELINE)
    assert [line.split()[0] for line in pipeline_text().splitlines()] == [p.name for p in PIPELINE]
