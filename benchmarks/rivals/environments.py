"""A virtual environment per rival under .cache/rivals: some packages cannot share one."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

CACHE = Path(__file__).parents[2] / ".cache" / "rivals"


class UnavailableError(Exception):
    """A rival's packages cannot be installed for this Python."""


def interpreter(environment: str, packages: tuple[str, ...]) -> str:
    """Its Python, made at first use and anew when the pinned packages change."""
    if not packages:
        return sys.executable
    folder = CACHE / environment
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    stamp, wanted = folder / "packages", "\n".join(packages)
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"installing {packages[0]} into its own environment (once)", flush=True)
        venv.create(folder, clear=True, with_pip=True)
        _install(python, packages)
        stamp.write_text(wanted)
    return str(python)


def _install(python: Path, packages: tuple[str, ...]) -> None:
    options = ["-qq", "--disable-pip-version-check"]
    command = [str(python), "-m", "pip", "install", *options, *packages]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR:")]
        raise UnavailableError(errors[-1][7:] if errors else "pip failed")
