"""The budget of sizes and the directions of imports: what keeps the project readable."""

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SRC = ROOT / "src" / "pegasos"

FILE_LINES = 350
FUNCTION_LINES = 40
HOT_LINES = 80
ARGUMENTS = 7

Function = ast.FunctionDef | ast.AsyncFunctionDef
Rule = Callable[[str, str], Iterator[str]]  # (path below src/pegasos, source) -> offences


def functions(node: ast.AST, owner: str = "") -> Iterator[tuple[str, Function]]:
    """Every function under node, nested ones too, with its dotted name."""
    for child in ast.iter_child_nodes(node):
        named = isinstance(child, Function | ast.ClassDef)
        name = f"{owner}{child.name}" if named else owner
        if isinstance(child, Function):
            yield name, child
        yield from functions(child, f"{name}." if named else owner)


def n_lines(function: Function) -> int:
    """Lines from `def` to the end, the docstring left out."""
    lines = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function, clean=False) is not None:
        docstring = function.body[0]
        lines -= docstring.end_lineno - docstring.lineno + 1
    return lines


def n_arguments(function: Function) -> int:
    """Arguments of all kinds, a leading self or cls left out."""
    positional = [a.arg for a in function.args.posonlyargs + function.args.args]
    if positional[:1] in (["self"], ["cls"]):
        positional = positional[1:]
    starred = [a for a in (function.args.vararg, function.args.kwarg) if a is not None]
    return len(positional) + len(function.args.kwonlyargs) + len(starred)


def is_hot(function: Function) -> bool:
    """Decorated with `@hot`, `@hot_allocating`, `@hot(...)` or one of them through a module."""
    bare = [d.func if isinstance(d, ast.Call) else d for d in function.decorator_list]
    names = [d.attr if isinstance(d, ast.Attribute) else getattr(d, "id", "") for d in bare]
    return "hot" in names or "hot_allocating" in names


def is_command(path: str, name: str) -> bool:
    """Whether a function is the command that its file in cli/ is named after: its arguments are
    the options of the command line."""
    return path == f"cli/{name}.py"


def is_constructor(path: str, function: Function) -> bool:
    """Whether a function holds the parameters of an estimator, of which scikit-learn has many."""
    return path.startswith(("estimators/", "maps/")) and function.name == "__init__"


def file_lines(path: str, source: str) -> Iterator[str]:
    n = len(source.splitlines())
    if n > FILE_LINES:
        yield f"{path}: {n} lines, at most {FILE_LINES}"


def function_lines(path: str, source: str) -> Iterator[str]:
    for name, function in functions(ast.parse(source)):
        n, most = n_lines(function), HOT_LINES if is_hot(function) else FUNCTION_LINES
        if is_constructor(path, function):
            continue
        if is_command(path, name):
            n -= function.body[0].lineno - function.lineno  # its options
        if n > most:
            yield f"{path}:{function.lineno}: {name} has {n} lines, at most {most}"


def arguments(path: str, source: str) -> Iterator[str]:
    for name, function in functions(ast.parse(source)):
        if is_constructor(path, function) or is_command(path, name):
            continue
        n = n_arguments(function)
        if n > ARGUMENTS:
            yield f"{path}:{function.lineno}: {name} has {n} arguments, at most {ARGUMENTS}"


def storage_names(path: str, source: str) -> Iterator[str]:
    if path.startswith(("core/", "data/")):
        return
    for name, function in functions(ast.parse(source)):
        for word in ("sparse", "dense"):
            if word in function.name.lower():
                yield f"{path}:{function.lineno}: {name} says {word!r}; only core and data may"


def printing(path: str, source: str) -> Iterator[str]:
    if path.startswith("cli/"):
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print":
            yield f"{path}:{node.lineno}: print() is for cli only"


RULES = (file_lines, function_lines, arguments, storage_names, printing)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_sources_keep_the_budget(rule: Rule) -> None:
    sources = {p.relative_to(SRC).as_posix(): p.read_text("utf-8") for p in SRC.rglob("*.py")}
    assert sources, f"no sources below {SRC}"
    offences = [o for path in sorted(sources) for o in rule(path, sources[path])]
    assert not offences, "\n" + "\n".join(offences)


def body(n: int) -> str:
    """A function of n lines besides its two-line docstring."""
    return 'def f():\n    """a\n    b"""\n' + "    x = 1\n" * (n - 1)


CONSTRUCTOR = "class A:\n def __init__(self, a, b, c, d, e, f, g, h): 0"


@pytest.mark.parametrize(
    ("rule", "path", "source", "offences"),
    [
        (file_lines, "core/a.py", "\n" * 350, 0),
        (file_lines, "core/a.py", "\n" * 351, 1),
        (function_lines, "core/a.py", body(40), 0),
        (function_lines, "core/a.py", body(41), 1),
        (function_lines, "core/a.py", "@hot\n" + body(80), 0),
        (function_lines, "core/a.py", "@jit.hot(fastmath=True)\n" + body(81), 1),
        (arguments, "core/a.py", "class A:\n def f(self, a, b, c, d, /, e, *f, g): 0", 0),
        (arguments, "core/a.py", "def f(a, b, c, d, /, e, *f, g, **h): 0", 1),
        (arguments, "core/a.py", CONSTRUCTOR, 1),
        (arguments, "estimators/a.py", CONSTRUCTOR, 0),
        (storage_names, "data/a.py", "def sparse(): 0", 0),
        (storage_names, "solvers/a.py", "def f():\n def to_Dense(): 0", 1),
        (printing, "cli/a.py", "print(1)", 0),
        (printing, "core/a.py", "def f():\n print(1)\n console.print(2)", 1),
    ],
)
def test_rules_see_what_they_should(rule: Rule, path: str, source: str, offences: int) -> None:
    assert len(list(rule(path, source))) == offences


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)


def test_imports_go_downward_only() -> None:
    code = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())"
    result = run(sys.executable, "-c", code)
    assert result.returncode == 0, result.stdout + result.stderr


def test_import_is_light() -> None:
    heavy = ("numba", "matplotlib", "sklearn")
    code = f"import pegasos, sys; print(*[m for m in {heavy} if m in sys.modules])"
    result = run(sys.executable, "-c", code)
    assert result.returncode == 0, result.stderr
    assert not result.stdout.split(), f"import pegasos imports {result.stdout.split()}"
