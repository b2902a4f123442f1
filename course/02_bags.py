# %% [markdown]
# # 2. Bags of words and naive Bayes
#
# The simplest description of a document is which words it has and how often: a *bag*. The order is lost, and for many
# questions it does not matter. Naive Bayes asks which class would most probably have produced the bag, and it is
# called naive because it takes the words for independent of each other.

# %%
TEXT = ""  # your own text, in any language; leave it empty for the text that comes with every Python
from foreword import BagOfWords, NaiveBayes, TextClassifier
from foreword.lessons import check, equation, own_text
from foreword.picture.bars import reasons

train, test = own_text(TEXT)
half = max(1, len(train) // 2)
labels = ["first half"] * half + ["second half"] * (len(train) - half)
classifier = TextClassifier(BagOfWords(split="punctuation"), NaiveBayes()).fit(train, labels)
print(classifier.predict(test[:3]))

# %% [markdown]
# The classifier has learnt from which half of the text a passage comes. Each class has a probability for each word,
# estimated from counts; α is added to every count, so that an unseen word does not rule a class out.

# %%
equation("p(c | d) ∝ p(c) Π p(w | c),    p(w | c) = (n(c, w) + α) / (N(c) + α V)")

# %%
explained = classifier.explain(test[0])
weights = (explained.weighted[0] - explained.weighted[-1]).tolist()
strongest = sorted(range(len(weights)), key=lambda index: -abs(weights[index]))[:10]
reasons(
    [explained.terms[index] for index in strongest] or ["(no known word)"],
    [weights[index] for index in strongest] or [0.0],
    f"What speaks for the {explained.classes[0]}",
    "Bars to the right speak for this class, bars to the left for the other one.",
)

# %% [markdown]
# ## Your turn 2.1
#
# Return how often each of `words` occurs in the text, a list of counts.


# %%
def bag(text, words):
    return ...  # your turn


check("2.1", bag)

# %% [markdown]
# ## Your turn 2.2
#
# `counts` has one row per class and one column per word. Return log p(w | c) by the equation above, an array of the
# same shape.


# %%
def word_logs(counts, alpha):
    return ...  # your turn


check("2.2", word_logs)

# %% [markdown]
# **What to read next.** *Naive Bayes, logistic regression, fastText* in the documentation; A. McCallum and K. Nigam,
# "A comparison of event models for naive Bayes text classification" (1998).
