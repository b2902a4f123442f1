# %% [markdown]
# # 7. Word vectors
#
# *You shall know a word by the company it keeps* (Firth, 1957). word2vec gives every word a vector, and moves the
# vectors so that a word can be predicted from its neighbours. Words that are used alike end up close together.

# %%
TEXT = ""  # your own text, in any language; leave it empty for the text that comes with every Python
from collections import Counter

from foreword import Corpus, Word2Vec, WordTokenizer
from foreword.lessons import check, equation, own_text
from foreword.picture.space import word_map

train, test = own_text(TEXT)
words = WordTokenizer(max_size=2000).fit(train)
vectors = Word2Vec(32, window=4, epochs=10, sample=1e-2).fit(Corpus.from_texts(train, words)).vectors
frequent = [word for word, _ in Counter(" ".join(train).split()).most_common(60) if len(word) > 3] or list(words.vocab)[
    2:
]
for word in frequent[:3]:
    print(word, [near for near, _ in vectors.nearest(word, 4)])

# %% [markdown]
# One pair of neighbours, c and o, is compared with words drawn at random: the pair should have a large product, the
# random words a small one.

# %%
equation("loss = −log σ(u_o · v_c) − Σ_n log σ(−u_n · v_c)")

# %%
word_map(vectors, {"frequent words": (frequent * 3)[: max(3, min(14, len(frequent)))]})

# %% [markdown]
# ## Your turn 7.1
#
# Return every (word, neighbour) with the neighbour at most `window` words away, for each word from left to right.


# %%
def context_pairs(words, window):
    return ...  # your turn


check("7.1", context_pairs)

# %% [markdown]
# ## Your turn 7.2
#
# Return the `k` rows of `vectors` with the largest cosine to the given row, the nearest first, without the row
# itself.


# %%
def nearest(vectors, row, k):
    return ...  # your turn


check("7.2", nearest)

# %% [markdown]
# ## Your turn 7.3
#
# The loss above, for one `centre`, one `context` and some `negatives` (one per row).


# %%
def negative_sampling(centre, context, negatives):
    return ...  # your turn


check("7.3", negative_sampling)

# %% [markdown]
# **What to read next.** *word2vec and fastText* in the documentation; T. Mikolov et al., "Distributed representations
# of words and phrases and their compositionality" (2013).
