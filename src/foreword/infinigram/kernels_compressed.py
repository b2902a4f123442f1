"""Kernels of the compressed index: a Huffman-shaped wavelet tree whose bits are compressed in blocks.

A *symbol* is a token plus one; 0 is the end of the text. ``bits`` holds, for each inner node of the Huffman tree, one
bit for each symbol of the Burrows-Wheeler transform that passes it: whether it goes to the right. Blocks of BLOCK bits
are stored by their *class*, the number of ones, and their *offset* among all blocks of that class in combinatorial
order, in as many bits as that needs (R. Raman, V. Raman and S. S. Rao, "Succinct indexable dictionaries", SODA 2002;
G. Navarro and E. Providel, "Fast, small, simple rank/select on bitmaps", SEA 2012).

classes: uint8, 6 bits each, packed. offsets: uint8, one after another. samples: int64 (2, blocks / SAMPLED + 1), the
number of ones before every SAMPLED-th block, and the bit where its offset begins. binomials: int64 (BLOCK + 1,
BLOCK + 1). widths: int64 (BLOCK + 1,), the bits of an offset of each class.

codes, lengths: int64 (symbols,), the way to each symbol, its first turn in the lowest bit. children: int64 (nodes, 2),
the inner node after each turn. nodes: int64 (nodes, 2), the first bit of each, and the number of ones before it.
starts: int64 (symbols + 1,), the first suffix of each symbol.

Whatever a damaged file holds, nothing outside the arrays is read.
"""

from __future__ import annotations

import numpy as np

from foreword.arrays import Bytes, Ids, Ints, Longs
from foreword.native.jit import inlined, kernel
from foreword.native.memory import load_unaligned, ones, prefetch
from foreword.ngram.kernels_query import read_bits

BLOCK = 60
"""Bits of a block: an offset has 57 at most, so that eight bytes hold it wherever it begins."""

CLASS_BITS = 6
SAMPLED = 40
AHEAD = 32


@kernel
def transform(text: Ids, suffixes: Ints, symbols: Ids) -> None:
    """Compute the Burrows-Wheeler transform: the symbol before each suffix, that of the text's end first."""
    symbols[0] = text[len(text) - 1] + 1
    for index in range(len(suffixes)):
        prefetch(text, max(suffixes[min(index + AHEAD, len(suffixes) - 1)] - 1, 0))
        suffix = suffixes[index]
        symbols[index + 1] = text[suffix - 1] + 1 if suffix > 0 else 0


@kernel
def split(symbols: Ids, spare: Ids, codes: Longs, depth: int, bits: Bytes, first: int) -> int:
    """Write the bits of a node, from bit ``first`` on, and move symbols that go to the left to the front, in order.

    Return how many those are. spare: as long as ``symbols``, workspace.
    """
    left = right = 0
    for index in range(len(symbols)):
        symbol = symbols[index]
        if (codes[symbol] >> depth) & 1:
            bit = first + index
            bits[bit >> 3] |= 1 << (bit & 7)
            spare[right] = symbol
            right += 1
        else:
            symbols[left] = symbol
            left += 1
    for index in range(right):
        symbols[left + index] = spare[index]
    return left


@kernel
def classify(bits: Bytes, widths: Longs, classes: Bytes, samples: Longs) -> int:
    """Find the classes of all blocks, and the samples; return how many bits the offsets take."""
    before = pointer = 0
    for block in range(len(classes)):
        if block % SAMPLED == 0:
            samples[0, block // SAMPLED], samples[1, block // SAMPLED] = before, pointer
        number = ones(np.uint64(read_bits(bits, 0, block, BLOCK)))
        classes[block] = number
        before += number
        pointer += widths[number]
    return pointer


@kernel
def enumerate_blocks(bits: Bytes, binomials: Longs, widths: Longs, classes: Bytes, offsets: Bytes) -> None:
    """Write the offsets of all blocks; ``offsets`` is filled with zeros."""
    pointer = 0
    for block in range(len(classes)):
        word, left, offset = read_bits(bits, 0, block, BLOCK), np.int64(classes[block]), 0
        for place in range(BLOCK - 1, -1, -1):
            if (word >> place) & 1:
                offset += binomials[place, left]
                left -= 1
        byte, rest = pointer >> 3, np.uint64(offset) << np.uint64(pointer & 7)
        while rest != np.uint64(0):
            offsets[byte] |= np.uint8(rest & np.uint64(255))
            rest >>= np.uint64(8)
            byte += 1
        pointer += widths[classes[block]]


@inlined
def _ones_before(
    classes: Bytes, offsets: Bytes, samples: Longs, binomials: Longs, widths: Longs, size: int, bit: int
) -> int:
    """Return the number of ones before a bit. size: the number of all bits."""
    bit = min(max(bit, 0), size)
    block = bit // BLOCK
    sample = block // SAMPLED
    found, pointer = samples[0, sample], samples[1, sample]
    for earlier in range(sample * SAMPLED, block):
        number = min(read_bits(classes, 0, earlier, CLASS_BITS), BLOCK)
        found += number
        pointer += widths[number]
    number = min(read_bits(classes, 0, block, CLASS_BITS), BLOCK)
    if not 0 <= pointer <= 8 * (len(offsets) - 8):
        return found
    word = load_unaligned(offsets, pointer >> 3) >> np.uint64(pointer & 7)
    offset = np.int64(word & ((np.uint64(1) << np.uint64(widths[number])) - np.uint64(1)))
    found += number
    for place in range(BLOCK - 1, bit - block * BLOCK - 1, -1):  # ones from the bit on, which do not count
        if offset >= binomials[place, number]:
            offset -= binomials[place, number]
            number -= 1
            found -= 1
    return found


@kernel
def count(
    run: Longs, classes: Bytes, offsets: Bytes, samples: Longs, binomials: Longs, widths: Longs, codes: Longs,
    lengths: Longs, children: Longs, nodes: Longs, starts: Longs, size: int,
) -> int:  # fmt: skip
    """Count how often a run of symbols occurs, from its last to its first: the suffixes that begin with a symbol and
    then a run are as many, and in the same order, as those of the run that the symbol comes before.
    """
    low, high = 0, starts[len(starts) - 1]
    for place in range(len(run) - 1, -1, -1):
        symbol = run[place]
        if low >= high or lengths[symbol] == 0:
            return 0
        node = 0
        for depth in range(lengths[symbol]):
            first, before = nodes[node, 0], nodes[node, 1]
            right_low = _ones_before(classes, offsets, samples, binomials, widths, size, first + low) - before
            right_high = _ones_before(classes, offsets, samples, binomials, widths, size, first + high) - before
            turn = (codes[symbol] >> depth) & 1
            low, high = (right_low, right_high) if turn else (low - right_low, high - right_high)
            node = children[node, turn]
        low, high = low + starts[symbol], high + starts[symbol]
    return high - low if high > low else 0
