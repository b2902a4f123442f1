# %% [markdown]
# # 4. N-grams and smoothing
#
# A language model gives each next word a probability. An n-gram model counts: how often did this word follow the last
# n − 1 words? Most n-grams of a new text were never seen, so the art is in *smoothing*: what to take from seen
# n-grams, and whom to give it.

# %%
TEXT = ""  # your own text, in any language; leave it empty for the text that comes with every Python
from foreword import NgramLM, TextLM, WordTokenizer
from foreword.lessons import check, equation, own_text
from foreword.picture.curves import curves

train, test = own_text(TEXT)
tokenizer = WordTokenizer(split="punctuation", max_size=3000).fit(train)
model = TextLM(tokenizer, NgramLM(3)).fit(train)
print(f"perplexity of a trigram model: {model.perplexity(test):.1f}")
print(model.generate(max_tokens=20, seed=1))

# %%
equation("p(w | c) = (n(c w) − D) / (N(c)) + b(c) · p(w | c without its first word)")

# %% [markdown]
# D is a discount, and b(c) the weight of the shorter context: what was taken from the words seen after c is given to
# all words, by their lower-order probability. Methods differ in D and in what the lower order counts.

# %%
methods = ("modified-kneser-ney", "witten-bell", "laplace")
perplexities = {
    method: [TextLM(tokenizer, NgramLM(n, smoothing=method)).fit(train).perplexity(test) for n in (1, 2, 3, 4)]
    for method in methods
}
curves(
    ["1", "2", "3", "4"],
    perplexities,
    "Perplexity by order",
    "Add-one smoothing gets worse with the order: it gives most of the mass to what was never seen.",
    accent=["modified-kneser-ney"],
)

# %% [markdown]
# ## Your turn 4.1
#
# The maximum-likelihood estimate: how often does `word` follow `before`, of all words that follow it? Every text
# begins with `<s>` and ends with `</s>`; both may be asked for. Return 0 where nothing follows.


# %%
def bigram(texts, before, word):
    return ...  # your turn


check("4.1", bigram)

# %% [markdown]
# ## Your turn 4.2
#
# Witten and Bell: if T different words were seen after the context, then one of N + T times the next word is a new
# one. `lower` is p(word) of the lower order.

# %%
equation("p(w | c) = (n(c w) + T(c) · lower) / (N(c) + T(c))")


# %%
def witten_bell(texts, before, word, lower):
    return ...  # your turn


check("4.2", witten_bell)

# %% [markdown]
# ## Your turn 4.3
#
# The perplexity of a text, from the natural logarithms of its words' probabilities.


# %%
def perplexity(logs):
    return ...  # your turn


check("4.3", perplexity)

# %% [markdown]
# **What to read next.** *N-grams* in the documentation, and the n-gram panel of `foreword lab`; S. Chen and J.
# Goodman, "An empirical study of smoothing techniques for language modeling" (1999).
