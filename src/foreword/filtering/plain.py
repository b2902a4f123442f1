"""Statistics of a text as one would write them in Python: what ``kernels_statistics.py`` computes for whole blocks.

J. W. Rae et al., "Scaling language models: methods, analysis & insights from training Gopher" (2021), appendix A. Words
are split at white space, lines at line feeds; blank lines are left out.
"""

from __future__ import annotations

from collections import Counter

STOP_WORDS = ("the", "be", "to", "of", "and", "that", "have", "with")
"""Gopher's: English text has at least two of them."""

BULLETS = ("•", "-")
ELLIPSES = ("…", "...")


def text_statistics(text: str) -> dict[str, float]:
    """Return every statistic of a text by its name; NaN where it is a share of nothing."""
    words, lines = text.split(), [line.strip() for line in text.split("\n") if line.strip()]
    found: dict[str, float] = {
        "characters": len(text),
        "words": len(words),
        "lines": len(lines),
        "mean_word_length": _share(sum(map(len, words)), len(words)),
        "symbol_ratio": _share(max(text.count("#"), sum(map(text.count, ELLIPSES))), len(words)),
        "alphabetic_words": _share(sum(any(map(str.isalpha, word)) for word in words), len(words)),
        "stop_words": sum(word in words for word in STOP_WORDS),
        "bullet_lines": _share(sum(line.startswith(BULLETS) for line in lines), len(lines)),
        "ellipsis_lines": _share(sum(line.endswith(ELLIPSES) for line in lines), len(lines)),
        "duplicate_lines": _share(len(lines) - len(set(lines)), len(lines)),
        "duplicate_line_characters": _share(_duplicate_characters(lines), len(text)),
    }
    for n in (2, 3, 4):
        found[f"top_{n}_gram"] = _share(_top_ngram(words, n), len(text))
    for n in range(5, 11):
        found[f"duplicate_{n}_grams"] = _share(_duplicate_ngrams(words, n), len(text))
    return found


def _share(part: float, whole: int) -> float:
    return part / whole if whole else float("nan")


def _duplicate_characters(lines: list[str]) -> int:
    """Return the characters of lines that occurred before."""
    seen, total = set[str](), 0
    for line in lines:
        total += len(line) if line in seen else 0
        seen.add(line)
    return total


def _top_ngram(words: list[str], n: int) -> int:
    """Return the characters of the most frequent n-gram, blanks included, times its count; the first of equals."""
    counts = Counter(tuple(words[place : place + n]) for place in range(len(words) - n + 1))
    if not counts:
        return 0
    ((ngram, count),) = counts.most_common(1)
    return (sum(map(len, ngram)) + n - 1) * count


def _duplicate_ngrams(words: list[str], n: int) -> int:
    """Return the characters of n-grams that occurred before, from left to right and without overlaps."""
    seen, total, place = set[tuple[str, ...]](), 0, 0
    while place <= len(words) - n:
        ngram = tuple(words[place : place + n])
        if ngram in seen:
            total += sum(map(len, ngram))
            place += n
        else:
            seen.add(ngram)
            place += 1
    return total
