"""The wheel works where nothing but its own requirements is installed: no torch, no Arrow, no web server.

It has compiled kernels for this platform: the first command compiles nothing, whether or not a folder can be written.
"""

from __future__ import annotations

import os
import platform
import re
import resource
import subprocess
import sys
import sysconfig
import venv
from importlib.metadata import distribution
from pathlib import Path
from zipfile import ZipFile

import pytest

from foreword.native.targets import processor_features, targets

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
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the source archive and the wheel as ``make release`` does, in a folder of their own."""
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def wheel(distributions: Path) -> Path:
    [wheel] = distributions.glob("foreword-*.whl")
    return wheel


@pytest.fixture(scope="module")
def empty_environment(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """Install the wheel in a virtual environment next to nothing but what it requires."""
    folder = tmp_path_factory.mktemp("release")
    venv.create(folder / "env", with_pip=False)
    site = next((folder / "env" / "lib").glob("python*/site-packages"))
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(site)]
    subprocess.run([*install, str(wheel)], check=True)
    link_packages(required("foreword") - {"foreword"}, site)
    return folder / "env" / "bin" / "python"


def run(python: Path, *words: str, folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "NUMBA"))}
    environment |= settings
    return subprocess.run(
        [str(python), *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def test_the_archives_are_accepted_by_the_index(distributions: Path) -> None:
    files = sorted(map(str, distributions.iterdir()))
    assert len(files) == 2
    checked = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *files], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout


def test_the_wheel_has_kernels_for_its_platform_and_python(wheel: Path) -> None:
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert f"-{python}-{python}-" in wheel.name
    assert platform.machine().lower() in wheel.name
    assert wheel.stat().st_size <= 25e6
    names = [Path(name) for name in ZipFile(wheel).namelist() if name.endswith(".kernel")]
    for target in targets():
        shipped = {path.name.rsplit("-", 2)[0] for path in names if path.parent.name == target}
        assert {"tokens.kernels_merges.learn_merges", "ngram.kernels_arpa.read_ngrams"} <= shipped
        assert len(shipped) > 80


@pytest.mark.parametrize("target", targets())
def test_the_first_commands_compile_nothing(empty_environment: Path, tmp_path: Path, target: str) -> None:
    """With the kernels of each target that this machine can run, a home that is a file, and equal results."""
    if not targets()[target] <= processor_features():
        pytest.skip(f"this processor cannot run {target}")
    text = "\n".join(f"a {number % 17} cat sat on {number % 5} mats" for number in range(300))
    (tmp_path / "text.txt").write_text(f"{text}\n")
    (tmp_path / "home").touch()
    settings = {"NUMBA_CPU_NAME": target, "NUMBA_CPU_FEATURES": "", "HOME": str(tmp_path / "home")}
    began = resource.getrusage(resource.RUSAGE_CHILDREN)
    printed = []
    commands = ["train ngram text.txt -o ngram", "score ngram text.txt", "generate ngram --seed 1 --max-tokens 20",
                "tokenize train text.txt -o bpe --vocab 300", "tokenize encode bpe text.txt"]  # fmt: skip
    for command in commands:
        done = run(empty_environment, "-m", "foreword", *command.split(), folder=tmp_path, **settings)
        assert done.returncode == 0, done.stderr
        assert "compiling" not in done.stderr, command
        printed.append(done.stdout)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Three seconds each on a quiet machine at most; compiling took thirteen to twenty.
    assert ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime < 6 * len(commands)
    again = [commands[number] for number in (1, 2, 4)]
    compiled_here = [subprocess.run([sys.executable, "-m", "foreword", *command.split()], cwd=tmp_path, check=True,
                                    capture_output=True, text=True).stdout for command in again]  # fmt: skip
    assert [printed[1], printed[2], printed[4]] == compiled_here


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
