# %% [markdown]
# # 3. Search
#
# Which documents answer a query? Those that have its words, above all its rare words. An *inverted index* lists for
# every word the documents it is in, so that a query reads a few short lists and not the whole text.

# %%
TEXT = ""  # your own text, in any language; leave it empty for the text that comes with every Python
from foreword import TextSearch
from foreword.lessons import check, equation, own_text
from foreword.picture.bars import reasons

train, test = own_text(TEXT)
search = TextSearch().fit(train)
query = " ".join(test[0].split()[:6])
for hit in search.query(query, 3):
    print(f"{hit.score:.2f}  {train[hit.document][:70]}")

# %% [markdown]
# BM25 adds up one term per word t of the query: *idf* says how rare the word is, the fraction how often the document
# d has it. The fraction never exceeds 1, and it is smaller in a long document.

# %%
equation(
    """score(q, d) = Σ_t idf(t) · saturation(t, d)
saturation(t, d) = n(t, d) / (n(t, d) + k (1 − b + b · length(d) · 1/mean))
idf(t) = log(1 + (D − D_t + ½) / (D_t + ½))    D documents, D_t of them with the word"""
)

# %%
best = search.query(query, 1)
parts = search.explain(query, best[0].document) if best else {}
reasons(
    list(parts) or ["(no word found)"],
    list(parts.values()) or [0.0],
    "What each word of the query adds",
    "Rare words add much, frequent ones hardly anything.",
)

# %% [markdown]
# ## Your turn 3.1
#
# The inverse document frequency of TF-IDF is smoothed a little differently: log((1 + D) / (1 + D_t)) + 1, where D_t
# counts the documents that have the word, split at blanks.


# %%
def idf(word, documents):
    return ...  # your turn


check("3.1", idf)

# %% [markdown]
# ## Your turn 3.2
#
# Return the BM25 score of every document, by the equation above. The length of a document is its number of words.


# %%
def bm25(query, documents, k1, b):
    return ...  # your turn


check("3.2", bm25)

# %% [markdown]
# **What to read next.** *BM25 and search* in the documentation; S. Robertson and H. Zaragoza, "The probabilistic
# relevance framework" (2009).
