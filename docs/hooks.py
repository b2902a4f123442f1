"""Add pages to the site that are not written by hand in docs/: those of the repository's root, and the reference.

The reference has one page per folder of the package, made from the table of folders in CONTRIBUTING.md and the modules
that are there. Kernels and private modules are left out, for their docstrings speak to who reads the source.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import foreword
from foreword.lessons.course.notebooks import SOURCES, page, read_notebook
from foreword.picture import mathml

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "foreword"
ROOT_PAGES = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
FOLDER = re.compile(r"^\| \d \| `(\w+)(/|\.py)` \| (.+) \|$", re.MULTILINE)
EQUATION = re.compile(r"(?<=\n\n)(?:    \S.*\n?)+(?=\n|\Z)")
"""Lines that are set off by four blanks, between empty lines."""

MACHINERY = {"cli", "lab", "native", "kinds", "arrays"}
"""Folders and modules that readers of the reference do not call."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of the reference into the navigation."""
    pages: list[Any] = ["reference/index.md", {"Interfaces": "reference/interfaces.md"}]
    pages += [{f"{name}/": f"reference/{name}.md"} for name, _ in reference_folders()]
    assert config.nav is not None
    config.nav.insert(3, {"Course": [f"course/{source.stem}.md" for source in sorted(SOURCES.glob("*.py"))]})
    config.nav.append({"Reference": pages})
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    for name in ROOT_PAGES:
        if (ROOT / name).is_file():
            files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    for source in SOURCES.glob("*.py"):
        files.append(File.generated(config, f"course/{source.stem}.md", content=page(read_notebook(source))))
    for name, text in reference_pages().items():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, **kwargs: Any) -> str:
    """Typeset equations; rewrite links between docs/ and the root, whose pages are in one folder on the site."""
    markdown = typeset(markdown)
    if page.file.src_uri in ROOT_PAGES:
        return markdown.replace("](docs/", "](")
    return re.sub(rf"\]\(\.\./({'|'.join(map(re.escape, ROOT_PAGES))})", r"](\1", markdown)


def typeset(markdown: str) -> str:
    """Replace blocks that are set off by four blanks, outside code and lists, by MathML."""
    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.DOTALL | re.MULTILINE)
    for at in range(0, len(parts), 2):
        parts[at] = EQUATION.sub(lambda found: mathml.block(found[0].strip("\n").splitlines()) + "\n", parts[at])
    return "".join(parts)


def reference_folders() -> list[tuple[str, str]]:
    """Return each folder with a page of its own and what is in it, in the order of CONTRIBUTING.md."""
    rows = FOLDER.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    return [(name, about) for name, mark, about in rows if mark == "/" and name not in MACHINERY]


def reference_pages() -> dict[str, str]:
    """Return the Markdown of every page of the reference by its name."""
    top = [path.stem for path in sorted(PACKAGE.glob("*.py")) if path.stem not in MACHINERY | {"__init__", "__main__"}]
    pages = {"interfaces": page_text("Interfaces", "The modules that every folder shares.", top)}
    for name, about in reference_folders():
        pages[name] = page_text(f"{name}/", f"{about[0].upper()}{about[1:]}.", modules_of(PACKAGE / name))
    return {"index": index_text(), **pages}


def modules_of(folder: Path) -> list[str]:
    """Return the dotted names, below the package, of a folder's modules that readers may call."""
    left_out = ("_", "kernels", "gpu")  # gpu.py passes on Triton's names, which are not there on every machine
    paths = [path for path in sorted(folder.rglob("*.py")) if not path.stem.startswith(left_out)]
    return [".".join(path.relative_to(PACKAGE).with_suffix("").parts) for path in paths]


def page_text(title: str, about: str, modules: list[str]) -> str:
    return "\n\n".join([f"# {title}", about, *(f"::: foreword.{module}" for module in modules)]) + "\n"


def index_text() -> str:
    """Return the page of all public names, each with the first sentence of its docstring."""
    lines = [
        "# Reference",
        "",
        "Made from the docstrings, one page per folder of `src/foreword`. [Interfaces](interfaces.md) has every",
        "protocol: read it first. These are the names that `from foreword import …` knows.",
        "",
        "| name | what it is |",
        "|---|---|",
    ]
    for name in sorted(foreword.__all__, key=str.lower):
        thing = getattr(foreword, name)
        _, *parents, module = thing.__module__.split(".")
        page = parents[0] if parents else "interfaces"
        link = f"{page}.md#{'.'.join(['foreword', *parents, module, name])}"
        lines.append(f"| [`{name}`]({link}) | {first_sentence(thing)} |")
    return "\n".join(lines) + "\n"


def first_sentence(thing: object) -> str:
    text = " ".join((thing.__doc__ or "").strip().split("\n\n")[0].split())
    return re.split(r"(?<=[.:]) ", text)[0].replace("|", "\\|")
