"""Static word vectors: rows E."""

from __future__ import annotations

from foreword.lessons.claims.claim import Claim, Kept

VECTORS = (
    Claim(
        id="E01",
        says="An embedding is a matrix, and looking a word up is a product with its one-hot vector.",
        verdict="holds",
        found="equal to the bit, and so is the gradient",
    ),
    Claim(
        id="E02",
        says="An embedding may be fixed, adapted in training, or read from a file.",
        verdict="holds",
        found="a frozen one is unchanged, an adapted one changes and fits better, and every file format begins it",
    ),
    Claim(
        id="E03",
        says="CBOW averages the context's vectors and predicts the word between.",
        verdict="holds",
        found="loss and gradients equal PyTorch's; both matrices can be looked at",
    ),
    Claim(
        id="E04",
        says="Skip-gram predicts each context word from the middle one, with one distribution for all offsets.",
        verdict="holds",
        found="gradients equal PyTorch's, and contexts may change places without changing the loss",
    ),
    Claim(
        id="E05",
        says="A window of M words on either side, cut at the ends of the text, gives the training pairs.",
        verdict="holds",
        found="number and identity of the pairs are those of the formula for M = 5",
    ),
    Claim(
        id="E06",
        says="Large texts are learnt with negative sampling, a hierarchical softmax and subsampling.",
        verdict="holds",
        found="fast kernel and plain twin take the same steps in every combination",
        kept=Kept(
            found=(
                "on 16 million words: WordSim-353 0.589 (CBOW) and 0.594 (skip-gram), gensim's 0.541 and "
                "0.583; analogies 40.3 % and 37.4 %, gensim's 33.3 % and 36.4 %"
            ),
            where="docs/vectors.md",
            date="2026-11-16",
            seed="three",
            machine="not recorded",
        ),
    ),
    Claim(
        id="E07",
        says="GloVe's vectors and biases add up to the logarithm of how often two words meet.",
        verdict="holds",
        found=(
            "the loss falls in every epoch and more than three quarters of the variance of frequent pairs"
            " are explained; counts and cost are those of Stanford's program"
        ),
    ),
    Claim(
        id="E08",
        says="Solid goes with ice, gas with steam, water with both, fashion with neither.",
        verdict="holds with a condition",
        found="the ratio is above 2 for solid, below 0.25 for gas, and within a quarter of the paper's for water",
        why=(
            "in 16 million words fashion stands near neither word and has no ratio; common words such as "
            "of and and have one near 1"
        ),
    ),
    Claim(
        id="E09",
        says="fastText's n-grams of apple, with n = 3, are five, and the whole word beside them.",
        verdict="holds",
        found="exactly that list, and those fastText prints for words in several scripts",
    ),
    Claim(
        id="E10",
        says="fastText learns vectors of n-grams of 3 to 6 letters.",
        verdict="holds",
        found="its own program reads our files with the same vectors, and we read its files",
    ),
    Claim(
        id="E11",
        says="GloVe has nothing for a word like eatable; fastText makes a vector from its parts, for typos too.",
        verdict="holds with a condition",
        found="GloVe raises or gives zeros as set; on a small text fastText's neighbours of eatable contain eat",
        why=(
            "on four million words of Wikipedia its neighbours share the ending instead "
            "(docs/vectors.md): endings count as much as stems"
        ),
    ),
    Claim(
        id="E12",
        says=(
            "Forms of a word lie together: velocemente and lentamente, gatto and gatti; also in Finnish, "
            "Turkish or Arabic."
        ),
        verdict="holds",
        found=(
            "forms left out of the training text are nearer to their relatives than words that share no "
            "n-gram, in Italian, Finnish and Turkish"
        ),
    ),
    Claim(
        id="E13",
        says="King − man + woman is near queen, Paris − France + Italy near Rome.",
        verdict="holds with a condition",
        found=(
            "queen comes first, Berlin for Germany too; more than 5 % of Google's questions are right "
            "where chance is one in 30,000"
        ),
        why=(
            "the three inputs must be left out, else king comes first; and from four million words Rome "
            "is among the first twenty and not the first"
        ),
    ),
    Claim(
        id="E14",
        says="Days lie with days, cities with cities, cat with dog and not with refrigerator.",
        verdict="holds",
        found="every listed pair is nearer than its distractors, and groups are closer within than across",
    ),
    Claim(
        id="E15",
        says="An embedding is one-to-one and keeps structure, on a surface of few dimensions.",
        verdict="holds",
        found=(
            "no two words share a vector, cosines rank pairs as people do (ρ above 0.3), and the "
            "intrinsic dimension is below half of the hundred"
        ),
    ),
    Claim(
        id="E16",
        says="Dense vectors beat sparse ones.",
        verdict="holds with a condition",
        found=(
            "with three questions of each kind to learn from they classify better than one-hot sums, in "
            "less than a tenth of the room"
        ),
        why="the lead asserted is one point, on one task with very little to learn from",
    ),
    Claim(
        id="E17",
        says="Occupation words lie nearer to one gender.",
        verdict="holds",
        found="WEAT 6 and 8 have effects above 0.5 with p below 0.05, and direct bias is above 0.05",
    ),
    Claim(
        id="E18",
        says="The bias direction can be projected out; that does not solve the problem.",
        verdict="holds",
        found=(
            "neutral words lose it to 1e-6, analogies are kept, and clusters still tell more than 80 % of the sides"
        ),
    ),
    Claim(
        id="E19",
        says="A word with several senses has one vector, a sort of average.",
        verdict="holds",
        found=(
            "the same vector in both sentences to the bit; a made-up word of two lies nearer to their "
            "middle than to either"
        ),
    ),
    Claim(
        id="E20",
        says=(
            "GloVe is compact and knows no unseen words, fastText is larger and does; static vectors are "
            "one a word, contextual ones one an occurrence."
        ),
        verdict="holds",
        found=(
            "both tables filled with measured sizes: fastText more than three times as large, 5 of 5 "
            "unseen words against 0; the contextual side is a hidden Markov model's belief"
        ),
    ),
)
