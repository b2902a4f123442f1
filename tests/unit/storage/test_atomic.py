import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from foreword.errors import InputError
from foreword.storage import atomic
from foreword.storage.atomic import atomic_file, atomic_folder, left_aside

MARK = '{"format": "foreword"}'
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="not every system lets folders change places at once")


def old_model(path: Path) -> Path:
    path.mkdir()
    (path / "model.json").write_text(MARK)
    (path / "old").write_text("old")
    return path


def write_new(target: Path) -> None:
    with atomic_folder(target) as folder:
        (folder / "model.json").write_text(MARK)
        (folder / "new").write_text("new")


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_the_folder_is_hidden_beside_its_target_until_it_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "model"
    with atomic_folder(target) as folder:
        assert folder.parent == tmp_path
        assert folder.name.startswith(".model")
        assert not target.exists()
        (folder / "a").write_text("a")
    assert names(tmp_path) == {"model"}
    assert (target / "a").read_text() == "a"


def test_missing_parents_are_made(tmp_path: Path) -> None:
    write_new(tmp_path / "a" / "b" / "model")
    assert names(tmp_path / "a" / "b") == {"model"}
    with atomic_file(tmp_path / "c" / "d" / "file") as path:
        path.write_text("x")
    assert names(tmp_path / "c" / "d") == {"file"}


def test_an_empty_folder_and_an_old_model_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    write_new(tmp_path / "empty")
    write_new(old_model(tmp_path / "model"))
    assert names(tmp_path) == {"empty", "model"}
    assert names(tmp_path / "empty") == names(tmp_path / "model") == {"model.json", "new"}


def test_permissions_are_the_usual_ones(tmp_path: Path) -> None:
    write_new(tmp_path / "model")
    with atomic_file(tmp_path / "file") as path:
        path.write_text("x")
    (tmp_path / "usual").mkdir()
    (tmp_path / "usual" / "file").touch()
    assert (tmp_path / "model").stat().st_mode == (tmp_path / "usual").stat().st_mode
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "usual" / "file").stat().st_mode


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "current").symlink_to(old_model(tmp_path / "model"))
    write_new(tmp_path / "current")
    assert (tmp_path / "current").is_symlink()
    assert names(tmp_path / "model") == {"model.json", "new"}


@pytest.mark.parametrize("content", [None, "{}", '{"format": "layers-model"}'])
def test_a_folder_of_somebody_else_is_refused(tmp_path: Path, content: str | None) -> None:
    target = tmp_path / "thesis"
    target.mkdir()
    (target / "chapter1").write_text("precious")
    if content is not None:
        (target / "model.json").write_text(content)
    with pytest.raises(InputError, match="holds no Foreword model"):
        write_new(target)
    assert (target / "chapter1").read_text() == "precious"
    assert names(tmp_path) == {"thesis"}


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model").write_text("precious")
    with pytest.raises(InputError, match="already there"):
        write_new(tmp_path / "model")
    assert (tmp_path / "model").read_text() == "precious"
    with pytest.raises(InputError, match=r"cannot write .*/model/x"):
        write_new(tmp_path / "model" / "x")


def test_the_current_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="current folder"):
        write_new(Path())


@on_linux
def test_there_is_no_moment_without_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The new folder and the old one change places at once; nothing is ever renamed away."""
    target = old_model(tmp_path / "model")
    monkeypatch.setattr(Path, "rename", None)
    write_new(target)
    assert names(tmp_path) == {"model"}
    assert names(target) == {"model.json", "new"}


@pytest.mark.parametrize("reason", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_an_exception_leaves_the_old_one_and_nothing_else(tmp_path: Path, reason: type[BaseException]) -> None:
    target = old_model(tmp_path / "model")

    def write_half() -> None:
        with atomic_folder(target) as folder:
            (folder / "half").write_text("half")
            raise reason

    with pytest.raises(reason):
        write_half()
    assert names(tmp_path) == {"model"}
    assert names(target) == {"model.json", "old"}


@pytest.fixture
def in_two_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that cannot let two folders change places."""
    monkeypatch.setattr(atomic, "_exchanged", lambda one, other: False)


@pytest.mark.usefixtures("in_two_steps")
@pytest.mark.parametrize("reason", [OSError(errno.EIO, "Input/output error"), KeyboardInterrupt()])
def test_the_old_one_comes_back_when_the_new_one_cannot_move_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: BaseException
) -> None:
    target = old_model(tmp_path / "model")
    rename = Path.rename

    def failing_rename(self: Path, to: Path) -> Path:
        if self.name.startswith(".model.new"):
            raise reason
        return rename(self, to)

    monkeypatch.setattr(Path, "rename", failing_rename)
    with pytest.raises((InputError, KeyboardInterrupt)):
        write_new(target)
    assert names(tmp_path) == {"model"}
    assert names(target) == {"model.json", "old"}


def test_everything_is_synced_before_it_is_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    fsync, rename = os.fsync, Path.rename

    def noted_fsync(handle: int) -> None:
        events.append(str(os.fstat(handle).st_ino))
        fsync(handle)

    def noted_rename(self: Path, to: Path) -> Path:
        events.append("rename")
        return rename(self, to)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(Path, "rename", noted_rename)
    with atomic_folder(tmp_path / "model") as folder:
        (folder / "inner").mkdir()
        (folder / "inner" / "a").write_text("a")
        inodes = {str(path.stat().st_ino) for path in (folder, folder / "inner", folder / "inner" / "a")}
    moment = events.index("rename")
    assert inodes <= set(events[:moment])
    assert events[moment + 1 :] == [str(tmp_path.stat().st_ino)]


@pytest.mark.parametrize("code", ["ENOSPC", "EFBIG", "EDQUOT", "EACCES", "EROFS"])
def test_a_disk_that_refuses_is_one_line(tmp_path: Path, code: str) -> None:
    number = getattr(errno, code)
    for context in (atomic_folder, atomic_file):
        with pytest.raises(InputError) as raised, context(tmp_path / "model"):
            raise OSError(number, os.strerror(number))
        assert str(raised.value) == f"cannot write {tmp_path / 'model'}: {os.strerror(number)}"
    assert names(tmp_path) == set()


def test_a_disk_that_is_full_when_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    target = old_model(tmp_path / "model")
    with pytest.raises(InputError, match="No space left on device"):
        write_new(target)
    with pytest.raises(InputError, match="No space left on device"), atomic_file(tmp_path / "file") as path:
        path.write_text("x")
    assert names(tmp_path) == {"model"}
    assert names(target) == {"model.json", "old"}


def test_trouble_with_another_file_is_not_ours(tmp_path: Path) -> None:
    with pytest.raises(PermissionError), atomic_folder(tmp_path / "model"):
        raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path / "input"))
    with pytest.raises(FileNotFoundError), atomic_folder(tmp_path / "model"):
        (tmp_path / "input").read_text()
    assert names(tmp_path) == set()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_permission_denied(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(InputError, match="Permission denied"):
            write_new(tmp_path / "model")
        with pytest.raises(InputError, match="Permission denied"), atomic_file(tmp_path / "file"):
            pass
        with pytest.raises(InputError, match="Permission denied"):
            write_new(tmp_path / "not" / "there" / "model")
    finally:
        tmp_path.chmod(0o700)


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    target.write_text("old")

    def write_half() -> None:
        with atomic_file(target) as path:
            path.write_text("ha")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert target.read_text() == "old"
    with atomic_file(target) as path:
        assert path.parent == tmp_path
        assert path.name.startswith(".report.html")
        path.write_text("new")
    assert target.read_text() == "new"
    assert names(tmp_path) == {"report.html"}


def test_only_plain_files_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("folder", "pipe"):
        with pytest.raises(InputError, match="not a plain file"), atomic_file(tmp_path / name):
            pass
    assert names(tmp_path) == {"folder", "pipe"}


KILLED = """
import os, signal, sys
from pathlib import Path
from foreword.storage import atomic
from foreword.storage.atomic import atomic_folder

moment, target, rename, exchange = sys.argv[1], Path(sys.argv[2]), Path.rename, atomic._exchanged

def die(*_): os.kill(os.getpid(), signal.SIGKILL)

def exchange_and_die(one, other):
    assert exchange(one, other)
    die()

if moment == "exchanged":
    atomic._exchanged = exchange_and_die
else:
    atomic._exchanged = lambda *_: False

def rename_and_die(self, to):
    rename(self, to)
    if moment == "after " + self.name.split(".")[-1][:3]:
        die()

Path.rename = rename_and_die
if moment == "sync":
    os.fsync = die
with atomic_folder(target) as folder:
    (folder / "model.json").write_text('{"format": "foreword"}')
    if moment == "writing":
        die()
    (folder / "new").write_text("new")
"""


@pytest.mark.parametrize(
    ("moment", "left"),
    [
        ("writing", "old"),
        ("sync", "old"),
        ("after mod", None),
        ("after new", "new"),
        pytest.param("exchanged", "new", marks=on_linux),
    ],
)
def test_killed_at_any_moment_one_of_the_two_is_whole(tmp_path: Path, moment: str, left: str | None) -> None:
    target = old_model(tmp_path / "mod")
    done = subprocess.run([sys.executable, "-c", KILLED, moment, str(target)], check=False)
    assert done.returncode == -9
    if left is None:  # between the two renames: the old one is whole under another name, and can be found
        aside = left_aside(target)
        assert aside is not None
        assert names(aside) == {"model.json", "old"}
    else:
        assert names(target) == {"model.json", left}
        assert left_aside(target) is None
    write_new(target)
    assert names(target) == {"model.json", "new"}
    write_new(target)  # an old one that was put aside is let go when there is a new one in its place
    assert names(tmp_path) == {"mod"}


def test_what_the_living_and_others_have_beside_it_stays(tmp_path: Path) -> None:
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    here, alive = atomic._machine(), f"{atomic._machine()}-{os.getpid()}"
    dead = f"{here}-{int(gone.stdout)}"
    abandoned = [f".model.new-{dead}-0123abcd", f".model.old-{dead}-0123abcd"]
    elsewhere = f"{int(here, 16) ^ 1:08x}-{int(gone.stdout)}"
    others = [f".model.new-{alive}-0123abcd", f".other.new-{dead}-0123abcd", f".model.new-{elsewhere}-0123abcd"]
    others += [".model.new-mine", f"model.new-{dead}-0123abcd"]
    for name in (*abandoned, *others):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").write_text("a")
    write_new(tmp_path / "model")
    assert names(tmp_path) == {"model", abandoned[1], *others}  # it was no one's place when the new one came
    write_new(tmp_path / "model")
    assert names(tmp_path) == {"model", *others}
    (tmp_path / f".file.new-{dead}-0123abcd").write_text("half")
    with atomic_file(tmp_path / "file") as path:
        path.write_text("x")
    assert names(tmp_path) == {"model", "file", *others}


FULL = """
import resource, sys
from foreword.errors import InputError
from foreword.storage.atomic import atomic_file, atomic_folder

resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
try:
    if sys.argv[1] == "folder":
        with atomic_folder(sys.argv[2]) as folder:
            (folder / "a").write_bytes(bytes(1 << 20))
    else:
        with atomic_file(sys.argv[2]) as path:
            path.write_bytes(bytes(1 << 20))
except InputError as error:
    print(error)
"""


@pytest.mark.parametrize("what", ["folder", "file"])
def test_a_disk_that_is_really_full(tmp_path: Path, what: str) -> None:
    pytest.importorskip("resource")
    done = subprocess.run(
        [sys.executable, "-c", FULL, what, str(tmp_path / "model")], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"cannot write {tmp_path / 'model'}: File too large\n"
    assert names(tmp_path) == set()


@pytest.mark.usefixtures("in_two_steps")
def test_two_savers_leave_one_whole_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = old_model(tmp_path / "model")
    rename = Path.rename
    others = [lambda: write_new(target)]

    def interrupted_rename(self: Path, to: Path) -> Path:
        result = rename(self, to)
        if others:
            others.pop()()  # another process saves to the same place just between our two renames
        return result

    monkeypatch.setattr(Path, "rename", interrupted_rename)
    with pytest.raises(InputError, match="not empty"):
        write_new(target)
    assert names(tmp_path) == {"model"}
    assert names(target) == {"model.json", "new"}


def test_the_mark_is_what_the_saved_models_carry() -> None:
    assert atomic.MODEL_MARK.decode() in MARK
