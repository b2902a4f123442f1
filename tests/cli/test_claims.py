"""``foreword claims``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import foreword as package
from foreword.lessons.claims import proofs
from foreword.lessons.claims.proofs import StoredRun
from foreword.lessons.claims.table import CLAIMS

from .conftest import Foreword


def test_the_table_has_a_line_for_every_claim(foreword: Foreword, wide: None) -> None:
    result = foreword("claims")
    assert result.exit_code == 0
    starts = {word for line in result.stdout.splitlines() for word in line.split()[:1]}
    assert {claim.id for claim in CLAIMS} <= starts
    assert "does not reproduce" in result.stdout
    assert result.stderr.count("\n") == 1
    assert "numbers stored on 20" in result.stderr


def test_one_claim_in_full(foreword: Foreword, wide: None) -> None:
    told = foreword("claims", "r13").stdout
    assert told.startswith("R13")
    assert "3.7e-31" in told
    assert "does not reproduce: " in told
    assert "tests/claims/test_recurrent_claims.py::test_r13_what_the_printed_experiment_really_gives" in told
    assert "docs/results/recurrent.json; 2026-" in foreword("claims", "L10", "--quiet").stdout


def test_json(foreword: Foreword) -> None:
    told = json.loads(foreword("claims", "--json").stdout)
    assert [row["id"] for row in told] == [claim.id for claim in CLAIMS]
    assert set(told[0]) == {"id", "says", "verdict", "why", "found", "measured", "stored", "tests"}
    assert {"test", "outcome", "seconds", "date", "machine", "commit"} == set(told[0]["tests"][0])
    measured = next(row for row in told if row["id"] == "K02")["measured"]
    assert 4 < float(measured["characters for each word"]) < 8


@pytest.mark.long
def test_fast_ones_are_run(foreword: Foreword) -> None:
    result = foreword("claims", "Z16", "Z06", "--fast", "--json")
    assert result.exit_code == 0, result.stderr
    assert "2 tests ran now: 2 passed" in result.stderr
    assert "differ" not in result.stderr


def test_a_run_fails_on_numbers_that_are_old_or_differ(foreword: Foreword, monkeypatch: pytest.MonkeyPatch) -> None:
    test = "tests/claims/test_recurrent_claims.py::test_r12_powers"
    now = StoredRun(["R12"], "passed", 0.1, "2026-01-01", "here", "3ef93fa", "0a1b", {"R12": {"a": "1"}})
    monkeypatch.setattr(proofs, "find_proofs", lambda root: {test: proofs.Proof(["R12"], "0a1b")})
    monkeypatch.setattr(
        proofs, "run_tests", lambda root, tests, meter: {test: proofs.ProofRun("passed", 0.1, now.measured)}
    )
    for stored, fault in (
        ({test: now}, None),
        ({}, "1 tests are newer than the stored numbers"),
        ({test: replace(now, digest="else")}, "1 tests are newer than the stored numbers"),
        ({test: replace(now, measured={"R12": {"a": "2"}})}, f"differ from the stored ones in {test}"),
    ):
        monkeypatch.setattr(proofs, "read_stored", lambda stored=stored: stored)
        result = foreword("claims", "R12", "--run", "--json")
        assert result.exit_code == (fault is not None)
        assert fault is None or fault in result.stderr


def test_unknown_ids_are_one_line(foreword: Foreword) -> None:
    result = foreword("claims", "Q99")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.count("\n") == 1
    assert "no claim Q99" in result.stderr


@pytest.mark.parametrize("option", ["--fast", "--run", "--write"])
def test_without_its_tests_a_package_tells_what_is_stored(
    option: str, foreword: Foreword, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    installed = tmp_path / "lib" / "site-packages" / "foreword" / "__init__.py"
    monkeypatch.setattr(package, "__file__", str(installed))
    result = foreword("claims", "R12")
    assert result.exit_code == 0
    assert "test_r12_powers" in result.stdout
    assert "came without its tests" in result.stderr
    refused = foreword("claims", "R12", option)
    assert refused.exit_code == 1
    assert "in a checkout" in refused.stderr


def test_the_help_has_examples(foreword: Foreword) -> None:
    told = foreword("claims", "--help").stdout
    assert "$ foreword claims --fast" in told
    assert "--json" in told
