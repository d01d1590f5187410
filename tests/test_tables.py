"""CSV and Parquet: what was written is read, in any cut into blocks, and every fault is named."""

import gzip
import io
import re
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import csv, parquet

from pegasos.data import stream
from pegasos.data.columns import Columns
from pegasos.data.csvtext import Form, fault_of, parser, sound, split
from pegasos.data.errors import DataError, ReadError
from pegasos.data.samples import load_sample
from pegasos.data.stream import Block
from pegasos.data.tables import read_batches, read_names, read_table

DTYPES = (np.float32, np.float64)
one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def written(folder: Path, content, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(path, label=None, dtype=np.float32, **options):
    return read_table(path, label=label, dtype=np.dtype(dtype), **options)


def fault(path, kind=DataError, **options) -> str:
    """The message of the error, which is one line that begins with the file's name."""
    with pytest.raises(kind) as caught:
        read(path, **options)
    message = str(caught.value)
    assert type(caught.value) is kind and "\n" not in message
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


# What is good


@st.composite
def matrices(draw):
    """Any finite float32 numbers, denormals and -0.0 included."""
    shape = draw(st.tuples(st.integers(1, 30), st.integers(1, 5)))
    number = st.floats(width=32, allow_nan=False, allow_infinity=False)
    rows = draw(st.lists(number, min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
    return np.array(rows, dtype=np.float32).reshape(shape)


def table_of(X, y=None):
    columns = {f"x{j}": pa.array(X[:, j]) for j in range(X.shape[1])}
    return pa.table(columns if y is None else {**columns, "y": y})


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.tsv", "t.parquet"])
@one_folder
@given(X=matrices(), block=st.sampled_from((64, 1 << 22)), batch=st.integers(1, 9))
def test_numbers_come_back_bit_for_bit(dtype, name, X, block, batch, tmp_path, monkeypatch):
    X = X.astype(dtype)
    monkeypatch.setattr(stream, "BLOCK", block)
    y = np.arange(len(X)) % 3
    if name == "t.parquet":
        parquet.write_table(table_of(X, y), tmp_path / name, row_group_size=7)
    else:
        buffer = io.BytesIO()
        options = csv.WriteOptions(delimiter="\t" if name == "t.tsv" else ",")
        csv.write_csv(table_of(X, y), buffer, options)
        raw = buffer.getvalue()
        written(tmp_path, gzip.compress(raw) if name.endswith("gz") else raw, name)
    table = read(tmp_path / name, "y", dtype)
    assert table.X.dtype == dtype and table.X.flags.c_contiguous
    assert table.X.tobytes() == X.tobytes()
    assert table.y.dtype == np.int64 and np.array_equal(table.y, y)
    assert table.names == [f"x{j}" for j in range(X.shape[1])]
    parts = list(read_batches(tmp_path / name, label="y", dtype=np.dtype(dtype), batch_rows=batch))
    assert max(len(part.X) for part in parts) <= batch
    assert np.concatenate([part.X for part in parts]).tobytes() == X.tobytes()
    assert np.array_equal(np.concatenate([part.y for part in parts]), y)


@pytest.mark.parametrize("name", ["pima", "spambase"])
def test_a_sample_through_pandas(name, tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = load_sample(name)
    frame = pd.DataFrame(X, columns=[f"m {j}" for j in range(X.shape[1])]).assign(target=y)
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    for file in ("t.csv", "t.parquet"):
        table = read(tmp_path / file, "target")
        assert np.array_equal(table.X, X) and np.array_equal(table.y, y)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["1", "2", "1"], np.array([1, 2, 1])),
        (["1.0", "-1", " +3 "], np.array([1, -1, 3])),
        (["9007199254740993", "0", "1"], np.array([9007199254740993, 0, 1])),
        (["0.5", "2", "1e300"], np.array([0.5, 2, 1e300])),
        (["yes", "no", "yes"], np.array(["yes", "no", "yes"])),
        (["1", "2", "x"], np.array(["1", "2", "x"])),
        (["NULL", "N/A", "2020-01-01"], np.array(["NULL", "N/A", "2020-01-01"])),
        (["true", "false", "nan"], np.array(["true", "false", "nan"])),
        (['"a,b"', '"say ""x"""', "é"], np.array(["a,b", 'say "x"', "é"])),
    ],
)
def test_labels_of_csv(labels, expected, tmp_path, monkeypatch):
    text = "a,kind\n" + "".join(f"{i},{label}\n" for i, label in enumerate(labels))
    for block in (8, 1 << 22):
        monkeypatch.setattr(stream, "BLOCK", block)
        y = read(written(tmp_path, text), "kind").y
        assert y.dtype == expected.dtype and np.array_equal(y, expected)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (pa.array([1, 2], pa.uint8()), np.array([1, 2])),
        (pa.array([1.0, 2.0], pa.float32()), np.array([1, 2])),
        (pa.array([0.5, 2.0]), np.array([0.5, 2.0])),
        (pa.array([True, False]), np.array([1, 0])),
        (pa.array(["1", "2"]), np.array(["1", "2"])),
        (pa.array(["x", "y"], pa.large_string()), np.array(["x", "y"])),
        (pa.array(["x", "y"]).dictionary_encode(), np.array(["x", "y"])),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_labels_of_parquet(labels, expected, tmp_path):
    parquet.write_table(pa.table({"a": [1, 2], "kind": labels}), tmp_path / "t.parquet")
    y = read(tmp_path / "t.parquet", "kind").y
    assert y.dtype == expected.dtype and np.array_equal(y, expected)


def test_features_of_parquet(tmp_path):
    columns = {
        "b": pa.array([True, False]),
        "i": pa.array([-(2**40), 7], pa.int64()),
        "h": pa.array(np.array([0.5, 1], np.float16)),
        "a.b": pa.array([1, 255], pa.uint8()),
    }
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    table = read(tmp_path / "t.parquet", dtype=np.float64)
    assert table.y is None and table.names == list(columns)
    assert np.array_equal(table.X, [[1, -(2**40), 0.5, 1], [0, 7, 1, 255]])


@pytest.mark.parametrize(
    "text",
    [
        "a,b,y\r\n1,2,u\r\n3,4,v\r\n",
        "\ufeffa,b,y\n1,2,u\n3,4,v",
        '\ufeff"a","b","y"\n"1",2,"u"\n3,"4",v\n',
        "\n\na,b,y\n\n1,2,u\n\n\n3, 4 ,v\n\n",
        "a,b,y\n1e0,+2.,u\n.3e1,4,v\n",
    ],
)
def test_forms_of_csv(text, tmp_path, monkeypatch):
    for block in (16, 1 << 22):
        monkeypatch.setattr(stream, "BLOCK", block)
        table = read(written(tmp_path, text), "y")
        assert np.array_equal(table.X, [[1, 2], [3, 4]])
        assert table.y.tolist() == ["u", "v"] and table.names == ["a", "b"]


def test_columns_are_picked_by_name(tmp_path):
    path = written(tmp_path, "a,y,b\n1,0,2\n3,1,4\n")
    table = read(path, "y", wanted=["b", "a"])
    assert table.names == ["b", "a"] and np.array_equal(table.X, [[2, 1], [4, 3]])
    assert "no column 'c', 'd', which the model" in fault(path, label="y", wanted=["c", "a", "d"])
    assert "without column 'b'" in fault(path, label="y", wanted=["a"])
    assert "without column 'y'" in fault(path, wanted=["a", "b"])
    assert read_names(path) == ["a", "y", "b"]


@pytest.mark.parametrize("label", ["0", "f0"])
def test_no_header(label, tmp_path):
    table = read(written(tmp_path, "7,1,2\n8,3,4\n"), label, header=False)
    assert table.names == ["f1", "f2"] and table.y.tolist() == [7, 8]


FIELDS = st.text(alphabet='0123456789+-.eE, "ax\t_nif', max_size=6)


@given(line=FIELDS, dtype=st.sampled_from(DTYPES), label=st.sampled_from((None, 1)))
@settings(max_examples=400)
def test_arrow_accepts_exactly_what_the_rules_accept(line, dtype, label):
    places = [j for j in range(2) if j != label]
    form = Form(Columns(["a", "b"], label, places), ",", np.dtype(dtype), True)
    data = bytearray(f"1,{line}\n".encode())
    piece = parser(form)(Block(data, len(data)))
    assert (piece is None) == (fault_of(bytes(data[:-1]), form) is not None)
    quotes = split(bytes(data[:-1]), b",")
    assert sound(Block(data, len(data)), ord(",")) == (not isinstance(quotes, str))


# What is not


TEXTS = {
    "text": ("a,b\n1,2\n3,abc\n", r"row 2: column 'b': 'abc' is not a number$"),
    "date": ("a,b\n1,2020-01-01\n", r"row 1: column 'b': '2020-01-01' is not a number"),
    "NULL": ("a,b\n1,NULL\n", r"row 1: column 'b': 'NULL' is not a number"),
    "true": ("a,b\n1,true\n", r"row 1: column 'b': 'true' is not a number"),
    "comma": ('a,b\n1,"2,5"\n', r"row 1: column 'b': '2,5' is not .* sign is a point"),
    "digits": ("a,b\n1,٣\n", r"row 1: column 'b': '٣' is not a number"),
    "underscore": ("a,b\n1,1_0\n", r"row 1: column 'b': '1_0' is not a number"),
    "hex": ("a,b\n0x10,1\n", r"row 1: column 'a': '0x10' is not a number"),
    "empty": ("a,b\n1,2\n,4\n", r"row 2: column 'a': the value is missing; fill or drop"),
    "blank": ("a,b\n1,2\n  ,4\n", r"row 2: column 'a': the value is missing"),
    "empty quotes": ('a,b\n1,2\n"",4\n', r"row 2: column 'a': the value is missing"),
    "blank line": ("a\n1\n\n2\n", r"row 2: column 'a': the value is missing"),
    "nan": ("a,b\n1,NaN\n", r"row 1: column 'b': 'NaN' is not a finite number"),
    "inf": ("a,b\n1,2\n-inf,2\n", r"row 2: column 'a': '-inf' is not a finite number"),
    "1e400": ("a,b\n1,1e400\n", r"row 1: column 'b': '1e400' is too large for a float64"),
    "1e39": ("a,b\n1,1e39\n", r"row 1: column 'b': '1e39' .* float32; ask for float64"),
    "short": ("a,b,c\n1,2,3\n\n4,5\n", r"row 2: 2 fields, but the header has 3"),
    "long": ("a,b\n1,2\n3,4,5\n", r"row 2: 3 fields, but the header has 2"),
    "quote": ('a,b\n1,"2\n3,4\n', r"row 1: field 2: a quote is not closed"),
    "last quote": ('a,b\n1,2\n3,"4', r"row 2: field 2: a quote is not closed"),
    "two quotes": ('a,b\n1,"2\n3,4"\n', r"row 1: field 2: a quote is not closed"),
    "inner quote": ('a,b\n1,2"\n', r"row 1: field 2: a quote inside of the field '2\"'"),
    "after quote": ('a,b\n1,"2"3\n', r"row 1: field 2: a quote inside of the field"),
    "NUL": ("a,b\n1,2\n3,\x004\n", r"row 2: a NUL byte at byte 3"),
    "CR": ("a,b\n1,2\r3,4\n", r"row 1: a carriage return inside"),
    "old Mac": ("a,b\r1,2\r3,4\r", r"the header: a carriage return inside"),
    "latin 1": (b"a,b\n1,2\n3,\xe9\n", r"row 2: not UTF-8 at byte 3"),
    "latin 1 header": (b"a,\xe9\n1,2\n", r"the header: not UTF-8 at byte 3"),
    "names twice": ("a,b,a\n1,2,3\n", r"columns 1 and 3 have the same name, 'a'"),
    "no name": (",a\n1,2\n", r"column 1 has no name \(an index\? pandas"),
    "header quote": ('a,"b\n1,2\n', r"the header: field 2: a quote is not closed"),
    "numbers": ("1,2.5\n3,4\n", r"the header '1,2\.5' is all numbers.*--no-header"),
    "only header": ("a,b\n", r"no rows below the header 'a', 'b'"),
    "nothing": ("", r"no rows: the file is empty"),
    "blank lines": ("\n\r\n\n", r"no rows: the file is empty"),
    "semicolon": ("a;b\n1;2\n", r"one field, 'a;b': is a semicolon the delimiter, not a comma"),
    "tab": ("a\tb\n1\t2\n", r"is a tab the delimiter, not a comma"),
    "UTF-16": ("a,b\n1,2\n".encode("utf-16"), r"not CSV text but UTF-16 text"),
    "UTF-16 bare": ("a,b\n1,2\n".encode("utf-16-le"), r"the header: a NUL byte .*UTF-16"),
    "zip": (b"PK\x03\x04....", r"not CSV text but a zip archive"),
    "Parquet": (b"PAR1....", r"not CSV text but a Parquet file"),
}


@pytest.mark.parametrize("block", [12, 1 << 22])
@pytest.mark.parametrize("case", TEXTS)
def test_faults_of_csv(case, block, tmp_path, monkeypatch):
    monkeypatch.setattr(stream, "BLOCK", block)
    content, words = TEXTS[case]
    message = fault(written(tmp_path, content))
    assert re.search(words, message), message


LABELS = {
    "missing": ("a,kind\n1,x\n2,\n", r"row 2: column 'kind': the value is missing"),
    "blank": ("a,kind\n1,x\n2, \n", r"row 2: column 'kind': the value is missing"),
    "nan": ("a,kind\n1,1\n2,nan\n", r"row 2: column 'kind': the label 'nan' is not a finite"),
    "1e400": ("a,kind\n1,1\n2,-1e400\n", r"row 2: column 'kind': the label '-1e400' is too"),
    "huge": ("a,kind\n1,1\n2,99999999999999999999\n", r"row 2: .* does not fit into a 64-bit"),
    "latin 1": (b"a,kind\n1,x\n2,\xe9\n", r"row 2: not UTF-8"),
    "quote": ('a,kind\n1,"x\n2,y\n', r"row 1: field 2: a quote is not closed"),
    "alone": ("kind\n1\n2\n", r"no columns besides the label 'kind'"),
    "near": ("a,Kind\n1,2\n", r"no column 'kind' for the labels; did you mean 'Kind'\?"),
    "far": ("a,b\n1,2\n", r"no column 'kind' for the labels; the columns are 'a', 'b'"),
}


@pytest.mark.parametrize("case", LABELS)
def test_faults_of_labels(case, tmp_path):
    content, words = LABELS[case]
    message = fault(written(tmp_path, content), label="kind")
    assert re.search(words, message), message


def test_faults_without_header(tmp_path):
    path = written(tmp_path, "age,b\n1,2\n")
    words = "row 1: column 'f0': 'age' is not a number (is it a header?)"
    assert fault(path, header=False) == words
    assert "no column 'f9'" in fault(path, header=False, label="9")
    assert "row 2: 1 field, but row 1 has 2" in fault(written(tmp_path, "1,2\n3\n"), header=False)


def test_a_late_fault_is_found_by_its_row(tmp_path, monkeypatch):
    monkeypatch.setattr(stream, "BLOCK", 1 << 12)
    lines = [f"{i},{i % 2}" for i in range(20_000)]
    lines[17_654] = "abc,1"
    path = written(tmp_path, "age,y\n" + "\n".join(lines))
    assert fault(path, label="y") == "row 17655: column 'age': 'abc' is not a number"
    with pytest.raises(DataError, match="row 17655"):
        list(read_batches(path, label="y", dtype=np.dtype(np.float32)))


def test_kind_of_labels_in_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(stream, "BLOCK", 8)
    batches = {"label": "y", "dtype": np.dtype(np.float32)}
    path = written(tmp_path, "a,y\n1,1\n2,1\n3,1\n4,1\n5,no\n")
    with pytest.raises(DataError, match="row 5: column 'y': the label 'no' is not a number, as"):
        list(read_batches(path, **batches))
    path = written(tmp_path, "a,y\n1,no\n2,1\n3,1\n")
    assert [b.y.dtype.kind for b in read_batches(path, **batches)] == ["U", "U"]


def test_gzip_that_ends_early(tmp_path):
    rng = np.random.default_rng(0)
    text = "a,b\n" + "".join(f"{x},{x}\n" for x in rng.random(2000))
    packed = gzip.compress(text.encode())
    for size in (len(packed) - 1, len(packed) // 2, 20):
        path = written(tmp_path, packed[:size], "t.csv.gz")
        assert "ends early" in fault(path, ReadError)
    damaged = packed[:-8] + bytes([packed[-8] ^ 1]) + packed[-7:]
    assert "damaged" in fault(written(tmp_path, damaged, "t.csv.gz"), ReadError)
    assert len(read(written(tmp_path, packed, "t.csv.gz")).X) == 2000


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.parquet"])
def test_no_such_file(name, tmp_path):
    assert fault(tmp_path / name) == "no such file"
    (tmp_path / name).mkdir()
    assert "is a directory" in fault(tmp_path / name)


COLUMNS = {
    "null": (pa.array([1, None, 3]), r"row 2: column 'b': the value is missing; fill or drop"),
    "null bool": (pa.array([True, True, None]), r"row 3: column 'b': the value is missing"),
    "nan": (pa.array([1, 2, np.nan]), r"row 3: column 'b': nan is not a finite number"),
    "inf": (pa.array([-np.inf, 2, np.nan]), r"row 1: column 'b': -inf is not a finite number"),
    "1e39": (pa.array([1, 1e39, 1]), r"row 2: column 'b': 1e\+39 .* ask for float64"),
    "string": (pa.array(["1", "2", "3"]), r"column 'b': of type string; numbers or booleans"),
    "list": (pa.array([[1], [2], [3]]), r"column 'b': of type list<"),
    "struct": (pa.array([{"x": 1}] * 3), r"column 'b': of type struct<"),
    "decimal": (pa.array([Decimal("1.5")] * 3), r"column 'b': of type decimal128"),
    "timestamp": (pa.array([1, 2, 3], pa.timestamp("s")), r"column 'b': of type timestamp"),
    "binary": (pa.array([b"x"] * 3), r"column 'b': of type binary"),
    "all null": (pa.nulls(3), r"column 'b': of type null"),
    "extension": (
        pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"x" * 16] * 3, pa.binary(16))),
        r"column 'b': of type extension<arrow.uuid>",
    ),
}


@pytest.mark.parametrize("case", COLUMNS)
def test_faults_of_parquet_columns(case, tmp_path):
    column, words = COLUMNS[case]
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"a": [1, 2, 3], "b": column}), path, row_group_size=2)
    message = fault(path)
    assert re.search(words, message), message
    if case in ("null", "nan", "list"):
        assert re.search(words.replace("numbers or", "numbers,"), fault(path, label="b"))


def test_faults_of_parquet_files(tmp_path):
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"a": pa.array([], pa.float32())}), path)
    assert fault(path) == "no rows"
    parquet.write_table(pa.table([[1], [2]], names=["a", "a"]), path)
    assert "columns 1 and 2 have the same name, 'a'" in fault(path)
    parquet.write_table(pa.table({"a": np.random.default_rng(0).random(1000)}), path)
    assert "no column 'y' for the labels" in fault(path, label="y")
    good = path.read_bytes()
    for size in (4, 100, len(good) // 2, len(good) - 8, len(good) - 1):
        assert "end of the Parquet file is missing" in fault(written(tmp_path, good[:size], path))
    for content in (b"", b"a,b\n1,2\n", b"PAX1" + good[4:]):
        assert "not a Parquet file" in fault(written(tmp_path, content, path))
    holed = good[:4] + bytes(60) + good[64:]  # the first page has no header
    assert "damaged after row 0" in fault(written(tmp_path, holed, path), ReadError)


def test_arguments(tmp_path):
    path = written(tmp_path, "a\n1\n")
    with pytest.raises(ValueError, match="float32 or float64"):
        read(path, dtype=np.int64)
    with pytest.raises(ValueError, match="batch_rows"):
        next(read_batches(path, label=None, dtype=np.dtype(np.float32), batch_rows=0))
