"""What is written reads back to the same bits, whatever the format; what cannot be is refused."""

import gzip

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import SEEDS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pegasos.data import writers
from pegasos.data.errors import DataError
from pegasos.data.files import load_svmlight
from pegasos.data.samples import load_sample
from pegasos.data.tables import read_table
from pegasos.data.writers import write_csv, write_parquet, write_svmlight

one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
DTYPES = (np.float32, np.float64)
TABLES = {"t.csv": write_csv, "t.csv.gz": write_csv, "t.tsv": write_csv, "t.parquet": write_parquet}


def any_bits(rng, dtype, size) -> np.ndarray:
    """Finite numbers of any size: random bits, and the extremes."""
    kind = np.dtype(dtype)
    words = rng.integers(0, 2 ** (8 * kind.itemsize) - 1, size, dtype=f"u{kind.itemsize}")
    values = words.view(kind)
    info = np.finfo(kind)
    extremes = [0.0, -0.0, info.max, info.min, info.tiny, info.smallest_subnormal, 1.0, 1e16]
    some = rng.random(size) < 0.5
    values[some | ~np.isfinite(values)] = rng.choice(np.array(extremes, dtype=kind))
    return values


def random_csr(rng, dtype, n, d):
    """Rows with stored zeros, some of them empty."""
    M = sp.random_array((n, d), density=0.4, rng=rng, format="csr")
    return sp.csr_array((any_bits(rng, dtype, M.nnz), M.indices, M.indptr), shape=(n, d))


def same(A, B) -> bool:
    return all(
        np.array_equal(getattr(A, part), getattr(B, part)) for part in ("indices", "indptr")
    ) and (A.data.tobytes() == B.data.tobytes())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["t.svm", "t.svm.gz"])
@one_folder
@given(seed=SEEDS, first=st.sampled_from((0, 1)), cells=st.sampled_from((3, 1 << 20)))
def test_svmlight_comes_back_bit_for_bit(dtype, name, seed, first, cells, tmp_path, monkeypatch):
    monkeypatch.setattr(writers, "CELLS", cells)
    rng = np.random.default_rng(seed)
    n, d = rng.integers(1, 30, 2)
    X, y = random_csr(rng, dtype, n, d), any_bits(rng, np.float64, n)
    write_svmlight(tmp_path / name, X, y, first=first)
    Z, labels = load_svmlight(tmp_path / name, dtype=dtype, zero_based=first == 0, n_features=d)
    assert same(X, Z)
    assert labels.tobytes() == y.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", TABLES)
@one_folder
@given(seed=SEEDS, cells=st.sampled_from((3, 1 << 20)), stored=st.booleans())
def test_tables_come_back_bit_for_bit(dtype, name, seed, cells, stored, tmp_path, monkeypatch):
    monkeypatch.setattr(writers, "CELLS", cells)
    monkeypatch.setattr(writers, "GROUP", cells)
    rng = np.random.default_rng(seed)
    n, d = rng.integers(1, 20, 2)
    X = random_csr(rng, dtype, n, d)
    values = X.toarray() if stored else any_bits(rng, dtype, n * d).reshape(n, d)
    names = [f'"{j}", é' for j in range(d)]
    texts = np.array(["a,b", 'say "x"', "é\t"])[rng.integers(0, 3, n)]
    kinds = (rng.integers(-3, 3, n), rng.normal(size=n), texts, texts.astype(object), None)
    y = kinds[seed % len(kinds)]
    TABLES[name](tmp_path / name, X if stored else values, y, names, "kind")
    label = None if y is None else "kind"
    table = read_table(tmp_path / name, label=label, dtype=np.dtype(dtype))
    assert table.X.tobytes() == values.tobytes() and table.names == names
    assert y is None if table.y is None else np.array_equal(table.y, y)


@pytest.mark.parametrize("name", ["pima", "spambase"])
def test_a_sample(name, tmp_path):
    X, y = load_sample(name)
    write_svmlight(tmp_path / "t.svm", X, y)
    Z, labels = load_svmlight(tmp_path / "t.svm", n_features=X.shape[1])
    assert np.array_equal(Z.toarray(), X) and np.array_equal(labels, y)
    for file, write in TABLES.items():
        write(tmp_path / file, X, y)
        table = read_table(tmp_path / file, label="y", dtype=np.dtype(np.float32))
        assert np.array_equal(table.X, X) and np.array_equal(table.y, y)
        assert table.names == [f"f{j}" for j in range(1, X.shape[1] + 1)]


def test_the_text(tmp_path):
    X = np.array([[1, 0, 0.1], [0, 0, 0], [0, -2.5, 1e-45]], dtype=np.float32)
    y = np.array([1.0, -1.0, 0.5])
    write_svmlight(tmp_path / "t", X, y)
    assert (tmp_path / "t").read_text() == "1 1:1 3:0.1\n-1\n0.5 2:-2.5 3:1e-45\n"
    write_csv(tmp_path / "t", X, y.astype(int))
    assert (tmp_path / "t").read_text().splitlines()[:2] == ['"f1","f2","f3","y"', "1,0,0.1,1"]
    write_svmlight(tmp_path / "t", sp.csr_array((2, 3)), [True, False], first=0)
    assert (tmp_path / "t").read_text() == "1\n0\n"


def test_other_kinds_of_matrix(tmp_path):
    X = np.array([[3, 0], [0, 4]])
    unsorted = sp.csr_array(([1.0, 3.0, 2.0, 4.0], [1, 0, 0, 1], [0, 1, 4]), shape=(2, 2))
    twice = sp.csr_array(([1.0, 2.0, 4.0], [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    before = twice.copy()
    kinds = (X, X.astype(np.float16), X.astype(">f4"), np.asfortranarray(X), sp.coo_array(X))
    for kind in (*kinds, sp.csc_matrix(X), twice):
        write_svmlight(tmp_path / "t", kind, [1, 2])
        assert (tmp_path / "t").read_text() == "1 1:3\n2 2:4\n"
        write_parquet(tmp_path / "t.parquet", kind, None)
        table = read_table(tmp_path / "t.parquet", label=None, dtype=np.dtype(np.float64))
        assert np.array_equal(table.X, X)
    assert same(before, twice)
    write_svmlight(tmp_path / "t", unsorted, [1, 2])
    assert (tmp_path / "t").read_text() == "1 2:1\n2 1:5 2:4\n"


def test_the_same_data_make_the_same_bytes(tmp_path):
    X, y = load_sample("pima")
    for name in ("t.svm.gz", "u.svm.gz"):
        write_svmlight(tmp_path / name, X, y)
    packed = (tmp_path / "t.svm.gz").read_bytes()
    assert packed == (tmp_path / "u.svm.gz").read_bytes()
    write_svmlight(tmp_path / "t.svm", X, y)
    assert gzip.decompress(packed) == (tmp_path / "t.svm").read_bytes()


ONE = np.ones((2, 2))
NAN = np.array([[1, 2], [3, np.nan]])
HUGE = sp.csr_array((50_000, 50_000))
FAULTS = {
    "text": (write_svmlight, (ONE, ["no", "yes"]), "labels like 'no'; write .csv or .parquet"),
    "nan": (write_svmlight, (NAN, [1, 2]), "row 2: index 2: nan is not finite"),
    "nan csv": (write_csv, (NAN, [1, 2]), "row 2: column 'f2': nan is not finite"),
    "nan parquet": (write_parquet, (NAN, [1, 2]), "row 2: column 'f2': nan is not finite"),
    "nan label": (write_csv, (ONE, [1, np.inf]), "row 2: the label inf is not finite"),
    "rows": (write_svmlight, (ONE, [1, 2, 3]), r"2 rows, but labels of shape \(3,\)"),
    "kind": (write_csv, (ONE, [1, None]), "labels must be numbers or text"),
    "matrix": (write_csv, (np.ones(3), [1, 2, 3]), "must be a matrix of numbers"),
    "names": (write_csv, (ONE, [1, 2], ["a"]), "1 names for 2 columns"),
    "twice": (write_parquet, (ONE, [1, 2], ["a", "y"]), "two columns would be named 'y'"),
    "empty": (write_csv, (ONE, ["a", ""]), "cannot hold the name or label ''"),
    "break": (write_csv, (ONE, ["a", "b\n"]), "cannot hold the name or label"),
    "huge": (write_csv, (HUGE, np.ones(50_000)), "too much for a table.*LIBSVM text"),
    "huge parquet": (write_parquet, (HUGE, np.ones(50_000)), "too much for a table.*LIBSVM"),
    "wide": (write_svmlight, (sp.csr_array((1, 2**31)), [1]), "largest index allowed is"),
}


@pytest.mark.parametrize("case", FAULTS)
def test_faults_leave_the_old_file(case, tmp_path):
    write, arguments, words = FAULTS[case]
    path = tmp_path / "old"
    path.write_text("old")
    with pytest.raises(DataError, match=words) as caught:
        write(path, *arguments)
    assert str(caught.value).startswith(f"{path}: ") and "\n" not in str(caught.value)
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]
