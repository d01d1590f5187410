"""The binary form of a data file, and the cache of parsed text."""

import logging
import os
from pathlib import Path

import numpy as np
import pytest
from test_svmlight import FEW, HEART, same, write

from pegasos import load_svmlight
from pegasos.data import container, files, store
from pegasos.data.errors import DataError
from pegasos.data.svmlight import Csr


@pytest.fixture
def text(tmp_path, monkeypatch) -> Path:
    """A text file, and a cache directory of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return write(tmp_path, FEW)


@pytest.fixture
def parsed(monkeypatch) -> list:
    """The files that were parsed, not taken from the cache."""
    calls, real = [], files._parsed

    def counted(path, *args):
        calls.append(path)
        return real(path, *args)

    monkeypatch.setattr(files, "_parsed", counted)
    return calls


def cached(text: Path) -> list[Path]:
    return sorted((text.parent / "cache").rglob("*.pegasos"))


def test_the_second_reading_takes_the_cache(text, parsed):
    first, second = (load_svmlight(text, cache=True) for _ in range(2))
    assert same(first, second) and len(parsed) == 1 and len(cached(text)) == 1
    assert same(first, load_svmlight(text)) and len(parsed) == 2


OPTIONS = [{"dtype": np.float64}, {"zero_based": True}, {"n_features": 20}, {"duplicates": "sum"}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_other_options_do_not_take_the_cache(text, parsed, options):
    load_svmlight(text, cache=True)
    found = load_svmlight(text, cache=True, **options)
    assert len(parsed) == 2 and same(found, load_svmlight(text, **options))
    load_svmlight(text, cache=True)
    assert len(parsed) == 3


def test_the_number_of_threads_does_not_void_the_cache(text, parsed):
    for threads in (1, 2):
        load_svmlight(text, cache=True, n_threads=threads)
    assert len(parsed) == 1


def replaced(text: Path) -> None:
    other = text.with_suffix(".new")
    other.write_bytes(FEW[:-1] + b" ")
    status = text.stat()
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    os.replace(other, text)


CHANGES = {
    "touched": lambda text: os.utime(text, ns=(0, 0)),
    "longer": lambda text: text.write_bytes(FEW * 2),
    "replaced by one of the same size and time": replaced,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_changed_source_voids_the_cache(text, parsed, change):
    load_svmlight(text, cache=True)
    change(text)
    found = load_svmlight(text, cache=True)
    assert len(parsed) == 2 and same(found, load_svmlight(text))
    load_svmlight(text, cache=True)
    assert len(parsed) == 3 and len(cached(text)) == 1


def test_another_version_of_the_format_voids_the_cache(text, parsed, monkeypatch, caplog):
    load_svmlight(text, cache=True)
    monkeypatch.setattr(store, "VERSION", 2)
    with caplog.at_level(logging.WARNING, "pegasos"):
        load_svmlight(text, cache=True)
    assert len(parsed) == 2 and "version '1' of the format; readable: 2" in caplog.text


@pytest.mark.parametrize(
    "damage", [lambda raw: raw[:-40], lambda raw: b"", lambda raw: raw[:99] * 9]
)
def test_a_damaged_cache_is_ignored_with_a_warning_and_made_anew(text, parsed, caplog, damage):
    first = load_svmlight(text, cache=True)
    (path,) = cached(text)
    good = path.read_bytes()
    path.write_bytes(damage(good))
    with caplog.at_level(logging.WARNING, "pegasos"):
        assert same(load_svmlight(text, cache=True), first)
    assert len(parsed) == 2 and caplog.text.count("cache not used") == 1
    assert path.read_bytes() == good


def test_a_directory_that_cannot_be_written_is_no_fault(text, parsed, caplog, monkeypatch):
    (text.parent / "cache").write_text("a file where the directory should be")
    with caplog.at_level(logging.WARNING, "pegasos"):
        first = load_svmlight(text, cache=True)
    assert same(first, load_svmlight(text)) and "not cached" in caplog.text
    assert sorted(text.parent.iterdir()) == [text, text.parent / "cache"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_directory_is_no_fault(text, parsed):
    folder = text.parent / "cache"
    folder.mkdir(mode=0o500)
    load_svmlight(text, cache=True)
    assert cached(text) == []


def test_without_a_home_nothing_is_written(text, parsed, monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(store, "user_cache", homeless)
    for _ in range(2):
        load_svmlight(text, cache=True)
    assert len(parsed) == 2 and list(text.parent.iterdir()) == [text]


def test_a_source_that_changes_meanwhile_is_not_cached(text, parsed, monkeypatch):
    data = files.read_svmlight(text, files.Dialect(), np.dtype(np.float32))
    origin = store.origin_of(text, {})
    os.utime(text, ns=(0, 0))
    assert not store.to_cache(text, {}, data, origin) and cached(text) == []


# Stores


def small() -> Csr:
    starts, columns = np.array([0, 2, 3], np.int32), np.array([0, 2, 1], np.int32)
    return Csr(np.array([1.0, -1.0]), starts, columns, np.array([1, 2, 3], np.float32), 3)


def test_a_store_brings_the_data_back(tmp_path):
    data = files.read_svmlight(HEART, files.Dialect(), np.dtype(np.float64))
    store.save(tmp_path / "a", data, {"path": "x"})
    found, origin = store.load(tmp_path / "a")
    assert origin == {"path": "x"} and found.width == 13
    assert same((files.matrix(found), found.labels), (files.matrix(data), data.labels))
    assert container.kind_of(tmp_path / "a") == store.FORMAT
    assert container.kind_of(HEART) is container.kind_of(tmp_path / "missing") is None


BAD = {
    "starts fall": ({"starts": [0, 3, 2]}, {}, "starts"),
    "starts end early": ({"starts": [0, 1, 2]}, {}, "starts"),
    "starts begin late": ({"starts": [1, 2, 3]}, {}, "starts"),
    "a row too few": ({"labels": [1.0]}, {}, "starts"),
    "no starts": ({"starts": np.empty(0, np.int32)}, {}, "starts"),
    "a value too few": ({"values": np.ones(2, np.float32)}, {}, "starts"),
    "beyond the width": ({"columns": [0, 3, 1]}, {}, "columns"),
    "negative column": ({"columns": [0, -1, 1]}, {}, "columns"),
    "whole values": ({"values": np.array([1, 2, 3], np.int32)}, {}, "wrong kind"),
    "two dimensions": ({"labels": np.ones((2, 1))}, {}, "dimension"),
    "wider starts": ({"starts": np.array([0, 2, 3])}, {}, "wrong kind"),
    "width": ({}, {"width": "3"}, "width"),
    "negative width": ({}, {"width": -1}, "width"),
    "version": ({}, {"version": 9}, "version '9'"),
    "a model": ({}, {"format": "pegasos-model"}, "'pegasos-model'"),
    "no origin": ({}, {"origin": None}, "origin"),
}


@pytest.mark.parametrize(("changed", "said", "words"), BAD.values(), ids=BAD.keys())
def test_numbers_of_a_store_are_checked(tmp_path, changed, said, words):
    good = small()._asdict()
    width = good.pop("width")
    arrays = {
        k: np.asarray(changed.get(k, v), getattr(changed.get(k), "dtype", v.dtype))
        for k, v in good.items()
    }
    description = {"format": store.FORMAT, "version": 1, "width": width, "origin": {}} | said
    path = tmp_path / "a"
    with open(path, "wb") as file:
        container.write(file, {k: v for k, v in description.items() if v is not None}, arrays)
    with pytest.raises(DataError, match=words) as caught:
        store.load(path)
    assert str(caught.value).startswith(f"{path}: ") and str(caught.value).isprintable()


def test_a_store_without_an_array_is_refused(tmp_path):
    with open(tmp_path / "a", "wb") as file:
        container.write(file, {"format": store.FORMAT, "version": 1, "width": 3, "origin": {}}, {})
    with pytest.raises(DataError, match="labels"):
        store.load(tmp_path / "a")
