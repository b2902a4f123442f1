# %% [markdown]
# # 9. Recurrent networks and vanishing gradients
#
# A recurrent network reads one word at a time into a state, so that there is no window: in principle the first word
# of a book can matter at its end. In practice the gradient that would teach it so has to pass every step in between,
# and is multiplied by a matrix at each.

# %%
TEXT = ""  # your own text, in any language; leave it empty for the text that comes with every Python
import numpy as np

from foreword import Corpus, WordTokenizer
from foreword.evaluate.gradients import jacobian_products, norms_by_lag, step_jacobians
from foreword.lessons import check, equation, own_text
from foreword.nn.cells import RNNCell, run
from foreword.picture.curves import gradients

train, test = own_text(TEXT)
words = WordTokenizer(max_size=1000).fit(train)
ids = Corpus.from_texts(test, words).ids
ids = np.resize(ids, 40)  # forty words of your text, again from its beginning where it is shorter
embedding = 0.5 * np.random.default_rng(0).normal(size=(len(words.vocab), 16))
left = {}
for scale in (0.5, 1.0, 2.0):
    cell = RNNCell(16, 16)
    cell.weights["W_h"] *= scale
    _, _, kept = run(cell, embedding[ids][:, None])
    left[f"W_h × {scale}"] = norms_by_lag(jacobian_products(step_jacobians(cell, kept)))
    print(f"W_h × {scale}: {left[f'W_h × {scale}'][10]:.0e} after 10 words, {left[f'W_h × {scale}'][40]:.0e} after 40")

# %%
equation(
    """h_t = tanh(W_x x_t + W_h h_(t−1) + b)
∂h_T/∂h_k = J_T J_(T−1) … J_(k+1),    J_t = diag(1 − h_t²) W_h"""
)

# %%
gradients(left, [0, 5, 10, 20, 30, 40])

# %% [markdown]
# A product of many factors vanishes or explodes unless they are almost exactly 1. Exploding is seen at once and is
# cured by clipping; vanishing is silent.
#
# ## Your turn 9.1
#
# One step of the network.


# %%
def rnn_step(x, h, W_x, W_h, b):
    return ...  # your turn


check("9.1", rnn_step)

# %% [markdown]
# ## Your turn 9.2
#
# `states` are h₁ … h_T, one per row, and `d_h` is the gradient at h_T. Return the gradient at h₀.


# %%
def gradient_back(d_h, states, W_h):
    return ...  # your turn


check("9.2", gradient_back)

# %% [markdown]
# ## Your turn 9.3
#
# Clipping: if the norm of all gradients together exceeds `limit`, scale them all so that it is `limit`. Return a list
# of arrays.


# %%
def clip(gradients, limit):
    return ...  # your turn


check("9.3", clip)

# %% [markdown]
# **What to read next.** *RNN, GRU, LSTM* in the documentation, and the cells and training panels of `foreword lab`;
# R. Pascanu, T. Mikolov and Y. Bengio, "On the difficulty of training recurrent neural networks" (2013).
