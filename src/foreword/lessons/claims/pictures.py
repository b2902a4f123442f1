"""Figures and interactive pieces: rows F."""

from __future__ import annotations

from foreword.lessons.claims.claim import Claim

PICTURES = (
    Claim(
        id="F01",
        says="A word cloud of a document.",
        verdict="holds",
        found="see T10; every ink has a contrast of at least 4.5 to 1",
    ),
    Claim(
        id="F02",
        says="King, queen, man and woman as a parallelogram.",
        verdict="holds",
        found="drawn where the words' real vectors are, in the package and in the lab",
    ),
    Claim(
        id="F03",
        says="CBOW and skip-gram have their arrows reversed.",
        verdict="holds",
        found="drawn from the models' own windows and sizes",
    ),
    Claim(
        id="F04",
        says="A recurrent cell, compact and unrolled.",
        verdict="holds with a condition",
        found="the lab's page draws the chain for the sentence it reads, a box a step, for one, three and nine words",
        why="the unrolled figure is drawn; the compact one, a cell with a loop, is not",
    ),
    Claim(
        id="F05",
        says="A page that simulates RNN, LSTM and GRU.",
        verdict="holds",
        found=(
            "one file without network; every gate, state and gradient equals Python's to 1e-6, and "
            "sliders and keys work"
        ),
    ),
    Claim(
        id="F06",
        says="The pulse runs from left to right, and no word sees a later one.",
        verdict="holds",
        found="as shown on the page, with the dependency behind it tested",
    ),
    Claim(
        id="F07",
        says="The LSTM's four operations one after the other.",
        verdict="holds",
        found="each shows the value that was computed",
    ),
    Claim(
        id="F08",
        says="Attention as a map of target by source.",
        verdict="holds",
        found="a square for each pair, in file, terminal and lab",
    ),
    Claim(
        id="F09",
        says="Gradient norm against lag falls or grows exponentially, on a logarithmic scale.",
        verdict="holds",
        found=(
            "drawn for RNN, GRU and LSTM; the RNN's logarithm lies on a falling straight line; an LSTM "
            "whose forget gates begin wide open (bias 5) loses nothing"
        ),
    ),
    Claim(
        id="F10",
        says="Two dimensions show groups of words.",
        verdict="holds",
        found="principal components equal scikit-learn's, and the map in the lab is drawn from the vectors",
    ),
    Claim(
        id="F11",
        says="Merges shown one by one.",
        verdict="holds",
        found="replayed on the user's text, told step by step",
    ),
    Claim(
        id="F12",
        says="A table of gates and a table of attention scores.",
        verdict="holds",
        found=(
            "made from the cells and score functions themselves: name, formula, weights of its own, "
            "whether sizes may differ"
        ),
    ),
)
