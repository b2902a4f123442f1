"""N-grams, hidden Markov models and tokens: rows N, H and K."""

from __future__ import annotations

from foreword.lessons.claims.claim import Claim

SEQUENCES = (
    Claim(
        id="N01",
        says="The probability of a text is the product of each word's probability given those before it.",
        verdict="holds",
        found=(
            "for every language model of the package, and for texts drawn at random, the conditionals "
            "read off its states are what scoring says"
        ),
    ),
    Claim(
        id="N02",
        says="A full table for step n has (K−1)·K^(n−1) free numbers, K^N − 1 for N steps.",
        verdict="holds",
        found="exact integers, counted out one by one; 80 for three words and four steps",
    ),
    Claim(
        id="N03",
        says="An n-gram model shares one table over all positions, filled from counts.",
        verdict="holds",
        found=(
            "maximum likelihood equals counting by hand for orders 1 to 5, and the same words predict the"
            " same wherever they stand"
        ),
    ),
    Claim(
        id="N04",
        says='After "thank you very" comes "much".',
        verdict="holds",
        found='on 3,000 posts of 20 Newsgroups "much" has more than 0.8 and nothing else 0.02',
    ),
    Claim(
        id="N05",
        says="What was never seen has no probability: a slice of cake is impossible if it never occurred.",
        verdict="holds",
        found=(
            "0 by maximum likelihood, above 0 with smoothing; one such word makes a whole text "
            "impossible. That a network gives it more is R02's test"
        ),
    ),
    Claim(
        id="N06",
        says="Smoothing such as Kneser-Ney moves mass from what was seen to what was not.",
        verdict="holds",
        found=(
            "each method sums to one within 1e-12 for every context, stupid back-off does not; "
            "probabilities equal NLTK's and, for modified Kneser-Ney, KenLM's files"
        ),
    ),
    Claim(
        id="N07",
        says="Words can be drawn one after another from the table; the text is mostly incoherent.",
        verdict="holds with a condition",
        found="the same seed gives the same text, and maximum likelihood emits only n-grams it has read",
        why="that the text is incoherent is left to the reader's eye: nothing measures it",
    ),
    Claim(
        id="N08",
        says="Tables grow exponentially with the order, and past trigrams they are too expensive.",
        verdict="holds with a condition",
        found=(
            "from n = 1 to 6 an ever larger share is seen only once, over nine tenths at 6, and an ever "
            "larger share of a new text is unseen, over eight tenths"
        ),
        why=(
            "the possible n-grams grow exponentially; the seen ones, which are all that is stored, grow "
            "no faster than the text, and 5-grams of the Penn Treebank are cheap"
        ),
    ),
    Claim(
        id="N09",
        says="To an n-gram model words are symbols: it does not know that cat and feline are related.",
        verdict="holds",
        found=(
            "renaming a word changes no probability by a bit, and a new word of the same meaning is as "
            "likely as any other new word"
        ),
    ),
    Claim(
        id="N10",
        says="A well-tuned trigram model has a perplexity above 140 on the Penn Treebank.",
        verdict="holds",
        found=(
            "148.281 for the trigram and 141.186 for the 5-gram with modified Kneser-Ney, every word and "
            "every line end counted; KenLM's are the same"
        ),
    ),
    Claim(
        id="N11",
        says="An n-gram model remembers n − 1 words.",
        verdict="holds",
        found="words further back leave the prediction identical to the bit, nearer ones do not",
    ),
    Claim(
        id="H01",
        says="A hidden Markov model is π, A and B, whose rows sum to one.",
        verdict="holds",
        found="checked when it is made and after every fit",
    ),
    Claim(
        id="H02",
        says="The joint probability is a product of transitions and emissions.",
        verdict="holds",
        found="it equals the chain rule, and sums to one over all words and states",
    ),
    Claim(
        id="H03",
        says="It is sampled state by state, word by word.",
        verdict="holds",
        found="every frequency within five standard errors, and the seed decides everything",
    ),
    Claim(
        id="H04",
        says="Its size depends on states and words and not on the length.",
        verdict="holds",
        found="exactly (S−1) + S(S−1) + S(K−1) numbers, whatever the length",
    ),
    Claim(
        id="H05",
        says="The next word's probability is a sum over states of belief times emission.",
        verdict="holds",
        found="it equals the ratio of two sums over all paths to 1e-12",
    ),
    Claim(
        id="H06",
        says="Filtering is a step of prediction and one of correction.",
        verdict="holds",
        found="two public steps, equal to enumeration to 1e-12; nothing underflows in 100,000 words",
    ),
    Claim(
        id="H07",
        says="What was read long ago fades: different beginnings lead to nearly the same belief.",
        verdict="holds with a condition",
        found=(
            "the distance of two beliefs is below Dobrushin's bound at every word and falls on a straight"
            " line in its logarithm"
        ),
        why=(
            "for chains whose coefficient is below one, as the random ones of the tests; a chain that "
            "never mixes does not forget"
        ),
    ),
    Claim(
        id="H08",
        says="The best path of states is found by Viterbi, each place's state by smoothing.",
        verdict="holds",
        found="both equal brute force, and hmmlearn",
    ),
    Claim(
        id="H09",
        says="Parts of speech can be told by a hidden Markov model.",
        verdict="holds",
        found=(
            "at least 92 % on UD English-EWT, more than three points above each word's most frequent tag,"
            " and above NLTK's tagger"
        ),
    ),
    Claim(
        id="H10",
        says="EM learns the parameters without tags.",
        verdict="holds",
        found=(
            "the likelihood never falls, every round equals hmmlearn's, and the chain that made a text is found again"
        ),
    ),
    Claim(
        id="K01",
        says="A typo such as catt breaks a word model; so do punctuation and languages without blanks.",
        verdict="holds with a condition",
        found=(
            "it becomes the unknown word, where subwords spell it; mat. is not mat, and a Japanese "
            "sentence is one unknown word"
        ),
        why="nothing crashes here: what is lost is the word",
    ),
    Claim(
        id="K02",
        says="Single characters cover everything, at the price of longer sequences.",
        verdict="holds",
        found="every text comes back exactly, four to eight times as long as in words",
    ),
    Claim(
        id="K03",
        says=(
            "Byte-pair encoding merges the most frequent pair again and again, never across white space, "
            "until the vocabulary is full."
        ),
        verdict="holds",
        found=(
            "the rule as listed and the fast trainer give the same merges, ties are settled by the "
            "smaller ids, and nothing is lost"
        ),
    ),
    Claim(
        id="K04",
        says='"The unbelievable refrigerator" falls into six pieces.',
        verdict="holds with a condition",
        found="exactly those six",
        why=(
            "with a vocabulary made by hand for this sentence: the source's example is an illustration, "
            "and no corpus is named"
        ),
    ),
    Claim(
        id="K05",
        says="All forms of cook share the token cook.",
        verdict="holds with a condition",
        found=(
            "cook, cooks, cooked, cooking and cooker begin with it, trained on 100 MB of Wikipedia with 16,000 tokens"
        ),
        why='with 32,000 tokens "cooking" is frequent enough to be a token of its own',
    ),
    Claim(
        id="K06",
        says="The size of the vocabulary can be anything between the characters and whole words.",
        verdict="holds",
        found=(
            "tokens a word fall from about six to exactly one; 32,000 tokens are learnt with 32 MB for "
            "the counts, with the same result"
        ),
    ),
    Claim(
        id="K07",
        says="Subwords handle punctuation and program code by themselves.",
        verdict="holds",
        found="five files of Python's library come back byte for byte",
    ),
)
