"""Compiled loops and their cache: never stale, never in the way."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from conftest import run_python

import pegasos.core
from pegasos.core import jit
from pegasos.objective.losses import Logistic, value

PACKAGE = Path(pegasos.core.__file__).resolve().parents[1]
needs_compiler = pytest.mark.jit

SHUFFLE = """
import logging
logging.basicConfig(level=logging.INFO)
import numpy as np
from pegasos.core.rng import shuffle, stream
items = np.arange(6)
shuffle(items, 6, stream(0))
print(*items)
"""
LOSS = """
from typing import NamedTuple
from pegasos.objective.losses import value

class Mine(NamedTuple):
    factor: float

@value.register(Mine)
def _(loss, z):
    return loss.factor * z
"""
LOOP = """
import logging
logging.basicConfig(level=logging.INFO)
from pegasos.core.jit import hot
from pegasos.objective.losses import value

@hot
def loop(loss):
    return value(loss, 10.0)
"""


def compiled(done):
    """Whether the process had to compile."""
    return "compiling" in done.stderr


def copy_of_package(folder):
    shutil.copytree(PACKAGE, folder / "pegasos", ignore=shutil.ignore_patterns("__pycache__"))
    return folder / "pegasos"


def fingerprint(package, monkeypatch):
    monkeypatch.setattr(jit, "_PACKAGE", package)
    return jit._fingerprint.__wrapped__()


def test_the_fingerprint_is_of_the_sources(tmp_path, monkeypatch):
    copy = copy_of_package(tmp_path)
    original = fingerprint(copy, monkeypatch)
    assert original == fingerprint(PACKAGE, monkeypatch), "where they lie does not matter"
    (copy / "notes.txt").write_text("not a source")
    assert fingerprint(copy, monkeypatch) == original
    seen = {original}
    for change in (
        lambda: (copy / "objective" / "losses.py").open("a").write("# edited\n"),
        lambda: (copy / "core" / "more.py").write_text(""),
        lambda: (copy / "core" / "more.py").rename(copy / "core" / "other.py"),
        lambda: (copy / "core" / "rng.py").unlink(),
    ):
        change()
        seen.add(fingerprint(copy, monkeypatch))
    assert len(seen) == 5


def test_the_cache_directory_is_the_users(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "mine"))
    assert jit.cache_directory().parent == tmp_path / "mine"
    assert jit._fingerprint() in jit.cache_directory().name
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setattr(jit, "user_cache", lambda: tmp_path / "caches")
    assert jit.cache_directory().parent == tmp_path / "caches" / "pegasos"

    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(jit, "user_cache", no_home)
    assert jit.cache_directory() is None


@needs_compiler
def test_the_second_process_loads_and_a_damaged_entry_is_rebuilt(tmp_path):
    cache = tmp_path / "cache"

    def shuffle():
        return run_python(SHUFFLE, cwd=tmp_path, NUMBA_CACHE_DIR=str(cache))

    first, second = shuffle(), shuffle()
    assert compiled(first) and not compiled(second)
    assert first.stdout == second.stdout
    assert [path.parent for path in cache.glob("*/*/*.nbi")], "a cache below the user's directory"
    assert {path.name for path in cache.iterdir()} == {f"pegasos-{jit._fingerprint()}"}
    for ending in ("nbc", "nbi"):
        for path in cache.rglob(f"*.{ending}"):
            path.write_bytes(path.read_bytes()[:100])
        again = shuffle()
        assert compiled(again) and again.stdout == first.stdout
    assert not compiled(shuffle())


@needs_compiler
def test_an_edited_verb_in_another_file_is_seen(tmp_path):
    copy = copy_of_package(tmp_path)
    code = """
import numpy as np
import pegasos.core.rng
from pegasos.core.rng import shuffle, stream
from pegasos.core import matrix
from pegasos.core.rows import DenseRows
assert pegasos.core.rng.__file__.startswith(__file__.removesuffix("script.py"))
print(matrix.products(DenseRows(np.ones((1, 2)), 0.0), np.ones(3))[0])
"""

    def product():
        environment = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}
        return float(run_python(code, cwd=tmp_path, **environment).stdout)

    assert product() == 2.0
    rows = copy / "core" / "rows.py"
    edited = rows.read_text().replace("total += x[k] * w[k]", "total += 2.0 * x[k] * w[k]")
    assert edited != rows.read_text()
    rows.write_text(edited)
    assert product() == 4.0


def environment_without_a_place(folder):
    """Nothing can be written below a file, not even by root; __pycache__ of the copy could be."""
    (folder / "file").touch()
    names = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME", "LOCALAPPDATA")
    return dict.fromkeys(names, str(folder / "file" / "x")) | {"PYTHONPATH": str(folder)}


@needs_compiler
def test_without_a_writable_directory_it_works(tmp_path):
    copy_of_package(tmp_path)
    done = run_python(SHUFFLE, cwd=tmp_path, **environment_without_a_place(tmp_path))
    assert sorted(done.stdout.split()) == list("012345")


@needs_compiler
def test_without_a_writable_directory_nothing_is_kept_elsewhere(tmp_path):
    copy_of_package(tmp_path)
    environment = environment_without_a_place(tmp_path) | {"NUMBA_CACHE_DIR": None}
    run_python(SHUFFLE, cwd=tmp_path, **environment)
    assert not list(tmp_path.rglob("*.nb[ic]"))


@needs_compiler
def test_without_a_home_it_works(tmp_path):
    names = ("HOME", "XDG_CACHE_HOME", "USERPROFILE", "LOCALAPPDATA", "NUMBA_CACHE_DIR")
    done = run_python(SHUFFLE, cwd=tmp_path, **dict.fromkeys(names))
    assert sorted(done.stdout.split()) == list("012345")


@needs_compiler
def test_an_outside_type_is_cached_until_its_file_is_edited(tmp_path):
    """The file of the loop stays as it is: only the hash of the type's file can tell."""
    (tmp_path / "loops.py").write_text(LOOP)

    def use(source):
        (tmp_path / "mine.py").write_text(source)
        code = "from loops import loop\nfrom mine import Mine\nprint(loop(Mine(2.0)))\n"
        done = run_python(code, cwd=tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
        return float(done.stdout), compiled(done)

    assert use(LOSS) == (20.0, True)
    assert use(LOSS) == (20.0, False)
    assert use(LOSS.replace("loss.factor * z", "loss.factor + z")) == (12.0, True)


@needs_compiler
def test_a_type_of_a_script_works_and_is_not_cached(tmp_path):
    (tmp_path / "loops.py").write_text(LOOP)
    code = LOSS + "from loops import loop\nprint(loop(Mine(2.0)))\n"
    for expected, source in ((20.0, code), (12.0, code.replace("factor * z", "factor + z"))):
        done = run_python(source, cwd=tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
        assert float(done.stdout) == expected and compiled(done)
    assert not list((tmp_path / "cache").rglob("*.nbc"))


@needs_compiler
def test_types_made_by_a_function_are_told_apart(tmp_path):
    (tmp_path / "loops.py").write_text(LOOP)
    (tmp_path / "mine.py").write_text(
        "from typing import NamedTuple\n"
        "from pegasos.objective.losses import value\n"
        "def make(k):\n"
        "    class Mine(NamedTuple):\n"
        "        factor: float\n"
        "    value.register(Mine)(lambda loss, z: k * z)\n"
        "    return Mine\n"
    )
    code = "from loops import loop\nfrom mine import make\n"
    code += "print(loop(make(2.0)(1.0)), loop(make(3.0)(1.0)))\n"
    done = run_python(code, cwd=tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert done.stdout.split() == ["20.0", "30.0"]


@needs_compiler
def test_a_verb_declared_after_the_first_loop_ran_is_known(tmp_path):
    code = (
        SHUFFLE
        + """
from typing import NamedTuple
from pegasos.core.dispatch import generic
from pegasos.core.jit import hot

class Thing(NamedTuple):
    size: float

@generic
def late(thing):
    '''A verb of a module that was imported late.'''

@late.register(Thing)
def _(thing):
    return thing.size

@hot
def loop(thing):
    return late(thing)

print(loop(Thing(3.0)))
"""
    )
    done = run_python(code, cwd=tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert done.stdout.split()[-1] == "3.0"


def test_a_hot_loop_keeps_its_name_and_its_source():
    @jit.hot
    def loop(x):
        """Doubles."""
        return 2.0 * x

    assert (loop.__name__, loop.__doc__) == ("loop", "Doubles.")
    assert loop(3.0) == loop.__wrapped__(3.0) == 6.0


def test_without_the_compiler_loops_are_plain_and_as_silent(tmp_path):
    code = """
import sys, warnings
warnings.simplefilter("error")
import numpy as np
from pegasos.core.jit import hot
@hot
def loop(x):
    return x[0] / x[1], np.uint64(2**63) * np.uint64(2)
print(*loop(np.array([1.0, 0.0])), "numba" in sys.modules)
"""
    done = run_python(code, cwd=tmp_path, NUMBA_DISABLE_JIT="1")
    assert done.stdout.split() == ["inf", "0", "False"]


@needs_compiler
def test_a_verb_from_outside_may_make_arrays(monkeypatch):
    class Roomy(NamedTuple):
        factor: float

    @value.register(Roomy)
    def _(loss, z):
        return np.full(3, loss.factor * z).sum()

    @jit.hot
    def loop(loss):
        return value(loss, 10.0)

    monkeypatch.setattr(jit, "COUNTED", [])
    with ThreadPoolExecutor(3) as pool:  # the first to come compiles, the others wait
        assert list(pool.map(loop, [Roomy(0.5), Roomy(1.0), Roomy(2.0)])) == [15.0, 30.0, 60.0]
    assert jit.COUNTED == ["loop"]
    assert loop(Logistic()) == pytest.approx(value(Logistic(), 10.0))
    assert jit.COUNTED == ["loop"]  # for arguments of another type it makes none


@needs_compiler
def test_what_cannot_be_compiled_is_said(monkeypatch):
    @jit.hot
    def loop(x):
        return x.nothing_of_the_kind

    monkeypatch.setattr(jit, "COUNTED", [])
    with pytest.raises(Exception, match="nothing_of_the_kind"):
        loop(1.0)
    assert jit.COUNTED == []
