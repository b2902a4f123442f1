"""Models over HTTP. A request passes, from outside in:

    door       a socket, with an end for those that neither ask nor read; ``parsed`` is the quick way to read HTTP
    counted    counts, times, a line of the log
    limits     strangers, forged pages, too much at once
    quick      the shortest way for what is asked most
    routes     everything else: what can be asked, as ``bodies`` says it
    batches    questions that wait for the same model, together
    answers    what the model says

``shelf`` holds the models, ``keeping`` loads them, ``running`` joins all of it. The lab has the same routes.
"""
