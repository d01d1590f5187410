"""Lines of LIBSVM text damaged at random, and the fast reader held against the grammar."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pegasos.data.grammar import FLOAT32_LIMIT, Dialect, LineError, parse_line
from pegasos.data.stream import Block
from pegasos.data.svmlight import Bad, parse_block

SLOW = 1.0  # seconds that no input may take
DIALECTS = [
    Dialect(),
    Dialect(first=0, add=True),
    Dialect(labelled=False),
    Dialect(last=9, limit=float("inf")),
    Dialect(first=0, last=3, labelled=False, limit=float("inf")),
    Dialect(add=True, limit=float("inf")),
]
LINES = [
    b"+1 1:0.708333 2:1 3:1 4:-0.320755 9:-1e-05 # a comment",
    b"-1 3:5 1:4 2:-0",
    b"3.5 qid:7 1:.5 2:5. 2147483647:1e+05",
    b"0",
    b" \t1\t0001:12345678901234567890 7:1.7976931348623157e308 ",
    b"1 1:3.4028235e38 2:1e-45 3:4.9e-324 4:9007199254740993",
    b"0:1 2:2.2250738585072011e-308 3:0.1e1",
    b"1 1:3e38 1:4e37 2:1 1:-3e38",
    b"# only a comment",
    b"",
]
TOKENS = (
    rb"1:1 2:-3.5 0:1 4:1e22 qid:3 qid: q 1:2:3 : # nan inf 0x10 1_0 1,5 1e - +.e 3: :4".split()
)
TOKENS += [b"\xd9\xa3:1", b"\r"]
NUMBERS = b"0 00 1 9 10 2147483647 2147483648 4294967297 9999999999999999999 -0.0 .5 1e400".split()
NUMBERS += b"18446744073709551617 3.4028235677973365e38 3.4028235677973366e38 5e-324 1e309".split()
NUMBERS += b"2.47e-324 1e-400 179769313486231580e291 9007199254740993 9007199254740992.5".split()
NUMBERS += b"8.5e22 1e23 123456789012345678901234567890e-10 1e99999999999999999999".split()
NUMBERS += [b"0." + b"0" * 30 + b"1e31", b"1" * 40]
BYTES = b"\x00\t\n\r #+-.0123456789:eEqid,_\x80\xff"
_NUMBER = re.compile(rb"[0-9.]+")


def any_number(rng: random.Random) -> bytes:
    if rng.random() < 0.5:
        return rng.choice(NUMBERS)
    digits = b"%d" % rng.getrandbits(rng.randrange(1, 80))
    at = rng.randrange(len(digits) + 1)
    tail = b"e%d" % rng.randrange(-340, 310) if rng.random() < 0.5 else b""
    return digits[:at] + b"." + digits[at:] + tail


def other_token(rng: random.Random, line: bytes) -> bytes:
    """Tokens swapped, inserted, deleted or doubled."""
    tokens = line.split(b" ")
    i, j = rng.randrange(len(tokens)), rng.randrange(len(tokens))
    act = rng.randrange(4)
    if act == 0:
        tokens[i], tokens[j] = tokens[j], tokens[i]
    elif act == 1:
        tokens.insert(i, rng.choice(TOKENS))
    elif act == 2:
        del tokens[i]
    else:
        tokens.insert(j, tokens[i])
    return b" ".join(tokens)


def other_number(rng: random.Random, line: bytes) -> bytes:
    found = list(_NUMBER.finditer(line))
    if not found:
        return line + any_number(rng)
    where = rng.choice(found)
    return line[: where.start()] + any_number(rng) + line[where.end() :]


def other_bytes(rng: random.Random, raw: bytes) -> bytes:
    """Bytes changed, inserted, deleted, doubled, or a bit flipped."""
    i, act = rng.randrange(len(raw) + 1), rng.randrange(5)
    j = min(len(raw), i + rng.randrange(1, 9))
    if act == 0:
        return raw[:i] + bytes([rng.choice(BYTES)]) + raw[i + 1 :]
    if act == 1:
        return raw[:i] + bytes([rng.choice(BYTES)]) + raw[i:]
    if act == 2:
        return raw[:i] + raw[j:]
    if act == 3:
        return raw[:j] + raw[i:]
    return raw[:i] + bytes(c ^ (1 << rng.randrange(8)) for c in raw[i : i + 1]) + raw[i + 1 :]


def other_splice(rng: random.Random, line: bytes) -> bytes:
    other = rng.choice(LINES)
    return line[: rng.randrange(len(line) + 1)] + other[rng.randrange(len(other) + 1) :]


MUTATORS: list[Callable[[random.Random, bytes], bytes]]
MUTATORS = [other_token, other_number, other_number, other_bytes, other_splice]


def mutated_line(rng: random.Random) -> bytes:
    line = rng.choice(LINES)
    for _ in range(rng.randrange(4)):
        line = rng.choice(MUTATORS)(rng, line)
    return line.replace(b"\n", b" ") + (b"\r" if rng.random() < 0.1 else b"")


def block_of(lines: list[bytes]) -> Block:
    """The lines, and behind them stale bytes as in memory that is used again."""
    text = b"".join(line + b"\n" for line in lines)
    return Block(bytearray(text + b"1 1:1\n9"), len(text))


def dtype_of(dialect: Dialect) -> type:
    return np.float32 if dialect.limit == FLOAT32_LIMIT else np.float64


def slowly(line: bytes, dialect: Dialect) -> Any:
    """What the grammar says: label and entries, None for a blank line, or a LineError."""
    try:
        return parse_line(line[:-1] if line.endswith(b"\r") else line, dialect)
    except LineError as error:
        return error


def compare(lines: list[bytes], dialect: Dialect) -> int:
    """Hold the fast reader against the grammar, an AssertionError if they differ; lines refused."""
    expected = [slowly(line, dialect) for line in lines]
    bad = [k for k, result in enumerate(expected) if isinstance(result, LineError)]
    start = 0
    for k in bad:
        found = parse_block(block_of(lines[start:]), dialect, dtype_of(dialect))
        assert isinstance(found, Bad), f"accepted: {lines[k]!r}"
        assert found.line == k - start, f"refused: {lines[start + found.line]!r}"
        assert found.text == lines[k] or found.text + b"\r" == lines[k]
        same_rows(lines[start:k], expected[start:k], dialect)
        start = k + 1
    same_rows(lines[start:], expected[start:], dialect)
    return len(bad)


def same_rows(lines: list[bytes], expected: list[Any], dialect: Dialect) -> None:
    piece = parse_block(block_of(lines), dialect, dtype_of(dialect))
    assert not isinstance(piece, Bad), f"refused: {lines[piece.line]!r}"
    rows = [row for row in expected if row is not None]
    entries = [sorted(row[1].items()) for row in rows]
    flat = [pair for row in entries for pair in row]
    ends = np.cumsum([0, *map(len, entries)])
    values = np.array([v for _, v in flat], dtype=dtype_of(dialect))
    assert piece.lines == len(lines)
    assert piece.labels.tobytes() == np.array([row[0] for row in rows], dtype=float).tobytes()
    assert piece.starts.tolist() == ends.tolist()
    assert piece.columns.tolist() == [j for j, _ in flat]
    assert piece.values.tobytes() == values.tobytes(), f"{piece.values} is not {values}"
    assert np.isfinite(piece.values).all() and np.isfinite(piece.labels).all()


def replay_parser(raw: bytes) -> None:
    settings, text = raw.split(b"\n", 1)
    compare(text.split(b"\n"), Dialect(*json.loads(settings)))


def fuzz_parser(rng: random.Random, n: int) -> Iterator[tuple[int, int, list[bytes]]]:
    for dialect in DIALECTS:
        compare(LINES, dialect)  # whatever is compiled is compiled now
    for start in range(0, n, 50):
        lines = [mutated_line(rng) for _ in range(min(50, n - start))]
        dialect = rng.choice(DIALECTS)
        begin = time.perf_counter()
        try:
            refused, finds = compare(lines, dialect), []
            assert time.perf_counter() - begin < SLOW, "slow"
        except Exception:
            settings = json.dumps(list(dialect)).encode()
            refused, finds = 0, [b"\n".join([settings, *minimal(lines, dialect)])]
        yield len(lines), refused, finds


def minimal(lines: list[bytes], dialect: Dialect) -> list[bytes]:
    """The one line that breaks the law, if one does alone."""
    for line in lines:
        try:
            compare([line], dialect)
        except Exception:
            return [line]
    return lines
