"""The wheel works where nothing but its own requirements is installed: no torch, no Arrow, no web server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import venv
from importlib.metadata import distribution
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
REQUIREMENT = re.compile(r"^([\w.-]+)([^;]*)(;.*)?$")

pytestmark = pytest.mark.long


def required(name: str, found: set[str] | None = None) -> set[str]:
    """Return the names of all packages that a package needs without its extras, its own included."""
    found = set() if found is None else found
    if name in found:
        return found
    found.add(name)
    for line in distribution(name).requires or []:
        match = REQUIREMENT.match(line.strip())
        if match and "extra ==" not in line and applies(match[3]):
            required(re.split(r"[\[<>=!~ ]", match[1])[0], found)
    return found


def applies(marker: str | None) -> bool:
    """Return whether a requirement holds here; only the markers that our requirements use are known."""
    return marker is None or not re.search(r"python_version|sys_platform|platform_|implementation", marker)


def link_packages(names: set[str], into: Path) -> None:
    """Link the installed files of packages into a folder, so that it holds these and no others."""
    site = Path(sysconfig.get_paths()["purelib"])
    tops = {
        Path(str(file)).parts[0]
        for name in names
        for file in distribution(name).files or []
        if Path(str(file)).parts[0] not in ("..", "__pycache__")
    }
    for top in tops:
        (into / top).symlink_to(site / top)


@pytest.fixture(scope="module")
def empty_environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel and install it in a virtual environment next to nothing but what it requires."""
    folder = tmp_path_factory.mktemp("release")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*build, "-w", str(folder), str(ROOT)], check=True, cwd=folder)
    [wheel] = folder.glob("foreword-*.whl")
    venv.create(folder / "env", with_pip=False)
    site = next((folder / "env" / "lib").glob("python*/site-packages"))
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(site)]
    subprocess.run([*install, str(wheel)], check=True)
    link_packages(required("foreword") - {"foreword"}, site)
    return folder / "env" / "bin" / "python"


def run(python: Path, *words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "NUMBA"))}
    return subprocess.run(
        [str(python), *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def test_the_extras_are_not_there(empty_environment: Path, tmp_path: Path) -> None:
    for extra in ("torch", "pyarrow", "httptools", "ray"):
        assert run(empty_environment, "-c", f"import {extra}", folder=tmp_path).returncode != 0


def test_compare_runs_from_the_wheel(empty_environment: Path, tmp_path: Path) -> None:
    done = run(empty_environment, "-m", "foreword", "compare", "--models", "5-gram", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert '"perplexity"' in done.stdout


def test_a_network_says_what_to_install(empty_environment: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("a cat sat\n" * 20)
    done = run(empty_environment, "-m", "foreword", "train", "lstm", "text.txt", "-o", "model", folder=tmp_path)
    assert done.returncode == 1
    assert "pip install 'foreword[neural]'" in done.stderr
    assert done.stderr.count("\n") == 1
