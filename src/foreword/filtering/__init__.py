"""Scores for streams of documents, and only those that pass: shards in, shards out.

The stages of one shard::

    rows.py, tables.py   a file            -> batches: the rows as they lie there, and their texts
    scoring.py           texts             -> columns of scores, by any model
    rules.py             columns           -> which rows pass, and which rule the others fail
    rows.py, tables.py   rows that pass    -> a file of the same form

``shards.py`` runs them for a stretch of a file, ``ledger.py`` remembers what is finished, ``run.py`` gives the work to
processes and puts the results in place, ``summary.py`` adds up what was seen.
"""

from foreword.filtering.run import Filtering, filter_files

__all__ = ["Filtering", "filter_files"]
