# SPDX-License-Identifier: Apache-2.0
#
# make demo   the digits example, from C operators to a classified image
# make test   everything that can be tested on this machine, and again without llvmlite
# make bench  the benchmarks: one table of all figures, in build/bench
# make fuzz   mutated inputs for every reader, and libFuzzer for what runs on devices; RUNS=N inputs each (default:
#             200,000, and 2,000,000 of libFuzzer), SECONDS=S at most for each reader
# make mutated-models   300 damaged model files through the importer (needs the packages of opwest[tvm])
# make mutation  mutants of planning, checks and the lock, each against its own unit tests: long
# make mutate-mlf  10,000 damaged Model Library Format tars through the importer

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BARE := build/without-llvmlite

.PHONY: demo test test-without-llvmlite bench fuzz mutated-models mutate-mlf mutation clean

demo: $(VENV)/.installed
	@$(BIN)/python scripts/demo.py

test: $(VENV)/.installed-dev
	@echo "== lint and types"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check -q .
	@$(BIN)/mypy
	@echo "== tests"
	@mkdir -p build/coverage && $(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest -n 2 --dist loadgroup
	@echo "== coverage"
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage json --quiet
	@$(BIN)/python scripts/check_coverage.py build/coverage/coverage.json
	@$(MAKE) --no-print-directory test-without-llvmlite

# llvmlite is optional: what does not need it is tested in an environment that does not have it.
test-without-llvmlite: $(BARE)/.installed
	@echo "== tests without llvmlite"
	@! $(BARE)/bin/python -c 'import llvmlite' 2>/dev/null || { echo "llvmlite is installed in $(BARE)"; exit 1; }
	@$(BARE)/bin/pytest -n 2 -q $(addprefix tests/,cli golden invalid llvm unit/llvm unit/manifest unit/render)

bench: $(VENV)/.installed-dev
	@$(BIN)/python benchmarks

# Findings are stored in tests/fuzz/regressions, which the tests replay.
fuzz: $(VENV)/.installed-dev
	@$(BIN)/python tests/fuzz --json build/fuzz/readers.json \
		$(if $(RUNS),--runs $(RUNS)) $(if $(SECONDS),--seconds $(SECONDS))
	@$(BIN)/python tests/fuzz/fuzz_device.py --json build/fuzz/device.json $(if $(RUNS),--runs $(RUNS))

mutated-models: $(VENV)/.installed-dev
	@$(BIN)/python tests/importers/mutated_models.py --runs 300

mutate-mlf: $(VENV)/.installed-dev
	@OPWEST_MUTATED_TARS=10000 $(BIN)/pytest -q -s tests/importers/test_mlf_mutations.py

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

# Mutation testing of the planning, checking and lock modules: long, and so not a part of `make test`.
mutation: $(VENV)/.installed-dev
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'mutmut==3.8.*'
	@nice -n 10 $(BIN)/python scripts/mutation.py
