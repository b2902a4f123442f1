# %% [markdown]
# # 1. Text and tokens
#
# A model computes with numbers, and a text is letters. A *tokenizer* cuts the text into tokens and gives each a
# number, its *id*. Everything later in this course depends on what counts as a token: a model can never see anything
# smaller.

# %%
TEXT = ""  # your own text, in any language; leave it empty for the text that comes with every Python
from collections import Counter

from foreword import WordTokenizer
from foreword.lessons import check, equation, own_text
from foreword.picture.text import zipf

train, test = own_text(TEXT)
words = WordTokenizer(split="punctuation").fit(train)
print(f"{len(train):,} documents, {len(words.vocab):,} different tokens")
print(words.encode(test[0])[:12])

# %% [markdown]
# ## Few words are frequent, most are rare
#
# Zipf's law: the word of rank r occurs about 1/r as often as the most frequent one.

# %%
equation("count(r) ≈ count(1) / r")

# %%
counts = Counter(token for text in train for token in text.split()).most_common(400)
once = sum(count == 1 for _, count in Counter(" ".join(train).split()).items())
zipf(
    range(1, len(counts) + 1),
    [count for _, count in counts],
    once=once,
    words=[(rank, counts[rank - 1][0]) for rank in (1, 2, 5, 20) if rank <= len(counts)],
)

# %% [markdown]
# About half of all different words occur once. Whatever the size of the text, the next one has words that were never
# seen: they all become one token, `<unk>`.
#
# ## Your turn 1.1
#
# Return the `size` most frequent words, the most frequent first. Words are what is between blanks; of two equally
# frequent words the one that occurs first in the texts comes first.


# %%
def vocabulary(texts, size):
    return ...  # your turn


check("1.1", vocabulary)

# %% [markdown]
# ## Your turn 1.2
#
# Which share of the words of `test` is unknown, if the vocabulary has the words that occur at least `min_count` times
# in `train`? Every occurrence counts.


# %%
def unknown_share(train, test, min_count):
    return ...  # your turn


check("1.2", unknown_share)

# %%
for min_count in (1, 2, 5, 10):
    kept = WordTokenizer(split="punctuation", min_count=min_count).fit(train)
    ids = [id for text in test for id in kept.encode(text)]
    unknown = sum(id == kept.vocab.unknown for id in ids) / len(ids)
    print(f"at least {min_count} times: {len(kept.vocab):,} tokens, {unknown:.1%} of the test text unknown")

# %% [markdown]
# **What to read next.** *Tokens and BPE* in the documentation; G. Zipf, *Human Behavior and the Principle of Least
# Effort* (1949). Lesson 6 has a tokenizer without unknown words.
