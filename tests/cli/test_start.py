"""Before any work: help that answers at once, versions, and calls that are refused."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import foreword as package
from foreword.cli import app
from foreword.kinds import KINDS, Kind, resolve

from .conftest import Foreword, Process


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[list[str]]:
    """Every command that does something, by the words that call it."""
    inner = getattr(group, "commands", {})
    if not inner or getattr(group, "invoke_without_command", False):
        yield list(path)
    for name, each in inner.items():
        yield from commands(each, (*path, name))


COMMANDS = list(commands(typer.main.get_command(app)))


def test_the_list_of_commands_is_whole() -> None:
    assert len(COMMANDS) >= 43  # as many as 0.2.0 has
    assert all(each in COMMANDS for each in (["filter"], ["lab"], ["lab", "export"], ["tag", "evaluate"]))


def fastest(*commands: list[str]) -> list[float]:
    """CPU seconds of each, in turn, the best of five: whatever else the machine does only makes it slower."""

    def seconds(command: list[str]) -> float:
        began = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True)
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        return ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime

    return [min(times) for times in zip(*([seconds(command) for command in commands] for _ in range(5)), strict=True)]


def test_help_takes_little_more_than_the_library_that_prints_it() -> None:
    """0.22 s, of which 0.14 are Typer and Rich; a ratio, because a busy machine counts twice the seconds."""
    ours, library = fastest(
        [sys.executable, "-m", "foreword", "--help"], [sys.executable, "-c", "import typer.rich_utils"]
    )
    assert ours < 2.5 * library


def test_the_package_is_imported_within_three_tenths_of_a_second() -> None:
    assert fastest([sys.executable, "-c", "import foreword"])[0] < 0.3


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import foreword", {"numba", "numpy", "torch"}),
        ("import foreword.cli", {"numba", "numpy", "torch", "rich"}),
    ],
)
def test_nothing_heavy_is_imported_before_it_is_needed(code: str, absent: set[str]) -> None:
    listed = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}; print(*sys.modules)"], check=True, capture_output=True, text=True
    )
    assert not absent & set(listed.stdout.split())


def test_only_the_command_that_is_asked_for_is_defined() -> None:
    code = (
        "import sys; from foreword.cli import main; sys.argv = ['foreword', '--quiet', 'score', '--help']\n"
        "try: main()\nexcept SystemExit: print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    modules = set(done.stderr.split())
    assert "foreword.cli.score" in modules
    assert not modules & {"foreword.cli.train", "foreword.cli.serve", "foreword.cli.tag"}


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_shows_an_example_and_speaks_json(foreword: Foreword, command: list[str]) -> None:
    result = foreword(*command, "--help")
    assert result.exit_code == 0
    assert f"$ foreword {' '.join(command)}" in result.stdout
    assert "--json" in result.stdout


def test_version(foreword: Foreword) -> None:
    assert foreword("--version").stdout == f"foreword {package.__version__}\n"


def test_no_command_shows_the_help(foreword: Foreword) -> None:
    assert "compare" in foreword().output


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (["nonsense"], "No such command"),
        (["tokenize", "train", "text.txt"], "--out"),
        (["train", "nonsense", "text.txt", "-o", "model"], "expected unigram"),
        (["train", "unigram", "text.txt", "-o", "model", "--set", "order=5"], "expected add"),
        (["train", "unigram", "text.txt", "-o", "model", "--set", "ad=1"], "did you mean add?"),
        (["train", "unigram", "text.txt", "-o", "model", "--set", "add=much"], "expected a number"),
        (["train", "unigram", "text.txt", "-o", "model", "--set", "add"], "NAME=VALUE"),
        (["train", "unigram", "text.txt", "-o", "model", "--resume"], "nothing to resume"),
        (["train", "unigram", "text.txt", "-o", "-"], "standard output"),
        (["train", "unigram", "text.txt", "-o", "model", "--tokenizer", "t", "--vocab", "9"], "already"),
        (["tokenize", "train", "text.txt", "-o", "out", "--memory", "lots"], "512M"),
        (["tokenize", "train", "text.txt", "-o", "out", "--memory", "1K"], "64M"),
        (["tokenize", "train", "text.txt", "-o", "out", "--kind", "word", "--pattern", "gpt2"], "--kind word"),
        (["tokenize", "train", "text.txt", "-o", "out.json", "--kind", "word"], "name a folder"),
        (["tokenize", "train", "-", "-o", "out", "--resume"], "pipe"),
        (["tokenize", "encode", "bpe", "text.txt", "--tokens", "--corpus", "out"], "holds ids"),
        (["data", "--download"], "name the data set"),
        (["compare", "--report", "-", "--json"], "standard output"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_call_is_refused_with_status_two(foreword: Foreword, call: list[str], said: str) -> None:
    result = foreword(*call)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.replace("│", " ").split())
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (["search", "index", "text.txt", "-o", "index", "--k1", "-5"], "k1 is -5"),
        (["search", "index", "text.txt", "-o", "index", "--set", "b=7"], "b is 7"),
        (["cloud", "text.txt", "-o", "cloud.svg", "--width", "0"], "width is 0"),
        (["cloud", "text.txt", "-o", "cloud.svg", "--set", "upright=7"], "upright is 7"),
        (["serve", "model", "--max-body", "0"], "max_body is 0"),
        (["serve", "model", "--timeout=-1"], "timeout is -1"),
        (["serve", "model", "--set", "batch=0"], "batch is 0"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_settings_that_were_options_are_refused_with_status_two(
    process: Process, tmp_path: Path, call: list[str], said: str
) -> None:
    """Out of range, they are bad usage, as an option is."""
    (tmp_path / "text.txt").write_text("the cat sat on the mat\n")
    result = process(*call, cwd=tmp_path)
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert said in result.stderr


def test_debug_shows_the_traceback_wherever_it_stands(process: Process) -> None:
    plain = process("evaluate", "nowhere", "text.txt")
    assert (plain.returncode, plain.stderr) == (1, "foreword: nowhere: no such file or folder\n")
    for words in (("--debug", "evaluate", "nowhere", "text.txt"), ("evaluate", "nowhere", "text.txt", "--debug")):
        result = process(*words)
        assert result.returncode == 1
        assert "Traceback" in result.stderr
        assert "nowhere: no such file or folder" in result.stderr


# Imports


@pytest.mark.parametrize(
    "words",
    [
        ["score", "model", "text.txt"],
        ["tokenize", "encode", "bpe", "text.txt"],
        ["generate", "model", "--max-tokens", "5"],
    ],
    ids=lambda words: words[0],
)
def test_the_main_commands_import_neither_scipy_nor_torch(shelf: Path, words: list[str]) -> None:
    """Nor what Numba imports to compile: with compiled kernels, half of the start was that."""
    script = (
        "import sys; sys.argv = ['foreword', *{words}]\n"
        "from foreword.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    for _ in range(2):  # the first may have to compile
        ran = subprocess.run(
            [sys.executable, "-c", script.format(words=words)], cwd=shelf, capture_output=True, text=True, check=True
        )
    loaded = set(ran.stderr.split())
    heavy = {"scipy.linalg", "scipy.sparse", "torch", "pandas", "numba.np.linalg", "numba.typed.typeddict"}
    assert heavy & loaded == set()  # the package scipy itself is there: Numba asks for its version
    assert len(loaded) < 900


@pytest.mark.parametrize(
    "words",
    [
        ["train", "lstm", "text.txt", "-o", "new", "--set", "unitz=3"],
        ["train", "transformer", "text.txt", "-o", "new", "--set", "layers=many"],
        ["classify", "train", "text.txt", "-o", "new", "--kind", "lstm", "--set", "unitz=3"],
        ["tag", "train", "text.txt", "-o", "new", "--kind", "bilstm", "--set", "unitz=3"],
        ["translate", "train", "text.txt", "text.txt", "-o", "new", "--set", "unitz=3"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_a_wrong_setting_of_a_network_is_refused_before_torch_is_imported(shelf: Path, words: list[str]) -> None:
    script = (
        f"import sys; sys.argv = ['foreword', *{words}]\n"
        "from foreword.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert end.code == 2\n"
        "assert 'torch' not in sys.modules and 'numba' not in sys.modules"
    )
    ran = subprocess.run([sys.executable, "-c", script], cwd=shelf, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "'--set'" in ran.stderr


@pytest.mark.parametrize("kind", [kind for kind in KINDS.values() if kind.network], ids=lambda kind: kind.name)
def test_settings_read_from_the_source_are_those_of_the_class(kind: Kind) -> None:
    from foreword.cli.settings import settings_of
    from foreword.cli.source_settings import settings_in_source

    read, real = settings_in_source(kind.home), settings_of(resolve(kind.home))
    assert list(read) == list(real)
    assert all(read[name] == real[name] for name in real if "Any" not in str(read[name]))
    assert sum("Any" in str(wanted) for wanted in read.values()) <= 4


def test_files_of_other_tools_are_recognised_without_the_modules_of_training() -> None:
    code = (
        "import sys; from foreword.kinds import FOREIGN, resolve\n"
        "for looks, _ in FOREIGN.values(): resolve(looks)\n"
        "import foreword.tokens.sentencepiece; print(*sys.modules)"
    )
    listed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "scipy.special" not in listed.stdout.split()
