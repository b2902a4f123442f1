"""``python -m foreword`` is ``foreword``."""

from foreword.cli import main

main()
