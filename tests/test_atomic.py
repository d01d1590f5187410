"""Files that appear whole or not at all."""

import errno
import os
import stat
from pathlib import Path

import pytest

from pegasos.data.atomic import check_writable, replacing

FAILURES = (KeyboardInterrupt, MemoryError, ValueError, SystemExit)


def put(path: Path, raw: bytes) -> None:
    with replacing(path) as file:
        file.write(raw)


def test_a_new_file_has_the_mode_of_any_new_file(tmp_path):
    put(tmp_path / "a", b"new")
    (tmp_path / "b").write_bytes(b"")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("old", [None, b"old"])
def test_after_a_failure_all_is_as_before(tmp_path, failure, old):
    path = tmp_path / "a"
    if old is not None:
        path.write_bytes(old)
    with pytest.raises(failure), replacing(path) as file:
        file.write(b"x" * 100_000)
        raise failure
    assert [p.read_bytes() for p in tmp_path.iterdir()] == ([] if old is None else [old])


@pytest.mark.parametrize("step", ["fsync", "replace", "fchmod"])
def test_a_full_disk_leaves_the_old_file_and_is_named(tmp_path, monkeypatch, step):
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, step, full)
        with pytest.raises(OSError, match="No space left") as caught:
            put(path, b"new")
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_write_that_fails_names_the_file(tmp_path):
    with pytest.raises(OSError, match="No space left") as caught, replacing(tmp_path / "a") as file:
        os.dup2(os.open("/dev/full", os.O_WRONLY), file.fileno())
        file.write(b"x")
    assert caught.value.filename == str(tmp_path / "a") and not list(tmp_path.iterdir())


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o640])
def test_permissions_are_kept(tmp_path, mode):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(mode)
    put(path, b"new")
    assert stat.S_IMODE(path.stat().st_mode) == mode and path.read_bytes() == b"new"


def test_a_symbolic_link_stays_one(tmp_path):
    (tmp_path / "there").mkdir()
    for name in ("old", "missing"):
        target, link = tmp_path / "there" / name, tmp_path / f"link to {name}"
        link.symlink_to(target)
        put(link, b"new")
        assert link.is_symlink() and target.read_bytes() == b"new" and not target.is_symlink()


@pytest.mark.parametrize("name", ["with space", "new\nline", "-x", "é" * 100, "😀" * 63, "\udcff"])
def test_odd_names_are_names(tmp_path, name):
    put(tmp_path / name, b"new")
    check_writable(tmp_path / name)
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_what_the_dead_left_is_removed_by_the_next_write(tmp_path):
    dead, young, other = (tmp_path / f".{name}.tmp" for name in ("a.abc_0123", "a.abc_4567", "a.b"))
    for path in (dead, young, other):
        path.write_bytes(b"half")
    with replacing(tmp_path / "a") as file:
        (living,) = set(tmp_path.iterdir()) - {dead, young, other}
        for path in (dead, living, other):
            os.utime(path, (0, 0))
        put(tmp_path / "a", b"another writer")
        file.write(b"the last")
    assert set(tmp_path.iterdir()) == {tmp_path / "a", young, other}
    assert (tmp_path / "a").read_bytes() == b"the last"


def test_places_that_are_no_files_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    cases = {
        tmp_path: (IsADirectoryError, "is a directory"),
        tmp_path / "pipe": (OSError, "device or pipe"),
        Path("/dev/null"): (OSError, "device or pipe"),
        tmp_path / "no" / "a": (FileNotFoundError, "directory does not exist"),
    }
    for path, (kind, words) in cases.items():
        for act in (lambda path: put(path, b"x"), check_writable):
            with pytest.raises(kind, match=words) as caught:
                act(path)
            assert caught.value.filename == str(path)
    assert [p.name for p in tmp_path.iterdir()] == ["pipe"]
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_checking_leaves_nothing_behind(tmp_path, monkeypatch):
    check_writable(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "a").write_bytes(b"old")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(PermissionError, match="is read-only"):
        check_writable(tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == b"old"
