"""Feed-forward and recurrent networks, LSTM and GRU: rows R and L."""

from __future__ import annotations

from foreword.lessons.claims.claim import Claim, Kept

RECURRENT = (
    Claim(
        id="R01",
        says=(
            "Bengio's network joins the last words' vectors and predicts through one hidden layer, and beats n-grams."
        ),
        verdict="holds with a condition",
        found=(
            "the network is the paper's equation, and mixed with Kneser-Ney of its order it is better "
            "than that alone by more than 7 %"
        ),
        why="the test shows the mixture; alone it beats the 5-gram on the Penn Treebank by little",
        kept=Kept(
            found="137.2 alone on the Penn Treebank, the 5-gram 141.2",
            where="docs/neural.md",
            date="2026-11-15",
            seed="0",
            machine="one NVIDIA H200, torch 2.11",
        ),
    ),
    Claim(
        id="R02",
        says="What is learnt of a cat on a mat makes a dog on a rug likely.",
        verdict="holds",
        found="the unseen sentence is likelier to the network than to Kneser-Ney, on a built text",
    ),
    Claim(
        id="R03",
        says="An Elman network is tanh of one matrix on state and input, or of two.",
        verdict="holds",
        found="both forms agree, and states and gradients are PyTorch's",
    ),
    Claim(
        id="R04",
        says="The source's NumPy network: small normal weights, stable softmax, p − y, gradients cut at ±5.",
        verdict="holds",
        found=(
            "its gradients agree with finite differences to 1e-6 before they are cut, huge scores do not "
            "overflow, and it learns"
        ),
    ),
    Claim(
        id="R05",
        says="Weights are shared, so the size does not depend on the length.",
        verdict="holds",
        found="as many parameters for one step as for ten thousand",
    ),
    Claim(
        id="R06",
        says="A sequence model must take any length, see order and share weights; a dense network does none of it.",
        verdict="holds",
        found="the recurrent network meets each of the three and the dense one fails each; the list is ours (Z12)",
    ),
    Claim(
        id="R07",
        says="The last state can classify, predict or encode.",
        verdict="holds",
        found="three linear heads on one frozen reader are each right in more than 95 of 100",
    ),
    Claim(
        id="R08",
        says="A network of characters writes plausible text and forgets what is more than 10 to 20 steps back.",
        verdict="holds with a condition",
        found="more than 85 % of the letter pairs it writes stand in its text, against under 40 % for random letters",
        why="plausible means pairs of letters here; how far it remembers is L10's measure",
    ),
    Claim(
        id="R09",
        says="The loss is −log of the right word's probability, its gradient p − y.",
        verdict="holds",
        found="loss and gradient equal PyTorch's to 1e-12",
    ),
    Claim(
        id="R10",
        says="Backpropagation through time sums the gradient over all steps.",
        verdict="holds",
        found="equal to finite differences at up to 25 places of every weight, and of the input, for every cell",
    ),
    Claim(
        id="R11",
        says="What a state owes to an earlier one is a product of Jacobians.",
        verdict="holds",
        found="the product equals autograd's to 1e-10 at every lag",
    ),
    Claim(
        id="R12",
        says="0.9 to the 50th is 0.005, to the 100th 0.00003; 1.1 to the 100th is 13,781.",
        verdict="holds",
        found="0.005154, 2.656e-05 and 13,780.6",
    ),
    Claim(
        id="R13",
        says=(
            "A gradient through 100 steps keeps 3.7e-31 of itself with small weights and grows 1.4e+18 "
            "times with large ones."
        ),
        verdict="does not reproduce",
        found="medians of 1.6e-60 and 5.4e+22; over 100 seeds of the weights the small one stays below 1e-50",
        why="the small value looks as if the slope 0.5 had been left out of it; see Z01",
    ),
    Claim(
        id="R14",
        says=(
            "Whether gradients vanish or explode depends on the largest singular value, or the "
            "eigenvalues, being below or above 1."
        ),
        verdict="holds with a condition",
        found="the spectral radius decides: a shipped matrix with a norm above 1 and a radius below 1 vanishes",
        why="a norm below 1 suffices for vanishing; a norm above 1 proves nothing (Z02)",
    ),
    Claim(
        id="R15",
        says="States shrink or explode with the eigenvalues, and tanh keeps them within (−1, 1).",
        verdict="holds",
        found=(
            "linear and ReLU states follow the radius; tanh states stay bounded even with weights a "
            "hundred times as large"
        ),
    ),
    Claim(
        id="R16",
        says="The slope of tanh is at most 1 and near 0 where a unit is saturated.",
        verdict="holds",
        found="a histogram for every step sums to one, and large weights push it to zero",
    ),
    Claim(
        id="R17",
        says="ReLU helps against vanishing, but has to begin with something like the identity.",
        verdict="holds",
        found="from the identity a network recalls over 40 steps; from random weights it diverges or fails",
    ),
    Claim(
        id="R18",
        says="Explosion ends in numbers that are none and is seen; vanishing is silent.",
        verdict="holds",
        found=(
            "the guard names step and tensor; the report names the lag from which nothing arrives, though"
            " the loss looks good"
        ),
    ),
    Claim(
        id="R19",
        says="A network must remember the subject until its verb.",
        verdict="holds",
        found="with nouns of the other number between, a GRU is right in over 90 of 100 and a 5-gram in under 70",
    ),
    Claim(
        id="L01",
        says="The LSTM's equations.",
        verdict="holds",
        found="states and gradients are those of PyTorch's LSTM",
    ),
    Claim(
        id="L02",
        says="The source's NumPy cell: weights of size 1/√Z, forget bias 1.",
        verdict="holds",
        found="the equations to 1e-12, gradients to 1e-6; a new cell keeps 0.73 a step, and a half with bias 0",
    ),
    Claim(
        id="L03",
        says="Along the cell's state the gradient is the forget gate: a highway.",
        verdict="holds with a condition",
        found=(
            "exact on the direct path; 60 steps back an LSTM with open gates keeps over a tenth where an "
            "RNN keeps under a thousandth"
        ),
        why="with the gates held fixed; the whole derivative is another number (Z09)",
    ),
    Claim(
        id="L04",
        says="The product of forget gates goes to zero over hundreds of steps.",
        verdict="holds",
        found="below 1e-4 after 400 steps of a new cell with gates that begin open, and never rising",
        kept=Kept(
            found="in a trained LSTM the mean unit has forgotten 99 % of a word after 64 others",
            where="docs/recurrent.md",
            date="2026-11-15",
            seed="not recorded",
            machine="not recorded",
        ),
    ),
    Claim(
        id="L05",
        says=(
            "Gates have roles: forget, input, output; a pronoun flips the stored gender, a subject's "
            "number is kept for the verb."
        ),
        verdict="holds with a condition",
        found="gates of trained models can be exported word by word, and move with the words",
        why="that one gate holds gender is not shown; that the state holds the subject's number is S01's test",
    ),
    Claim(
        id="L06",
        says="A forget bias of 1 improves learning dramatically.",
        verdict="holds",
        found="recall over 100 steps is better by more than a tenth, mean of five seeds",
        kept=Kept(
            found="0.79 of the answers right with bias 0 (1 of 5 seeds solved), 1.00 with bias 1 (5 of 5)",
            where="docs/recurrent.md",
            date="2026-11-15",
            seed="five",
            machine="not recorded",
        ),
    ),
    Claim(
        id="L07",
        says="The GRU's equations, with or without biases, the update gate keeping or replacing.",
        verdict="holds",
        found="both senses are one cell with the gate's weights negated; exact conversion to PyTorch's and Keras's",
    ),
    Claim(
        id="L08",
        says="With 256 units and 300 inputs a GRU has 427,000 weights and an LSTM 569,000, a third more.",
        verdict="holds",
        found="427,008 and 569,344 without biases, 428,544 and 571,392 with PyTorch's two",
    ),
    Claim(
        id="L09",
        says="LSTM and GRU are of comparable quality, and the GRU is faster.",
        verdict="holds",
        found="a GRU may have more units for the same number of parameters",
        kept=Kept(
            found=(
                "perplexity 64.5 ± 1.2 with 458,297 parameters (GRU) and 66.3 ± 0.9 with 457,624 (LSTM), in 18 and 19 s"
            ),
            where="docs/recurrent.md",
            date="2026-11-15",
            seed="three",
            machine="one CPU thread, its name not recorded",
        ),
    ),
    Claim(
        id="L10",
        says=(
            "A plain RNN remembers 10 to 20 steps, an LSTM 100 to 200, hundreds, or over 1,000, depending"
            " on the source."
        ),
        verdict="holds with a condition",
        found="with the same updates a GRU recalls over 60 steps, an RNN of that size over 3 and not over 60",
        why=(
            "of this size and budget; with more of both every number moves. The LSTM's reach agrees with "
            "the sources that say about 100"
        ),
        kept=Kept(
            found=(
                "recall reaches lag 20 (RNN), 100 (IRNN and LSTM), 200 (minimal GRU), 400 (GRU) with 32 "
                "units and 800 updates"
            ),
            where="docs/recurrent.md",
            date="2026-11-15",
            seed="three",
            machine="not recorded",
        ),
    ),
    Claim(
        id="L11",
        says="A state of fixed size cannot hold a long text.",
        verdict="holds",
        found="24 units give back five symbols better than 2 units by more than a fifth",
        kept=Kept(
            found="symbols given back by units and number of items, as a picture",
            where="docs/recurrent.md",
            date="2026-11-15",
            seed="not recorded",
            machine="not recorded",
        ),
    ),
    Claim(
        id="L12",
        says="RNN, LSTM and GRU have 0, 3 and 2 gates and low, high and medium cost.",
        verdict="holds with a condition",
        found="gates as said; 1, 4 and 3 matrices; parameters and operations as PyTorch counts them",
        why="a GRU has three small networks inside, not two (Z04)",
        kept=Kept(
            found="a step takes 9, 35 and 23 µs",
            where="docs/recurrent.md",
            date="2026-11-15",
            seed="none",
            machine="one CPU thread, its name not recorded",
        ),
    ),
)
