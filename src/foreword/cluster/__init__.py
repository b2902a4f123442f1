"""The same functions on Ray, where one machine is not enough.

    connect.py     find a cluster, or start one on this machine; wait for results, and report errors in one line
    filtering.py   parts of files filtered by tasks: the work of ``filtering/worker.py``
    rows.py        models as stateless maps over a Ray Dataset
    counting.py    words counted segment by segment (``text/segments.py``), and merged
    ngrams.py      n-grams counted segment by segment, sent to the range of their first word, and merged
    training.py    networks trained by several workers under Ray Train

Scheduling, retries, moving objects and the loss of a process or a machine are Ray's. This folder only says what is
independent of what: every task is a function of its arguments, so that one done twice, or elsewhere, gives the same
bytes. Nothing outside this folder knows Ray, and nothing here is imported before it is needed.
"""
