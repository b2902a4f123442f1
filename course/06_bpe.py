# %% [markdown]
# # 6. Byte-pair encoding
#
# Words leave unknown words; letters make long sequences. Between the two: begin with letters, and again and again
# make a token of the most frequent pair. Frequent words become one token, rare ones a few pieces, and nothing is
# unknown.

# %%
TEXT = ""  # your own text, in any language; leave it empty for the text that comes with every Python
from foreword import BPETokenizer
from foreword.lessons import check, equation, own_text
from foreword.picture.text import merges

train, test = own_text(TEXT)
bpe = BPETokenizer(vocab_size=1000, kind="characters").fit(train)
sentence = test[0][:80]
print([bpe.vocab[id] for id in bpe.encode(sentence)])

# %%
equation("(a, b) = argmax of n(a b),    V ← V ∪ {ab},    every a b in the text ← ab")

# %%
steps = list(bpe.replay(sentence))
first = [(bpe.vocab[left], bpe.vocab[right], count) for left, right, _, count in bpe.record_[:8].tolist()]
stages = [(number, steps[number]["tokens"]) for number in sorted({0, len(steps) // 2, len(steps) - 1})]
merges(first, len(bpe.record_), stages)

# %% [markdown]
# ## Your turn 6.1
#
# `words` maps each word to how often it occurs. Return the most frequent pair of neighbouring letters, and of equally
# frequent pairs the first in alphabetical order.


# %%
def best_pair(words):
    return ...  # your turn


check("6.1", best_pair)

# %% [markdown]
# ## Your turn 6.2
#
# Cut a word into tokens: begin with its letters; while a pair of neighbours is among `merges`, replace every
# occurrence of the pair that stands earliest in `merges`.


# %%
def segment(word, merges):
    return ...  # your turn


check("6.2", segment)

# %% [markdown]
# **What to read next.** *Tokens and BPE* in the documentation, and the merges in `foreword lab`; R. Sennrich, B.
# Haddow and A. Birch, "Neural machine translation of rare words with subword units" (2016).
