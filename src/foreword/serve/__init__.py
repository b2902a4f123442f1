"""Models over HTTP: which there are (``shelf``), what can be asked (``routes``), what is refused (``limits``)."""
