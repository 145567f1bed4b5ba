"""Random numbers: the same for the same seed, and as likely as they should be.

Nothing here is compared with PyTorch's bits: those are its own. Moments of n draws are held within
five standard deviations of their means.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nacre import nac
from nacre.base.diagnostics import InputError
from nacre.core.values import Array
from nacre.nac.mep import Machine, assemble
from nacre.nac.operations.registry import our_operations
from nacre.nac.program.assembly import Assembler
from nacre.nac.run.opaque import Randomness

Loose = Any
COUNT = 20_000
X = np.zeros(COUNT, np.float32)


def program(*calls: tuple[Loose, ...]) -> nac.NacModel:
    """Calls of which each takes the input first where it says so."""
    assembler = Assembler()
    x = assembler.input("x")
    made = [
        assembler.call(f"aten.{name}", *(x if a is X else a for a in given))
        for name, *given in calls
    ]
    assembler.output(*made)
    return nac.load(nac.to_bytes(assembler.file()))


def draw(*call: Loose, seed: int = 0, x: Array = X) -> Array:
    (found,) = program(call).run({"x": x}, seed=seed)
    return found


SIZE = (COUNT,)
# The call, its element type, and the mean and the variance of what it draws.
CASES: list[tuple[tuple[Loose, ...], str, float, float]] = [
    (("rand.default", SIZE), "float32", 1 / 2, 1 / 12),
    (("rand.default", SIZE, "float64"), "float64", 1 / 2, 1 / 12),
    (("rand.default", SIZE, "float16"), "float16", 1 / 2, 1 / 12),
    (("rand_like.default", X), "float32", 1 / 2, 1 / 12),
    (("randn.default", SIZE), "float32", 0, 1),
    (("randn_like.default", X, "float64"), "float64", 0, 1),
    (("randint.default", 6, SIZE), "int64", 2.5, 35 / 12),
    (("randint.low", -3, 3, SIZE, "int32"), "int32", -0.5, 35 / 12),
    (("randint_like.default", X, 6), "float32", 2.5, 35 / 12),
    (("randint_like.low_dtype", X, 1, 7), "float32", 3.5, 35 / 12),
    (("bernoulli.p", X, 0.3), "float32", 0.3, 0.21),
    (("normal_functional.default", X, 2.0, 3.0), "float32", 2, 9),
    (("normal.float_float", 2.0, 3.0, SIZE), "float32", 2, 9),
    (("uniform.default", X, -1.0, 3.0), "float32", 1, 16 / 12),
    (("exponential.default", X, 2.0), "float32", 0.5, 0.25),
]


@pytest.mark.parametrize(("call", "dtype", "mean", "variance"), CASES)
def test_a_distribution(call: tuple[Loose, ...], dtype: str, mean: float, variance: float) -> None:
    found = draw(*call).astype(np.float64)
    assert draw(*call).dtype == np.dtype(dtype)
    spread = np.sqrt(variance / COUNT)
    assert abs(found.mean() - mean) < 5 * spread
    fourth = float(((found - found.mean()) ** 4).mean())
    assert abs(found.var() - variance) < 5 * np.sqrt((fourth - variance**2) / COUNT) + 1e-3


def test_ends_of_even_numbers() -> None:
    for word in ("float32", "float16", "bfloat16", "float64"):
        found = draw("rand.default", SIZE, word).astype(np.float64)
        assert found.min() >= 0
        assert found.max() < 1
    whole = draw("randint.default", 6, SIZE)
    assert set(np.unique(whole)) == set(range(6))


def test_chances_of_each_element() -> None:
    chances = np.repeat(np.array([0.0, 0.25, 1.0], np.float32), COUNT)
    found = draw("bernoulli.default", X, x=chances).reshape(3, COUNT).mean(axis=1)
    np.testing.assert_allclose(found, [0, 0.25, 1], atol=5 * np.sqrt(0.1875 / COUNT))
    with pytest.raises(InputError, match="not between 0 and 1"):
        draw("bernoulli.default", X, x=chances + 1)


def test_means_and_deviations_of_each_element() -> None:
    mean = np.linspace(-1, 1, COUNT, dtype=np.float32)
    found = draw("normal.Tensor_float", X, 0.5, x=mean)
    assert abs((found - mean).std() - 0.5) < 0.02
    assert np.array_equal(draw("normal.Tensor_Tensor", X, X), X)
    with pytest.raises(InputError, match="below 0"):
        draw("normal.float_Tensor", 0.0, X, x=X - 1)


def test_places_by_their_weights() -> None:
    weights = np.array([1, 0, 3, 4], np.float32)
    found = draw("multinomial.default", X, COUNT, True, x=weights)
    counts = np.bincount(found, minlength=4) / COUNT
    np.testing.assert_allclose(counts, weights / 8, atol=5 * np.sqrt(0.25 / COUNT))
    many = np.tile(weights, (COUNT, 1))
    found = draw("multinomial.default", X, 2, False, x=many)
    assert found.shape == (COUNT, 2)
    assert not (found[:, 0] == found[:, 1]).any()
    assert not (found == 1).any()
    first = np.bincount(found[:, 0], minlength=4) / COUNT
    np.testing.assert_allclose(first, weights / 8, atol=5 * np.sqrt(0.25 / COUNT))
    second = ((found[:, 0] == 0) & (found[:, 1] == 2)).mean()
    assert abs(second - 1 / 8 * 3 / 7) < 5 * np.sqrt(0.06 / COUNT)
    for wrong, told in ((weights * 0, "above it"), (-weights, "not below 0")):
        with pytest.raises(InputError, match=told):
            draw("multinomial.default", X, 1, True, x=wrong)
    with pytest.raises(InputError, match="fewer than 4"):
        draw("multinomial.default", X, 4, False, x=weights)
    with pytest.raises(InputError, match="5 different samples of 4"):
        draw("multinomial.default", X, 5, False, x=weights)


def test_an_order_is_one() -> None:
    found = draw("randperm.default", 1000)
    assert np.array_equal(np.sort(found), np.arange(1000))
    assert not np.array_equal(found, np.arange(1000))
    starts = [draw("randperm.default", 4, seed=seed)[0] for seed in range(400)]
    assert min(np.bincount(starts, minlength=4)) > 60


@pytest.mark.parametrize("p", [0.0, 0.25, 1.0])
def test_dropout_in_training(p: float) -> None:
    operation = our_operations()["aten.dropout.default"]
    rng = Randomness(3).generator(0)
    x = np.ones((50, 40, 10), np.float32)
    found = operation.kernel(x, p, True, rng=rng)
    assert abs((found == 0).mean() - p) < 0.02
    if p < 1:
        np.testing.assert_allclose(found[found != 0], 1 / (1 - p), rtol=1e-6)
    assert operation.kernel(x, p, False, rng=rng) is x
    whole = our_operations()["aten.feature_dropout.default"].kernel(x, p, True, rng=rng)
    assert set(np.unique((whole == 0).mean(axis=2))) <= {0.0, 1.0}
    kept, mask = our_operations()["aten.native_dropout.default"].kernel(x, p, True, rng=rng)
    assert np.array_equal(kept != 0, mask)


def test_a_seed_decides_everything(tmp_path: Path) -> None:
    model = program(("rand.default", SIZE), ("rand.default", SIZE), ("randn_like.default", X))
    first = model.run({"x": X})
    again = model.run({"x": X})
    other = model.run({"x": X}, seed=1)
    for a, b, c in zip(first, again, other, strict=True):
        np.testing.assert_array_equal(a, b)
        assert not np.array_equal(a, c)
    assert not np.array_equal(first[0], first[1]), "calls that look alike draw their own"
    session = model.session(seed=1)
    runs = [session.run({"x": X})[0] for _ in range(2)]
    np.testing.assert_array_equal(runs[0], other[0])
    assert not np.array_equal(runs[0], runs[1]), "a session goes on"
    session.reset()
    np.testing.assert_array_equal(session.run({"x": X})[0], runs[0])


def test_streams_do_not_depend_on_each_other() -> None:
    alone = program(("randn.default", SIZE)).run({"x": X})
    beside = program(("randn.default", SIZE), ("rand.default", (3,))).run({"x": X})
    np.testing.assert_array_equal(alone[0], beside[0])
    streams = [Randomness(seed, run).generator(at).random(1000) for seed in (0, 1)
               for run in (0, 1) for at in (0, 1)]  # fmt: skip
    for i, one in enumerate(streams):
        for other in streams[:i]:
            assert abs(np.corrcoef(one, other)[0, 1]) < 0.2
            assert not np.intersect1d(one, other).size


def test_a_kernel_of_a_user_may_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    from nacre.nac.operations import registry

    monkeypatch.setattr(registry, "_registered", {})

    def noise(x: Array, rng: np.random.Generator) -> Array:
        return x + rng.standard_normal(x.shape).astype(np.float32)

    nac.register_operation("aten.noise.default", noise, random=True)
    one, two = (draw("noise.default", X, seed=seed) for seed in (1, 2))
    np.testing.assert_array_equal(one, draw("noise.default", X, seed=1))
    assert not np.array_equal(one, two)


Kernel = Callable[..., Loose]


def test_no_kernel_of_ours_is_without_a_shape() -> None:
    for name, operation in our_operations().items():
        assert name.startswith("aten.")
        assert operation.shape is not None
        assert operation.schema is not None


@pytest.mark.parametrize("seed", [None, 1.5, "1", True])
def test_a_seed_is_an_integer(seed: Loose) -> None:
    model = program(("rand.default", SIZE))
    takers: list[Callable[[], object]] = [
        lambda: model.run({"x": X}, seed=seed),
        lambda: model.session(seed=seed),
        lambda: Machine(assemble("halt"), seed=seed),
        lambda: nac.synthesise([], (1, 1, 8, 8), seed=seed),
    ]
    for taker in takers:
        with pytest.raises(InputError, match=r"NAC73.*expected an integer"):
            taker()


def test_the_seed_of_a_plan_is_that_of_its_models() -> None:
    text = """
        src_user_prompt %x, str, "x"
        res_load_model 0, "m"
        model_run_static 0, [%x], [%y]
        block_set 0, 0, %x
        block_run 0, 0, 1
        block_get 0, 1, %z
        return [%y, %z]
    """
    model = program(("rand.default", SIZE))
    first, second = (
        Machine(assemble(text), models={"m": model}, seed=seed).run({"x": X}) for seed in (3, 4)
    )
    for at in (0, 1):
        np.testing.assert_array_equal(first[at], draw("rand.default", SIZE, seed=3))
        np.testing.assert_array_equal(second[at], draw("rand.default", SIZE, seed=4))
