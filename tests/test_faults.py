"""Bad files: one line that names the place, exit code 2 or 3, nothing written.

The cases carry the numbers of the catalogue of faults: A for data, D for models.
"""

import bz2
import gzip
import io
import lzma
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from typer.testing import CliRunner

from pegasos import LinearSVC, save_model
from pegasos.cli.main import app
from pegasos.data import container

pytestmark = pytest.mark.slow

GOOD = b"+1 1:0.5 3:-2\n-1 2:1e-3 # comment\n+1 1:7\n-1 3:4\n"
HEAD = b"".join(GOOD.splitlines(keepends=True)[:2])


class Case(NamedTuple):
    """A file and what the message must say; `place` is line:column, if it has one."""

    name: str
    content: bytes
    says: str
    place: str = ""


# (what stands in a line, column and field that are named, words of the message)
BAD_LINES = {
    "A9-nul": (b"+1 1:2\x00 2:3", 6, 2, "NUL byte"),
    "A9-nul-label": (b"\x00+1 1:2", 1, 1, "NUL byte"),
    "A10-no-colon": (b"+1 1:2 5", 8, 3, "'5': expected index:value"),
    "A10-word": (b"+1 spam", 4, 2, "expected index:value"),
    "A11-two-colons": (b"+1 1:2:3", 4, 2, "'1:2:3': expected index:value"),
    "A12-no-label": (b"1:2 2:3", 1, 1, "the label is missing"),
    "A13-zero": (b"+1 0:2", 4, 2, "indices start at 1"),
    "A13-negative": (b"+1 -3:2", 4, 2, "'-3' is not a whole number"),
    "A13-plus": (b"+1 +3:2", 4, 2, "'+3' is not a whole number"),
    "A13-fraction": (b"+1 1.5:2", 4, 2, "'1.5' is not a whole number"),
    "A15-twice": (b"+1 2:1 2:1", 8, 3, "index 2 occurs twice"),
    "A15-twice-apart": (b"+1 2:1 5:1 2:1", 12, 4, "index 2 occurs twice"),
    "A17-index-31": (b"+1 2147483648:1", 4, 2, "above the limit of 2147483647"),
    "A17-index-32": (b"+1 4294967297:1", 4, 2, "above the limit of 2147483647"),
    "A17-index-64": (b"+1 18446744073709551617:1", 4, 2, "above the limit of 2147483647"),
    "A17-index-long": (b"+1 " + b"9" * 5000 + b":1", 4, 2, "above the limit of 2147483647"),
    "A19-nan": (b"+1 1:nan", 6, 2, "'nan' is not a finite decimal number"),
    "A19-inf": (b"+1 1:-inf", 6, 2, "'-inf' is not a finite decimal number"),
    "A19-1e400": (b"+1 1:1e400", 6, 2, "too large for a float64"),
    "A19-1e39": (b"+1 1:1e39", 6, 2, "too large for a float32"),
    "A19-label-nan": (b"nan 1:1", 1, 1, "the label 'nan' is not a number"),
    "A19-label-1e400": (b"1e400 1:1", 1, 1, "too large for a float64"),
    "A20-hex": (b"+1 1:0x10", 6, 2, "'0x10' is not a finite decimal number"),
    "A20-underscore": (b"+1 1:1_0", 6, 2, "'1_0' is not a finite decimal number"),
    "A20-comma": (b"+1 1:1,5", 6, 2, "the decimal sign is a point"),
    "A20-empty-value": (b"+1 1:", 6, 2, "'' is not a finite decimal number"),
    "A20-empty-index": (b"+1 :1", 4, 2, "the index '' is not a whole number"),
    "A20-two-points": (b"+1 1:1.2.3", 6, 2, "'1.2.3' is not a finite decimal number"),
    "A20-no-digits": (b"+1 1:e5", 6, 2, "'e5' is not a finite decimal number"),
    "A20-no-exponent": (b"+1 1:1e", 6, 2, "'1e' is not a finite decimal number"),
    "A20-two-signs": (b"+1 1:--1", 6, 2, "'--1' is not a finite decimal number"),
    "A21-minus": ("+1 1:−1".encode(), 6, 2, "only ASCII digits and signs count"),
    "A21-digits": ("+1 ١:1".encode(), 4, 2, "only ASCII digits and signs count"),
    "A22-text-label": (b"spam 1:1", 1, 1, "the label 'spam' is not a number"),
    "A22-two-labels": (b"1,2 1:1", 1, 1, "several labels"),
    "A22-lone-return": (b"+1 1:1\r2:1", 4, 2, "lone carriage return"),
}
WRAPPINGS = {"": bytes, "crlf": None, "gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


def bad_lines() -> Iterator[Case]:
    """Each bad line in the first, a middle and the last place, and in some wrappings."""
    for name, (line, column, field, words) in BAD_LINES.items():
        places = {1: line + b"\n" + GOOD, 3: HEAD + line + b"\n" + GOOD, 5: GOOD + line}
        for k, (number, content) in enumerate(places.items()):
            for wrapping in list(WRAPPINGS)[k::3]:
                wrap = WRAPPINGS[wrapping]
                if wrap is None:
                    content = content.replace(b"\n", b"\r\n")
                    wrap = bytes
                where = f"{number}:{column}: field {field}: "
                yield Case(f"{name}-line{number}-{wrapping}", wrap(content), words, where)


def damaged_archives() -> Iterator[Case]:
    whole = gzip.compress(GOOD * 100)
    for share in (0.2, 0.5, 0.9):
        for kind, packed in (("gz", whole), ("xz", lzma.compress(GOOD * 100))):
            cut = packed[: int(len(packed) * share)]
            yield Case(f"A27-{kind}-cut-{share}", cut, "ends early")
    yield Case("A27-bz2-cut", bz2.compress(GOOD * 100)[:-10], "ends early")
    flipped = bytearray(whole)
    flipped[-6] ^= 1
    yield Case("A28-crc", bytes(flipped), "damaged")
    yield Case("A28-zip", b"PK\x03\x04" + bytes(40), "a zip archive")
    yield Case("A28-zstd", b"\x28\xb5\x2f\xfd" + bytes(40), "a zstd file")
    yield Case("A28-trailing", whole + b"rubbish", "damaged")
    yield Case("A29-second-cut", whole + whole[:30], "ends early")


def whole_files() -> Iterator[Case]:
    yield Case("A4-empty", b"", "no rows")
    yield Case("A4-blank", b"\n \n\t\n", "no rows in 3 lines")
    yield Case("A4-comments", b"# nothing\n#\n", "no rows in 2 lines")
    yield Case("A8-utf16", "+1 1:2\n".encode("utf-16"), "UTF-16")
    yield Case("A8-utf16-no-bom", "+1 1:2\n".encode("utf-16-le"), "NUL byte", "1:1: field 1: ")
    yield Case("A24-one-class", b"1 1:2\n1 2:3\n", "only one class, 1")
    yield Case("A24-one-class-0", b"0 1:2\n0 2:3\n", "only one class, 0")
    many = b"".join(b"%d 1:%d\n" % (k, k) for k in range(1, 2000))
    yield Case("A23-regression", many, "1999 distinct labels (1, 2, 3, 4, 5, …)")
    fractions = b"".join(b"%d.5 1:%d\n" % (k, k) for k in range(1, 50))
    yield Case("A23-fractions", fractions, "49 distinct labels (1.5, 2.5")
    yield Case("A18-stray", b"1 1:2\n-1 2000000000:3\n", "--max-features")
    yield Case("A28-pickle", b"\x80\x04\x95" + bytes(30), "a pickle")
    yield Case("A32-parquet-as-text", b"PAR1" + bytes(30), "a Parquet file")


DATA = [*bad_lines(), *damaged_archives(), *whole_files()]


def refusal(folder: Path, *args: str) -> str:
    """The one line that a command says when it refuses; the folder must stay as it is."""
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    done = CliRunner().invoke(app, list(args))
    assert done.exit_code in (2, 3), (done.exit_code, done.output)
    assert {path: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and not done.stdout, done.output
    assert len(lines[0]) < 400
    return lines[0]


@pytest.mark.parametrize("case", DATA, ids=lambda case: case.name)
def test_a_bad_data_file_is_refused_in_one_line(case, tmp_path):
    file = tmp_path / "data.svm"
    file.write_bytes(case.content)
    said = refusal(tmp_path, "train", str(file), "-m", str(tmp_path / "model"), "--no-cache")
    assert said.startswith(f"pegasos: {file}:{case.place}" if case.place else f"pegasos: {file}: ")
    assert case.says in said


def model_bytes(tmp_path: Path) -> bytes:
    X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [0.0, 3.0]])
    file = tmp_path / "good"
    save_model(LinearSVC(random_state=0).fit(X, [0, 1, 1, 0]), file)
    raw = file.read_bytes()
    file.unlink()
    return raw


def with_header(raw: bytes, old: bytes, new: bytes) -> bytes:
    """The file with a word of its header replaced, and its length."""
    length = int.from_bytes(raw[:8], "little")
    head = raw[8 : 8 + length].replace(old, new, 1)
    return struct.pack("<Q", len(head)) + head + raw[8 + length :]


MODELS = {
    "D1-empty": (lambda raw: b"", "is empty"),
    "D2-random": (lambda raw: np.random.default_rng(0).bytes(500), "header"),
    **{
        f"D3-cut-{share}": (lambda raw, share=share: raw[: int(len(raw) * share)], "")
        for share in (0.005, 0.02, 0.3, 0.6, 0.9, 0.999)
    },
    **{
        f"D4-flip-{place}": (
            lambda raw, p=place: (
                raw[: len(raw) * p // 20]
                + bytes([raw[len(raw) * p // 20] ^ 4])
                + raw[len(raw) * p // 20 + 1 :]
            ),
            "",
        )
        for place in range(20)
    },
    **{
        f"D5-length-{length}": (
            lambda raw, length=length: struct.pack("<Q", length % 2**64) + raw[8:],
            "",
        )
        for length in (0, 1, 2**31, 2**63 - 1, -1)
    },
    "D6-trailing": (lambda raw: raw + b"more", "ends early or late"),
    "D6-twice": (lambda raw: with_header(raw, b'"coef"', b'"seal"'), ""),
    "D7-pickle": (lambda raw: b"\x80\x04\x95" + bytes(40), "a pickle"),
    "D7-zip": (lambda raw: b"PK\x03\x04" + bytes(40), "a zip archive"),
    "D7-libsvm": (lambda raw: b"svm_type c_svc\nkernel_type linear\n", "a LIBSVM model"),
    "D7-liblinear": (lambda raw: b"solver_type L2R_LR\nnr_class 2\n", "a LIBLINEAR model"),
    "D7-json": (lambda raw: b'{"learner": {}}', "a JSON file"),
    "D11-nested": (lambda raw: struct.pack("<Q", 200_010) + b'{"' + b"[" * 200_008, ""),
}


def with_words(raw: bytes, changed: dict) -> bytes:
    """The file with other parts of its description, as if it had been written so."""
    contents, made = container.parse(memoryview(raw)), io.BytesIO()
    container.write(made, contents.description | changed, contents.arrays)
    return made.getvalue()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"parameters": {"kernel": {"kernel": "x"}}}, "parameters: kernel: 'fields'"),
        ({"parameters": {"loss": {"loss": "x"}}}, "parameters: 'x' is missing or unknown"),
        ({"parameters": {"class_weight": {"items": [1]}}}, "parameters: cannot unpack"),
        ({"fit": {"certificate": [["0x1p99999", "0x0p0"]]}}, "fit: hex"),
        ({"fit": {"certificate": [1]}}, "fit: cannot unpack"),
    ],
)
def test_inspect_refuses_what_it_cannot_show(changed, words, tmp_path):
    model = tmp_path / "some.model"
    model.write_bytes(with_words(model_bytes(tmp_path), changed))
    for form in ([], ["--json"]):
        said = refusal(tmp_path, "inspect", str(model), *form)
        assert said.startswith(f"pegasos: {model}: {words}")


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("command", ["predict", "inspect", "evaluate"])
def test_a_bad_model_file_is_refused_in_one_line(command, name, tmp_path):
    spoil, words = MODELS[name]
    model, file = tmp_path / "some.model", tmp_path / "data.svm"
    model.write_bytes(spoil(model_bytes(tmp_path)))
    file.write_bytes(GOOD)
    said = refusal(tmp_path, command, str(model), *([str(file)] * (command != "inspect")))
    assert said.startswith(f"pegasos: {model}: ") and words in said
