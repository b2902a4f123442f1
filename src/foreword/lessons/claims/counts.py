"""Words as counts, naive Bayes and linear models: rows T and B."""

from __future__ import annotations

from foreword.lessons.claims.claim import Claim

COUNTS = (
    Claim(
        id="T01",
        says=(
            'A sentence becomes a bag of counts: in "The cat chases the mouse" the word the has two, each'
            " other word one."
        ),
        verdict="holds",
        found="the dictionary is exactly that, in lower case",
    ),
    Claim(
        id="T02",
        says="A bag forgets order: swapping cat and mouse, or dog and man, gives the same bag.",
        verdict="holds",
        found=(
            "both pairs of bags are equal, and the counts of their bigrams differ; that the states of a "
            "recurrent network differ too is R06's test"
        ),
    ),
    Claim(
        id="T03",
        says="With 170,000 columns two words leave 169,998 zeros, so bags are stored sparsely.",
        verdict="holds",
        found="two stored numbers, 169,998 zeros, under 200 bytes where a dense row takes 1.36 MB",
    ),
    Claim(
        id="T04",
        says="A one-hot vector has a single one, and any two are orthogonal and equally far apart.",
        verdict="holds",
        found=(
            "the third word has its one in the third place; all products 0 and all distances √2 in 50,000 dimensions"
        ),
    ),
    Claim(
        id="T05",
        says=(
            "A search for happy does not see a document that says glad; to counts, glad is as far away as dishwasher."
        ),
        verdict="holds",
        found=(
            "counts, TF-IDF and BM25 give both documents the same score, 0 or the constant of a missing "
            "word; with word vectors glad comes before dishwasher"
        ),
    ),
    Claim(
        id="T06",
        says="TF-IDF turns common words down and rare ones up; a word in one of 1,000 documents weighs much.",
        verdict="holds",
        found=(
            "ln 1000 = 6.908, and 7.216 with scikit-learn's smoothing; the whole matrix equals scikit-learn's to 1e-9"
        ),
    ),
    Claim(
        id="T07",
        says="Documents can be ranked for a query by such weights.",
        verdict="holds",
        found="the ranking of BM25 equals bm25s in every variant, that of TF-IDF scikit-learn's",
    ),
    Claim(
        id="T08",
        says=(
            "A unigram model multiplies word probabilities, and maximum likelihood is each word's share of the text."
        ),
        verdict="holds",
        found=(
            "the table is counts over their sum, no other table of a thousand is likelier, and order changes nothing"
        ),
    ),
    Claim(
        id="T09",
        says="Methods that factorise counts, such as LSA, keep global statistics and are weak at analogies.",
        verdict="holds with a condition",
        found=(
            "plain counts answer fewer analogies than GloVe and word2vec from the same million words; our"
            " decomposition equals scikit-learn's"
        ),
        why=(
            "it holds of plain counts; weighed by positive mutual information LSA answers more than twice"
            " as many as plain counts, and on four million words more than word2vec and GloVe "
            "(docs/vectors.md)"
        ),
    ),
    Claim(
        id="T10",
        says="A word cloud shows all words of a document, the frequent ones larger.",
        verdict="holds",
        found=(
            "every word is placed, no two boxes overlap, size never falls as the count rises, and the "
            "same seed gives the same bytes"
        ),
    ),
    Claim(
        id="T11",
        says="Counting methods have three limits: no meaning, only near context, features made by hand.",
        verdict="holds",
        found=(
            "a number for each: dog and puppy have similarity 0; more than half the trigrams of a new "
            "text are new; between a tenth and a half of the words in -ing are no verbs"
        ),
    ),
    Claim(
        id="B01",
        says="Naive Bayes takes a class's prior times the probability of each word in it.",
        verdict="holds",
        found="log posteriors equal scikit-learn's to 1e-9, and the fast road equals the plain one",
    ),
    Claim(
        id="B02",
        says="A message about having won a million euros is called spam.",
        verdict="holds with a condition",
        found="trained on the SMS Spam Collection it is labelled spam, and won, million and euros each speak for it",
        why=(
            "euros stands in no message of the collection and million only in one that is no spam: they "
            "speak for spam by smoothing alone, and only if the vocabulary holds them"
        ),
    ),
    Claim(
        id="B03",
        says="A negated message with the same keywords might be taken for spam, since a bag does not see negation.",
        verdict="holds with a condition",
        found=(
            "the three keywords are worth the same in both messages, and word order changes nothing for "
            "the bag; words and pairs with learnt weights call the plain one spam and both negated ones "
            "ham"
        ),
        why=(
            "the keywords do mislead, but the posterior of the whole long message falls on ham: the other"
            " words outweigh them"
        ),
    ),
    Claim(
        id="B04",
        says="Naive Bayes tells good reviews from bad ones.",
        verdict="holds",
        found=(
            "IMDB's 25,000 test reviews with an interval narrower than one point around 81.4 %, exactly "
            "scikit-learn's accuracy; on SST-2 every label is scikit-learn's"
        ),
    ),
    Claim(
        id="B05",
        says="One unseen word makes the whole product zero; adding a little to every count mends it.",
        verdict="holds",
        found="without smoothing −∞ and never NaN, with it every number is finite and rows sum to one",
    ),
    Claim(
        id="B06",
        says=(
            "Hand-made features work with exceptions: words in -ing are verbs, mostly; a linear model "
            "weighs such rules."
        ),
        verdict="holds",
        found=(
            "rules, rules with exceptions and learnt weights, each better than the last by more than ten,"
            " two and five points; the ablation shows what each group of features is worth"
        ),
    ),
)
