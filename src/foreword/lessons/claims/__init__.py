"""Every statement of the teaching sources that can be checked, with a verdict and the tests that prove it.

``claims.toml`` holds the claims and ``table.py`` reads it. ``proofs.py`` finds the tests that prove a claim, runs them
and stores what they measured in ``measured.json``; ``results.py`` has what takes longer. ``table.py`` also writes
docs/CLAIMS.md.
"""
