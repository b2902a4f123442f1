"""Pages that lie beside docs/, in the root of the repository, as pages of the site too, so that links to them work."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
BESIDE = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    for name in BESIDE:
        if (ROOT / name).is_file():
            files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, *, page: Any, **kwargs: Any) -> str:
    """``../SECURITY.md`` on a page of docs/ is beside it here; ``docs/CLAIMS.md`` on a page of the root too."""
    if page.file.src_uri in BESIDE:
        return markdown.replace("](docs/", "](")
    return re.sub(rf"\]\(\.\./({'|'.join(map(re.escape, BESIDE))})", r"](\1", markdown)
