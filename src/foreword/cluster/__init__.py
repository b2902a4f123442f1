"""The same functions on Ray, where one machine is not enough.

    connect.py     find a cluster, or start one on this machine
    gather.py      wait for results, and tell what went wrong in one line
    filtering.py   parts of files filtered by tasks: the work of ``filtering/worker.py``
    rows.py        models as stateless maps over a Ray Dataset
    stretches.py   a text in stretches that tasks read
    counting.py    words counted stretch by stretch, and merged
    ngrams.py      n-grams counted stretch by stretch, sent to the range of their first word, and merged
    training.py    networks trained by several workers under Ray Train

Scheduling, retries, moving objects and what happens when a process or a machine is lost are Ray's. What is here only
says what is independent of what: every task is a function of its arguments, so that one done twice, or elsewhere, gives
the same bytes. Nothing outside this folder knows Ray, and nothing here is imported before it is asked for.
"""
