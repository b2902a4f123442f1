"""``foreword evaluate --neural-cache`` and ``--dynamic``: models that listen to the text they are measured on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from foreword.measures.perplexity import Measures
    from foreword.protocols import Json, Meter
    from foreword.tokens.corpus import Corpus

CACHE, DYNAMIC = "neural-cache", "dynamic"


@dataclass(frozen=True, slots=True)
class Adapting:
    """kind: CACHE or DYNAMIC. tune, gradients: names of texts. settings: NAME=VALUE."""

    kind: str
    tune: str | None
    gradients: str | None
    settings: tuple[str, ...]

    @classmethod
    def asked(
        cls, cache: bool, dynamic: bool, tune: str | None, gradients: str | None, settings: Sequence[str]
    ) -> Adapting | None:
        """What the options mean; None where no adapting was asked for."""
        if cache and dynamic:
            raise typer.BadParameter("one or the other: --neural-cache was given too", param_hint="'--dynamic'")
        if gradients is not None and not dynamic:
            raise typer.BadParameter("is for --dynamic", param_hint="'--gradients'")
        if not cache and not dynamic:
            if tune is not None or settings:
                hint = "'--set'" if tune is None else "'--tune'"
                raise typer.BadParameter("is for --neural-cache and --dynamic", param_hint=hint)
            return None
        return cls(CACHE if cache else DYNAMIC, tune, gradients, tuple(settings))

    def measure(
        self, model: Any, corpus: Corpus, corpus_of: Callable[[list[str]], Corpus], meter: Meter | None
    ) -> tuple[Measures, dict[str, Json]]:
        """What the model makes of the corpus while it adapts, and how it did; ``corpus_of`` reads named texts."""
        from foreword.measures.perplexity import measure

        adapted = self._cache(model, corpus_of, meter) if self.kind == CACHE else self._dynamic(model, corpus_of, meter)
        names = ("size", "theta", "weight") if self.kind == CACHE else ("rate", "decay", "steps")
        how: dict[str, Json] = {"kind": self.kind, **{name: getattr(adapted, name) for name in names}}
        if self.kind == DYNAMIC:
            how["gradients"] = self.gradients
        return measure(_Metered(adapted, meter), corpus), how | {"tuned_on": self.tune}

    def _cache(self, model: Any, corpus_of: Callable[[list[str]], Corpus], meter: Meter | None) -> Any:
        from foreword.cli.settings import parse_settings
        from foreword.mix.neural_cache import SIZES, NeuralCache

        given = parse_settings(self.settings, CACHE, NeuralCache)
        cache = NeuralCache(model, **given)
        if self.tune is None:
            return cache
        if set(given) - {"size"}:
            raise typer.BadParameter("with --tune only size can be set", param_hint="'--set'")
        sizes = (given["size"],) if given else SIZES
        return NeuralCache.tuned(model, corpus_of([self.tune]), sizes=sizes, meter=meter)

    def _dynamic(self, model: Any, corpus_of: Callable[[list[str]], Corpus], meter: Meter | None) -> Any:
        from foreword.cli.settings import parse_settings
        from foreword.neural.dynamic import DynamicEvaluation

        given = parse_settings(self.settings, DYNAMIC, DynamicEvaluation)
        if self.tune is not None and set(given) - {"steps"}:
            raise typer.BadParameter("with --tune only steps can be set", param_hint="'--set'")
        dynamic = DynamicEvaluation(model, **given)
        if self.gradients is not None:
            dynamic.measure_gradients(corpus_of([self.gradients]), meter=meter)
        return dynamic if self.tune is None else dynamic.tune(corpus_of([self.tune]), meter=meter)


@dataclass(frozen=True, slots=True)
class _Metered:
    """Scoring that tells how far it is."""

    adapted: Any
    meter: Meter | None

    def logprobs(self, corpus: Corpus) -> Any:
        return self.adapted.logprobs(corpus, meter=self.meter)


def told(adapted: dict[str, Json]) -> str:
    """For people: the kind and its numbers."""
    numbers = ", ".join(f"{name} {value:.4g}" for name, value in adapted.items() if isinstance(value, int | float))
    return f"{str(adapted['kind']).replace('-', ' ')}: {numbers}"
