# Everything is made from here; `make` alone prints what there is.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help install check format test test-fast demo fuzz bench clean

help: ## show this help
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml setup.py src/barnabas/wire/record_codec.py
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@

install: $(STAMP) ## make the virtual environment and install everything into it

check: $(STAMP) ## format, lint, types, layers: what every commit must pass
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest -q -p no:randomly tests/tidy

format: $(STAMP) ## let ruff put the source in order
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

test: check ## everything that runs in minutes
	$(BIN)/pytest -q --ignore=tests/tidy

test-fast: $(STAMP) ## all but the slow ones
	$(BIN)/pytest -q -m 'not slow'

clean: ## remove what was built
	rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis src/*.egg-info
	find src -name '*.so' -delete
