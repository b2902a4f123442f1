"""Write the list of paragraphs that several Pythons share, from which the embedded text is made.

    python recipes/embedded_text.py /usr/bin/python3.11 ~/.pyenv/versions/3.12.1/bin/python ...

Each Python named here collects the paragraphs of its own help topics and docstrings, by the rules of
``foreword/text/embedded.py``, which needs nothing but the standard library. The checksums of those that all have are
written to ``foreword/text/shared_paragraphs.crc32`` in the order of the first. Name at least one Python of each
supported version, and one of a distribution that leaves parts of the library out.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path
from zlib import crc32

SOURCE = Path(__file__).resolve().parent.parent / "src"
COLLECT = "import json, sys; from foreword.text.embedded import paragraphs; json.dump(paragraphs(), sys.stdout)"


def paragraphs_of(python: str) -> list[str]:
    """Return the paragraphs that another Python carries."""
    found = subprocess.run(
        [python, "-c", COLLECT], env={**os.environ, "PYTHONPATH": str(SOURCE)}, capture_output=True, check=True
    )
    texts: list[str] = json.loads(found.stdout)
    return texts


def main(pythons: list[str]) -> None:
    """Write the checksums of what the Pythons share."""
    from foreword.text.embedded import SHARED

    if len(pythons) < 2:
        raise SystemExit(__doc__)
    first, *others = (paragraphs_of(python) for python in pythons)
    shared = set(first).intersection(*others)
    kept = [text for text in first if text in shared]
    SHARED.write_bytes(b"".join(struct.pack("<I", crc32(text.encode())) for text in kept))
    words = sum(len(text.split()) for text in kept)
    sys.stdout.write(f"{len(kept):,} of {len(first):,} paragraphs, {words:,} words\n")


if __name__ == "__main__":
    main(sys.argv[1:])
