"""The table of claims: complete, honest about what is not there, and the page is what the command writes."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from foreword.errors import InputError
from foreword.lessons.claims.proofs import (
    Proof,
    StoredRun,
    find_proofs,
    ids_of,
    outdated,
    proofs_in,
    read_report,
    read_stored,
    run_tests,
    this_machine,
    write_stored,
)
from foreword.lessons.claims.results import (
    LEGACY,
    PROVENANCE,
    missing_provenance,
    parts_of,
    stored_rows,
    unknown_commits,
    write_result,
)
from foreword.lessons.claims.table import (
    CLAIMS,
    SECTIONS,
    VERDICTS,
    Claim,
    read_claims,
    rows_of,
    select_claims,
    write_page,
)

ROOT = Path(__file__).parents[3]
MISSION = ROOT.parent / "shared" / "MISSION.md"
STORED = [claim for claim in CLAIMS if claim.stored is not None]
NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?(?:e-?\d+)?")


@pytest.fixture(scope="module")
def stored() -> dict[str, StoredRun]:
    return read_stored()


@pytest.fixture(scope="module")
def proofs() -> dict[str, Proof]:
    return find_proofs(ROOT)


def test_every_row_and_every_erratum_is_there_once() -> None:
    ids = [claim.id for claim in CLAIMS]
    assert len(set(ids)) == len(ids)
    assert sum(id[0] not in "GZ" for id in ids) == 149
    assert sum(id[0] == "G" for id in ids) == 12
    assert sum(id[0] == "Z" for id in ids) == 17
    assert {id[0] for id in ids} == SECTIONS.keys()


def test_the_ids_are_those_of_the_list_they_come_from() -> None:
    if not MISSION.exists():
        pytest.skip("the list of statements is not beside this checkout")
    listed = re.findall(r"^\| ([A-Z]\d{2}) \|", MISSION.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(claim.id for claim in CLAIMS)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_every_claim_has_a_verdict_and_its_reason(claim: Claim, proofs: dict[str, Proof]) -> None:
    assert claim.verdict in VERDICTS
    assert claim.says.strip()
    assert claim.found.strip()
    assert bool(claim.why) == (claim.verdict != "holds")
    if claim.verdict != "not checked yet":
        assert any(claim.id in proof.claims for proof in proofs.values()), "a verdict needs a test"


def shown_like(shown: str, value: float) -> str:
    """Format a value with as many digits as the number shown has, in scientific notation where that has."""
    digits, scientific, _ = shown.partition("e")
    return f"{value:.{len(digits.partition('.')[2])}{scientific or 'f'}}"


@pytest.mark.parametrize("claim", STORED, ids=lambda claim: claim.id)
def test_stored_numbers_stand_where_they_are_said_to(claim: Claim) -> None:
    """Every number of a stored result is in the page or file that it names."""
    assert claim.stored is not None
    result = claim.stored
    assert re.match(r"20\d\d-\d\d-\d\d\b", result.date)
    assert result.seed
    assert result.machine
    text = (ROOT / result.where).read_text(encoding="utf-8")
    numbers = [number.replace(",", "") for number in NUMBER.findall(result.found)]
    if result.where.endswith(".json"):
        there = [float(number) for number in re.findall(r"(?<!\w)-?\d+\.?\d*(?:e-?\d+)?|\d+", text)]
        there += [100 * share for share in there]  # said as a percentage
        missing = [number for number in numbers if not any(shown_like(number, each) == number for each in there)]
        assert result.date in re.findall(r'"date": "([^"]+)"', text)
        machines = re.findall(r'"machine": "(?:one )?([^",]+)', text)
        assert any(machine in result.machine for machine in machines)
    else:
        missing = sorted({*numbers} - {number.replace(",", "") for number in NUMBER.findall(text)})
    assert not missing, f"{claim.id}: not in {result.where}"


@pytest.mark.parametrize("claim", STORED, ids=lambda claim: claim.id)
def test_every_stored_number_has_a_seed_and_a_machine(claim: Claim) -> None:
    assert claim.stored is not None
    assert "not recorded" not in f"{claim.stored.date} {claim.stored.seed} {claim.stored.machine}"


@pytest.mark.parametrize("file", sorted((ROOT / "docs" / "results").glob("*.json")), ids=lambda file: file.name)
def test_every_stored_result_says_how_it_was_made(file: Path) -> None:
    """Command, commit, seed, machine and seconds: of the whole file, or of each row or part of it."""
    result = json.loads(file.read_text(encoding="utf-8"))
    parts = [result] if missing_provenance(result) == [] or "rows" in result else result.values()
    assert [(missing_provenance(part), list(part)[:3]) for part in parts if missing_provenance(part)] == []


WITHOUT_CODE = {
    "elmo.json": 3,
    "faults.json": 9,
    "infinigram.json": 1,
    "mogrifier.json": 8,
    "multi30k.json": 1,
    "spoken_digits.json": 8,
    "versions.json": 78,
    "wiki_vectors.json": 4,
}
"""Results and rows from before the digest of the code was recorded, by file: each number may only get smaller."""


@pytest.mark.parametrize("file", sorted((ROOT / "docs" / "results").glob("*.json")), ids=lambda file: file.name)
def test_every_new_result_has_a_digest_of_the_code(file: Path) -> None:
    """A commit may be renamed, or the code be another one than the commit's; the digest is of the code that ran."""
    parts = list(parts_of(json.loads(file.read_text(encoding="utf-8"))))
    assert sum(not coded for _, coded in parts) <= WITHOUT_CODE.get(file.name, 0)


def test_a_part_is_covered_by_the_digest_of_its_result() -> None:
    assert list(parts_of({"commit": "a", "code": "b", "rows": [{"commit": "c"}]})) == [("a", True), ("c", True)]
    assert list(parts_of({"rows": [{"commit": "a"}, {"commit": "b", "code": "x"}]})) == [("a", False), ("b", True)]
    assert list(parts_of({"rows": [{"commit": "a", "legacy": LEGACY}, {"row": 1.5}]})) == [("a", True)]


def test_results_of_commits_that_are_not_there_are_found(tmp_path: Path) -> None:
    """In a repository of one commit; without a repository nothing can be said."""
    write_result(tmp_path / "docs" / "results" / "a.json", {"rows": [{"commit": "0" * 40}, {"commit": "HEAD"}]})
    assert unknown_commits(tmp_path) == {}
    for command in ("init -q", "-c user.name=a -c user.email=a@b commit -q --allow-empty -m a"):
        subprocess.run(["git", "-C", tmp_path, *command.split()], check=True, capture_output=True)
    assert unknown_commits(tmp_path) == {"a.json": ["0" * 40]}


def test_rows_of_older_runs_are_marked_and_stay_so(tmp_path: Path) -> None:
    made = dict.fromkeys(PROVENANCE, "x")
    write_result(
        tmp_path / "a.json", {"date": "2026-01-01", "rows": [{"row": "old", "test": 1.5}, {"row": "new", **made}]}
    )
    assert missing_provenance(json.loads((tmp_path / "a.json").read_text("utf-8"))) == list(PROVENANCE)
    rows = stored_rows(tmp_path / "a.json")
    assert rows == [{"legacy": LEGACY, "date": "2026-01-01", "row": "old", "test": 1.5}, {"row": "new", **made}]
    write_result(tmp_path / "a.json", {"rows": rows})
    assert stored_rows(tmp_path / "a.json") == rows
    assert missing_provenance({"rows": rows}) == []
    assert stored_rows(tmp_path / "none.json") == []


@pytest.mark.long
def test_every_proof_is_stored_and_none_is_newer_than_its_number(
    stored: dict[str, StoredRun], proofs: dict[str, Proof]
) -> None:
    assert outdated(stored, proofs) == [], "foreword claims --stale --write"


def test_a_changed_test_or_helper_is_outdated_and_another_test_is_not() -> None:
    source = "import os\n\n@mark\ndef test_t01_a():\n    assert 1\n\ndef test_t02_b():\n    assert 2\n"
    before = proofs_in(source, "tests/test_a.py")
    runs = {test: StoredRun(proof.claims, "passed", 0, "", "", "", proof.digest) for test, proof in before.items()}
    assert outdated(runs, proofs_in(source.replace("assert 2", "assert 3"), "tests/test_a.py")) == [
        "tests/test_a.py::test_t02_b"
    ]
    assert outdated(runs, proofs_in(source.replace("@mark", "@skip"), "tests/test_a.py")) == [
        "tests/test_a.py::test_t01_a"
    ]
    assert len(outdated(runs, proofs_in(source.replace("import os", "import re"), "tests/test_a.py"))) == 2
    assert outdated({}, before) == list(before)


def test_a_changed_module_or_recipe_that_a_test_imports_makes_it_outdated(tmp_path: Path) -> None:
    sources = {
        "tests/test_a.py": "from .helpers import one\n\ndef test_t01_a():\n    assert one\n",
        "tests/test_b.py": "def test_t02_b():\n    from tests.unit.more import two\n",
        "tests/test_c.py": 'PATH = "recipes"\n\ndef test_t03_c():\n    run(PATH, "some.py")\n',
        "tests/test_d.py": '"""some"""\nimport json\n\ndef test_t04_d():\n    assert json\n',
        "tests/helpers.py": "from tests.unit import more\n",
        "tests/unit/more.py": "two = 2\n",
        "recipes/some.py": "import other\n",
        "recipes/other.py": "",
        "recipes/json.py": "",
    }
    for file, source in sources.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(source)
    before = find_proofs(tmp_path)
    runs = {test: StoredRun(proof.claims, "passed", 0, "", "", "", proof.digest) for test, proof in before.items()}
    users = {"tests/helpers.py": "a", "tests/unit/more.py": "ab", "recipes/some.py": "c", "recipes/other.py": "c"}
    for file in sources:
        if not file.startswith("tests/test_"):
            (tmp_path / file).write_text(sources[file] + "# changed\n")
            stale = [re.findall(r"test_(\w)\.py", test)[0] for test in outdated(runs, find_proofs(tmp_path))]
            assert "".join(stale) == users.get(file, ""), file
            (tmp_path / file).write_text(sources[file])


def test_every_test_that_was_stored_exists_and_none_failed(
    stored: dict[str, StoredRun], proofs: dict[str, Proof]
) -> None:
    assert len(stored) > 250
    assert stored.keys() <= proofs.keys(), "foreword claims --write forgets tests that are gone"
    assert [test for test, ran in stored.items() if ran.outcome == "failed"] == []
    assert all(ran.date and ran.machine and ran.commit and ran.digest for ran in stored.values())


def test_every_verdict_rests_on_a_test_that_has_passed(stored: dict[str, StoredRun]) -> None:
    for row in rows_of(CLAIMS, stored):
        if row.claim.verdict != "not checked yet":
            assert any(ran.outcome == "passed" for ran in row.tests.values()), row.claim.id


def test_the_page_is_what_the_command_writes(stored: dict[str, StoredRun]) -> None:
    page = (ROOT / "docs" / "CLAIMS.md").read_text(encoding="utf-8")
    assert page == write_page(rows_of(CLAIMS, stored)), "foreword claims --write writes it anew"
    assert all(f"**{claim.id}** {claim.says}" in page for claim in CLAIMS)


def test_pages_name_as_many_statements_as_there_are() -> None:
    """Verdicts are counted in CLAIMS.md alone, from the table; other pages give the number of statements."""
    pages = {path: path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]}
    named = {
        path.name: int(found[1]) for path, text in pages.items() if (found := re.search(r"\b(\d+) statements", text))
    }
    assert named.keys() >= {"index.md", "teacher.md"}
    assert set(named.values()) == {len(CLAIMS)}


def test_claims_are_chosen_by_id_and_unknown_ones_named() -> None:
    assert [claim.id for claim in select_claims(["z01", "T01"])] == ["T01", "Z01"]
    assert len(select_claims([])) == len(CLAIMS)
    with pytest.raises(InputError, match="no claim Q99"):
        select_claims(["Q99"])


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        ('[T01]\nsays = "a"\nverdict = "holds"\nfound = "b"', "no section T"),
        ('[sections]\nT = "t"\n[T01]\nsays = "a"\nverdict = "maybe"\nfound = "b"', "'maybe': expected holds"),
        ('[sections]\nT = "t"\n[T01]\nsays = "a"', "claim T01: missing"),
        ("[T01", "expected TOML"),
    ],
)
def test_a_broken_table_is_one_line(table: str, fault: str, tmp_path: Path) -> None:
    (tmp_path / "claims.toml").write_text(table, encoding="utf-8")
    with pytest.raises(InputError, match=fault):
        read_claims(tmp_path / "claims.toml")


def test_ids_are_read_from_names_and_docstrings() -> None:
    assert ids_of("test_t10_f01_the_cloud", "Rows E03, E04: see H100 and (Z10).") == ["E03", "E04", "F01", "T10", "Z10"]
    assert ids_of("test_nothing", "") == []


def test_what_was_stored_comes_back(tmp_path: Path) -> None:
    runs = {
        "tests/a.py::test": StoredRun(
            ["T01"], "passed", 0.25, "2026-01-01", this_machine(), "3ef93fa", "0a1b", {"T01": {"π": "3.14 “so”"}}
        )
    }
    write_stored(runs, tmp_path / "measured.json")
    assert read_stored(tmp_path / "measured.json") == runs
    assert read_stored(tmp_path / "none.json") == {}


TESTS = """
import pytest

@pytest.mark.parametrize("n", [1, 2])
def test_t01_of_two(n, record_property):
    record_property("T01 a number", n)
    record_property("for nobody", n)

@pytest.mark.parametrize("n", [1, 2])
def test_t02_half_of_it_fails(n):
    assert n == 1

def test_t03_is_skipped():
    pytest.skip("no data")
"""


def test_tests_are_run_and_their_report_is_read(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_some.py").write_text(TESTS)
    assert {test: proof.claims for test, proof in find_proofs(tmp_path).items()} == {
        "tests/test_some.py::test_t01_of_two": ["T01"],
        "tests/test_some.py::test_t02_half_of_it_fails": ["T02"],
        "tests/test_some.py::test_t03_is_skipped": ["T03"],
    }
    said: list[int] = []
    runs = run_tests(tmp_path, ["tests/test_some.py"], lambda phase, done, total: said.append(done))
    assert {test.partition("::")[2]: run.outcome for test, run in runs.items()} == {
        "test_t01_of_two": "passed",
        "test_t02_half_of_it_fails": "failed",
        "test_t03_is_skipped": "skipped",
    }
    assert runs["tests/test_some.py::test_t01_of_two"].measured == {"T01": {"a number": "2"}}
    assert said[-1] == 1


def test_an_error_at_the_start_of_a_test_is_a_failure() -> None:
    case = '<r><testcase classname="tests.a" name="test_b[c]" time="1.5"><error message="no"/></testcase></r>'
    runs = read_report(ElementTree.fromstring(case))
    assert runs["tests/a.py::test_b"].outcome == "failed"
    assert runs["tests/a.py::test_b"].seconds == 1.5
