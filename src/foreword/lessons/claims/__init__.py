"""Every statement of the teaching sources that can be checked: what they say, what was measured, and a verdict.

``claim.py`` says what a claim is; ``counts.py`` to ``errata.py`` hold the claims, ``table.py`` all of them in order.
``proofs.py`` finds the tests that prove a claim, ``running.py`` runs them, ``stored.py`` keeps what they measured, and
``page.py`` writes docs/CLAIMS.md.
"""
