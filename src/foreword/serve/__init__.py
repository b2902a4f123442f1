"""Models over HTTP: which there are (``shelf.py``), what can be asked (``routes.py``), what is refused (``limits.py``)."""
