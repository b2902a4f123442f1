# %% [markdown]
# # 12. Attention, translation and the way to the Transformer
#
# An encoder reads a sentence into a state, a decoder writes another from it. One vector cannot hold a long sentence,
# so the decoder looks back: for every word it writes, it weighs the words of the source. That is attention, and a
# network of nothing else is a Transformer.

# %%
TEXT = ""  # your own text, in any language; leave it empty for the text that comes with every Python
from dataclasses import replace

import numpy as np

from foreword import Corpus, Seq2Seq, TextTranslator, TransformerLM, WordTokenizer, perplexity
from foreword.lessons import check, equation, own_text
from foreword.picture.heat import attention as attention_map
from foreword.picture.heat import heat_map

train, test = own_text(TEXT)
tokens = test[0].split()[:8]
random = np.random.default_rng(0)
rows = random.normal(size=(len(tokens), 16))
scores = rows @ rows.T / np.sqrt(16)
weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
heat_map(tokens, tokens, weights, "Attention before any training", "Each word looks mostly at itself: rows sum to one.")

# %%
equation("weights = softmax(q · k / √d),    context = Σ_j weights_j · v_j")

# %% [markdown]
# ## A translator of its own kind
#
# The task: write a phrase backwards. Any text gives pairs for it, and the right attention is known: the last word
# first.

# %%
phrases = [" ".join(text.split()[:4]) for text in train if len(text.split()) >= 4][:300] or train
backwards = [" ".join(reversed(phrase.split())) for phrase in phrases]
quick = replace(Seq2Seq.TRAINING, epochs=10, batch=16, rate=1e-2)
translator = TextTranslator(
    WordTokenizer(max_size=200), WordTokenizer(max_size=200), Seq2Seq(32, words=32, training=quick)
).fit(phrases, backwards)
looked = translator.look(phrases[0])
attention_map(looked.source, looked.target, looked.weights)

# %% [markdown]
# ## Your turn 12.1
#
# Scaled dot-product attention: `query` is (m, d), `keys` (n, d), `values` (n, h). Return the contexts, (m, h).


# %%
def attention(query, keys, values):
    return ...  # your turn


check("12.1", attention)

# %% [markdown]
# ## Your turn 12.2
#
# In a language model no word may look ahead. `scores` is (T, T), a row for the word that looks; return the attention
# weights, with row t over the columns up to t alone.


# %%
def causal_weights(scores):
    return ...  # your turn


check("12.2", causal_weights)

# %% [markdown]
# ## The Transformer
#
# No state at all: every word attends to the words before it, in parallel. On little text it learns more slowly than
# what came before it.

# %%
words = WordTokenizer(max_size=1000).fit(train)
little = replace(TransformerLM.TRAINING, epochs=1, batch=10, steps=20, rate=4e-3)
transformer = TransformerLM(32, layers=1, heads=2, context=16, training=little)
transformer.fit(Corpus.from_texts(train[:800], words))
print(f"perplexity {perplexity(transformer, Corpus.from_texts(test, words)):.0f}")

# %% [markdown]
# **What to read next.** *Translation and attention* and *Transformer* in the documentation; D. Bahdanau, K. Cho and
# Y. Bengio, "Neural machine translation by jointly learning to align and translate" (2015); A. Vaswani et al.,
# "Attention is all you need" (2017).
