# %% [markdown]
# # 8. Bengio's network
#
# A table of n-grams knows nothing about similar words: what it learns of *file* tells it nothing about *folder*.
# Bengio's network (2003) looks the last words up as vectors, joins them, and computes the next word's probabilities
# from them. Vectors and network are learnt together, by the gradient of one loss.

# %%
TEXT = ""  # your own text, in any language; leave it empty for the text that comes with every Python
from dataclasses import replace

from foreword import BengioLM, Corpus, WordTokenizer, perplexity
from foreword.lessons import check, equation, own_text
from foreword.picture.curves import curves

train, test = own_text(TEXT)
words = WordTokenizer(max_size=800).fit(train)
corpus = Corpus.from_texts(train[:500], words)
quick = replace(BengioLM.TRAINING, epochs=1, batch=10, steps=20, rate=8e-3)
model = BengioLM(4, 32, 32, training=quick)
losses = [step.loss for step in model.train(corpus)]
print(f"perplexity {perplexity(model, Corpus.from_texts(test, words)):.0f} of a vocabulary of {len(words.vocab):,}")

# %%
equation(
    """x = [E w₋₁, E w₋₂, E w₋₃]        the last words, each looked up
h = tanh(d + H x)
p(w) = softmax(b + U h)"""
)

# %%
tenth = max(1, len(losses) // 8)
means = [sum(losses[at : at + tenth]) / len(losses[at : at + tenth]) for at in range(0, len(losses), tenth)]
curves([str(at * tenth) for at in range(len(means))], {"loss": means}, "Loss by batch", "It falls fastest at first.")

# %% [markdown]
# ## Your turn 8.1
#
# Compute the probabilities of all words by the equation: `words` are the ids of the context, first to last, `E` has
# one vector per row.


# %%
def bengio(words, E, H, d, U, b):
    return ...  # your turn


check("8.1", bengio)

# %% [markdown]
# ## Your turn 8.2
#
# exp(score) / Σ exp(score). It has to work for scores of a thousand, too.


# %%
def softmax(scores):
    return ...  # your turn


check("8.2", softmax)

# %% [markdown]
# ## Your turn 8.3
#
# The gradient of −log p(target) with respect to the scores. It is short, and everything a network learns begins with
# it.


# %%
def output_error(scores, target):
    return ...  # your turn


check("8.3", output_error)

# %% [markdown]
# **What to read next.** *Bengio's network* in the documentation; Y. Bengio, R. Ducharme, P. Vincent and C. Jauvin, "A
# neural probabilistic language model" (2003).
