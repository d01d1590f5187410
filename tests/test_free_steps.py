"""Newton steps among free variables: feasible, and the dual value never falls."""

import numpy as np
import pytest

from pegasos.solvers.free_steps import free_step
from pegasos.solvers.smo import BIG, LANES, board


@pytest.mark.parametrize("C", [0.5, 50.0])
@pytest.mark.parametrize("balanced", [True, False])
def test_a_step_stays_in_the_box_and_gains(C, balanced):
    rng = np.random.default_rng(0)
    m = 2 * LANES
    Z = rng.normal(size=(m, 3))
    K = np.exp(-((Z[:, None] - Z) ** 2).sum(axis=2))
    y = np.where(rng.random(m) < 0.5, 1.0, -1.0)
    low, high = np.minimum(0.0, C * y), np.maximum(0.0, C * y)
    beta = y * rng.uniform(0.3, 0.6, m) * C
    beta[:9] = low[:9]
    start, f = beta.copy(), K @ beta - y
    small = board(K.copy(), K.diagonal(), f, beta, low, high)

    def dual(b):
        return y @ b - 0.5 * b @ K @ b

    assert free_step(small, balanced)
    assert np.all((beta >= low) & (beta <= high)) and np.array_equal(beta[:9], start[:9])
    assert dual(beta) > dual(start)
    if balanced:
        assert abs(beta.sum() - start.sum()) < 1e-9 * np.abs(beta).sum()
    up, down = small.up.reshape(-1), small.down.reshape(-1)
    found = np.where(up < BIG, up, down)
    np.testing.assert_allclose(found, K @ beta - y, atol=1e-9)
    assert np.array_equal(up < BIG, beta < high) and np.array_equal(down > -BIG, beta > low)
