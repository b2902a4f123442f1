"""``foreword tag evaluate``: how right a tagger is, words and spans."""

from __future__ import annotations

from foreword.cli.options import AsJson, ModelFolder, Quiet, examples
from foreword.cli.tag.treebank import Treebanks

EXAMPLES = examples(
    "foreword tag evaluate tagger ud_english_ewt:test",
    "foreword tag evaluate names conll2003:test --json | jq .spans.micro.f1",
)


def evaluate(model: ModelFolder, files: Treebanks, as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Tag what is tagged already and compare: accuracy, and for tags that are spans their precision, recall and F1.

    With --json the keys are those of foreword evaluate, and spans with micro, macro, weighted and kinds.
    """
    from foreword.cli.printing import write_json
    from foreword.cli.progress import progress
    from foreword.cli.tag.treebank import load_tagger, measure_treebanks, print_tag_measures

    with progress(quiet) as meter:
        measures = measure_treebanks(load_tagger(model), files, meter)
    if as_json:
        write_json(measures.to_json())
    else:
        print_tag_measures(measures)
