"""Byte-pair encoding: tokens between characters and words, learnt by merging frequent pairs.

``kind="bytes"`` starts from the 256 bytes inside the pieces that a pre-tokenisation pattern cuts, as GPT-2 does
(Radford et al., 2019); with the same text it gives the same merges and ids as Hugging Face's ``tokenizers``.
``kind="characters"`` is the rule of the teaching sources: start from characters, and make no token of a pair
whose second token begins with white space. The rule needs no check while merging: no allowed pair reaches over the
start of a white-space character, so cutting the text before each of them once gives the same merges.

Ties go to the pair with the smaller ids. ``merges.py`` learns the merges; here is the tokenizer that applies them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from foreword.arrays import Ints, Longs
from foreword.errors import InputError, SettingError
from foreword.notebook import ShownInNotebook
from foreword.protocols import Json, Meter, Parts
from foreword.text.block import Block, blocks_of
from foreword.text.unicode import Cleaning, Form
from foreword.tokens.characters import REPLACEMENT, character_ids, printable, spelling_of
from foreword.tokens.corpus import Encoded, encode_text, max_ids
from foreword.tokens.counting import Counted, count_pieces_of, pieces_of
from foreword.tokens.encoder_pool import CachingEncoder, EncoderPool
from foreword.tokens.kernels import encode_bpe
from foreword.tokens.merges import Kind, Merge, Vetoed, learn_from_counts, merge_table, veto_by_spelling
from foreword.tokens.pieces import CL100K, GPT2, O200K, QWEN2, SPACE_BEFORE, WHOLE, character_classes
from foreword.tokens.strings import add_strings
from foreword.tokens.vocab import END, UNKNOWN, Vocab

if TYPE_CHECKING:
    from foreword.tokens.plain import Replay

Pattern = Literal["gpt2", "cl100k", "o200k", "qwen2", "none"]
_PATTERNS: dict[str, int] = {"gpt2": GPT2, "cl100k": CL100K, "o200k": O200K, "qwen2": QWEN2, "none": WHOLE}

DEFAULT_MEMORY = 1 << 30
"""Bytes that training may take by default."""

ENDS = (END, "<|endoftext|>", "<|end_of_text|>", "<eos>", "<|im_end|>")
"""Names of the token that ends a document in tokenizers of other tools; the first one present counts."""


_SETTINGS = ("vocab_size", "kind", "pattern", "min_frequency", "prefix_space", "ignore_merges")


class BPETokenizer(ShownInNotebook, EncoderPool["_PieceEncoder"]):
    """A byte-pair encoding tokenizer.

    vocab_size: the number of tokens, special ones and the alphabet included.
    pattern: the pieces that bytes are merged within: "gpt2", "cl100k" (GPT-4, Llama 3), "o200k" (GPT-4o), "qwen2"
    (cl100k with single digits) or "none". Characters have their own rule.
    special_tokens: tokens that stand for themselves and come first; ``</s>`` must be among them, and ``<unk>`` is
    added for characters.
    added_tokens: tokens that stand for themselves too, but are part of the text: decoding never leaves them out.
    min_frequency: pairs seen less often are not merged.
    prefix_space: put a blank before each text, so that its first word looks like any other.
    ignore_merges: a piece that is a token as a whole is that token, whatever the merges make of it (Llama 3).
    """

    CACHED: ClassVar[tuple[str, ...]] = ("merge_table", "first_ids", "whole_pieces", "_special_finder")

    def __init__(
        self,
        vocab_size: int = 8000,
        *,
        kind: Kind = "bytes",
        pattern: Pattern = "gpt2",
        special_tokens: Sequence[str] = (END,),
        added_tokens: Sequence[str] = (),
        min_frequency: int = 1,
        lowercase: bool = False,
        form: Form | None = None,
        prefix_space: bool = False,
        ignore_merges: bool = False,
    ) -> None:
        if kind not in ("bytes", "characters"):
            raise SettingError(f"kind={kind!r}: expected 'bytes' or 'characters'")
        if pattern not in _PATTERNS:
            raise SettingError(f"pattern={pattern!r}: expected one of {', '.join(_PATTERNS)}")
        self.vocab_size = vocab_size
        self.kind = kind
        self.pattern = pattern
        self.special_tokens = tuple(special_tokens)
        self.added_tokens = tuple(added_tokens)
        self.min_frequency = min_frequency
        self.cleaning = Cleaning(form, lowercase)
        self.prefix_space = prefix_space
        self.ignore_merges = ignore_merges
        self.drop_derived()

    def __repr__(self) -> str:
        return f"BPETokenizer({self.vocab_size}, kind={self.kind!r}, pattern={self.pattern!r})"

    # Learning

    def fit(self, texts: Iterable[str], *, veto: Vetoed | None = None) -> Self:
        """Learn from texts.

        veto: which merges are refused, each passed over for the next most frequent pair: a function of the two tokens,
        as they are named in the vocabulary, or the tokens that must not be made.
        """
        return self.fit_blocks(blocks_of(texts), threads=1, veto=veto)

    def fit_blocks(
        self,
        blocks: Iterable[Block],
        *,
        threads: int | None = None,
        memory: int = DEFAULT_MEMORY,
        veto: Vetoed | None = None,
        meter: Meter | None = None,
    ) -> Self:
        """Learn from a stream of documents: count its pieces on all cores, then merge."""
        counted = self.count(blocks, threads=threads, memory=memory)
        return self.fit_counted(counted, memory=memory, veto=veto, meter=meter)

    def count(self, blocks: Iterable[Block], *, threads: int | None = None, memory: int = DEFAULT_MEMORY) -> Counted:
        """Count every distinct piece, in bounded memory: the first half of learning."""
        return count_pieces_of(map(self.prepare, blocks), self.piece_pattern, threads=threads, memory=memory // 4)

    @property
    def piece_pattern(self) -> int:
        """The pattern that cuts a text into pieces, see ``pieces.py``."""
        return SPACE_BEFORE if self.kind == "characters" else _PATTERNS[self.pattern]

    def fit_counted(
        self,
        counted: Counted,
        *,
        memory: int = DEFAULT_MEMORY,
        veto: Vetoed | None = None,
        meter: Meter | None = None,
    ) -> Self:
        """Learn merges from counted pieces. Those that do not fit in memory are left out, rarest first; ``left_out_``
        is their number, 0 for all but enormous texts.
        """
        names = self.standing
        learnt = learn_from_counts(
            counted,
            self.kind,
            names,
            self.vocab_size,
            least=self.min_frequency,
            memory=memory // 2,
            veto=veto_by_spelling(veto, self._name),
            meter=meter,
        )
        self.left_out_ = learnt.left_out
        self._set_merges([*names, *map(self._name, learnt.spellings)], learnt.record)
        return self

    @property
    def _specials(self) -> list[str]:
        """The special tokens, ``<unk>`` first where characters need one."""
        wanted = dict.fromkeys([UNKNOWN] * (self.kind == "characters") + list(self.special_tokens))
        if END not in wanted and not any(name in wanted for name in ENDS):
            wanted[END] = None
        return list(wanted)

    @property
    def standing(self) -> list[str]:
        """Every token that stands for itself."""
        return list(dict.fromkeys([*self._specials, *self.added_tokens]))

    def _name(self, spelling: bytes) -> str:
        return printable(spelling) if self.kind == "bytes" else spelling.decode()

    def _set_merges(self, names: list[str], record: Longs, end: str | None = None) -> None:
        """Set the vocabulary and the merges. A pair can come twice (see ``kernels_merges.py``); the last one counts.

        A merge that spells a token that stands for itself is recorded but never applied, or a text could forge one.
        """
        end = end or next((name for name in ENDS if name in self._specials), END)
        self.vocab_ = Vocab(names, unknown=UNKNOWN if self.kind == "characters" else None, end=end)
        self.record_ = record
        pairs = {(left, right): rank for rank, (left, right) in enumerate(record[:, :2].tolist())}
        merges = record[sorted(pairs.values()), :3].astype(np.int32)
        standing = [self.vocab_.id(token) for token in self.standing if token in self.vocab_]
        self.merges_ = merges[~np.isin(merges[:, 2], standing)]
        self.drop_derived()

    def merge_names(self) -> Iterator[tuple[str, str]]:
        """Yield the merges as pairs of tokens, in the order they are applied."""
        for left, right, _ in self.merges_.tolist():
            yield self.vocab[left], self.vocab[right]

    def steps(self) -> Iterator[Merge]:
        """Yield the merges of the training in the order they were learnt."""
        for left, right, merged, count in self.record_.tolist():
            yield Merge(left, right, merged, count)

    def replay(self, text: str) -> Iterator[Replay]:
        """Yield the tokens of a text before any merge, then after each merge in turn."""
        from foreword.tokens import plain

        return plain.replay(self, text)

    def add_special_tokens(self, tokens: Iterable[str]) -> Self:
        """Add tokens that stand for themselves, after all others."""
        wanted, standing = list(dict.fromkeys(tokens)), set(self.standing)
        if learnt := [token for token in wanted if token in self.vocab and token not in standing]:
            raise SettingError(f"{learnt[0]!r} cannot become a special token: it is an ordinary one already")
        new = [token for token in wanted if token not in self.vocab]
        self.special_tokens = (*self._specials, *new)
        self.vocab_ = Vocab(
            [*self.vocab, *new], unknown=None if self.vocab.unknown is None else UNKNOWN, end=self.vocab[self.vocab.end]
        )
        self.drop_derived()
        return self

    # Encoding

    def prepare(self, block: Block) -> Block:
        """Return the block cleaned, as the pattern is applied to it."""
        block = self.cleaning.block(block)
        if self.prefix_space:
            data = block.data.tobytes()
            texts = [data[start:stop] for start, stop in zip(block.starts.tolist(), block.stops.tolist(), strict=True)]
            texts = [text if text[:1] in (b"", b" ") else b" " + text for text in texts]
            block = Block.from_texts(texts, open=block.open)
        return block

    def encode(self, text: str | bytes, *, special: bool = False) -> Ints:
        """Return the ids of a text, or of any bytes.

        With ``special`` a special token written in the text becomes its id; otherwise it is ordinary text, so that no
        document can forge one.
        """
        if special:
            if isinstance(text, bytes):
                raise SettingError("special tokens are looked for in text, not in bytes")
            parts = [part for part in self._special_finder.split(text) if part]
            standing = set(self.standing)
            ids = [[self.vocab.id(part)] if part in standing else encode_text(self, part) for part in parts]
            return np.concatenate([np.empty(0, np.int32), *ids], dtype=np.int32)
        return encode_text(self, text)

    @cached_property
    def _special_finder(self) -> re.Pattern[str]:
        longest_first = sorted(self.standing, key=len, reverse=True)
        return re.compile(f"({'|'.join(map(re.escape, longest_first))})")

    def encode_block(self, block: Block) -> Encoded:
        """Encode a block of documents; several threads may do so at once."""
        block = self.prepare(block)
        encoder = self.take_encoder(block)
        encoded = encoder.encode(block)
        self.give_back(encoder)
        return encoded

    def new_encoder(self, block: Block) -> _PieceEncoder:
        """Make an encoder."""
        return _PieceEncoder(self)

    @cached_property
    def first_ids(self) -> Ints:
        """The id of every byte or code point before any merge."""
        if self.kind == "characters":
            ids = character_ids(self.vocab)
            ids[[ord(token) for token in self.standing if len(token) == 1]] = self.vocab.id(UNKNOWN)
            return ids
        return np.array([self.vocab.id(printable(bytes([byte]))) for byte in range(256)], np.int32)

    @cached_property
    def merge_table(self) -> Longs:
        """The merges as a hash table, pair -> rank << 32 | merged id."""
        return merge_table(self.merges_, np.arange(len(self.merges_), dtype=np.int32))

    def pieces(self, text: str) -> list[str]:
        """Return the pieces that the pre-tokenisation pattern cuts a text into."""
        return pieces_of(self.prepare(Block.from_texts([text], open=True)), self.piece_pattern)

    @cached_property
    def whole_pieces(self) -> dict[bytes, int]:
        """The spelling of every token that a whole piece can be: all but those that stand for themselves."""
        pieces: dict[bytes, int] = {}
        standing = {"", *self.standing}
        for id, token in enumerate(self.vocab):
            spelling = self._spelling(token)
            if token not in standing and self._name(spelling) == token:  # else it is made of no bytes
                pieces[spelling] = id
        return pieces

    # Decoding

    def decode_bytes(self, ids: Iterable[int], *, special: bool = False) -> bytes:
        """Return the bytes of ids; special tokens are left out, or with ``special`` written as they are."""
        specials, added = set(self._specials), set(self.added_tokens)
        spellings: list[bytes] = []
        for id in ids:
            token = self.vocab[int(id)]
            if token in specials:
                if token == UNKNOWN and self.kind == "characters":
                    spellings.append(REPLACEMENT.encode())
                elif special:
                    spellings.append(token.encode())
            else:
                spellings.append(token.encode() if token in added else self._spelling(token))
        return b"".join(spellings)

    def _spelling(self, token: str) -> bytes:
        return spelling_of(token) if self.kind == "bytes" else token.encode()

    def decode(self, ids: Iterable[int], *, special: bool = False) -> str:
        """Return the text of ids. Bytes that are not UTF-8, such as part of a character, become U+FFFD."""
        text = self.decode_bytes(ids, special=special).decode("utf-8", "replace")
        return text[1:] if self.prefix_space and text[:1] == " " else text

    # Saving

    def to_parts(self) -> Parts:
        """Return settings, merges and vocabulary for saving."""
        settings: dict[str, Json] = {name: getattr(self, name) for name in _SETTINGS}
        settings |= {"special_tokens": list(self.special_tokens), "added_tokens": list(self.added_tokens)}
        settings |= {"lowercase": self.cleaning.lowercase, "form": self.cleaning.form}
        return Parts(settings, {"record": self.record_}, self.vocab)

    @classmethod
    def from_parts(cls, parts: Parts) -> Self:
        """Build a saved tokenizer."""
        parts.check_flags("lowercase", "ignore_merges", "prefix_space")
        settings: dict[str, Any] = dict(parts.settings)
        for name in ("special_tokens", "added_tokens"):
            if not (isinstance(settings[name], list) and all(isinstance(token, str) for token in settings[name])):
                raise InputError(f"{name} must be a list of texts")
        tokenizer = cls(settings.pop("vocab_size"), **settings)
        vocab = parts.needed_vocab()
        return tokenizer.with_merges(list(vocab), parts.arrays["record"], end=vocab[vocab.end])

    def with_merges(self, names: list[str], record: Longs, *, end: str | None = None) -> Self:
        """Set a vocabulary and merges learnt elsewhere, after checking that they fit together.

        end: the token that ends a document; if none is named, the first of ``ENDS`` among the special tokens.
        """
        _check_record(record, len(names))
        self._set_merges(names, np.array(record), end)
        ordinary = set(names).difference(self.standing)
        if self.kind == "bytes" and (lacking := [byte for byte in map(printable, _BYTES) if byte not in ordinary]):
            raise InputError(f"the vocabulary has no token for the byte {lacking[0]!r}")
        return self


_BYTES = [bytes([byte]) for byte in range(256)]


def _check_record(record: Longs, tokens: int) -> None:
    if record.dtype != np.int64 or record.ndim != 2 or record.shape[1] != 4:
        raise InputError("the merges must be rows of four 64-bit numbers")
    if len(record) and not 0 <= record[:, :3].min() <= record[:, :3].max() < tokens:
        raise InputError("a merge names a token that is not in the vocabulary")


class _PieceEncoder(CachingEncoder):
    """The encoder of one thread: a cache of encoded pieces, about 100 MB at most, and buffers."""

    GROWTH = 4

    def __init__(self, tokenizer: BPETokenizer) -> None:
        self.tokenizer = tokenizer
        self.whole = tokenizer.whole_pieces if tokenizer.ignore_merges else {}
        super().__init__(1 << max(15, (2 * len(self.whole)).bit_length()), sum(map(len, self.whole)))

    def _forget(self) -> None:
        super()._forget()
        if self.whole:
            self._cache_tokens()

    def _cache_tokens(self) -> None:
        """Cache every token as a piece that encodes to itself, so that it is never merged."""
        count = len(self.whole)
        add_strings(list(self.whole), self.slots, self.arena, self.starts, self.size)
        self.memo[:count] = list(self.whole.values())
        self.records[1 : count + 1] = np.arange(1, count + 1)
        self.size += count

    def _scratch(self, length: int) -> None:
        self.symbols, self.following, self.preceding = (np.empty(length, np.int32) for _ in range(3))
        self.heap = np.empty(6 * length, np.int64)

    def encode(self, block: Block) -> Encoded:
        """Return the ids of a block."""
        tokenizer = self.tokenizer
        out = np.empty(max_ids(block), np.int32)
        ends = np.empty(len(block), np.int64)
        position = np.array([0, 0, 0, self.size, 0], np.int64)
        while need := encode_bpe(
            block.data, block.starts, block.stops, block.open,
            tokenizer.piece_pattern, character_classes(tokenizer.piece_pattern),
            self.slots, self.arena, self.starts, self.records, self.memo,
            tokenizer.kind == "characters", tokenizer.first_ids, tokenizer.merge_table, tokenizer.vocab.end,
            self.symbols, self.following, self.preceding, self.heap,
            out, ends, self.batch, self.keys, position,
        ):  # fmt: skip
            self._scratch(2 * need)
        return self._finish(block, out, ends, position)
