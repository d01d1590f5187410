"""Decimal text to float64: the nearest number, or an honest "cannot tell"."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegasos.core.jit import hot
from pegasos.data.decimal import nearest

LARGEST = 10**19 - 1  # nineteen digits
MANTISSAS = st.one_of(st.integers(0, LARGEST), st.integers(0, 2**53), st.integers(0, 999))
EXPONENTS = st.one_of(st.integers(-400, 400), st.integers(-30, 30))
NORMAL = 2.0**-1022
FLOATS = st.floats(allow_nan=False, allow_infinity=False, min_value=0.0)


@hot
def _nearest(m, e):
    return nearest(m, e)


def read(m: int, e: int) -> float:
    return float(_nearest(np.uint64(m), np.int64(e)))


def agrees(m: int, e: int) -> bool:
    """Whether the answer is Python's, or none."""
    found = read(m, e)
    return math.isnan(found) or found == float(f"{m}e{e}")


@given(MANTISSAS, EXPONENTS)
def test_the_answer_is_that_of_python_or_none(m, e):
    assert agrees(m, e)


@given(st.integers(1, LARGEST), st.integers(-300, 270))
def test_normal_numbers_are_nearly_always_settled(m, e):
    assert read(m, e) == float(f"{m}e{e}")


@given(st.integers(0, LARGEST), st.sampled_from([-400, -343, 309, 1000, 10**12, -(10**12)]))
def test_exponents_out_of_range_are_left_open_unless_zero(m, e):
    assert read(m, e) == 0.0 if m == 0 else math.isnan(read(m, e))


@given(st.integers(0, 2**53 - 1), st.integers(-22, 22))
def test_short_numbers_are_settled(m, e):
    assert read(m, e) == float(f"{m}e{e}")


@given(FLOATS)
def test_seventeen_digits_bring_a_number_back(x):
    digits, _, power = f"{x:.16e}".partition("e")
    m, e = int(digits.replace(".", "")), int(power) - 16
    assert agrees(m, e)
    if NORMAL < x < 8e307:
        assert read(m, e) == x


@given(FLOATS)
def test_the_shortest_form_brings_a_number_back(x):
    digits, _, power = f"{x!r}e0".partition("e")
    whole, _, decimals = digits.partition(".")
    e = int(power.split("e")[0]) - len(decimals)
    assert agrees(int(whole + decimals), e)
    if NORMAL < x < 8e307:
        assert read(int(whole + decimals), e) == x


@given(st.integers(2**52, 2**53 - 1), st.integers(0, 10))
def test_halves_between_two_numbers_go_to_the_even_one(k, power):
    """(2k + 1) 2^power lies halfway between two floats."""
    m = (2 * k + 1) << power
    if m <= LARGEST:
        assert read(m, 0) == float(m)
        assert Fraction(read(m, 0)) in (Fraction(m - (1 << power)), Fraction(m + (1 << power)))


@given(st.integers(2**52, 2**53 - 1), st.integers(1, 4), st.integers(-1, 1))
def test_halves_below_the_point_and_their_neighbours(k, power, step):
    """k + 1/2 in powers of two, as decimals: exact, and one unit in the last digit beside it."""
    halfway = Fraction(2 * k + 1, 2 << power)
    m = halfway * 10 ** (power + 1)
    assert m.denominator == 1
    if m <= LARGEST - 1:
        assert read(int(m) + step, -power - 1) == float(f"{int(m) + step}e{-power - 1}")


@pytest.mark.parametrize(
    ("m", "e"),
    [
        (9007199254740993, 0),
        (9007199254740995, 0),
        (5, -324),
        (22250738585072011, -324),
        (22250738585072014, -324),
        (17976931348623157, 292),
        (17976931348623159, 292),
        (1, 308),
        (2, 308),
        (1, 23),
        (85, 21),
        (7205759403792793, 1),
        (9214843084008499, 0),
        (500000000000000000, -26),
        (LARGEST, -19),
        (LARGEST, 289),
    ],
)
def test_famous_numbers(m, e):
    assert agrees(m, e)


@pytest.mark.bounds
def test_every_power_of_ten():
    for e in range(-345, 312):
        for m in (1, 7, LARGEST):
            assert agrees(m, e), (m, e)


@pytest.mark.bounds
@pytest.mark.slow
def test_many_random_numbers_are_those_of_python():
    rng = np.random.default_rng(0)
    mantissas, exponents = (
        rng.integers(1, LARGEST, 20_000, np.uint64),
        rng.integers(-300, 270, 20_000),
    )
    for m, e in zip(mantissas, exponents, strict=True):
        assert read(m, e) == float(f"{m}e{e}")  # about one in 10^18 would be left open
