"""Which token comes next."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from nacre.llm.sampling import Sampler, Sampling

LOGITS = np.log(np.array([0.1, 0.4, 0.2, 0.3], np.float32))


def drawn(count: int = 400, **how: float) -> Counter[int]:
    sampler = Sampler(Sampling(**how))  # type: ignore[arg-type]
    return Counter(sampler.choose(LOGITS) for _ in range(count))


def test_without_temperature_the_likeliest_is_taken() -> None:
    assert drawn(10) == {1: 10}


def test_tokens_are_drawn_by_their_shares() -> None:
    found = drawn(4000, temperature=1.0)
    shares = np.exp(LOGITS)
    assert all(abs(found[i] / 4000 - shares[i]) < 0.03 for i in range(4))


def test_temperature_evens_shares_out_or_sharpens_them() -> None:
    assert drawn(temperature=5.0)[0] > drawn(temperature=1.0)[0] > drawn(temperature=0.2)[0]


def test_only_the_likeliest_are_drawn_where_that_is_asked_for() -> None:
    assert set(drawn(temperature=1.0, top_k=2)) == {1, 3}
    assert set(drawn(temperature=1.0, top_p=0.75)) == {1, 3, 2}
    assert set(drawn(temperature=1.0, top_p=0.7)) == {1, 3}
    assert set(drawn(temperature=1.0, top_p=1e-9)) == {1}


def test_a_seed_gives_the_same_tokens() -> None:
    sequences = [
        [sampler.choose(LOGITS) for _ in range(30)]
        for sampler in (Sampler(Sampling(temperature=1.0, seed=s)) for s in (7, 7, 8))
    ]
    assert sequences[0] == sequences[1] != sequences[2]


@pytest.mark.parametrize(
    "how", [{"temperature": -1.0}, {"top_k": -1}, {"top_p": 0.0}, {"top_p": 1.5}]
)
def test_what_cannot_be_is_a_value_error(how: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="expected"):
        Sampling(**how)  # type: ignore[arg-type]
