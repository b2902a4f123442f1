"""Score streams of documents, and keep those that pass: shards in, shards out.

The stages of one part of a shard::

    text/rows.py   a file            -> batches: the rows as they are in the file, and their texts
    scoring.py     texts             -> columns of scores, by any model; labels.py by classifiers
    statistics.py  texts             -> columns that need no model
    fields.py      rows              -> columns of their own fields
    judge.py       columns           -> which rows pass, by rules.py, and which rule the others fail
    output.py      rows that pass    -> a file of the same format, or by sidecar.py ids and scores alone

``settings.py`` has the settings of a run, which all stages receive as they are. ``shards.py`` runs the stages,
``worker.py`` distributes the parts to processes, ``run.py`` puts the results in place, ``ledger.py`` records what is
finished, ``summary.py`` adds up the tallies.
"""

from foreword.filtering.run import filter_files
from foreword.filtering.settings import Filtering

__all__ = ["Filtering", "filter_files"]
