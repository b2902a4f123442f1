"""The pictures of the documentation that no page of its own draws, made afresh.

    python recipes/docs_pages.py [NAME…]

Each function below draws one file of docs/pictures and prints the numbers that its page quotes. All of them take about
three minutes of one core; those that read a data set find it in $FOREWORD_DATA, or download it.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from foreword.picture.picture import Picture, write_standalone

DOCS = Path(__file__).parents[1] / "docs"
PICTURES = DOCS / "pictures"


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")


def blocks(page: str) -> str:
    """The Python of a page, all of it."""
    return "\n".join(re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(), re.DOTALL | re.MULTILINE))


def tutorial_ladder() -> None:
    """The picture that the last step of the tutorial draws."""
    here = Path.cwd()
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            exec(compile(blocks("tutorial.md"), "tutorial.md", "exec"), {"__name__": "tutorial"})
            (PICTURES / "tutorial-ladder.svg").write_bytes(Path("ladder.svg").read_bytes())
        finally:
            os.chdir(here)


def ptb_ladder() -> None:
    """The rows of docs/results/ptb_ladder.json, measured by recipes/ptb_ladder.py."""
    from foreword.picture.bars import ladder

    rows = json.loads((DOCS / "results" / "ptb_ladder.json").read_text())["rows"]
    drawn = ladder([row["title"] for row in rows], [row["test"] for row in rows], 10_000)
    write_standalone(
        replace(drawn, title="Perplexity on the test part of the Penn Treebank"), PICTURES / "ptb-ladder.svg"
    )


def draw(picture: Picture, name: str) -> None:
    write_standalone(picture, PICTURES / f"{name}.svg")
    say(picture.caption)


def tokens_length() -> None:
    """How long the text is in tokens, by the size of the vocabulary."""
    from foreword import BPETokenizer, WordTokenizer, embedded_text
    from foreword.picture.curves import curves

    train, test = embedded_text("train"), embedded_text("test")
    sizes = [300, 500, 1000, 2000, 4000, 8000, 16000]
    text_bytes = sum(len(text.encode()) for text in test)
    pieces = [text_bytes / sum(map(len, BPETokenizer(size).fit(train).encode_batch(test))) for size in sizes]
    words = text_bytes / sum(map(len, map(WordTokenizer().fit(train).encode, test)))
    say([f"{size}: {each:.2f}" for size, each in zip(sizes, pieces, strict=True)], f"words {words:.2f}")
    lines = {"byte-pair encoding": pieces, "words": [words] * len(sizes), "bytes": [1.0] * len(sizes)}
    title = "Bytes a token, by the size of the vocabulary"
    caption = (
        "Each doubling of the vocabulary makes tokens a little longer; words between blanks are as long as they are."
    )
    names = [f"{size:,}" for size in sizes]
    draw(
        curves(names, lines, title, caption, accent=["byte-pair encoding"], dashed=["words", "bytes"]), "tokens-length"
    )


def classify_reasons() -> None:
    """Why a message is spam, by the model of docs/classify.md."""
    from foreword import NBLogistic, TextClassifier, TfIdf
    from foreword.picture.bars import reasons
    from foreword.text.datasets import labelled

    labels, texts = zip(*labelled("sms_spam"), strict=True)
    features = TfIdf(split="punctuation", ngrams=(1, 2), sublinear=True)
    model = TextClassifier(features, NBLogistic()).fit(texts[:4000], labels[:4000])
    found = model.explain("Hi Anna, you have won a prize! Call now to claim it, see you later")
    terms = sorted(found.contributions(), key=lambda each: -abs(each.contribution))[:10]
    terms.sort(key=lambda each: -each.contribution)
    caption = f"Taken for {found.label} with {found.probability():.0%}; words that the model does not know add nothing."
    weights = [each.contribution for each in terms]
    draw(
        reasons([each.term for each in terms], weights, "What speaks for spam, and what against", caption),
        "classify-reasons",
    )


THINGS = {
    "Collections": ["list", "tuple", "dictionary", "set", "sequence", "mapping"],
    "Files": ["file", "directory", "path", "stream", "filename", "socket"],
    "Faults": ["error", "exception", "raised", "TypeError", "ValueError", "traceback"],
}


def lsa_map() -> None:
    """Words of the embedded text by their documents alone."""
    from foreword import LSA, BagOfWords, WordVectors, embedded_text
    from foreword.picture.space import word_map

    bag = BagOfWords(min_documents=5, lowercase=False)
    lsa = LSA(50).fit(bag.fit_transform(embedded_text()).sqrt())
    vectors = WordVectors.of_words(list(bag.get_feature_names_out()), lsa.word_vectors(0.5).astype("float32"))
    for word in ("list", "file", "error"):
        say(word, vectors.nearest(word, 4))
    draw(word_map(vectors, THINGS), "lsa-map")


def bengio_map() -> None:
    """The rows of E, and what each word of context is worth."""
    from foreword import BengioLM, Corpus, WordTokenizer, WordVectors, embedded_text, perplexity
    from foreword.picture.space import word_map

    train, test = embedded_text("train"), embedded_text("test")
    words = WordTokenizer(min_count=5).fit(train)
    learnt, unseen = Corpus.from_texts(train, words), Corpus.from_texts(test, words)
    quick = replace(BengioLM.TRAINING, epochs=1, batch=10, steps=20, rate=8e-3, sampled=200)
    for order in (2, 3, 4, 5, 7):
        model = BengioLM(order, 64, 64, tied=True, training=quick).fit(learnt)
        say(f"{order - 1} words: {perplexity(model, unseen):.1f}")
        if order == 5:
            vectors = WordVectors.of_vocab(words.vocab, model.weights_["embedding"].numpy())
    for word in ("must", "the", "list", "returns"):
        say(word, [near for near, _ in vectors.nearest(word, 5)])
    groups = {
        "Modal verbs": ["must", "may", "can", "should", "cannot", "will"],
        "Determiners": ["the", "a", "an", "this", "each", "any"],
        "Third person": ["is", "returns", "has", "contains", "raises", "does"],
    }
    draw(word_map(vectors, groups), "bengio-map")


SENTENCE = "If the file does not exist an error is raised"


def min_gru_gates() -> None:
    from foreword import RecurrentLM, TextLM, WordTokenizer, embedded_text
    from foreword.evaluate.gates import Layers, gate_traces
    from foreword.picture.heat import gates

    quick = replace(RecurrentLM.TRAINING, epochs=2, batch=10, steps=20, rate=8e-3, sampled=200)
    model = RecurrentLM("min-gru", 64, 64, layers=2, training=quick)
    lm = TextLM(WordTokenizer(min_count=5), model).fit(embedded_text())
    say(f"perplexity {lm.perplexity(embedded_text('test')):.1f}")
    words = SENTENCE.split()
    ids = lm.vocab.ids(words)
    layers = Layers.of(model)
    traces = {f"update, layer {layer + 1}": gate_traces(layers, ids, words, layer).gates["update"] for layer in (0, 1)}
    draw(gates(words, traces), "min-gru-gates")


def transformer_looks() -> None:
    """The head of a small Transformer that looks furthest back."""
    from foreword import TextLM, TransformerLM, WordTokenizer, embedded_text
    from foreword.lessons.attention_maps import attention_maps
    from foreword.picture.heat import heat_map

    quick = replace(TransformerLM.TRAINING, epochs=3, batch=10, steps=20, rate=2e-3, sampled=200)
    model = TransformerLM(64, layers=2, heads=4, context=32, training=quick)
    lm = TextLM(WordTokenizer(min_count=5), model).fit(embedded_text())
    say(f"perplexity {lm.perplexity(embedded_text('test')):.1f}")
    words = ["</s>", *SENTENCE.split()]
    maps = attention_maps(model, lm.vocab.ids(words)).maps.reshape(-1, len(words), len(words))
    back = np.arange(len(words))[:, None] - np.arange(len(words))
    far = (maps * back).sum(axis=2).mean(axis=1)
    say("mean distance of each head", far.round(2))
    head = int(far.argmax())
    title = f"Where each word looks: layer {head // 4 + 1}, head {head % 4 + 1}"
    caption = (
        f"Full colour is all of the attention. In the mean this head looks {far[head]:.1f} words back, the furthest."
    )
    draw(heat_map(words, words, maps[head], title, caption), "transformer-looks")


def awd_lstm_dropping() -> None:
    """The same LSTM on a small text, with and without what AWD-LSTM drops."""
    from foreword import AWDLSTM, Corpus, RecurrentLM, WordTokenizer, embedded_text, perplexity
    from foreword.nn.dropout import NO_DROPOUT
    from foreword.picture.curves import curves

    texts = embedded_text()[::10]
    corpus = Corpus.from_texts(texts, WordTokenizer(min_count=3).fit(texts))
    train, held_out = corpus[: 9 * len(corpus) // 10], corpus[9 * len(corpus) // 10 :]
    epochs = 10
    training = replace(RecurrentLM.TRAINING, epochs=epochs, batch=10, steps=20, rate=8e-3)
    lines: dict[str, list[float]] = {}
    for name, dropout in {"nothing dropped": NO_DROPOUT, "as AWD-LSTM drops": AWDLSTM.DROPOUT}.items():
        model = RecurrentLM("lstm", 96, 96, layers=1, dropout=dropout, training=training)
        told = [perplexity(model, held_out) for step in model.train(train) if step.done * epochs % step.total == 0]
        lines[name] = told
        say(name, np.round(told, 1))
    title = "Perplexity on held-out text after each reading of a small one"
    caption = "Where nothing is dropped the network soon knows its text by heart, and new text ever less."
    names = [str(epoch + 1) for epoch in range(len(lines["nothing dropped"]))]
    draw(curves(names, lines, title, caption, accent=["as AWD-LSTM drops"]), "awd-lstm-dropping")


def tagging_posteriors() -> None:
    """What a linear tagger thinks each word may be."""
    from foreword import FeatureTagger, dataset
    from foreword.tag.conllu import read_conllu

    tagger = FeatureTagger().fit(*read_conllu(dataset("ud_english_ewt").path("train")))
    _posteriors(tagger, "Time flies like an arrow .", "What each word may be", "tagging-posteriors")


def bilstm_posteriors() -> None:
    """What a BiLSTM thinks of names."""
    from foreword import BiLSTMTagger, dataset
    from foreword.tag.conll import read_conll
    from foreword.tag.schemes import convert_all

    sentences, tags = (part[:4000] for part in read_conll(dataset("conll2003").path("train")))
    tagger = BiLSTMTagger(units=64, epochs=3, rate=5e-3, scheme="bio").fit(sentences, convert_all(tags, "iob1", "bio"))
    sentence = "Washington beat New York in Washington on Sunday"
    _posteriors(tagger, sentence, "What each word may belong to", "bilstm-posteriors")


def _posteriors(tagger: Any, sentence: str, title: str, name: str) -> None:
    from foreword.picture.heat import heat_map

    words = sentence.split()
    shares = np.exp(tagger.predict_log_proba([words])[0])
    seen = np.flatnonzero(shares.max(axis=0) > 0.02)
    tags = [tagger.tags_[tag] for tag in seen]
    say(list(zip(words, tagger.predict([words])[0], shares.max(axis=1).round(2), strict=True)))
    unsure = int(shares.max(axis=1).argmin())
    best = int(shares[unsure].argmax())
    likeliest = f"{tagger.tags_[best]} with {shares[unsure, best]:.2f}"
    caption = f"Full colour is certainty. Least sure is “{words[unsure]}”: {likeliest}."
    draw(heat_map(tags, words, shares[:, seen], title, caption), name)


def elmo_map() -> None:
    """Places of one word in generated sentences of two senses, by their contextual vectors."""
    from foreword import ELMo, WordVectors
    from foreword.picture.space import word_map

    money = list(product(["lent", "paid", "owed", "sent"], ["dollars", "euros", "pounds", "francs"]))
    river = list(product(["river", "lake", "stream", "canal"], ["trees", "boats", "ducks", "reeds"]))
    said = {
        "Money": {f"{verb} {unit}": f"the bank {verb} us many {unit}" for verb, unit in money},
        "Water": {f"{water}, {thing}": f"the bank of the {water} has many {thing}" for water, thing in river},
    }
    sentences = [line.split() for lines in said.values() for line in lines.values()]
    model = ELMo(16, letter_units=6, filters=6, epochs=8, batch=8, rate=0.01).fit(12 * sentences)
    groups = {sense: list(lines)[::3] for sense, lines in said.items()}
    shown = [said[sense][name].split() for sense, names in groups.items() for name in names]
    rows = np.array([vectors[1] for vectors in model.embed(shown)], np.float32)
    vectors = WordVectors.of_words([name for names in groups.values() for name in names], rows)
    draw(replace(word_map(vectors, groups), title="“Bank” in twelve sentences, by its contextual vectors"), "elmo-map")


def recurrent_classifier_reading() -> None:
    """The probability of praise after each word."""
    from foreword import RecurrentClassifier
    from foreword.picture.curves import curves
    from foreword.text.datasets import labelled

    labels, texts = zip(*labelled("sst2:train"), strict=True)
    model = RecurrentClassifier(embedding=64, hidden=64, epochs=4).fit(texts, labels)
    held_out = list(labelled("sst2:test"))
    say(f"accuracy on test {model.score([text for _, text in held_out], [label for label, _ in held_out]):.3f}")
    words = ["a", "film", "that", "begins", "well", "and", "then", "falls", "apart"]
    parts = [" ".join(words[: place + 1]) for place in range(len(words))]
    praise = model.predict_proba(parts)[:, list(model.classes_).index("1")]
    say(list(zip(words, praise.round(3), strict=True)))
    caption = "One number after each word: what was read before decides how the next word is taken."
    lines = {"praise": praise.tolist(), "fault": (1 - praise).tolist()}
    draw(
        curves(words, lines, "What a review says, after each word of it", caption, accent=["praise"]),
        "recurrent-classifier-reading",
    )


def ctc_frames() -> None:
    """What the recogniser of docs/ctc.md says at each frame of a number it has not heard."""
    from foreword.picture.heat import heat_map

    names: dict[str, Any] = {"__name__": "ctc"}
    exec(compile(blocks("ctc.md"), "ctc.md", "exec"), names)
    place = next(place for place, number in enumerate(names["numbers"]) if place >= 120 and len(number) == 4)
    shares = np.exp(names["model"].logs([names["frames"][place]])[0])
    symbols = [*map(str, range(10)), "blank"]
    number = "".join(map(str, names["numbers"][place]))
    title = f"What is heard in each 20 ms of {number}"
    caption = "A digit is said in a frame or two, and a blank in all others: nobody told the network where each begins."
    draw(
        heat_map(
            [f"{20 * frame} ms" if frame % 5 == 0 else "" for frame in range(len(shares))],
            symbols,
            shares.T,
            title,
            caption,
        ),
        "ctc-frames",
    )


DRAWN: dict[str, Callable[[], None]] = {
    made.__name__: made
    for made in (
        tutorial_ladder,
        ptb_ladder,
        tokens_length,
        classify_reasons,
        lsa_map,
        bengio_map,
        min_gru_gates,
        transformer_looks,
        awd_lstm_dropping,
        tagging_posteriors,
        bilstm_posteriors,
        elmo_map,
        recurrent_classifier_reading,
        ctc_frames,
    )
}


def main() -> None:
    for name in sys.argv[1:] or DRAWN:
        say(f"\n{name}")
        DRAWN[name]()


if __name__ == "__main__":
    main()
