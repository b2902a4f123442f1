"""What the README shows is run: its Python example, and the output it prints."""

import contextlib
import io
import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


def test_the_python_example_runs_and_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)[0]
    promised = re.findall(r"# → (.*)", code)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    assert printed.getvalue().splitlines() == promised
    assert len(promised) >= 3


def test_the_two_commands_are_named_on_the_first_screen() -> None:
    first_screen = "\n".join(README.read_text().splitlines()[:40])
    assert "make demo" in first_screen
    assert "make test" in first_screen
