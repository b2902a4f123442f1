"""Training, metrics, cost and the Transformer beside: rows P, M and X."""

from __future__ import annotations

from foreword.lessons.claims.claim import Claim, Kept

TRAINING = (
    Claim(
        id="P01",
        says="Truncated backpropagation carries the state over the cut and stops the gradient there.",
        verdict="holds",
        found=(
            "states equal reading at once, the gradient across the cut is exactly 0, and memory does not "
            "grow with the text"
        ),
    ),
    Claim(
        id="P02",
        says="Clipping by norm mends explosion and not vanishing.",
        verdict="holds",
        found=(
            "the norm is bounded and the direction kept; a run that would explode survives; 50 steps back"
            " there is still nothing"
        ),
    ),
    Claim(
        id="P03",
        says="Clipping by value cuts every number at ±5.",
        verdict="holds",
        found="no number above 5, and the direction is turned",
    ),
    Claim(
        id="P04",
        says="Learning rates follow schedules.",
        verdict="holds",
        found="step, cosine, plateau and NT-ASGD by their formulae",
    ),
    Claim(
        id="P05",
        says="Sharing the embedding with the output layer saves parameters and gives a better model.",
        verdict="holds with a condition",
        found="V·D parameters fewer, and a perplexity lower by more than 5 %",
        why=(
            "on a made-up text of word classes, after many epochs; on a small real text in five epochs "
            "the untied model was the better one"
        ),
    ),
    Claim(
        id="P06",
        says="Variational dropout keeps one mask for all steps.",
        verdict="holds",
        found="equal over time and new for each sequence, where ordinary dropout differs",
    ),
    Claim(
        id="P07",
        says="AWD-LSTM reaches 57.3 on the Penn Treebank and 65.8 on WikiText-2.",
        verdict="holds",
        found="the stored results are at or below both",
        kept=Kept(
            found="55.26 and 65.40 on the test parts, in 891 and 759 s; 56.28 on the first in 467 s",
            where="docs/awd_lstm.md",
            date="2026-11-15",
            seed="0",
            machine="one NVIDIA H200, torch 2.11.0 with CUDA 13.0",
        ),
    ),
    Claim(
        id="P08",
        says="There is an essential checklist for training recurrent networks.",
        verdict="holds",
        found=(
            "a list of checks with a verdict each, on a real run; the source's list is missing from the "
            "copy, so it is ours (Z12)"
        ),
    ),
    Claim(
        id="P09",
        says="Fifty words unrolled are fifty layers.",
        verdict="holds",
        found="the longest way of a gradient, counted in the graph: 50, and 1 for attention",
    ),
    Claim(
        id="P10",
        says="The text is its own label.",
        verdict="holds",
        found="nothing but text goes in, and every target is the next input",
    ),
    Claim(
        id="M01",
        says="Perplexity is the exponential of the mean negative log-likelihood.",
        verdict="holds",
        found="a uniform model over V words has V exactly; bits per byte compare what perplexities cannot",
    ),
    Claim(
        id="M02",
        says="On the Penn Treebank perplexity fell from above 140 with trigrams to below 60 with LSTMs.",
        verdict="holds",
        found="the stored rows are in that order, and at most a hundredth above the published ones",
        kept=Kept(
            found=(
                "148.3 trigram, 141.2 5-gram, 137.2 Bengio, 111.2 RNN, 99.8 minimal GRU, 85.0 GRU, 81.1 LSTM, "
                "79.5 Transformer, 55.3 AWD-LSTM"
            ),
            where="docs/neural.md",
            date="2026-11-15 and 2026-11-16",
            seed="0",
            machine="one NVIDIA H200, torch 2.11; n-grams on a CPU",
        ),
    ),
    Claim(
        id="M03",
        says="From place i to place j a recurrent layer takes j − i steps, attention one.",
        verdict="holds",
        found="counted in autograd's graph",
    ),
    Claim(
        id="M04",
        says="A thousand words need a thousand steps however many processors there are, most of which idle.",
        verdict="holds with a condition",
        found=(
            "2,048 steps take more than five times as long as 32; utilisation is a share of what the machine can do"
        ),
        why="true of one text; many texts side by side in a wide layer keep two thirds of a GPU busy",
        kept=Kept(
            found="an LSTM of 256 units on one text keeps 0.2 % of an H200 busy, one of 1,024 units on 32 texts 65 %",
            where="docs/recurrent.md",
            date="2026-11-15",
            seed="none",
            machine="one NVIDIA H200, PyTorch 2.11",
        ),
    ),
    Claim(
        id="X01",
        says="A small Transformer learns from the same data.",
        verdict="holds with a condition",
        found="its network is its equation, and it learns beside the others in equal time",
        why=(
            "better than LSTMs of its size on characters, but not in half a minute of a CPU on words "
            "(docs/neural.md): which one wins depends on the budget"
        ),
        kept=Kept(
            found="1.726 nats a character with 60,720 parameters, the LSTM 1.832 with 69,984",
            where="docs/recurrent.md",
            date="2026-11-15",
            seed="one, not recorded",
            machine="not recorded",
        ),
    ),
    Claim(
        id="X02",
        says=(
            "Recurrent networks have four limits with a cause and a remedy each, and six architectures "
            "what they solve and where they end."
        ),
        verdict="holds with a condition",
        found=(
            "a number for each of the four limits and the six architectures, measured by a recipe and by "
            "the lab; gradients fade most in an RNN and least in an LSTM of the three, and not through "
            "attention"
        ),
        why=(
            "that training is slow needs many processors to show: on one CPU thread the LSTM trains "
            "faster than the Transformer"
        ),
        kept=Kept(
            found=(
                "of a gradient 5e-35 reaches 100 words back in an RNN and 2e-09 in an LSTM; 46,238 words "
                "a second in training for the LSTM and 32,475 for the Transformer"
            ),
            where="docs/limits.md",
            date="2026-11-16",
            seed="not recorded",
            machine="one CPU thread, its name not recorded",
        ),
    ),
    Claim(
        id="X03",
        says="3.5 days against 12 hours makes the Transformer seven times as fast.",
        verdict="holds with a condition",
        found="84 hours are seven times 12",
        why="the arithmetic is right; whose figures they are is wrong (Z07)",
    ),
    Claim(
        id="X04",
        says="Loss is a smooth power of model size.",
        verdict="holds with a condition",
        found="the fit finds known powers and floors again",
        why="over six small sizes on one text, one seed each; which power larger models would have is not shown",
        kept=Kept(
            found="exponent 0.128 with R² 0.988 (LSTM), 0.121 with R² 0.987 (Transformer)",
            where="docs/recurrent.md",
            date="2026-11-15",
            seed="one, not recorded",
            machine="not recorded",
        ),
    ),
)
