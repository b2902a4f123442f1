"""Tagging, contextual vectors, speech, encoders and decoders: rows S, C and Q."""

from __future__ import annotations

from foreword.lessons.claims.claim import Claim, Kept

TRANSLATION = (
    Claim(
        id="S01",
        says="Layers can be stacked; low ones hold what is local, high ones what is abstract.",
        verdict="holds",
        found=(
            "equal to PyTorch's two layers; a probe finds the word in the embedding and the subject's "
            "number in the state only"
        ),
        kept=Kept(
            found=(
                "the word just read: 100 %, 73 %, 36 % from embedding to second layer; the subject's "
                "number: 61 %, 74 %, 98 %"
            ),
            where="docs/recurrent.md",
            date="2026-11-15",
            seed="not recorded",
            machine="not recorded",
        ),
    ),
    Claim(
        id="S02",
        says="Reading both ways turns (32, 50, 300) into (32, 50, 512) and doubles the parameters.",
        verdict="holds",
        found="shapes and parameters exactly so, equal to PyTorch's; the forward half knows nothing of what follows",
    ),
    Claim(
        id="S03",
        says="A linear layer of 512 by 9 on top tags names.",
        verdict="holds",
        found=(
            "logits (32, 50, 9); a field whose sums equal enumeration and pytorch-crf; F1 equals "
            "seqeval's; a fifteenth of a treebank beats the most frequent tags by over five points"
        ),
        kept=Kept(
            found=(
                "names of CoNLL-2003: F1 89.16 with our own vectors, 86.54 without; chunks of CoNLL-2000: "
                "94.68 and 93.77; 95.45 % of the universal tags of UD English-EWT"
            ),
            where="docs/bilstm.md",
            date="2026-11-16",
            seed="one, not recorded",
            machine="two cores of a Xeon, torch 2.11",
        ),
    ),
    Claim(
        id="S04",
        says="Only what follows tells which bank is meant.",
        verdict="holds",
        found="both ways: every sentence right; one way: the same scores whatever follows, so half",
    ),
    Claim(
        id="S05",
        says="A model that reads both ways cannot stream.",
        verdict="holds",
        found="it refuses at once and says why; one that reads ahead streams what it would say of the whole",
    ),
    Claim(
        id="C01",
        says="ELMo's vectors depend on the sentence, mix the layers, and help a tagger.",
        verdict="holds",
        found=(
            "a model of both directions is learnt, the mix follows the task, and with eight labelled "
            "sentences a tagger gains over three points on the same vectors without context"
        ),
        kept=Kept(
            found="74.43 % and 74.04 % of tags right with context, 71.45 % and 71.13 % with the static layer",
            where="docs/elmo.md",
            date="2026-11-16",
            seed="0 and 1 (tagger), one of ELMo",
            machine="a shared CPU, its name not recorded",
        ),
    ),
    Claim(
        id="C02",
        says="Bank, Java and porto have one static vector and a contextual one for each sense.",
        verdict="holds with a condition",
        found=(
            "static distance 0 to the bit, contextual above 0; by five neighbours more than 97 of 100 "
            "places get the right sense"
        ),
        why="on generated sentences of few forms; on Wikipedia with a small model the distances are small",
    ),
    Claim(
        id="C03",
        says="Speech is recognised by bidirectional LSTMs and CTC.",
        verdict="holds with a condition",
        found=(
            "loss and gradient equal enumeration and PyTorch's; a recogniser of tones learns without being told when"
        ),
        why="only dialled tones were measured: no program that speaks was at hand, so spoken digits have not been",
        kept=Kept(
            found="11.3 % errors a digit for the likeliest symbols, 10.2 % with a beam of 8, 9.1 % with bigrams",
            where="docs/ctc.md",
            date="2026-11-16",
            seed="one, not recorded",
            machine="not recorded",
        ),
    ),
    Claim(
        id="Q01",
        says="An encoder's last state starts a decoder, which writes until it says stop.",
        verdict="holds",
        found=(
            "p(target given source) is the product of its steps, each sums to one, and writing ends at the end mark"
        ),
    ),
    Claim(
        id="Q02",
        says="A model reads all of an English sentence, then writes it in Dutch.",
        verdict="holds with a condition",
        found="BLEU and chrF equal sacreBLEU's on made-up and real lines",
        why="German and French were learnt, for no English-Dutch text was at hand: Dutch itself is not checked",
        kept=Kept(
            found="BLEU 36.7 and chrF 60.3 into German, 55.1 and 71.4 into French",
            where="docs/results/multi30k.json",
            date="2026-11-16",
            seed="0",
            machine="NVIDIA H200",
        ),
    ),
    Claim(
        id="Q03",
        says="In training the decoder is shown the true previous word.",
        verdict="holds",
        found="it reads the target shifted by one; without teacher forcing, its own words",
    ),
    Claim(
        id="Q04",
        says="That makes it worse on its own; gradually showing it its own words helps.",
        verdict="holds with a condition",
        found=(
            "shown the truth it is right more often, by more than three points; the three schedules fall "
            "as their formulae say"
        ),
        why="the gap is there; that scheduled sampling closes it did not show on Multi30k",
        kept=Kept(
            found="BLEU 36.5 with scheduled sampling, 36.7 without",
            where="docs/results/multi30k.json",
            date="2026-11-16",
            seed="0",
            machine="NVIDIA H200",
        ),
    ),
    Claim(
        id="Q05",
        says="Greedy decoding takes the likeliest word each time and is short-sighted.",
        verdict="holds",
        found="it is a beam of one; in a built case it misses a text twice as likely",
    ),
    Claim(
        id="Q06",
        says="Beam search with a width of 4 to 10 finds better texts.",
        verdict="holds",
        found="a wide beam is exhaustive search; of 100 random models ever more are solved as the width grows",
    ),
    Claim(
        id="Q07",
        says="Length normalisation keeps outputs from being too short.",
        verdict="holds",
        found="both formulae by hand; without it nothing at all beats a good text of six words",
        kept=Kept(
            found=(
                "outputs are 0.954 as long as the references without it, 1.005 by the mean and 0.983 by "
                "GNMT's, beam of 5 into German"
            ),
            where="docs/results/multi30k.json",
            date="2026-11-16",
            seed="0",
            machine="NVIDIA H200",
        ),
    ),
    Claim(
        id="Q08",
        says="A coverage penalty keeps source words from being dropped.",
        verdict="holds with a condition",
        found="GNMT's formula equals the value by hand",
        why="that fewer words are dropped is not measured; outputs do get longer, and BLEU lower",
        kept=Kept(
            found="with it outputs are 1.075 as long as the references and BLEU is 32.8, without it 0.983 and 36.9",
            where="docs/results/multi30k.json",
            date="2026-11-16",
            seed="0",
            machine="NVIDIA H200",
        ),
    ),
    Claim(
        id="Q09",
        says="Without attention quality falls sharply with the length of the source.",
        verdict="holds",
        found=(
            "perplexity rises by more than half from short to long sources; with attention over 30 points"
            " more words are right at the longest"
        ),
        kept=Kept(
            found="25.1 BLEU into German without attention, 36.7 with it",
            where="docs/results/multi30k.json",
            date="2026-11-16",
            seed="0",
            machine="NVIDIA H200",
        ),
    ),
    Claim(
        id="Q10",
        says="Additive attention scores v·tanh(W₁s + W₂h).",
        verdict="holds",
        found="the formula and its shapes; weights sum to one, and masked places have exactly 0",
    ),
    Claim(
        id="Q11",
        says="Dot attention is s·h, for equal sizes.",
        verdict="holds",
        found="the formula; unequal sizes are refused with what to take instead",
    ),
    Claim(
        id="Q12",
        says="General attention is s·Wh.",
        verdict="holds",
        found="the formula, for unequal sizes too",
    ),
    Claim(
        id="Q13",
        says="Scaled attention divides the product by √d.",
        verdict="holds",
        found="equal to PyTorch's own, gradients too",
    ),
    Claim(
        id="Q14",
        says='"La maison bleue" shows adjective and noun changing places.',
        verdict="holds",
        found="translated rightly though never seen, and the alignment is (0, 2, 1)",
    ),
    Claim(
        id="Q15",
        says="Encoders and decoders also summarise, converse, describe pictures and hear speech.",
        verdict="holds with a condition",
        found="summaries of unseen generated reports are right in over 80 of 100; dialogue by the same recipe",
        why="generated texts only; captioning is not done, and speech has been measured on tones only",
    ),
)
