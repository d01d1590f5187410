"""exp and log1p by plain arithmetic: loops that call them vectorise, as with libm's they do not."""

from __future__ import annotations

import numpy as np

from pegasos.core.dispatch import helper

_ROUND = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to an integer, in the lowest bits


@helper
def exp_minus(t):
    """exp(-t) for t >= 0, to the last bits; 0 beyond 708."""
    far = t > 708.0
    t = 708.0 if far else float(t)  # NaN is not far
    shifted = -1.4426950408889634 * t + _ROUND
    k = shifted - _ROUND
    r = (-t - k * 0.6931471803691238) - k * 1.9082149292705877e-10
    s = r * r
    q = s * s
    low = (1.0 + r) + (1 / 2 + r * (1 / 6)) * s
    mid = (1 / 24 + r * (1 / 120)) + (1 / 720 + r * (1 / 5040)) * s
    high = (1 / 40320 + r * (1 / 362880)) + (1 / 3628800 + r * (1 / 39916800)) * s
    top = 1 / 479001600 + r * (1 / 6227020800)
    power = np.int64((np.float64(shifted).view(np.int64) << 52) + (1023 << 52)).view(np.float64)
    return 0.0 if far else ((low + mid * q) + (high + top * q) * (q * q)) * power


@helper
def log1p_unit(e):
    """log(1 + e) for e in [0, 1]: the series of 2 atanh(e / (2 + e))."""
    s = e / (2.0 + e)
    u = s * s
    v = u * u
    w = v * v
    p0 = (1.0 + u * (1 / 3)) + (1 / 5 + u * (1 / 7)) * v
    p1 = (1 / 9 + u * (1 / 11)) + (1 / 13 + u * (1 / 15)) * v
    p2 = (1 / 17 + u * (1 / 19)) + (1 / 21 + u * (1 / 23)) * v
    p3 = (1 / 25 + u * (1 / 27)) + (1 / 29 + u * (1 / 31)) * v
    return 2.0 * s * ((p0 + p1 * w) + (p2 + p3 * w) * (w * w))
