from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given

from nacre.base.diagnostics import InputError
from nacre.base.source import Source
from nacre.nem.syntax.ast import same_meaning
from nacre.nem.syntax.formatter import format_source
from nacre.nem.syntax.layout import WIDTH
from nacre.nem.syntax.parser import parse
from tests.nem.syntax.strategies import commented_documents, documents, wide_programs

pytestmark = pytest.mark.sampled(2)  # together they take long


def formatted(text: str) -> str:
    return format_source(Source("f.nem", text))


def comment_texts(text: str) -> Counter[str]:
    return Counter(comment.text for comment in parse(Source("f.nem", text)).comments)


@given(documents)
def test_formatting_keeps_the_meaning(text: str) -> None:
    before, after = parse(Source("f.nem", text)), parse(Source("f.nem", formatted(text)))
    assert same_meaning(before.document, after.document)


@given(commented_documents)
def test_comments_do_not_get_in_the_way_of_the_meaning(text: str) -> None:
    before, after = parse(Source("f.nem", text)), parse(Source("f.nem", formatted(text)))
    assert same_meaning(before.document, after.document)


@given(documents)
def test_the_canonical_form_deserves_no_remark(text: str) -> None:
    assert parse(Source("f.nem", formatted(text))).diagnostics == ()


@given(commented_documents)
def test_formatting_what_is_formatted_changes_nothing(text: str) -> None:
    once = formatted(text)
    assert formatted(once) == once


@given(commented_documents)
def test_every_comment_survives_once(text: str) -> None:
    assert comment_texts(formatted(text)) == comment_texts(text)


@given(commented_documents)
def test_lines_are_tidy(text: str) -> None:
    lines = formatted(text).split("\n")
    assert lines[-1] == "", "a text ends with a line end, and the empty one is empty"
    assert not lines[:-1] or (lines[0] and lines[-2]), "no blank lines at either end"
    assert all(line == line.rstrip() for line in lines)
    assert not any(a == b == "" for a, b in pairwise(lines))
    assert not any("\r" in line or line.startswith("\t") for line in lines)


@given(wide_programs)
def test_no_line_is_wider_than_the_page_where_it_can_be_broken(text: str) -> None:
    once = formatted(text)
    assert max(map(len, once.split("\n"))) <= WIDTH
    assert formatted(once) == once
    assert same_meaning(parse(Source("f", text)).document, parse(Source("f", once)).document)


@pytest.mark.parametrize("text", ["", "\n\n", "  \t\r\n", ";\n;"])
def test_nothing_stays_nothing(text: str) -> None:
    assert formatted(text) == ""


def test_what_is_not_nem_is_refused_with_its_diagnostics() -> None:
    with pytest.raises(InputError) as raised:
        formatted("const = 4\nbuffer B : L3 (size=4)\n")
    assert [d.code for d in raised.value.diagnostics] == ["DOC19", "DOC13"]


def test_a_list_of_many_items_is_laid_out_in_linear_time() -> None:
    text = f"let x = [{', '.join(map(str, range(20_000)))}]\n"
    once = formatted(text)
    assert once.startswith("let x = [\n    0, 1, 2,")
    assert formatted(once) == once


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("const   X=4", "const X = 4\n"),
        ("const X = 0007", "const X = 7\n"),
        ("let e = 1.50e-05", "let e = 1.50e-05\n"),
        ("const X = 1+2*( 3-4 )mod -5", "const X = 1 + 2 * (3 - 4) mod -5\n"),
        ("buffer B:L1[ 0 ](align=64,size=4)@debug( b )",
         "buffer B : L1[0] (size=4, align=64) @debug(b)\n"),
        ("r=region(B,0,4,elem=i8,shape=[4],layout=C)",
         "r = region(B, 0, 4) elem=i8, shape=[4], layout=C\n"),
        ("t=store.sync(deps=[a,b],src=y,dst=x)", "t = store.sync(dst=x, src=y, deps=[a, b])\n"),
        ("relu.async IN X OUT Y axis=1 deps=[t]", "relu.async in X out Y deps=[t] axis=1\n"),
        ('include "a\\n\\"b"', 'include "a\\\\n\\"b"\n'),
        ("const A = 1; const B = 2;", "const A = 1\nconst B = 2\n"),
        ("loop i in[0 .. 3]:wait(t)endloop", "loop i in [0..3]:\n    wait(t)\nendloop\n"),
        ("const A = 1\r\n\r\n\r\nconst B = 2\r\n", "const A = 1\n\nconst B = 2\n"),
        ("const A = 1  #c\t", "const A = 1  #c\n"),
        ("const A =\n\n  1", "const A = 1\n"),
        ("store.sync\n# c\n(dst=a, src=b)\n\nwait(t)",
         "# c\nstore.sync(dst=a, src=b)\n\nwait(t)\n"),
        ("relu.async in X\nout Y; wait(t) # c", "relu.async in X out Y\nwait(t)  # c\n"),
        ("loop = region(B, 0, 4)\n\nconst A = 1", "loop = region(B, 0, 4)\n\nconst A = 1\n"),
        ("loop i in [0..3]:\n\n\nwait(t)\n\nendloop", "loop i in [0..3]:\n    wait(t)\nendloop\n"),
    ],
)  # fmt: skip
def test_the_canonical_form(text: str, expected: str) -> None:
    assert formatted(text) == expected


PROGRAMS = {
    "long_lists_wrap": """
        let table = [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,
        21,22,23,24,25,26,27,28,29,30,31,32,33,34]
        wait(token_00, token_01, token_02, token_03, token_04, token_05, token_06, token_07,
        token_08, token_09)
        W = region(W_L1, 0, 36864) elem=i8, shape=[3, 3, 64, 64], layout=HWIO,
        quant=per_channel(axis=3, zero_points=[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        scales=[0.0125, 0.0125, 0.0125, 0.0125, 0.0125, 0.0125, 0.0125, 0.0125, 0.0125, 0.0125,
        0.0125, 0.0125, 0.0125, 0.0125, 0.0125, 0.0125]) @readonly
    """,
    "long_tasks_break_at_clauses": """
        tX = transfer.async(dst=region(X_L1, (i mod 2) * tileX_bytes, tileX_bytes),
        src=region(X_L2, i * tileX_bytes, tileX_bytes), deps=[tPrevious])
        tC = conv2d.async in region(X_L1, (i mod 2) * tileX_bytes, tileX_bytes) elem=i8,
        shape=[1, TiH, TiW, Cin], layout=NHWC, W_tile, B_tile out region(Y_L1,
        (i mod 2) * tileY_bytes, tileY_bytes) elem=i8, shape=[1, ToH, ToW, Cout], layout=NHWC
        @materialized deps=[tX, tW, tB] pads=[0,0,0,0] strides=[1,1] dilations=[1,1] groups=1
        accum_type=i32 @resource(NMU[0]) @deterministic
    """,
    "comments_inside_a_transfer": """
        # before the task
        tX = transfer.async(  # the head
            # where it comes from
            src=region(X_L2, 0, 64),   # from L2

            # and where it goes
            dst=region(X_L1, 0, 64)
            # nothing precedes it
            , deps=[t0]
            # the end
        ) @seq_engine(0)  # behind
        # after the task
    """,
    "comments_in_a_compute_task": """
        relu.async   # elementwise
            in X,    # read
               Z
            # written
            out Y
            axis=1   # an attribute
        gelu.async
            # stands above its clause
            in X out Y
        r = region(B, 0, 4)  # bounds
            # the type
            elem=i8, shape=[4], layout=C, # quantised:
            quant=per_tensor(scale=0.5, zero_point=3)
        let t = [ 1, # one
                  2  # two
                ]
    """,
    "a_topology_in_another_order": """
        include "nem_baseline_1.0.nem"
        # A device of ours.
        device mine extends nem_baseline_1_0 {
            opcode.extended { eltwise<f32>.default cast.default  # converts
                # the last one
            }
            topology {
                # per engine
                per_engine { l1_size_bytes = 1024*1024  # one MiB
                    NMU = 1 CSTL = 2
                }

                device_units { sDMA = 1 }
                # how many
                num_engines = 2
                l2_size_bytes = 4 * 1024 * 1024
            }
            spec_version = "NEM-1.0"   # the language
            unit_characteristics { NMU { int8_macs = 4096
            } }
        }
    """,
    "families": """
        # Matrix products.
        type_family gemm.float < T : {f16,bf16} > { A:T B:T
            # the accumulator
            accum = f32  quant = required on B
            variants:
                no_bias:{C:absent} conformance:{MUST<f16> MAY<bf16>}
                # with a bias
                with_bias : { C : T }   # C is added
                    # which types
                    conformance : { MAY <f16> }
        }
        type_family cast { variants : default : { } conformance : { MUST } }
    """,
    "blank_lines_keep_groups": """


        # A header that belongs to the file.

        device "npm_lite.nem"
        program demo :


        const A = 1
        const B = 2

        # About C.
        const C = 3



        loop i in [0..3] @max_in_flight(2):  # rows

            # The first of the block.
            wait(t)

            # A remark on its own.

            loop j in [0..3]: ; ;

                wait(u); wait(v)

                # the last of the inner block

            endloop

        endloop
        # The end.

    """,
}  # fmt: skip


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_representative_programs(text: str, golden: Callable[..., None]) -> None:
    once = formatted(text)
    golden(once, ".nem")
    assert formatted(once) == once
    assert comment_texts(once) == comment_texts(text)
    assert same_meaning(parse(Source("f", text)).document, parse(Source("f", once)).document)
