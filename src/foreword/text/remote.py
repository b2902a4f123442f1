"""Files behind addresses, copied to the user's cache once, so that models can be mapped and used without a network.

    hf://OWNER/NAME/FILE            a file of a Hugging Face repository; hf://OWNER/NAME@REVISION/FILE for a revision
    https://HOST/FILE               downloaded
    s3://..., memory://..., ...     a file or a folder of any file system that fsspec knows

A copy is complete when ``copy.json`` lies next to it, with the size and SHA-256 of each file; until then it does not
exist. Copies up to 64 MB are checksummed whenever they are used, larger ones on request; a damaged one is fetched
again.
``$HF_ENDPOINT`` names another server than huggingface.co.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any

from foreword.errors import InputError, explained
from foreword.text.download import CHUNK_BYTES, cache_folder, checksum_offered, download
from foreword.text.files import ADDRESS, SourceFile, find_files, opened
from foreword.text.strict_json import parse_json

if TYPE_CHECKING:
    from foreword.protocols import Meter

HUB = "https://huggingface.co"
HUB_ADDRESS = re.compile(r"hf://(?P<owner>[^/@]+)/(?P<name>[^/@]+)(@(?P<revision>[^/]+))?/(?P<file>.+)")
RECORD = "copy.json"
CHECKSUM_LIMIT = 64 << 20


def is_address(path: str | Path) -> bool:
    """Return whether a path is an address such as ``hf://owner/name/file``, not a file of this machine."""
    return isinstance(path, str) and ADDRESS.match(path) is not None


def local_copy(address: str, *, verify: bool = False, meter: Meter | None = None) -> Path:
    """Return the copy of a file or folder in the cache; fetch it first if it is not there, or damaged.

    verify: checksum it whatever its size.
    """
    cache = cache_folder()
    if cache is None:
        raise InputError(f"{address}: there is no folder to copy it to: set XDG_CACHE_HOME")
    folder = cache / "models" / hashlib.sha256(address.encode()).hexdigest()[:20]
    if not _is_intact(folder, verify):
        with explained(f"cannot copy {address} to {folder}"):
            shutil.rmtree(folder / "files", ignore_errors=True)
            (folder / RECORD).unlink(missing_ok=True)
            (folder / "files").mkdir(parents=True, exist_ok=True)
        _fetch(address, folder / "files", meter)
        _record(address, folder)
    files = folder / "files"
    inside = list(files.iterdir())
    return inside[0] if len(inside) == 1 and inside[0].is_file() else files


def _is_intact(folder: Path, verify: bool) -> bool:
    """Return whether a complete copy has the sizes that were recorded, and the checksums where they are computed."""
    try:
        record: dict[str, Any] = parse_json((folder / RECORD).read_bytes())["files"]
        for name, facts in record.items():
            path = folder / "files" / name
            if path.stat().st_size != facts["bytes"]:
                return False
            if (verify or facts["bytes"] <= CHECKSUM_LIMIT) and _sha256(path) != facts["sha256"]:
                return False
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False
    return True


def _record(address: str, folder: Path) -> None:
    files = {
        str(path.relative_to(folder / "files")): {"bytes": path.stat().st_size, "sha256": _sha256(path)}
        for path in sorted((folder / "files").rglob("*"))
        if path.is_file()
    }
    new = folder / f"{RECORD}.new"
    with explained(f"cannot copy {address} to {folder}"):
        with new.open("w", encoding="utf-8") as file:
            file.write(json.dumps({"address": address, "files": files}, indent=2) + "\n")
            _sync(file)
        new.replace(folder / RECORD)


def _sync(file: IO[Any]) -> None:
    """Write a file to the disk: after a power cut a record must not name what is not there."""
    file.flush()
    os.fsync(file.fileno())


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fetch(address: str, folder: Path, meter: Meter | None) -> None:
    url = _url_of(address)
    if url is None:
        _copy_files(address, find_files(address), folder, meter)
        return
    sha256, size = checksum_offered(url)
    download(url, folder / _file_name(address), sha256=sha256, size=size, meter=meter)


def _url_of(address: str) -> str | None:
    """Return the address by HTTP; None for one of another file system."""
    if address.startswith(("http://", "https://")):
        return address
    if not address.startswith("hf://"):
        return None
    parts = HUB_ADDRESS.fullmatch(address)
    if parts is None:
        raise InputError(f"{address}: expected hf://OWNER/NAME/FILE")
    hub = os.environ.get("HF_ENDPOINT", "").rstrip("/") or HUB
    return f"{hub}/{parts['owner']}/{parts['name']}/resolve/{parts['revision'] or 'main'}/{parts['file']}"


def _file_name(address: str) -> str:
    """Return the last part of an address, as the name of its copy."""
    name = PurePosixPath(address.split("?")[0].split("#")[0]).name
    return name if name not in ("", ".", "..") else "file"


def _copy_files(address: str, files: list[SourceFile], folder: Path, meter: Meter | None) -> None:
    """Copy the file at an address, or all files of a folder, with their paths below it."""
    for file in files:
        inside = file.name.removeprefix(address.rstrip("/")).strip("/") if file.name != address else ""
        target = folder / (inside or _file_name(address))
        if ".." in PurePosixPath(inside).parts:
            raise InputError(f"{file.name}: a name that leads out of its folder")
        with explained(f"cannot store {file.name} at {target}"):
            target.parent.mkdir(parents=True, exist_ok=True)
            with opened(file) as reader, target.open("wb") as out:
                while chunk := reader.read(CHUNK_BYTES):
                    out.write(chunk)
                    if meter is not None:
                        meter(f"download {target.name}", reader.taken, file.size)
                reader.check_all_taken()
                _sync(out)
