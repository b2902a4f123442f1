# %% [markdown]
# # 10. LSTM and GRU
#
# Gates are numbers between 0 and 1 that the network computes for itself: how much to forget, how much to write, how
# much to show. Along the cell state of an LSTM a gradient is multiplied by the forget gate and nothing else. While
# that gate is open, the past is remembered.

# %%
TEXT = ""  # your own text, in any language; leave it empty for the text that comes with every Python
from dataclasses import replace

from foreword import Corpus, RecurrentLM, WordTokenizer, perplexity
from foreword.evaluate.gates import Layers, gate_traces
from foreword.lessons import check, equation, own_text
from foreword.picture.heat import gates

train, test = own_text(TEXT)
words = WordTokenizer(max_size=800).fit(train)
quick = replace(RecurrentLM.TRAINING, epochs=1, batch=10, steps=20, rate=1.5e-2)
lstm = RecurrentLM("lstm", 32, 32, layers=1, training=quick).fit(Corpus.from_texts(train[:800], words))
print(f"perplexity {perplexity(lstm, Corpus.from_texts(test, words)):.0f}")

# %%
equation(
    """i, f, o = σ(W x + U h + b),    g = tanh(W x + U h + b)        each with its own rows
c ← f · c + i · g
h ← o · tanh(c)"""
)

# %%
tokens = test[0].split()[:10]
traces = gate_traces(Layers.of(lstm), words.vocab.ids(tokens), tokens)
gates(traces.tokens, traces.gates)

# %% [markdown]
# ## Your turn 10.1
#
# One step of an LSTM; return h and c. The rows of `W_x`, `W_h` and `b` are those of i, f, g and o, in this order.


# %%
def lstm_step(x, h, c, W_x, W_h, b):
    return ...  # your turn


check("10.1", lstm_step)

# %% [markdown]
# ## Your turn 10.2
#
# One step of a GRU, as PyTorch has it. The rows are those of r, z and n; here z = 1 keeps the old state.

# %%
equation("r, z = σ(W x + U h + b),    n = tanh(W x + r · (U h) + b),    h ← (1 − z) · n + z · h")


# %%
def gru_step(x, h, W_x, W_h, b):
    return ...  # your turn


check("10.2", gru_step)

# %% [markdown]
# ## Your turn 10.3
#
# A forget gate that is always `forget`: after how many steps is half of the cell state left?


# %%
def half_life(forget):
    return ...  # your turn


check("10.3", half_life)

# %% [markdown]
# **What to read next.** *RNN, GRU, LSTM* and *Minimal GRU* in the documentation; S. Hochreiter and J. Schmidhuber,
# "Long short-term memory" (1997); K. Cho et al. (2014) for the GRU.
