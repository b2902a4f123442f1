import hashlib
import json
import os
import resource
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest

from foreword.arrays import Array
from foreword.errors import ForewordError, InputError, SettingError
from foreword.kinds import KINDS, Kind
from foreword.protocols import Json, Parts
from foreword.storage import checking
from foreword.storage import folder as folder_module
from foreword.storage.checking import CHECKS
from foreword.storage.folder import FORMAT_VERSION, kind_of, load, nest, pack, save, unnest, unpack, verify
from foreword.storage.safetensors import write_arrays
from foreword.tokens.vocab import Vocab


class Tiny:
    """The least that can be saved: its parts, nothing else."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts

    def to_parts(self) -> Parts:
        return self.parts

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        if parts.settings.get("raise") == "setting":
            raise SettingError("order=0 makes no sense")
        if "raise" in parts.settings:
            raise {"key": KeyError("probabilities"), "value": ValueError("two\nlines"), "type": TypeError()}[
                str(parts.settings["raise"])
            ]
        return cls(parts)


class Pair:
    """A composite: two models in one folder with one vocabulary."""

    def __init__(self, first: Tiny, second: Tiny) -> None:
        self.first, self.second = first, second

    def to_parts(self) -> Parts:
        parts = Parts({"colour": "blue"})
        nest("first", self.first, into=parts)
        nest("second", self.second, into=parts)
        return parts

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        return cls(unnest("first", parts), unnest("second", parts))


@pytest.fixture(autouse=True)
def _known_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "tiny", Kind("tiny", f"{__name__}:Tiny", "data"))
    monkeypatch.setitem(KINDS, "pair", Kind("pair", f"{__name__}:Pair", "data"))


def tiny(**settings: Json) -> Tiny:
    vocab = Vocab(["<unk>", "</s>", "the", "new\nline", ""], [3, 1, 4, 1, 5])
    arrays: dict[str, Array] = {"weights": np.arange(6, dtype=np.float32).reshape(2, 3), "none": np.zeros((0, 2))}
    return Tiny(Parts({"order": 3, "rate": 0.1, "name": "naïve", **settings}, arrays, vocab))


def assert_same(found: Parts, wanted: Parts) -> None:
    assert found.settings == wanted.settings
    assert found.arrays.keys() == wanted.arrays.keys()
    for name, array in wanted.arrays.items():
        np.testing.assert_array_equal(found.arrays[name], array, strict=True)
    assert found.vocab == wanted.vocab
    if wanted.vocab is not None and found.vocab is not None:
        np.testing.assert_array_equal(np.asarray(found.vocab.counts), np.asarray(wanted.vocab.counts))


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    save(tiny(), tmp_path / "model")
    return tmp_path / "model"


def signed(facts: dict[str, Any]) -> bytes:
    """A model.json as a hostile writer would make it: whatever it says, its checksum is right."""
    facts = {name: value for name, value in facts.items() if name != "sha256"}
    digest = hashlib.sha256(rendered(facts)).hexdigest()
    return rendered({**facts, "sha256": digest})


def rendered(facts: dict[str, Any]) -> bytes:
    return (json.dumps(facts, indent=2, sort_keys=True) + "\n").encode()


def rewrite(model: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change what model.json says, and bring its facts about the files up to date before that."""
    facts = json.loads((model / "model.json").read_bytes())
    for name in facts["files"]:
        blob = (model / name).read_bytes()
        facts["files"][name] = {"bytes": len(blob), "sha256": hashlib.sha256(blob).hexdigest()}
    change(facts)
    (model / "model.json").write_bytes(signed(facts))


def error_of(path: Path) -> str:
    """The one line that says what is wrong; verify must find something too."""
    with pytest.raises(InputError) as raised:
        load(path)
    message = str(raised.value)
    assert "\n" not in message
    assert str(path) in message
    assert len(message) < 600
    assert verify(path)
    return message


# Round trips


def test_a_model_comes_back(saved: Path) -> None:
    assert_same(load(saved).parts, tiny().parts)
    assert_same(load(str(saved), verify=True).parts, tiny().parts)
    assert verify(saved) == []


def test_arrays_are_mapped_not_read(saved: Path) -> None:
    weights = load(saved).parts.arrays["weights"]
    assert not weights.flags.owndata
    assert not weights.flags.writeable


@pytest.mark.parametrize(
    "parts",
    [
        Parts({}),
        Parts({"a": [1, 2.5, None, True, {"b": "c"}]}),
        Parts({}, {"x": np.ones(3)}),
        Parts({}, vocab=Vocab(["</s>"], unknown=None)),
        Parts({}, vocab=Vocab(["</s>"], [7], unknown=None)),
    ],
)
def test_each_part_may_be_absent(tmp_path: Path, parts: Parts) -> None:
    save(Tiny(parts), tmp_path / "model")
    found = load(tmp_path / "model").parts
    assert_same(found, parts)
    listed = {"model.json", *json.loads((tmp_path / "model" / "model.json").read_bytes())["files"]}
    assert {path.name for path in (tmp_path / "model").iterdir()} == listed


def test_the_same_model_gives_the_same_bytes(tmp_path: Path) -> None:
    model = tiny(a=1, b=2)
    save(model, tmp_path / "one")
    other = tiny(b=2, a=1)
    other.parts.arrays = dict(reversed(other.parts.arrays.items()))
    save(other, tmp_path / "two")
    save(load(tmp_path / "one"), tmp_path / "three")
    for name in ("model.json", "arrays.safetensors", "vocab.txt"):
        contents = {(tmp_path / folder / name).read_bytes() for folder in ("one", "two", "three")}
        assert len(contents) == 1


def test_model_json_is_for_people_too(saved: Path) -> None:
    text = (saved / "model.json").read_text()
    facts = json.loads(text)
    assert list(facts) == ["files", "foreword", "format", "kind", "settings", "sha256", "version", "vocab"]
    assert facts["vocab"] == {"tokens": 5, "unknown": 0, "end": 1}
    assert facts["kind"] == "tiny"
    assert '"name": "naïve"' in text
    assert text.endswith("}\n")


def test_a_loaded_model_can_be_saved_over_itself(saved: Path) -> None:
    model = load(saved)
    save(model, saved)
    assert_same(model.parts, tiny().parts)  # its arrays still view the old file
    assert_same(load(saved).parts, tiny().parts)


def test_a_folder_may_be_moved_linked_and_hold_other_files(saved: Path) -> None:
    moved = saved.rename(saved.with_name("moved"))
    (moved / "notes.txt").write_text("mine")
    saved.symlink_to(moved)
    assert_same(load(saved).parts, tiny().parts)
    assert verify(saved) == []
    assert_same(load(saved / "model.json").parts, tiny().parts)


# Nesting


def test_two_models_share_a_folder_and_a_vocabulary(tmp_path: Path) -> None:
    first, second = tiny(place=1), tiny(place=2)
    second.parts.arrays = {"weights": np.ones(2), "deep.er": np.zeros(1)}
    save(Pair(first, second), tmp_path / "pair")
    found = load(tmp_path / "pair")
    assert_same(found.first.parts, first.parts)
    assert_same(found.second.parts, second.parts)
    assert found.first.parts.vocab is found.second.parts.vocab


def test_pack_and_unpack(tmp_path: Path) -> None:
    packed = pack(tiny())
    assert packed.settings["kind"] == "tiny"
    assert_same(unpack(packed).parts, tiny().parts)
    with pytest.raises(ValueError, match="'x' is not a kind"):
        unpack(Parts({"kind": "x", "settings": {}}))


def test_nesting_refuses_what_could_not_be_told_apart() -> None:
    parts = Parts({"taken": 1}, vocab=Vocab(["</s>"], unknown=None))
    for prefix in ("taken", "a.b"):
        with pytest.raises(ValueError, match="cannot name"):
            nest(prefix, tiny(), into=parts)
    with pytest.raises(ValueError, match="only one"):
        nest("other", tiny(), into=parts)


def test_a_nested_model_that_is_wrong(tmp_path: Path) -> None:
    save(Pair(tiny(), tiny()), tmp_path / "pair")
    rewrite(tmp_path / "pair", lambda facts: facts["settings"]["first"].update(kind="os.system"))
    assert "not a valid pair model ('os.system' is not a kind" in error_of(tmp_path / "pair")
    rewrite(tmp_path / "pair", lambda facts: facts["settings"].pop("first"))
    assert "not a valid pair model ('first' should be an object)" in error_of(tmp_path / "pair")


# What cannot be saved


def test_kinds() -> None:
    assert kind_of(tiny()) == "tiny"
    with pytest.raises(SettingError, match="a dict cannot be saved"):
        kind_of({})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800"])
def test_settings_that_json_cannot_say(tmp_path: Path, value: float | str) -> None:
    with pytest.raises(SettingError, match="settings of the tiny model cannot be saved"):
        save(tiny(rate=value), tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_settings_too_large_to_be_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_module, "MODEL_JSON_LIMIT", 2 << 20)
    with pytest.raises(SettingError, match="more than 2 MB"):
        save(tiny(long="x" * (2 << 20)), tmp_path / "model")


def test_the_name_of_the_counts_is_reserved(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="reserved"):
        save(Tiny(Parts({}, {"vocab.counts": np.ones(1)})), tmp_path / "model")


# What cannot be loaded


def test_nothing_there(tmp_path: Path) -> None:
    assert "no such file or folder" in error_of(tmp_path / "none")
    assert "not a saved model: model.json is missing" in error_of(tmp_path)


def test_an_old_model_left_aside_is_named(saved: Path) -> None:
    aside = saved.rename(saved.with_name(".model.old-0123abcd"))
    with pytest.raises(InputError, match=rf"left the old one in {aside}"):
        load(saved)
    assert_same(load(aside).parts, tiny().parts)


@pytest.mark.parametrize("name", ["arrays.safetensors", "vocab.txt"])
def test_a_flipped_byte_is_found(saved: Path, name: str) -> None:
    blob = bytearray((saved / name).read_bytes())
    blob[-2] ^= 1
    (saved / name).write_bytes(blob)
    assert f"{name} does not match its checksum: the file is damaged" in error_of(saved)


def test_every_flipped_byte_is_found_or_does_no_harm(saved: Path) -> None:
    for name in ("model.json", "arrays.safetensors", "vocab.txt"):
        whole = (saved / name).read_bytes()
        for place in range(len(whole)):
            for flip in (0x01, 0x02, 0x10, 0x20, 0x80):
                blob = bytearray(whole)
                blob[place] ^= flip
                (saved / name).write_bytes(blob)
                try:
                    found = load(saved).parts
                except ForewordError:
                    continue
                assert_same(found, tiny().parts)
        (saved / name).write_bytes(whole)
    assert verify(saved) == []


def test_every_cut_is_found(saved: Path) -> None:
    for name in ("model.json", "arrays.safetensors", "vocab.txt"):
        whole = (saved / name).read_bytes()
        for size in range(0, len(whole) - 1, 7):  # without its last newline a model.json is whole
            (saved / name).write_bytes(whole[:size])
            with pytest.raises(InputError):
                load(saved)
        (saved / name).write_bytes(whole)


def test_a_hostile_writer_who_signs_what_he_wrote(saved: Path) -> None:
    """Right checksums prove nothing: flipped bytes in arrays and vocabulary must do no harm behind them either."""
    for name in ("arrays.safetensors", "vocab.txt"):
        whole = (saved / name).read_bytes()
        for place in range(len(whole)):
            blob = bytearray(whole)
            blob[place] ^= 0x02
            (saved / name).write_bytes(blob)
            rewrite(saved, lambda facts: None)
            try:
                parts = load(saved).parts
            except InputError:
                continue
            assert sum(array.nbytes for array in parts.arrays.values()) <= len(whole)
            assert len(parts.vocab) == 5
        (saved / name).write_bytes(whole)


@pytest.mark.parametrize("name", ["arrays.safetensors", "vocab.txt"])
def test_a_missing_file(saved: Path, name: str) -> None:
    (saved / name).unlink()
    assert f"{name} is missing" in error_of(saved)


def test_verify_names_every_problem(saved: Path) -> None:
    (saved / "vocab.txt").unlink()
    (saved / "arrays.safetensors").write_bytes(b"short")
    problems = verify(saved)
    assert [problem.split(": ")[1].split()[0] for problem in problems] == ["arrays.safetensors", "vocab.txt"]


def test_a_file_of_another_size(saved: Path) -> None:
    with (saved / "vocab.txt").open("ab") as file:
        file.write(b"x\n")
    assert "vocab.txt has" in error_of(saved)


def test_a_newer_version(saved: Path) -> None:
    rewrite(saved, lambda facts: facts.update(version=FORMAT_VERSION + 1))
    assert error_of(saved).endswith("was written by a newer Foreword (version 2, this one reads 1)")


FACTS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "format": (lambda facts: facts.update(format="other"), "format is 'other'"),
    "no format": (lambda facts: facts.pop("format"), "format is None"),
    "version 0": (lambda facts: facts.update(version=0), "no version 0"),
    "version true": (lambda facts: facts.update(version=True), "'version' should be a whole number"),
    "huge version": (lambda facts: facts.update(version=10**300), "newer Foreword"),
    "kind": (lambda facts: facts.update(kind="os:system"), "'os:system' is not a kind"),
    "kind a list": (lambda facts: facts.update(kind=["tiny"]), "'kind' should be a string"),
    "long kind": (lambda facts: facts.update(kind="x\n" * 10**6), "is not a kind"),
    "settings": (lambda facts: facts.update(settings=[]), "'settings' should be an object"),
    "files": (lambda facts: facts.update(files=[]), "'files' should be an object"),
    "file": (lambda facts: facts["files"].update(x=3), "'bytes' should be"),
    "size": (lambda facts: facts["files"]["vocab.txt"].update(bytes="9"), "'bytes' should be"),
    "negative size": (lambda facts: facts["files"]["vocab.txt"].update(bytes=-1), "not -1"),
    "huge size": (lambda facts: facts["files"]["vocab.txt"].update(bytes=10**100), "damaged"),
    "sha256": (lambda facts: facts["files"]["vocab.txt"].update(sha256=None), "'sha256' should be"),
    "vocab list": (lambda facts: facts.update(vocab=[]), "'end' should be"),
    "vocab null": (lambda facts: facts.update(vocab=None), "disagree"),
    "no vocab.txt": (lambda facts: facts["files"].pop("vocab.txt"), "disagree"),
    "no end": (lambda facts: facts["vocab"].update(end=None), "'end' should be"),
    "end": (lambda facts: facts["vocab"].update(end=5), "end token's id 5"),
    "unknown": (lambda facts: facts["vocab"].update(unknown=-1), "unknown token's id -1"),
    "unknown text": (lambda facts: facts["vocab"].update(unknown="0"), "'unknown' should be"),
    "tokens": (lambda facts: facts["vocab"].update(tokens=6), "5 tokens, not 6"),
    "huge tokens": (lambda facts: facts["vocab"].update(tokens=10**18), "5 tokens, not 1"),
    "surrogate": (lambda facts: facts.update(kind="\ud800"), "is not a kind"),
    "raises KeyError": (
        lambda facts: facts["settings"].update({"raise": "key"}),
        "not a valid tiny model (it has no 'probabilities')",
    ),
    "raises ValueError": (
        lambda facts: facts["settings"].update({"raise": "value"}),
        "not a valid tiny model (two lines)",
    ),
    "raises TypeError": (
        lambda facts: facts["settings"].update({"raise": "type"}),
        "not a valid tiny model (TypeError)",
    ),
    "raises SettingError": (
        lambda facts: facts["settings"].update({"raise": "setting"}),
        "not a valid tiny model (order=0 makes no sense)",
    ),
}


@pytest.mark.parametrize("case", FACTS)
def test_hostile_facts(saved: Path, case: str) -> None:
    change, message = FACTS[case]
    rewrite(saved, change)
    assert message in error_of(saved)


@pytest.mark.parametrize(
    "name", ["../secret", "/etc/passwd", "..", ".", "", "a/b", "a\\b", "a\0b", "model.json", "vocab.txt/"]
)
def test_hostile_names(saved: Path, name: str) -> None:
    (saved.parent / "secret").write_bytes(b"")
    facts = {"bytes": 0, "sha256": hashlib.sha256(b"").hexdigest()}
    rewrite(saved, lambda manifest: manifest["files"].update({name: facts}))
    assert "is not the name of a file in the folder" in error_of(saved)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "Expecting value"),
        (b"[]", "not an object"),
        (b"{}", "format is None"),
        (b"[" * 100_000, "deep"),
        (b"\xff\xfe", "utf-8"),
        (b'{"format": "foreword", "format": "foreword"}', "twice"),
        (b'{"format": "foreword", "version": 1}', "'sha256' should be"),
        (b'{"format": "foreword", "version": ' + b"1" * 5000 + b"}", "limit"),
        (b'{"format": "foreword", "version": NaN}', "NaN"),
    ],
)
def test_hostile_model_json(saved: Path, text: bytes, message: str) -> None:
    (saved / "model.json").write_bytes(text)
    assert message in error_of(saved)


def test_a_huge_model_json_is_not_even_read(saved: Path) -> None:
    with (saved / "model.json").open("r+b") as file:
        file.truncate(1 << 40)  # sparse: it takes no room
    assert "no model.json has more than 16 MB" in error_of(saved)


@pytest.mark.parametrize(
    ("inner", "message"),
    [
        (b"[" * 900 + b"]" * 900, "nested more than 64 levels deep"),
        (b"[" * 973 + b"1" * 1_000_000 + b"]" * 973, "nested more than 64 levels deep"),
        (b"[" + b"[]," * 4_500_000 + b"[]]", "would take too much memory"),
        (b"[" + b"1," * 7_500_000 + b"1]", "would take too much memory"),
    ],
)
def test_json_that_expands_is_refused_before_it_is_parsed(saved: Path, inner: bytes, message: str) -> None:
    """A megabyte, 900 levels deep, once took 1.9 GB and 36 seconds; the promise is ten times the file plus 64 MB."""
    rest = b'{\n  "format": "foreword",\n  "kind": ' + inner + b',\n  "version": 1\n}\n'
    digest = hashlib.sha256(rest).hexdigest().encode()
    text = rest.replace(b'\n  "version"', b'\n  "sha256": "' + digest + b'",\n  "version"')
    (saved / "model.json").write_bytes(text)
    tracemalloc.start()
    assert message in error_of(saved)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * len(text) + (64 << 20)


@pytest.mark.parametrize("name", ["model.json", "vocab.txt"])
def test_links_out_of_the_folder_are_not_followed(saved: Path, name: str) -> None:
    outside = (saved / name).rename(saved.parent / "outside")
    (saved / name).symlink_to(outside)
    assert "a link that leads out of the folder" in error_of(saved)


def test_a_link_inside_the_folder_is_fine(saved: Path) -> None:
    (saved / "vocab.txt").rename(saved / "words")
    (saved / "vocab.txt").symlink_to("words")
    assert verify(saved) == []


@pytest.mark.parametrize("name", ["model.json", "vocab.txt"])
def test_a_pipe_or_a_folder_or_a_link_to_itself_does_not_hang(saved: Path, name: str) -> None:
    (saved / name).unlink()
    os.mkfifo(saved / name)
    assert f"{name} is not a plain file" in error_of(saved)
    (saved / name).unlink()
    (saved / name).mkdir()
    assert f"{name} is not a plain file" in error_of(saved)
    (saved / name).rmdir()
    (saved / name).symlink_to(name)
    assert f"{name} is not a plain file" in error_of(saved)


def test_wrong_counts(saved: Path) -> None:
    write_arrays(saved / "arrays.safetensors", {"vocab.counts": np.ones(4, np.int64)})
    rewrite(saved, lambda facts: None)
    assert "counts are int64 of shape (4,)" in error_of(saved)


def test_large_files_are_checksummed_in_the_background_or_first_when_asked(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_module, "CHECKSUM_LIMIT", 100)
    blob = bytearray((saved / "arrays.safetensors").read_bytes())
    blob[-1] ^= 1
    (saved / "arrays.safetensors").write_bytes(blob)
    told: list[str] = []
    monkeypatch.setattr(CHECKS, "report", told.append)
    load(saved)
    load(saved)
    CHECKS.wait()
    assert told == [f"{saved}: arrays.safetensors does not match its checksum: the file is damaged"]
    with pytest.raises(InputError, match=r"arrays\.safetensors does not match its checksum"):
        load(saved, verify=True)
    assert len(verify(saved)) == 1


def test_a_process_whose_parent_checks_does_not(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_module, "CHECKSUM_LIMIT", 100)
    monkeypatch.setattr(CHECKS, "wanted", False)
    monkeypatch.setattr(checking, "sha256_of", None)
    load(saved)
    CHECKS.wait()


def test_opening_reads_nothing_of_a_large_file(tmp_path: Path) -> None:
    (tmp_path / "sparse").touch()
    os.truncate(tmp_path / "sparse", 200 << 20)
    numbers = np.memmap(tmp_path / "sparse", np.int64, mode="r")
    save(Tiny(Parts({}, {"numbers": numbers})), tmp_path / "model")
    before = resource.getrusage(resource.RUSAGE_SELF)
    model = load(tmp_path / "model")
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert after.ru_minflt + after.ru_majflt - before.ru_minflt - before.ru_majflt < 2000  # all would be 51,200
    assert model.parts.arrays["numbers"].shape == (25 << 20,)


# Foreign files


def test_a_tokenizer_json_goes_to_its_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foreword.tokens.tokenizer_json.read_tokenizer_json", lambda path: ("read", path))
    path = tmp_path / "whatever.bin"
    path.write_text(' {"version": "1.0", "model": {"type": "BPE"}}')
    assert load(path) == ("read", path)


@pytest.mark.parametrize("content", [b"", b"some text", b"{}", b'["model"]', b"\x00" * 100])
def test_an_unknown_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    assert "neither a saved model nor a file" in error_of(tmp_path / "file")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read anything")
def test_permission_denied(saved: Path) -> None:
    for path in (saved / "vocab.txt", saved / "model.json", saved):
        path.chmod(0)
        with pytest.raises(InputError):
            load(path)
        with pytest.raises(InputError, match=r"Permission denied|missing"):
            load(saved)
        assert verify(saved)
    saved.chmod(0o700)


# Saves that are cut short


def nothing_but(folder: Path, name: str) -> bool:
    return [path.name for path in folder.iterdir()] == [name]


@pytest.mark.parametrize("step", ["write_arrays", "write_vocab", "_file_facts", "_render_manifest"])
@pytest.mark.parametrize("reason", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_save_leaves_the_old_model_whole(
    saved: Path, monkeypatch: pytest.MonkeyPatch, step: str, reason: type[BaseException]
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise reason

    with monkeypatch.context() as patch:
        patch.setattr(folder_module, step, interrupt)
        with pytest.raises(reason):
            save(tiny(order=4), saved)
    assert_same(load(saved).parts, tiny().parts)
    assert nothing_but(saved.parent, "model")


SAVER = """
import os, resource, signal, sys
import numpy as np
from foreword.errors import InputError
from foreword import kinds
from foreword.storage import folder
from foreword.protocols import Parts

class Tiny:
    def to_parts(self):
        return Parts({"order": 4}, {"weights": np.arange(1 << 18)})

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

kinds.KINDS["tiny"] = kinds.Kind("tiny", "__main__:Tiny", "data")
if sys.argv[1] == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
else:
    setattr(folder, sys.argv[1], die)
try:
    folder.save(Tiny(), sys.argv[2])
except InputError as error:
    print(error)
"""


@pytest.mark.parametrize("step", ["_file_facts", "_render_manifest"])
def test_a_killed_save_leaves_the_old_model_whole(saved: Path, step: str) -> None:
    done = subprocess.run([sys.executable, "-c", SAVER, step, str(saved)], check=False)
    assert done.returncode == -9
    assert_same(load(saved, verify=True).parts, tiny().parts)


def test_a_full_disk_is_one_line_and_leaves_the_old_model_whole(saved: Path) -> None:
    done = subprocess.run([sys.executable, "-c", SAVER, "full", str(saved)], capture_output=True, text=True, check=True)
    assert done.stdout == f"cannot write {saved}: File too large\n"
    assert_same(load(saved, verify=True).parts, tiny().parts)
    assert nothing_but(saved.parent, "model")


def test_a_damaged_model_can_be_replaced(saved: Path) -> None:
    (saved / "vocab.txt").unlink()
    save(tiny(), saved)
    assert verify(saved) == []
