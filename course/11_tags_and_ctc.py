# %% [markdown]
# # 11. Taggers and CTC
#
# A tagger gives every token a label: a part of speech, a name or not. Here it finds the words again in a text whose
# blanks were removed: each letter gets B if a word begins with it, and I if not. The labels come with every text.

# %%
TEXT = ""  # your own text, in any language; leave it empty for the text that comes with every Python
import numpy as np

from foreword import FeatureTagger
from foreword.lessons import check, equation, own_text
from foreword.picture.heat import heat_map
from foreword.speech.search import greedy

train, test = own_text(TEXT)


def letters_and_tags(text):
    tagged = [(letter, "I" if at else "B") for word in text.split() for at, letter in enumerate(word)]
    return [letter for letter, _ in tagged], [tag for _, tag in tagged]


sentences, tags = zip(*map(letters_and_tags, train[:250]), strict=True)
tagger = FeatureTagger(rounds=3).fit(list(sentences), list(tags))
letters, right = letters_and_tags(" ".join(test[0].split()[:8]))
[found] = tagger.predict([letters])
print("".join(f" {letter}" if tag == "B" else letter for letter, tag in zip(letters, found, strict=True)))

# %%
equation("p(tags | words) ∝ exp Σ_t (score(y_t, x, t) + moves(y_(t−1), y_t))")

# %%
[logs] = tagger.predict_log_proba([letters])
columns = [f"{letter}" for letter in letters[:24]]
heat_map(columns, tagger.tags_, np.exp(logs[:24]).T, "How sure the tagger is", "B begins a word, I continues one.")

# %% [markdown]
# ## Your turn 11.1
#
# Names of several words are written as tags, too: B-PER begins a person, I-PER continues it, O is outside. Return the
# spans as (kind, first, end), the end not included.


# %%
def spans(tags):
    return ...  # your turn


check("11.1", spans)

# %% [markdown]
# ## From frames to labels
#
# A recording has many frames per letter, and nobody knows which belong to which. *Connectionist temporal
# classification* lets the network say one symbol per frame, a letter or a blank, and sums over all ways to say the
# same text.

# %%
equation("p(text) = Σ over alignments Π_t p_t(symbol_t)")

# %%
frames = np.log(np.array([[0.1, 0.8, 0.1], [0.2, 0.7, 0.1], [0.9, 0.05, 0.05], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]))
print("the likeliest symbols", frames.argmax(axis=1).tolist(), "are the labels", greedy(frames, blank=0))

# %% [markdown]
# ## Your turn 11.2
#
# Collapse an alignment to its labels: first merge repetitions, then remove blanks.


# %%
def collapse(symbols, blank):
    return ...  # your turn


check("11.2", collapse)

# %% [markdown]
# **What to read next.** *Taggers by hand-made features*, *BiLSTM tagger* and *CTC* in the documentation; J. Lafferty,
# A. McCallum and F. Pereira, "Conditional random fields" (2001); A. Graves et al., "Connectionist temporal
# classification" (2006).
