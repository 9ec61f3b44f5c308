# SPDX-License-Identifier: Apache-2.0
#
# make demo   the digits example, from C operators to a classified image
# make test   everything that can be tested on this machine, and again without llvmlite
# make bench  the benchmarks

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BARE := build/without-llvmlite

.PHONY: demo test test-without-llvmlite bench clean

demo: $(VENV)/.installed
	@$(BIN)/python scripts/demo.py

test: $(VENV)/.installed-dev
	@echo "== lint and types"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check -q .
	@$(BIN)/mypy
	@echo "== tests"
	@$(BIN)/pytest -n 2 --dist loadgroup
	@$(MAKE) --no-print-directory test-without-llvmlite

# llvmlite is optional: what does not need it is tested in an environment that does not have it.
test-without-llvmlite: $(BARE)/.installed
	@echo "== tests without llvmlite"
	@! $(BARE)/bin/python -c 'import llvmlite' 2>/dev/null || { echo "llvmlite is installed in $(BARE)"; exit 1; }
	@$(BARE)/bin/pytest -n 2 -q $(addprefix tests/,cli golden invalid llvm unit/llvm unit/manifest unit/render)

bench: $(VENV)/.installed-dev
	@$(BIN)/python benchmarks/generation.py
	@$(BIN)/python benchmarks/registry_lookup.py
	@$(BIN)/python benchmarks/run_overhead.py

# The environment is our own: Zephyr's scripts keep to the workspace's Python.
$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "opwest needs Python 3.11 or newer; this is $$($(PYTHON) --version). Try: make PYTHON=python3.12"; exit 1; }
	@echo "== making the environment $(VENV)"
	@$(PYTHON) -m venv $(VENV) || \
		{ echo "the venv module does not work (Debian: apt-get install python3-venv)"; exit 1; }
	@touch $@

$(VENV)/.installed: pyproject.toml | $(VENV)/.created
	@echo "== installing opwest"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/.created
	@echo "== installing opwest and what its tests need"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.installed

$(BARE)/.installed: pyproject.toml | $(VENV)/.created
	@echo "== making the environment $(BARE)"
	@$(BIN)/python -m venv --clear $(BARE)
	@$(BARE)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $@

clean:
	rm -rf build $(VENV) examples/*/objects

.PHONY: mutation

# Mutation testing of the planning, checking and lock modules: long, and so not a part of `make test`.
mutation: $(VENV)/.installed-dev
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'mutmut>=3.3'
	@nice -n 10 $(BIN)/python scripts/mutation.py
