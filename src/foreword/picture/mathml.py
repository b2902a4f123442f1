"""Typeset the equations of the documentation as MathML, which browsers draw without a script or a font from elsewhere.

Equations are written as text that reads well by itself, ``h_t = tanh(W_x x_t + W_h h_(t−1) + b)``:

    x_t, x_(t−1), xₙ, x², l^α      subscripts and superscripts; parentheses around them are not drawn
    (a + b) / (c + d)              a fraction, where both sides are parenthesised or single symbols that begin a term
    √d, Σ_k, Π, ∂, ←, ∝            as in any text; words of two letters and more are upright
    three blanks or more           begin another equation or, where it has no relation, a remark
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from html import escape

TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<number>\d+(?:[.,]\d+)*%?)|(?P<word>[^\W\d_]{2,}(?:[’'][^\W\d_]+)?)|(?P<symbol>[^\W\d_][\u0300-\u036f]*)|(?P<other>.)"
)
COLUMN = re.compile(r" {3,}")
MATHS = re.compile(r" = |←|∝|≈|Σ|Π|∂|^\S+ = ")
SCRIPT_WORD = re.compile(r"[<≤>≥]?\w[\w\u0300-\u036f]*|[¼½¾∞*]")
CLOSING = {"(": ")", "[": "]", "{": "}"}
LARGE = frozenset("ΣΠ")
LETTERS_THAT_ARE_OPERATORS = frozenset("ΣΠ∂√")


STYLE = (
    ".equation{overflow-x:auto;padding:.3em 0}"
    ".equation .line{display:flex;flex-wrap:wrap;gap:.4em 2em;align-items:baseline}"
    ".equation math{display:block math;width:max-content;margin:.15em 0}.equation .remark{opacity:.75}"
)
"""How rows and remarks are set, for every page that has equations."""


@dataclass(frozen=True)
class Equation:
    """Equations, one per line, that a notebook shows typeset."""

    text: str

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f"<style>{STYLE}</style>{block(self.text.splitlines())}"


def equation(text: str) -> Equation:
    """Return equations that a notebook shows typeset and a terminal as they are written."""
    return Equation(text)


def block(lines: list[str]) -> str:
    """Return the lines of an equation as HTML: one row per line, of formulas and remarks."""
    rows = "".join(f'<div class="line">{line(each.strip())}</div>' for each in lines)
    return f'<div class="equation">{rows}</div>'


def line(text: str) -> str:
    """Return one line: columns with a relation in them, and the first, are formulas, others are remarks."""
    first, *others = COLUMN.split(text)
    return formula(first) + "".join(
        formula(part) if MATHS.search(part) else f'<span class="remark">{escape(part)}</span>' for part in others
    )


def formula(text: str) -> str:
    """Return one formula as a ``<math>`` element, with its text as what is read aloud where MathML is unknown."""
    return f'<math display="block" alttext="{escape(text)}"><mrow>{_Formula(text).row()}</mrow></math>'


class _Formula:
    """A reader of one formula: ``row`` reads up to a closing bracket, ``atom`` one symbol with its scripts."""

    def __init__(self, text: str) -> None:
        # ₙ₋₁ → _(n-1), ² → ^(2): the same notation for both ways of writing a script
        self.text = _plain_scripts(text)
        self.at = 0

    def row(self, closing: str = "") -> str:
        """Return everything up to the closing bracket or the end."""
        parts: list[str] = []
        after_word = begins = True
        while self.at < len(self.text) and not (closing and self.text.startswith(closing, self.at)):
            match = TOKEN.match(self.text, self.at)
            assert match is not None
            if match["space"]:
                self.at = match.end()
                next_to_word = after_word or self.text[self.at : self.at + 2].isalpha()
                parts.append(f'<mspace width="{0.25 if next_to_word else 0.12}em"/>')
                continue
            alone = match["other"] in CLOSING or not match["other"]
            atom = self.atom()
            if begins and alone and self._fraction():
                atom = f"<mfrac><mrow>{_bare(atom)}</mrow><mrow>{_bare(self.atom())}</mrow></mfrac>"
            parts.append(atom)
            after_word = bool(match["word"])
            begins = bool(match["other"]) and match["other"] not in CLOSING
        return "".join(parts)

    def _fraction(self) -> bool:
        """Step over a slash with a bracket or a single symbol after it, and nothing that multiplies that."""
        found = re.match(r" ?/ ?(?=[(\[]|[\w\u0300-\u036f]+(?:$|[)\],]| [=+−≈·]))", self.text[self.at :])
        if found:
            self.at += found.end()
        return found is not None

    def atom(self) -> str:
        """Return one number, symbol, word, operator or bracketed group, with its sub- and superscript."""
        match = TOKEN.match(self.text, self.at)
        assert match is not None
        self.at = match.end()
        token = match[0]
        if token in LETTERS_THAT_ARE_OPERATORS:
            core = f"<mo>{token}</mo>" if token != "√" else f"<msqrt>{self.atom()}</msqrt>"
        elif match["number"]:
            core = f"<mn>{token}</mn>"
        elif match["word"] or match["symbol"]:
            core = f"<mi>{escape(token)}</mi>"
        elif token in CLOSING:
            inner = self.row(CLOSING[token])
            closed = self.text[self.at : self.at + 1]
            self.at += 1
            stretchy = "" if "<mfrac>" in inner else ' stretchy="false"'
            core = f"<mrow><mo{stretchy}>{token}</mo>{inner}<mo{stretchy}>{closed}</mo></mrow>"
        else:
            core = f"<mo>{escape(token)}</mo>"
        return self._with_scripts(core, token in LARGE)

    def _with_scripts(self, core: str, large: bool) -> str:
        scripts = {mark: self._script(mark) for mark in "_^"}
        if not any(scripts.values()):
            return core
        below, above = ("under", "over") if large else ("sub", "sup")
        kind = below * bool(scripts["_"]) + above * bool(scripts["^"])
        return f"<m{kind}>{core}{scripts['_']}{scripts['^']}</m{kind}>"

    def _script(self, mark: str) -> str:
        if not self.text.startswith(mark, self.at):
            return ""
        self.at += 1
        if self.text.startswith("(", self.at):
            return f"<mrow>{_bare(self.atom())}</mrow>"
        found = SCRIPT_WORD.match(self.text, self.at)
        written = found[0] if found else ""
        self.at += len(written)
        indices = " ".join(written) if len(written) == 2 and written.islower() else written  # X_ij: row i, column j
        return f"<mrow>{_Formula(indices).row()}</mrow>"


def _bare(group: str) -> str:
    """Return a bracketed group without its brackets; a fraction bar or a script takes their place."""
    found = re.fullmatch(r"<mrow><mo[^>]*>\(</mo>(.*)<mo[^>]*>\)</mo></mrow>", group)
    return found[1] if found else group


def _plain_scripts(text: str) -> str:
    """Write subscript and superscript characters as _(…) and ^(…)."""

    def plain(run: re.Match[str], mark: str) -> str:
        letters = "".join(unicodedata.normalize("NFKD", letter) for letter in run[0])
        return f"{mark}({letters})"

    text = re.sub("[₀-₎ₐ-ₜᵢ-ᵪⱼ]+", lambda run: plain(run, "_"), text)
    return re.sub("[²³¹⁰-ⁿᵀˣ]+", lambda run: plain(run, "^"), text)
