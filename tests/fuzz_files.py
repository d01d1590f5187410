"""Model and data files damaged at random: each is refused in one line, or sound."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import random
import tempfile
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_text import SLOW, other_bytes

from pegasos.data import store
from pegasos.data.errors import DataError
from pegasos.data.svmlight import Csr
from pegasos.model import file
from pegasos.model.decision import Calibration, Decision
from pegasos.model.linear import LinearModel, check

VALUES: list[Any] = [None, True, False, 0, 1, -1, 2, 2**31, 2**62, 2**63 - 1, 2**64, 10**400]
VALUES += [0.0, 0.5, 1e308, "", "a", "\n", "\ud800", *"int float str bool F64 F32 U8".split()]
VALUES += ["x" * 200, [], [[]], [1, 2], ["a", "b"], [0, 8], {}, {"a": 1}, [{}], "LinearSVC"]
VALUES += [{"items": [[1, 2]]}, {"loss": "Pinball", "fields": [0.3]}, {"items": [[[], 1]]}]
KEYS = ["coef", "intercept", "seal", "kind", "names", "center_coef", "items", "loss", "x", "crc32"]


def seed_models() -> list[LinearModel]:
    fit = {"certificate": [["0x1p+3", "0x1p+2"]], "stop_reason": ["gap"], "n_iter": 3}
    fit["solver"] = [["dual", "small"]]
    weights = {"items": [[1, 2.0], [-1, 1]]}
    own = {"C": 2.0, "loss": {"loss": "Pinball", "fields": [0.3]}, "class_weight": weights}
    two, three = np.array([[1.0, -2.5]]), np.arange(6.0).reshape(3, 2)
    text, zero = np.array(["a", "bc", "\u00e9"]), np.zeros(3)
    labels = np.array([-1, 1])
    told = Calibration("sigmoid", (-1.0, 0.0, 2.0), (-3.0, 0.0, 1.5), (0.5, 0.25))
    return [
        LinearModel("LinearSVC", two, np.array([0.5]), labels, None, own, fit, {}),
        LinearModel(
            *("LinearSVC", two, np.array([0.5]), labels, None, {"probability": True}, fit, {}),
            decision=Decision(-0.25, told),
        ),
        LinearModel("LogisticRegression", three, zero, text, ["x", "y"], {"C": 1.0}, {}, {}),
        LinearModel(
            "LinearSVC", three, zero, np.array([0.5, 1.5, 2.5]), None, {}, {}, {}, (three, zero)
        ),
    ]


def seed_files(folder: Path) -> list[bytes]:
    for k, model in enumerate(seed_models()):
        file.save(folder / f"{k}", model)
    starts, columns = np.array([0, 2, 3], np.int32), np.array([0, 2, 1], np.int32)
    data = Csr(np.array([1.0, -1.0]), starts, columns, np.array([1.0, 2.0, 3.0], np.float32), 3)
    store.save(folder / "store", data, {"path": "a"})
    return [path.read_bytes() for path in sorted(folder.iterdir())]


def opened(raw: bytes) -> tuple[dict[str, Any], dict[str, Any], dict[str, bytes]]:
    """The description, the header's entries and the bytes of the arrays of a good file."""
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    description = json.loads(header.pop("__metadata__")["pegasos"])
    data, header = raw[8 + length :], {k: v for k, v in header.items() if k != "seal"}
    places = {name: entry["data_offsets"] for name, entry in header.items()}
    return description, header, {name: data[a:b] for name, (a, b) in places.items()}


def sealed(head: bytes, data: bytes) -> bytes:
    front = len(head).to_bytes(8, "little") + head
    return front + data + hashlib.sha256(front).digest()


def closed(rng: random.Random, description: Any, header: Any, arrays: dict[str, bytes]) -> bytes:
    """A file with right checksums; sometimes its JSON is damaged before it is sealed."""
    if isinstance(description, dict) and "crc32" in description and rng.random() < 0.9:
        description["crc32"] = {name: zlib.crc32(raw) for name, raw in arrays.items()}
    text = json.dumps(description)
    if rng.random() < 0.1:
        text = other_bytes(rng, text.encode()).decode("latin-1")
    size = sum(map(len, arrays.values()))
    seal = {"dtype": "U8", "shape": [32], "data_offsets": [size, size + 32]}
    head = json.dumps({"__metadata__": {"pegasos": text}, **header, "seal": seal}).encode()
    head = head.replace(b'{"__metadata__": {"pegasos": ', b'{"__metadata__":{"pegasos":')
    return sealed(other_bytes(rng, head) if rng.random() < 0.1 else head, b"".join(arrays.values()))


def other_json(rng: random.Random, value: Any) -> Any:
    """Somewhere inside: a value replaced, deleted, doubled, renamed or moved by one."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(list(value))
        if rng.random() < 0.15:
            return {k: v for k, v in value.items() if k != key}
        if rng.random() < 0.15:
            return value | {rng.choice(KEYS): rng.choice([value[key], rng.choice(VALUES)])}
        return value | {key: other_json(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.85:
        i = rng.randrange(len(value))
        new = [value[:i], value[: i + 1] + value[i:], value[:i] + value[i + 1 :]]
        return rng.choice([*new, *[value[:i] + [other_json(rng, value[i])] + value[i + 1 :]] * 5])
    if type(value) is int and rng.random() < 0.5:
        return value + rng.choice([-8, -1, 1, 8])
    return copy.deepcopy(rng.choice(VALUES))


def other_arrays(rng: random.Random, header: Any, arrays: dict[str, bytes]) -> None:
    """Numbers that are no good, another shape of the same size, or an array more."""
    name = rng.choice(list(arrays))
    if rng.random() < 0.6:
        odd = np.array([rng.choice([np.nan, np.inf, -np.inf, 1e308, -0.0, 5e-324])]).tobytes()
        at = 8 * rng.randrange(1 + len(arrays[name]) // 8)
        arrays[name] = (arrays[name][:at] + odd + arrays[name][at + 8 :])[: len(arrays[name])]
    else:
        header[name]["shape"] = rng.choice([[2, 3], [3, 2], [6], [1, 2, 1, 1], [1], [0], [1, 1]])


def mutated_file(rng: random.Random, seeds: list[bytes]) -> bytes:
    """Three in four with good checksums, so that the checks behind them are reached."""
    raw = rng.choice(seeds)
    if rng.random() < 0.25:
        for _ in range(rng.randrange(1, 4)):
            raw = other_bytes(rng, raw)
        return raw if rng.random() < 0.9 else raw[: rng.randrange(len(raw))] + rng.choice(seeds)
    description, header, arrays = opened(raw)
    for _ in range(rng.randrange(1, 3)):
        act = rng.random()
        if act < 0.6:
            description = other_json(rng, description)
        elif act < 0.8 and isinstance(header, dict):
            header = other_json(rng, header)
        elif isinstance(header, dict) and all(isinstance(header.get(k), dict) for k in arrays):
            other_arrays(rng, header, arrays)
    return closed(rng, description, header if isinstance(header, dict) else {}, arrays)


def judge(path: Path) -> bool:
    """Whether the file is refused; an AssertionError if it is neither refused nor sound."""
    from pegasos.estimators.files import load_model, to_model

    try:
        found = load_model(path)
        check(to_model(found))
        found.__dict__.pop("feature_names_in_", None)  # else it would warn of their absence
        row = np.zeros((1, found.n_features_in_))
        assert found.predict(row)[0] in found.classes_
        if hasattr(found, "calibration_") and hasattr(found, "predict_proba"):
            number = int(found._decided(row)[1][0])
            assert found.predict_proba(row)[0].argmax() == number
    except DataError as error:
        one_line(path, error)
        if "not a model but" not in str(error):
            return True
    else:
        return False
    try:
        store.load(path)
    except DataError as error:
        one_line(path, error)
        return True
    return False


def one_line(path: Path, error: DataError) -> None:
    words = str(error)
    assert words.startswith(f"{path}: ") and words.isprintable() and len(words) < 500, words[:500]


def fuzz_model(rng: random.Random, n: int) -> Iterator[tuple[int, int, list[bytes]]]:
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as name:
        folder = Path(name)
        seeds, path = seed_files(folder), folder / "mutated"
        for good in folder.iterdir():
            assert not judge(good)  # whatever is imported is imported now
        for _ in range(n):
            raw = mutated_file(rng, seeds)
            path.write_bytes(raw)
            begin = time.perf_counter()
            try:
                refused, finds = int(judge(path)), []
                assert time.perf_counter() - begin < SLOW, "slow"
            except Exception:
                refused, finds = 0, [raw]
            yield 1, refused, finds
