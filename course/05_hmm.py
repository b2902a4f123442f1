# %% [markdown]
# # 5. Hidden Markov models
#
# Behind each word stands a state that nobody sees: a part of speech, a topic, a mood. States follow each other by
# chance, and each emits words by chance. What can be said about the states from the words alone?

# %%
TEXT = ""  # your own text, in any language; leave it empty for the text that comes with every Python
from foreword import HMM, Corpus, WordTokenizer
from foreword.hmm.plain import smoothed
from foreword.lessons import check, equation, own_text
from foreword.picture.heat import heat_map

train, test = own_text(TEXT)
words = WordTokenizer(split="punctuation", max_size=1000).fit(train)
hmm = HMM(states=6, iterations=10).fit(Corpus.from_texts(train[:1500], words))
for state in range(6):
    print(state, [words.vocab[id] for id in hmm.emission_[state].argsort()[::-1][:6]])

# %% [markdown]
# Nobody told the model about word classes. It found states that make the text likely, by expectation maximisation.

# %%
equation("p(x₁ … x_N, z₁ … z_N) = π(z₁) · Π A(zₙ₋₁, zₙ) · Π B(zₙ, xₙ)")

# %%
tokens = test[0].split()[:10]
posteriors, _ = smoothed(hmm.start_, hmm.transition_, hmm.emission_.T, words.vocab.ids(tokens))
heat_map(
    tokens,
    [f"state {state}" for state in range(6)],
    posteriors.T,
    "Which state each word came from",
    "Each column sums to one: the probability of the states, given the whole sentence.",
)

# %% [markdown]
# ## Your turn 5.1
#
# The probability of the words, summed over all paths of states: the forward algorithm. `start` has S numbers,
# `transition` is (S, S) with a row for the state before, `emission` is (S, words).


# %%
def likelihood(start, transition, emission, ids):
    return ...  # your turn


check("5.1", likelihood)

# %% [markdown]
# ## Your turn 5.2
#
# The most probable path of states, by Viterbi's algorithm, a list of state numbers.


# %%
def viterbi(start, transition, emission, ids):
    return ...  # your turn


check("5.2", viterbi)

# %% [markdown]
# **What to read next.** *Hidden Markov models* in the documentation, and the trellis in `foreword lab`; L. Rabiner,
# "A tutorial on hidden Markov models" (1989).
