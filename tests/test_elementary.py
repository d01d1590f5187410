"""exp and log1p of our own against libm's."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegasos.core.elementary import exponential, log1p_unit, logarithm
from pegasos.core.jit import hot


@hot
def both(t, e, logs):
    for i in range(t.shape[0]):
        e[i] = exponential(-t[i])
        logs[i] = log1p_unit(e[i])


@hot
def fill_logarithms(x, logs):
    for i in range(x.shape[0]):
        logs[i] = logarithm(x[i])


@given(t=st.floats(0.0, 708.0))
def test_they_are_right_to_the_last_bits(t):
    assert exponential(-t) == pytest.approx(math.exp(-t), rel=1e-15)
    e = math.exp(-t)
    assert log1p_unit(e) == pytest.approx(math.log1p(e), rel=2e-15)


@pytest.mark.jit
def test_compiled_as_well():
    t = np.concatenate([np.linspace(0.0, 50.0, 5001), [700.0, 708.5, np.inf, np.nan]])
    e, logs = np.empty_like(t), np.empty_like(t)
    both(t, e, logs)
    assert np.allclose(e[:-3], np.exp(-t[:-3]), rtol=1e-15, atol=0.0)
    assert np.allclose(logs[:-3], np.log1p(np.exp(-t[:-3])), rtol=2e-15, atol=0.0)
    assert e[-3] == e[-2] == 0.0 and np.isnan(e[-1]) and np.isnan(logs[-1])


@pytest.mark.jit
def test_the_logarithm_of_every_size_and_next_to_one():
    rng = np.random.default_rng(0)
    near = 1.0 + np.concatenate([[0.0], 10.0 ** rng.uniform(-16, -1, 1000)])
    x = np.concatenate([np.exp(rng.uniform(-708.0, 709.0, 5000)), near, 1.0 / near])
    logs = np.empty_like(x)
    fill_logarithms(x, logs)
    assert np.allclose(logs, np.log(x), rtol=1e-15, atol=0.0)
