"""``foreword filter --ray``: the same bytes, ledger and summary as on one machine, whatever dies on the way."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Foreword
from tests.cluster.conftest import Ambush, trap

from foreword.errors import InputError
from foreword.fasttext.classifier import FastTextClassifier
from foreword.filtering import shards
from foreword.filtering.ledger import FOLDER
from foreword.filtering.worker import perform
from foreword.ngram.model import NgramLM
from foreword.pipeline.language import TextLM
from foreword.storage.folder import save
from foreword.tokens.words import WordTokenizer

pytestmark = pytest.mark.filterwarnings("ignore")
pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

WORDS = [f"w{number}" for number in range(300)]


def text(rng: random.Random, length: int) -> str:
    return " ".join(rng.choices(WORDS, range(300, 0, -1), k=length))


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, rng = tmp_path_factory.mktemp("models"), random.Random(0)
    texts = [text(rng, 30) for _ in range(200)]
    save(TextLM(WordTokenizer(), NgramLM(3)).fit(texts), folder / "ngram")
    labels = ["a" if "w1 " in each else "b" for each in texts]
    FastTextClassifier(4, epochs=40, rate=0.5, buckets=100).fit(texts, labels).write(folder / "lid.bin")
    return folder


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six files, 2 MB: some long enough to be cut into parts, one compressed, one of Parquet."""
    folder, rng = tmp_path_factory.mktemp("web") / "in", random.Random(1)
    folder.mkdir()
    rows = [{"id": number, "text": text(rng, rng.randrange(60))} for number in range(12_000)]
    data = [json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows]
    for number in range(4):
        (folder / f"{number}.jsonl").write_bytes(b"".join(data[number * 2500 : (number + 1) * 2500]))
    (folder / "4.jsonl.gz").write_bytes(gzip.compress(b"".join(data[10_000:11_000])))
    parquet.write_table(pyarrow.Table.from_pylist(rows[11_000:]), folder / "5.parquet")
    return folder


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of lines are cut into parts of 200 kB; the size is the program's, which hands out the parts."""
    monkeypatch.setattr(shards, "PART_BYTES", 200_000)


def written(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and FOLDER not in path.parts
    }


def facts(printed: str) -> dict[str, Any]:
    """The first line: where Ray is left connected, as it is here, it may tell of a lost node later."""
    return {**json.loads(printed.splitlines()[0]), "seconds": 0}


def records(folder: Path) -> list[Any]:
    """What the ledger says, without the times of files."""
    lines = [
        json.loads(line.rpartition("\t")[0]) for line in (folder / FOLDER / "ledger.jsonl").read_text().splitlines()
    ]
    return sorted(json.dumps(line, sort_keys=True) for line in lines)


@pytest.mark.usefixtures("small_parts")
def test_filter_on_ray_gives_the_same_bytes_ledger_and_summary(
    foreword: Foreword, cluster: Any, models: Path, web: Path, tmp_path: Path
) -> None:  # fmt: skip
    rule = ("--keep", "label=a and probability>0.3", "--with-scores", "--json")
    one = foreword("filter", models / "lid.bin", web, tmp_path / "one", *rule, "-p", 1)
    ray = foreword("filter", models / "lid.bin", web, tmp_path / "ray", *rule, "--ray")
    assert (one.exit_code, ray.exit_code) == (0, 0), ray.stderr
    assert written(tmp_path / "ray") == written(tmp_path / "one")
    assert facts(ray.stdout) == facts(one.stdout)
    assert 0 < facts(one.stdout)["kept"] < facts(one.stdout)["documents"]
    assert records(tmp_path / "ray") == records(tmp_path / "one")
    assert not (tmp_path / "ray" / FOLDER / "parts").exists()


@pytest.mark.usefixtures("small_parts", "cluster")
def test_either_run_goes_on_where_the_other_was_stopped(
    foreword: Foreword,
    models: Path,
    web: Path,
    tmp_path: Path,
) -> None:
    (tmp_path / "broken").mkdir()
    for path in web.iterdir():
        (tmp_path / "broken" / path.name).write_bytes(path.read_bytes())
    good = (tmp_path / "broken" / "3.jsonl").read_bytes()
    (tmp_path / "broken" / "3.jsonl").write_bytes(good + b"{no JSON\n")
    command = ("filter", models / "ngram", tmp_path / "broken", tmp_path / "out", "--keep-percentile", 50)
    stopped = foreword(*command, "--ray")
    assert stopped.exit_code == 1
    assert "3.jsonl" in stopped.stderr
    assert f"line {good.count(10) + 1}" in stopped.stderr
    said = [line for line in stopped.stderr.splitlines() if not line.startswith("reading, ")]  # progress, where slow
    assert len(said) == 1
    (tmp_path / "broken" / "3.jsonl").write_bytes(good)
    assert foreword(*command, "-p", 1).exit_code == 0
    assert foreword("filter", models / "ngram", web, tmp_path / "one", "--keep-percentile", 50, "-p", 1).exit_code == 0
    assert written(tmp_path / "out") == written(tmp_path / "one")


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("loss", ["a worker", "a node"])
def test_what_dies_in_the_middle_changes_nothing(
    foreword: Foreword, cluster: Any, models: Path, web: Path, tmp_path: Path, loss: str,
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest,
) -> None:  # fmt: skip
    node = request.getfixturevalue("victim") if loss == "a node" else None
    stop = trap(tmp_path, node)

    def perform_and_be_caught(run: str, folder: str, filtering: Any, task: Any) -> tuple[Any, int]:
        """A task that is caught between two batches, its result half written."""
        return perform(shards.OpenFilter(filtering), task, lambda size: stop()), 1

    monkeypatch.setattr("foreword.cluster.filtering._perform", perform_and_be_caught)
    ambush = Ambush(tmp_path, cluster, node)
    ambush.start()
    command, rule = ("filter", models / "ngram", web), ("--keep", "perplexity<200", "--json")
    ray = foreword(*command, tmp_path / "ray", *rule, "--ray")
    assert ray.exit_code == 0, ray.stderr
    assert ambush.struck is not None
    one = foreword(*command, tmp_path / "one", *rule, "-p", 1)
    assert written(tmp_path / "ray") == written(tmp_path / "one")
    assert facts(ray.stdout) == facts(one.stdout)


@pytest.mark.usefixtures("cluster")
def test_maps_over_a_dataset_are_the_same_scores_and_rows(
    foreword: Foreword,
    models: Path,
    web: Path,
    tmp_path: Path,
) -> None:
    import ray.data

    from foreword.cluster.rows import Passing, Scores

    ray.data.DataContext.get_current().enable_progress_bars = False
    path, rule = web / "5.parquet", "wiki_perplexity<200"
    named = [("wiki", str(models / "ngram"))]
    model = f"wiki={models / 'ngram'}"
    for how in (("--score-only",), ("--keep", rule)):
        assert foreword("filter", "-m", model, path, tmp_path / how[0], *how, "-p", 1).exit_code == 0
    dataset = ray.data.read_parquet(str(path), override_num_blocks=2)
    scored = dataset.map_batches(Scores(named).of, batch_format="pyarrow", batch_size=300)
    rows = sorted(scored.take_all(), key=lambda row: row["id"])
    wanted = parquet.read_table(tmp_path / "--score-only" / "5.parquet").to_pylist()
    assert [list(row.items()) for row in rows] == [list(row.items()) for row in wanted]
    table = Passing(named, [rule]).of(parquet.read_table(path))
    assert table.to_pylist() == parquet.read_table(tmp_path / "--keep" / "5.parquet").to_pylist()
    assert 0 < len(table) < len(rows)
    with pytest.raises(InputError, match="no column 'body'"):
        Scores(named, field="body").of(parquet.read_table(path))
    with pytest.raises(InputError, match='a column "wiki_score" already'):
        Scores(named).of(parquet.read_table(tmp_path / "--score-only" / "5.parquet"))
