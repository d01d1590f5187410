"""Named arrays in a file: bit for bit, readable by others, and no damage goes unnoticed."""

import io
import json
import pickle
import time
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest
from fuzz_files import opened, sealed
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pegasos.data import container
from pegasos.data.errors import DataError

DTYPES = ["<f8", "<f4", "<i8", "<i4", "<u8", "<u4", "|u1", "|b1"]
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)
ARRAYS = st.dictionaries(
    st.text(min_size=1, max_size=5).filter(lambda name: name not in ("seal", "__metadata__")),
    st.sampled_from(DTYPES).flatmap(lambda dtype: hnp.arrays(dtype, SHAPES)),
    max_size=4,
)
WORDS = st.dictionaries(st.text(max_size=4).filter(lambda k: k != "crc32"), st.text(max_size=4))
TWO = {"a": np.array([[1.5, -2.0]]), "b": np.array([7, 8], dtype=np.int32)}


def packed(description=None, arrays=None) -> bytes:
    file = io.BytesIO()
    container.write(file, {"k": "v"} if description is None else description, arrays or TWO)
    return file.getvalue()


def parsed(raw: bytes) -> container.Contents:
    return container.parse(memoryview(raw))


def same(contents: container.Contents, description, arrays) -> bool:
    found = {k: (v.dtype.str, v.shape, v.tobytes()) for k, v in contents.arrays.items()}
    wanted = {k: (v.dtype.str, v.shape, v.tobytes()) for k, v in arrays.items()}
    return contents.description == description and found == wanted


@given(WORDS, ARRAYS)
def test_what_is_written_is_read_bit_for_bit(description, arrays):
    raw = packed(description, arrays or {"x": np.zeros(1)})
    assert same(parsed(raw), description, arrays or {"x": np.zeros(1)})
    assert packed(description, arrays or {"x": np.zeros(1)}) == raw


@given(ARRAYS.filter(lambda arrays: all(name.isprintable() for name in arrays)))
def test_the_safetensors_library_reads_it(arrays):
    from safetensors.numpy import load

    arrays = arrays or {"x": np.arange(3.0)}
    found = load(packed({"k": "v"}, arrays))
    assert found.pop("seal").nbytes == 32
    assert set(found) == set(arrays)
    assert all(found[name].tobytes() == array.tobytes() for name, array in arrays.items())


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3).T,
        np.arange(6.0)[::-2],
        np.arange(4.0).astype(">f8"),
        np.asfortranarray(np.eye(3)),
    ],
)
def test_layout_and_byte_order_of_memory_do_not_matter(array):
    plain = np.array(array, dtype="<f8", order="C")
    assert packed(arrays={"a": array}) == packed(arrays={"a": plain})


def test_arrays_are_read_only_views_of_the_file(tmp_path):
    (tmp_path / "a").write_bytes(packed())
    _, arrays = container.read(tmp_path / "a")
    assert not any(array.flags.writeable for array in arrays.values())
    assert not any(array.flags.owndata for array in arrays.values())


@pytest.mark.slow
def test_large_arrays_are_checked_in_parallel(tmp_path):
    arrays = {"a": np.arange(200_000.0), "b": np.arange(10)}
    raw = bytearray(packed(arrays=arrays))
    assert same(parsed(bytes(raw)), {"k": "v"}, arrays)
    raw[-100_000] ^= 1
    with pytest.raises(DataError, match="array 'a': damaged"):
        parsed(bytes(raw))


# D1-D6: damage


def refusal(raw: bytes, path: Path) -> str:
    """What is said of a file that is refused: one line that begins with its name."""
    path.write_bytes(raw)
    with pytest.raises(DataError) as caught:
        container.read(path)
    said = str(caught.value)
    assert said.startswith(f"{path}: ") and said.isprintable() and len(said) < 400, said
    return said


def test_an_empty_file_is_refused(tmp_path):
    assert refusal(b"", tmp_path / "a").endswith("is empty")


def test_every_truncation_is_refused():
    raw = packed()
    for size in range(len(raw)):
        with pytest.raises(DataError):
            parsed(raw[:size])


def test_every_flip_of_a_bit_is_refused():
    raw = bytearray(packed())
    for at in range(len(raw)):
        for bit in range(8):
            raw[at] ^= 1 << bit
            with pytest.raises(DataError):
                parsed(bytes(raw))
            raw[at] ^= 1 << bit


@given(st.binary(max_size=200))
def test_random_bytes_are_refused(raw):
    with pytest.raises(DataError):
        parsed(raw)


@given(st.binary(min_size=1, max_size=20))
def test_trailing_bytes_are_refused(tail):
    with pytest.raises(DataError, match="ends early or late"):
        parsed(packed() + tail)


FOREIGN = {
    "pickle": (pickle.dumps([1] * 50), "a pickle"),
    "old pickle": (pickle.dumps([1] * 50, protocol=2), "a pickle"),
    "zip": (b"PK\x03\x04" + b"x" * 90, "a zip archive"),
    "LIBSVM": (b"svm_type c_svc\nkernel_type rbf\n", "a LIBSVM model"),
    "LIBLINEAR": (b"solver_type L2R_LR\nnr_class 2\n", "a LIBLINEAR model"),
    "XGBoost": (b'{"learner": {"attributes": {}}}', "a JSON file"),
    "gzip": (b"\x1f\x8b\x08" + b"x" * 90, "a gzip file"),
    "safetensors": (sealed(b'{"__metadata__":{}}', b""), "not a file of pegasos"),
    "text": (b"1 1:0.5 2:1\n" * 9, "but text"),
}


@pytest.mark.parametrize(("raw", "words"), FOREIGN.values(), ids=FOREIGN.keys())
def test_foreign_files_are_called_by_their_name(tmp_path, raw, words):
    assert words in refusal(raw, tmp_path / "a")


# Headers that are wrong although their checksums are right


def forged(changes: dict, data: bytes | None = None, **description) -> bytes:
    """A file whose header has other entries, sealed again."""
    words, header, arrays = opened(packed())
    data = b"".join(arrays.values()) if data is None else data
    words = words | description
    text = json.dumps({k: v for k, v in words.items() if v is not None})
    seal = {"dtype": "U8", "shape": [32], "data_offsets": [len(data), len(data) + 32]}
    entries = {"__metadata__": {"pegasos": text}, **header, "seal": seal} | changes
    head = json.dumps({k: v for k, v in entries.items() if v is not None}, separators=(",", ":"))
    return sealed(head.encode(), data)


def entry(dtype="F64", shape=(1, 2), place=(0, 16)) -> dict:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(place)}


HUGE = (0, 2**31, 2**62, 2**63 - 1, 2**64, -1)
HEADERS = {
    **{f"shape {n}": ({"a": entry(shape=(1, n))}, "array 'a'") for n in HUGE},
    **{f"empty shape {n}": ({"a": entry(shape=(0, n))}, "array 'a'") for n in HUGE},
    **{f"end {n}": ({"a": entry(place=(0, n))}, "array 'a'") for n in HUGE},
    **{f"start {n}": ({"a": entry(place=(n, n + 16))}, "array ") for n in HUGE[1:]},
    "empty and large": ({"z": entry(shape=(0, 2**61), place=(24, 24))}, "array 'z'"),
    "five dimensions": ({"a": entry(shape=(1, 2, 1, 1, 1))}, "array 'a'"),
    "fraction": ({"a": entry(shape=(1.0, 2))}, "array 'a'"),
    "truth": ({"a": entry(shape=(True, 2))}, "array 'a'"),
    "one offset": ({"a": entry(place=(0,))}, "array 'a'"),
    "text for a shape": ({"a": entry() | {"shape": "12"}}, "array 'a'"),
    "unknown dtype": ({"a": entry(dtype="F16", shape=(8,))}, "unknown dtype 'F16'"),
    "dtype that is a list": ({"a": entry(dtype=["F64"])}, "unknown dtype"),
    "dtype that runs code": ({"a": entry(dtype="O")}, "unknown dtype 'O'"),
    "an unknown part": ({"a": entry() | {"x": 1}}, "array 'a'"),
    "no object": ({"a": [1]}, "array 'a': expected a JSON object"),
    "overlap": ({"b": entry("I32", (2,), (8, 16))}, "array 'b': begins at byte 8"),
    "hole": ({"a": entry(shape=(1, 1), place=(0, 8))}, "begins at byte 16, expected 8"),
    "an array too few": ({"b": None}, "array 'seal': begins at byte 24, expected 16"),
    "an array without checksum": ({"z": entry(shape=(0,), place=(24, 24))}, "checksum per array"),
    "a name with a newline": ({"x\ny": entry(place=(3, 19))}, "array 'x\\ny'"),
    "a name that is no text": ({"\ud800": entry(place=(3, 19))}, "\\ud800"),
    "a long name": ({"x" * 10_000: 1}, "array 'xxxx"),
    "no seal": ({"seal": None}, "ends early or late"),
    "small seal": ({"seal": entry("U32", (8,), (24, 56))}, "the seal is missing"),
    "no metadata": ({"__metadata__": None}, "header: __metadata__"),
    "metadata of another": ({"__metadata__": {"format": "pt"}}, "has no description"),
    "description that is no text": ({"__metadata__": {"pegasos": 1}}, "has no description"),
    "description that is no JSON": ({"__metadata__": {"pegasos": "{"}}, "description: not JSON"),
    "description in surrogates": ({"__metadata__": {"pegasos": "\ud800"}}, "description: not JSON"),
    "description that is a list": ({"__metadata__": {"pegasos": "[]"}}, "a JSON object"),
    "NaN": ({"__metadata__": {"pegasos": '{"a":NaN}'}}, "NaN is not JSON"),
    "a key twice": ({"__metadata__": {"pegasos": '{"a":1,"a":1}'}}, "occurs twice"),
    "too many arrays": ({f"{k}": 1 for k in range(10_001)}, "more than 10000"),
}


@pytest.mark.parametrize(("changes", "words"), HEADERS.values(), ids=HEADERS.keys())
def test_headers_that_lie_are_refused(tmp_path, changes, words):
    assert words in refusal(forged(changes), tmp_path / "a")


@pytest.mark.parametrize("sums", [None, {}, [], {"a": 1}, {"a": 1, "b": 2}, {"a": "x", "b": []}])
def test_wrong_checksums_are_refused(tmp_path, sums):
    assert "checksum" in refusal(forged({}, crc32=sums), tmp_path / "a")


def test_the_forgery_is_good_if_nothing_is_changed():
    assert same(parsed(forged({})), {"k": "v"}, TWO)
    crc = {"a": zlib.crc32(TWO["a"].tobytes()), "b": zlib.crc32(TWO["b"].tobytes())}
    assert same(parsed(forged({}, crc32=crc)), {"k": "v"}, TWO)


RAW = {
    "a name twice": (b'{"a":1,"a":1}', "a name occurs twice"),
    "no UTF-8": (b'{"\xff":1}', "header: not JSON"),
    "UTF-16": ('{"a":1}'.encode("utf-16-le"), "header: not JSON"),
    "a list": (b"[1]", "header: not JSON"),
    "deep": (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "header: not JSON"),
    "many names": (b"{" + b",".join(b'"%d":0' % k for k in range(50_000)) + b"}", "header:"),
    "a long number": (b'{"a":' + b"9" * 100_000 + b"}", "header: not JSON"),
    "many values": (b'{"a":[' + b"[]," * 2_000_000 + b"0]}", "header: more than 2000000 values"),
    "empty": (b"", "header: not JSON"),
}


def test_what_could_not_be_read_is_not_written():
    for names in (["x"] * 2_000_001, ["x" * 100_000_001]):
        file = io.BytesIO()
        with pytest.raises(ValueError, match="too many names or words"):
            container.write(file, {"names": names}, TWO)
        assert file.getvalue() == b""


@pytest.mark.parametrize(("head", "words"), RAW.values(), ids=RAW.keys())
def test_headers_that_are_no_headers_are_refused_soon_and_in_little_memory(tmp_path, head, words):
    tracemalloc.start()
    begin = time.perf_counter()
    try:
        assert words in refusal(sealed(head, b""), tmp_path / "a")
        assert tracemalloc.get_traced_memory()[1] < 50 * len(head) + 2_000_000
    finally:
        tracemalloc.stop()
    assert time.perf_counter() - begin < 2.0


@pytest.mark.parametrize("length", [0, 1, 2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 1])
def test_any_length_of_the_header_but_the_right_one_is_refused(tmp_path, length):
    refusal(length.to_bytes(8, "little") + packed()[8:], tmp_path / "a")
