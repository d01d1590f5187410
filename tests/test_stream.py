"""Text files as blocks: compression, damage, long lines, and files that change."""

import bz2
import gzip
import io
import lzma
import os
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_svmlight import FEW, same, write

from pegasos import load_svmlight
from pegasos.data import stream
from pegasos.data.errors import DataError, ReadError
from pegasos.data.files import read_svmlight
from pegasos.data.grammar import Dialect
from pegasos.data.stream import Text

PACKERS = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}
every_packer = pytest.mark.parametrize("pack", PACKERS.values(), ids=PACKERS.keys())


def refusal(path: Path, kind: type[Exception] = DataError) -> str:
    """What is said of a file that cannot be read: one line that begins with its name."""
    with pytest.raises(kind) as caught:
        load_svmlight(path)
    said = str(caught.value)
    assert said.startswith(f"{path}: ") and said.isprintable(), said
    return said


@st.composite
def lines(draw) -> bytes:
    text = b"".join(draw(st.lists(st.binary(max_size=12).map(lambda b: b + b"\n"), max_size=8)))
    return text + draw(st.binary(max_size=5))


@given(lines(), st.integers(3, 30))
def test_blocks_are_whole_lines_and_make_up_the_file(text, size):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "BLOCK", size)
        patch.setattr(stream, "_open", lambda path: io.BufferedReader(io.BytesIO(b"#" + text)))
        with Text("a") as file:
            blocks = []
            for block in file:
                blocks.append(bytes(block.data[: block.size]))
                file.reuse(block)
    whole = b"#" + text
    assert all(block.endswith(b"\n") for block in blocks)
    assert b"".join(blocks) == (whole if whole.endswith(b"\n") else whole + b"\n")


@every_packer
@pytest.mark.parametrize("name", ["a.svm", "a.gz"])
def test_compressed_files_are_told_by_their_content(tmp_path, pack, name):
    packed = load_svmlight(write(tmp_path, pack(FEW), name))
    assert same(packed, load_svmlight(write(tmp_path, FEW, "plain.bz2")))


@every_packer
def test_members_one_after_the_other_are_read_whole(tmp_path, pack):
    cut = FEW.index(b"\n") - 5
    both = load_svmlight(write(tmp_path, pack(FEW[:cut]) + pack(FEW[cut:])))
    assert same(both, load_svmlight(write(tmp_path, FEW, "plain")))


@every_packer
def test_a_truncated_file_is_refused(tmp_path, pack):
    packed = pack(FEW)
    for size in range(20, len(packed), 37):
        assert "ends early" in refusal(write(tmp_path, packed[:size]), ReadError)


@every_packer
def test_a_damaged_file_is_never_read_otherwise(tmp_path, pack):
    """Whatever byte is changed: the same rows, or an error that names the file."""
    good, packed = load_svmlight(write(tmp_path, FEW)), bytearray(pack(FEW))
    for at in range(0, len(packed), 7):
        packed[at] ^= 0x55
        path = write(tmp_path, bytes(packed))
        try:
            assert same(load_svmlight(path), good)
        except (ReadError, DataError) as error:
            assert str(error).startswith(str(path)) and str(error).isprintable()
        packed[at] ^= 0x55


def test_a_wrong_checksum_and_trailing_garbage_are_refused(tmp_path):
    packed = bytearray(gzip.compress(FEW))
    packed[-6] ^= 1
    assert "damaged: CRC check failed" in refusal(write(tmp_path, bytes(packed)), ReadError)
    assert "damaged" in refusal(write(tmp_path, gzip.compress(FEW) + b"garbage"), ReadError)


FOREIGN = {
    "zip": (b"PK\x03\x04rest", "a zip archive"),
    "zstd": (b"\x28\xb5\x2f\xfdrest", "a zstd file"),
    "parquet": (b"PAR1rest", "a Parquet file"),
    "UTF-16": ("1 1:1\n".encode("utf-16"), "UTF-16 text"),
    "pickle": (b"\x80\x04\x95", "a pickle"),
}


@pytest.mark.parametrize(("start", "words"), FOREIGN.values(), ids=FOREIGN.keys())
def test_foreign_files_are_named(tmp_path, start, words):
    assert f"not LIBSVM text but {words}" in refusal(write(tmp_path, start))


def test_utf_16_without_a_mark_is_refused(tmp_path):
    with pytest.raises(DataError, match=r":1:1: field 1: .*NUL byte"):
        load_svmlight(write(tmp_path, "1 1:1\n".encode("utf-16-le")))


@pytest.mark.parametrize("text", [b"", b"\n\n  \n", b"# a\n", b"\xef\xbb\xbf", b"\r\n"])
def test_a_file_without_rows_is_refused(tmp_path, text):
    assert "no rows" in refusal(write(tmp_path, text))


def test_missing_files_and_directories_are_refused(tmp_path):
    assert "no such file" in refusal(tmp_path / "missing")
    assert "is a directory" in refusal(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_refused(tmp_path):
    path = write(tmp_path, FEW)
    path.chmod(0)
    with pytest.raises(PermissionError, match="a.svm"):
        load_svmlight(path)


def test_errors_of_the_disk_name_the_file_and_the_place(tmp_path, monkeypatch):
    class Broken(io.BytesIO):
        def read1(self, size=-1):
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(stream, "_open", lambda path: Broken(b"1 1:1\n"))
    path = tmp_path / "a"
    assert "cannot be read at byte 0: Input/output error" in refusal(path, ReadError)


@pytest.mark.parametrize("change", ["grows", "shrinks", "is touched"])
def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch, change):
    monkeypatch.setattr(stream, "BLOCK", 200)
    path = write(tmp_path, FEW)
    os.utime(path, ns=(0, 0))
    changes = {
        "grows": lambda: path.write_bytes(FEW * 2),
        "shrinks": lambda: os.truncate(path, 300),
        "is touched": lambda: os.utime(path),
    }
    with pytest.raises(ReadError, match="changed while it was read"), Text(path) as text:
        for k, _ in enumerate(text):
            if k == 0:
                changes[change]()


def test_a_line_that_is_too_long_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(stream, "BLOCK", 64)
    monkeypatch.setattr(stream, "MAX_LINE", 512)
    long = b"1 " + b" ".join(b"%d:1" % j for j in range(1, 500))
    assert "a line of more than 512 bytes" in refusal(write(tmp_path, b"1 1:1\n" + long))
    assert load_svmlight(write(tmp_path, b"1 1:1 # " + b"c" * 300))[0].shape == (1, 1)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_is_read_once(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_bytes(FEW))
    writer.start()
    with Text(path) as text:
        assert text.progress() == (0, 0)
        assert b"".join(bytes(block.data[: block.size]) for block in text) == FEW
    writer.join()


def test_standard_input_is_called_so(tmp_path, monkeypatch):
    class Stdin:
        buffer = io.BufferedReader(io.BytesIO(b"1 x\n"))

    monkeypatch.setattr("sys.stdin", Stdin)
    with pytest.raises(DataError, match="^standard input:1:3: field 2: "):
        read_svmlight("-", Dialect(), np.dtype(np.float32))


def test_lines_of_a_pipe_that_falls_silent_make_a_block(tmp_path, monkeypatch):
    monkeypatch.setattr(stream, "SILENCE", 0.05)
    path = tmp_path / "pipe"
    os.mkfifo(path)
    heard = threading.Event()

    def write_slowly():
        with open(path, "wb", buffering=0) as file:
            file.write(20 * b"1 1:2\n" + b"1 3")
            heard.wait(30.0)
            file.write(b":4\n")

    writer = threading.Thread(target=write_slowly)
    writer.start()
    with Text(path, 1 << 20) as text:
        blocks = iter(text)
        lines = b""
        while lines.count(b"\n") < 20:
            block = next(blocks)
            lines += bytes(block.data[: block.size])
        assert lines == 20 * b"1 1:2\n" and not heard.is_set()
        heard.set()
        rest = b"".join(bytes(block.data[: block.size]) for block in blocks)
    writer.join()
    assert rest == b"1 3:4\n"
