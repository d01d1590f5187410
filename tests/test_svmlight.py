"""LIBSVM text: the fast reader is the grammar, whatever the dialect, the blocks and the threads."""

import logging
import random
from pathlib import Path

import numpy as np
import pytest
from conftest import SEEDS
from fuzz import FINDS
from fuzz_text import DIALECTS, block_of, compare, mutated_line, replay_parser
from hypothesis import given
from hypothesis import strategies as st

import pegasos.data.samples
from pegasos import load_svmlight
from pegasos.data import stream
from pegasos.data.errors import DataError
from pegasos.data.grammar import Dialect, LineError, parse_line
from pegasos.data.svmlight import Bad, parse_block, read_pieces

HEART = Path(pegasos.data.samples.__file__).parent / "heart_scale.svm"
FEW = b"".join(HEART.read_bytes().splitlines(keepends=True)[:20])

BLANKS = st.sampled_from([b" ", b"\t", b"  ", b" \t "])
SIGNS = st.sampled_from([b"", b"+", b"-"])
DIGITS = st.text("0123456789", min_size=1, max_size=25).map(str.encode)
WHOLE = st.one_of(DIGITS, DIGITS.map(lambda d: d + b"."), DIGITS.map(lambda d: b"." + d))
MIDDLE = st.tuples(DIGITS, DIGITS).map(b".".join)
POWERS = st.one_of(st.just(b""), st.integers(-330, 310).map(lambda e: b"e%d" % e))
NUMBERS = st.tuples(SIGNS, st.one_of(WHOLE, MIDDLE), POWERS).map(b"".join)
INDICES = st.one_of(st.integers(0, 9), st.integers(0, 2**31)).map(lambda i: b"%d" % i)
FIELDS = st.one_of(st.tuples(INDICES, NUMBERS).map(b":".join), st.just(b"qid:7"))
COMMENTS = st.one_of(
    st.just(b""), st.binary(max_size=6).map(lambda c: b"#" + c.replace(b"\n", b""))
)


@st.composite
def texts(draw) -> bytes:
    """A line by the grammar, though perhaps with a label too many or numbers too large."""
    words = [draw(NUMBERS)] if draw(st.booleans()) else []
    line = draw(BLANKS) if draw(st.booleans()) else b""
    for word in words + draw(st.lists(FIELDS, max_size=5)):
        line += word + draw(BLANKS)
    return line + draw(COMMENTS)


def write(folder: Path, text: bytes, name: str = "a.svm") -> Path:
    path = folder / name
    path.write_bytes(text)
    return path


def same(a, b) -> bool:
    (X, y), (Z, t) = a, b
    parts = zip((X.data, X.indices, X.indptr, y), (Z.data, Z.indices, Z.indptr, t), strict=True)
    return X.shape == Z.shape and all(p.tobytes() == q.tobytes() for p, q in parts)


# The fast reader and the grammar


@pytest.mark.bounds
@given(st.lists(texts(), max_size=8), st.sampled_from(DIALECTS))
def test_structured_lines_are_read_as_the_grammar_says(lines, dialect):
    compare(lines, dialect)


@pytest.mark.bounds
@given(SEEDS, st.sampled_from(DIALECTS))
def test_damaged_lines_are_read_as_the_grammar_says(seed, dialect):
    rng = random.Random(seed)
    compare([mutated_line(rng) for _ in range(20)], dialect)


@pytest.mark.bounds
def test_what_the_fuzzer_found_stays_fixed():
    for path in FINDS.glob("parser-*"):
        replay_parser(path.read_bytes())


LONG = [
    b"1 1:0." + b"0" * 100_010 + b"1e100011",  # an exponent that only looks out of range
    b"1 1:1" + b"0" * 100_000 + b"e-100000",
    b"1 " + b"0" * 5_000 + b"1:1",
    b"1 1:" + b"9" * 5_000,
    b"1 1:1." + b"0" * 3_000 + b"1",
]


@pytest.mark.parametrize("line", LONG, ids=lambda line: f"{line[:8]!r}-{len(line)}")
@pytest.mark.slow
def test_very_long_numbers_are_exact(line):
    compare([line], Dialect())
    compare([line], Dialect(limit=float("inf")))


HALF_ULP = b"9007199254740993." + b"0" * 40


@pytest.mark.parametrize("tail", [b"", b"0", b"1"])
def test_a_digit_far_behind_decides_a_tie(tail):
    piece = parse_block(block_of([b"1 1:" + HALF_ULP + tail]), Dialect(limit=np.inf), np.float64)
    assert piece.values[0] == 9007199254740992.0 + 2.0 * (tail == b"1")


@pytest.mark.bounds
def test_more_slow_lines_than_were_reckoned_with():
    compare([b"1 1:1e-320 2:%d" % k for k in range(40)], Dialect(limit=float("inf")))


# The file as a whole


def test_heart_scale_is_read_as_scikit_learn_reads_it():
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight(HEART, dtype=np.float64)
    Z, t = load_svmlight_file(str(HEART), zero_based=False)
    assert X.shape == Z.shape == (270, 13)
    assert (X != Z).nnz == 0 and np.array_equal(y, t)
    assert np.array_equal(load_svmlight(HEART)[0].toarray(), Z.toarray().astype(np.float32))


@given(size=st.integers(3, 4000), threads=st.integers(1, 4))
def test_blocks_and_threads_do_not_matter(size, threads, tmp_path_factory):
    path = write(tmp_path_factory.mktemp("blocks"), FEW)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "BLOCK", size)
        found = load_svmlight(path, n_threads=threads)
    assert same(found, load_svmlight(path))


VARIANTS = {
    "CRLF": FEW.replace(b"\n", b"\r\n"),
    "BOM": b"\xef\xbb\xbf" + FEW,
    "no final newline": FEW.rstrip(b"\n"),
    "no final newline, CRLF": FEW.replace(b"\n", b"\r\n").rstrip(b"\r\n"),
    "comments": b"# top\n" + FEW.replace(b"\n", b" # 9:9 qid:3\n") + b"\n  \n\t# end",
    "tabs": FEW.replace(b" ", b"\t"),
}


@pytest.mark.parametrize("text", VARIANTS.values(), ids=VARIANTS.keys())
def test_the_same_rows_in_another_dress(tmp_path, text):
    other = load_svmlight(write(tmp_path, text))
    assert same(other, load_svmlight(write(tmp_path, FEW, "plain")))


def test_a_file_that_ends_at_the_end_of_a_block(tmp_path, monkeypatch):
    for text in (FEW, FEW.rstrip()):
        monkeypatch.setattr(stream, "BLOCK", len(text))
        assert load_svmlight(write(tmp_path, text))[0].shape == (20, 13)


def test_rows_are_sorted_and_zeros_kept(tmp_path):
    X, y = load_svmlight(write(tmp_path, b"1 3:3 1:0 2:-0\n2\n3 2:2\n"))
    assert X.indices.tolist() == [0, 1, 2, 1] and X.data.tolist() == [0.0, -0.0, 3.0, 2.0]
    assert np.signbit(X.data[1]) and X.indptr.tolist() == [0, 3, 3, 4]
    assert y.tolist() == [1.0, 2.0, 3.0] and X.has_canonical_format


def test_repeated_indices_are_summed_on_request(tmp_path):
    path = write(tmp_path, b"1 2:1 1:5 2:2\n")
    assert load_svmlight(path, duplicates="sum")[0].toarray().tolist() == [[5.0, 3.0]]


def test_qid_is_noticed(tmp_path, caplog):
    with caplog.at_level(logging.WARNING, "pegasos"):
        X, _ = load_svmlight(write(tmp_path, b"1 qid:1 1:1\n2 qid:1 1:2\n"))
    assert X.shape == (2, 1) and "qid ignored in 2 fields" in caplog.text


def test_columns_start_at_zero_on_request_and_may_be_given(tmp_path):
    path = write(tmp_path, b"1 1:1\n")
    assert load_svmlight(path, zero_based=True)[0].toarray().tolist() == [[0.0, 1.0]]
    assert load_svmlight(path, n_features=3)[0].shape == (1, 3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_features": 0}, "n_features must be from 1"),
        ({"n_features": 2**31}, "n_features must be from 1"),
        ({"dtype": np.int32}, "dtype must be float32 or float64"),
        ({"duplicates": "max"}, "duplicates must be"),
    ],
)
def test_bad_options_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        load_svmlight(HEART, **options)


def test_rows_without_labels(tmp_path):
    with stream.Text(write(tmp_path, b"1:1 2:2\n\n2:3\n")) as text:
        (piece,) = read_pieces(text, Dialect(labelled=False), np.float32, threads=1)
    assert piece.labels.tolist() == [0.0, 0.0] and piece.columns.tolist() == [0, 1, 1]


@pytest.mark.slow
def test_a_hundred_thousand_fields_in_a_line(tmp_path):
    line = b"1 " + b" ".join(b"%d:%d" % (j, j % 7) for j in range(100_000, 0, -1))
    X, _ = load_svmlight(write(tmp_path, line + b"\n2 1:1"))
    assert X.shape == (2, 100_000) and np.array_equal(X.indices[:-1], np.arange(100_000))


def test_an_index_at_the_limit(tmp_path):
    X, _ = load_svmlight(write(tmp_path, b"1 2147483647:1\n"))
    Z, _ = load_svmlight(write(tmp_path, b"1 2147483647:1\n"), zero_based=True)
    assert X.shape == (1, 2**31 - 1) and Z.shape == (1, 2**31)


# Faults (the numbers are those of FAULTS.md): line, column from 1, field, words

FAULTS = [
    ("A7 late BOM", b"1 \xef\xbb\xbf1:2", "3: field 2", "only ASCII"),
    ("A9 NUL", b"1 1:\x002", "5: field 2", "NUL byte"),
    ("A10 no colon", b"1 5", "3: field 2", "'5': expected index:value"),
    ("A11 two colons", b"1 1:1 2:3:4", "7: field 3", "'2:3:4': expected index:value"),
    ("A12 no label", b"1:2 2:3", "1: field 1", "the label is missing: the line begins with '1:2'"),
    ("A13 index 0", b"1 0:1", "3: field 2", "index 0, but indices start at 1"),
    (
        "A13 negative index",
        b"1 -1:1",
        "3: field 2",
        "the index '-1' is not a whole number from 1 on",
    ),
    ("A15 twice", b"1 1:1 3:3 1:2", "11: field 4", "index 1 occurs twice"),
    ("A17 2^31", b"1 2147483648:1", "3: field 2", "'2147483648' is above the limit of 2147483647"),
    ("A17 2^32 + 1", b"1 4294967297:1", "3: field 2", "above the limit"),
    ("A17 2^64 + 1", b"1 18446744073709551617:1", "3: field 2", "above the limit"),
    ("A19 nan", b"1 1:nan", "5: field 2", "'nan' is not a finite decimal number"),
    ("A19 inf", b"1 1:-inf", "5: field 2", "'-inf' is not a finite"),
    ("A19 1e400", b"1 1:1e400", "5: field 2", "'1e400' is too large for a float64"),
    (
        "A19 1e39",
        b"1 1:1 2:1e39",
        "9: field 3",
        "'1e39' is too large for a float32; ask for float64",
    ),
    ("A19 label nan", b"nan 1:1", "1: field 1", "the label 'nan' is not a number"),
    ("A19 label 1e400", b"1e400 1:1", "1: field 1", "'1e400' is too large"),
    ("A20 hex", b"1 1:0x10", "5: field 2", "'0x10' is not a finite"),
    ("A20 underscore", b"1 1:1_0", "5: field 2", "'1_0' is not a finite"),
    ("A20 comma", b"1 1:1,5", "5: field 2", "the decimal sign is a point"),
    ("A21 digits", b"1 1:\xd9\xa3", "5: field 2", "'\u0663' is not a finite"),
    ("A21 minus", b"1 1:\xe2\x88\x921", "5: field 2", "'\u22121' is not a finite"),
    ("A22 text label", b"spam 1:1", "1: field 1", "the label 'spam' is not a number"),
    ("labels", b"1,2 1:1", "1: field 1", "several labels"),
    (
        "carriage return",
        b"1 1:1\r2:2",
        "3: field 2",
        "expected index:value (it holds a lone carriage",
    ),
    ("empty value", b"1 1:", "5: field 2", "the value '' is not"),
    ("empty index", b"1 :1", "3: field 2", "the index '' is not"),
]


@pytest.mark.parametrize(
    ("bad", "place", "words"),
    [fault[1:] for fault in FAULTS],
    ids=[fault[0] for fault in FAULTS],
)
@pytest.mark.parametrize("before", [0, 25])
def test_faults_are_named_with_their_place(tmp_path, monkeypatch, before, bad, place, words):
    monkeypatch.setattr(stream, "BLOCK", 100)
    path = write(tmp_path, b"1 1:1 # good\n" * before + bad + b"\n" + b"oops\n" * 30)
    with pytest.raises(DataError) as caught:
        load_svmlight(path)
    said = str(caught.value)
    assert said.startswith(f"{path}:{before + 1}:{place}: "), said
    assert words in said and said.isprintable()


def test_overflowing_sums_and_columns_beyond_the_width_are_named(tmp_path):
    path = write(tmp_path, b"1 1:1\n1 2:3e38 2:3e38\n")
    with pytest.raises(DataError, match=":2:10: field 3: the values of index 2 overflow"):
        load_svmlight(path, duplicates="sum")
    with pytest.raises(DataError, match=":2:3: field 2: the index '2' is above the limit of 1"):
        load_svmlight(path, n_features=1)


def test_the_first_of_several_faults_is_named(tmp_path):
    """A repeated index, a number that needs exact arithmetic and a bad token, in either order."""
    faults = [b"1 1:1 1:1", b"1 1:1e999", b"1 x"]
    for k in range(3):
        lines = [b"1 3:1 2:1", *faults[k:], *faults[:k]]
        found = parse_block(block_of(lines), Dialect(), np.float32)
        assert isinstance(found, Bad) and found == (1, faults[k])


@pytest.mark.parametrize(
    "text", [b"+1", b".5", b"5.", b"1e+05", b"-0.0", b"1e-310", b"00012", b"1E5"]
)
def test_forms_of_numbers_that_are_good(text):
    label, entries = parse_line(text + b" 1:" + text, Dialect(limit=float("inf")))
    assert label == entries[0] == float(text)
    compare([text + b" 1:" + text], Dialect(limit=float("inf")))


def test_words_about_a_line_are_one_line():
    with pytest.raises(LineError) as caught:
        parse_line("1 \u2028:\x1b[31m".encode() + b"\xff" * 100, Dialect())
    assert str(caught.value).isprintable() and len(str(caught.value)) < 400
