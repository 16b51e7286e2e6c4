# `make lab` opens the course, `make test` runs every test and notebook. Both do all of the set-up, in .venv, on a machine
# that has Python 3.11 or newer. On Windows, or with conda, use the two lines in README.md.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
# Where to take torch from, if not from pip's own index: a CPU build saves gigabytes on Linux (README.md, "Set-up").
TORCH_INDEX ?=

ROOT_FLAG   := $(shell [ "$$(id -u)" = 0 ] && echo --allow-root)
SCREEN_FLAG := $(shell [ -n "$$DISPLAY$$WAYLAND_DISPLAY" ] || [ "$$(uname)" = Darwin ] || echo --no-browser)

.PHONY: help lab test lint clean torch-index

help:
	@echo "make lab    set up, index the corpus, open JupyterLab at the first notebook"
	@echo "make test   set up, run every test and every notebook"
	@echo "make lint   set up, check the style of the code"
	@echo "make clean  remove the environment and the index"

$(VENV)/.made:
	@echo "==> Looking for Python 3.11 or newer"
	@$(PYTHON) -c 'import sys; sys.exit("Python %d.%d is too old: install 3.11 or newer, or call make with PYTHON=/path/to/python3.11." % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	@echo "==> Making the environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV) || { echo "python3 has no venv module: on Debian or Ubuntu run 'apt-get install python3-venv', then make again."; exit 1; }
	@touch $@

$(VENV)/.torch: $(VENV)/.made
	@if [ -n "$(TORCH_INDEX)" ]; then \
	  echo "==> Installing torch from $(TORCH_INDEX)"; \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check 'torch>=2.6,<2.14' --index-url $(TORCH_INDEX); \
	fi
	@echo "$(TORCH_INDEX)" > $@

# Told to take torch from elsewhere when it is there already, pip would not.
torch-index: $(VENV)/.torch
	@if [ -n "$(TORCH_INDEX)" ] && [ "$$(cat $(VENV)/.torch)" != "$(TORCH_INDEX)" ]; then \
	  echo "torch is installed in $(VENV) already, not from $(TORCH_INDEX). Run 'make clean', then this again."; exit 1; \
	fi

$(VENV)/.lab: pyproject.toml | $(VENV)/.torch
	@echo "==> Installing the lab and its models (a few minutes the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/.torch
	@echo "==> Installing the lab, its models and the test tools (a few minutes the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.lab

lab: torch-index $(VENV)/.lab
	@echo "==> Indexing the corpus"
	@$(BIN)/python -m labsupport ingest
	@echo "==> Opening JupyterLab at notebooks/00_start_here.ipynb (stop it with Ctrl-C)"
	@$(BIN)/python -m jupyterlab $(ROOT_FLAG) $(SCREEN_FLAG) --LabApp.default_url=/lab/tree/00_start_here.ipynb \
	  notebooks/00_start_here.ipynb

test: torch-index $(VENV)/.dev
	@echo "==> Checking the style of the code"
	@$(BIN)/python -m ruff check .
	@echo "==> Running the tests and the notebooks"
	@$(BIN)/python -m pytest -n 2 --dist loadfile tests --ignore tests/test_browser.py \
	  --nbval notebooks --nbval-sanitize-with notebooks/sanitize.cfg
	@echo "==> Running the notebooks in JupyterLab and Chromium, where there is one"
	@$(BIN)/python -m pytest tests/test_browser.py

lint: $(VENV)/.dev
	@$(BIN)/python -m ruff check .

clean:
	rm -rf $(VENV) index.sqlite index.sqlite-* index.sqlite.*
