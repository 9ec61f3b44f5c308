# SPDX-License-Identifier: Apache-2.0
#
# make demo   the digits example, from C operators to a classified image
# make test   lint, types, and the short tests that need only Python and a C compiler: 3 minutes on 2 cores
# make test-times  the slowest 20 tests of the last make test and make test-rest
# make test-all   all tests: make test, then make test-rest
# make test-rest  the tests that the last make test did not pass, and those of an environment without llvmlite and west
# make test-pythons  a part of the tests under Python 3.11 to 3.14, where these are installed
# make docs   the documentation as a site, in build/site: broken links and pages without an entry in an index are errors
# make docs-pictures  pictures of the site at 1280 and 390 px, light and dark, in build/site-pictures
# make bench  the benchmarks: one table of all figures, in build/bench
# make campaign  on the host: 10,000 frames with state, 3,000 random schedules, 500 with queues, 500 pairs of models that
#             share devices, all injected faults, all MiniMalloc problems, 40 updates killed at random moments
# make boards  the Zephyr tests with all their configurations (CI: a pairwise cover, which
#             `python tests/zephyr/cover.py` prints), and those of LLVM with all their targets
# make matrix  each version of Zephyr at hand, board, convention and back end; prints a table, also in build/matrix.txt
# make board-sweep  the target of all boards of Zephyr, against Zephyr's Kconfig: 10 to 20 minutes; prints a table, also in
#             build/board-sweep.txt and docs/contributing/board-sweep.md
# make bundles  bundles: the power cut at every operation on the host and in QEMU, all refusals, uploads with lost parts
# make plans  MiniMalloc's eleven problems, each in 60 s of processor time
# make golden  store the emitted trees and reports of the golden projects, and print what changed
# make fuzz   mutated inputs for every reader, and libFuzzer for the code on devices; RUNS=N inputs each (default:
#             200,000, and 2,000,000 of libFuzzer), SECONDS=S at most for each reader
# make models  50 models of each operator and dtype of the importers against LiteRT and onnxruntime, and a sample of the
#             operators on all boards and C libraries; prints a table by operator, also in build/models.txt
# make torch-environment  PyTorch with the quantisers of ExecuTorch and torchao in build/torch, 1 GB, for the tests that let
#             PyTorch write files; opwest's environment has no PyTorch. TORCH_PYTHON=python3.12 for another Python. pip decides
#             between the builds of PyTorch: PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu for the small one
# make torch-models  30 random configurations of each operator of PyTorch, plain, decomposed and quantised, and all whole
#             networks by each quantiser, on the host and on boards; prints a table by operator, also in build/models.txt
# make graphs  20,000 random graphs through imports, on the host and in QEMU, against LiteRT and onnxruntime: 30 to 45
#             minutes on 2 cores; prints a table. ARGUMENTS="--first 50000 --count 1000" for others
# make kernels  200 random layers for each variant of an operator and core, bit for bit in QEMU, also with interrupts
# make npu-model  the model of the Ethos-U55: 25 random models of each operator by Vela, 50,000 mutated payloads, and
#             applications of imports with this model as their NPU; prints a table of these
# make mutated-models  10,000 damaged files of each format through the readers of models, 1,000 through the import
# make mutation  300 random mutants of generator/ and zephyr_module/src against the tests of CI that reach them; prints the
#             share killed by package, and the survivors: hours. ARGUMENTS="--count 50 --only generator/opwest/plan" for others
# make pass-mutants  240 mutants of the passes between operators, against the proof of an import and runtimes: 20 to 40
#             minutes on 2 cores; scripts/mutation_survivors.md judges the survivors. ARGUMENTS="--seed 1 --count 50" for others
# make mutate-mlf  10,000 damaged Model Library Format tars through the importer (a reader of make fuzz)
# make dist   the sdist and the wheel in dist/, from the committed files, with their checksums
# make lock   requirements/*.txt: the versions and hashes of all packages, from pyproject.toml
# make release-check  the types on Windows and macOS; the packages in empty environments without a network, Python 3.11 to
#             3.13, and with pipx
# make lowest  a part of the tests with the lowest versions of packages that pyproject.toml declares
# make unpacked-models  real directories in Model Library Format (MODELS="DIRECTORY..."), against TVM's own main
#
# The tier of a test. `make test` runs all tests but
#   - the directories of REST in tests/conftest.py: zephyr, models, importers, kernels, graphs, proof,
#     fuzz, llvm, accelerators, compile, conformance, npu_model, docs, examples, release,
#   - tests marked `slow`: most of them take more than a second of processor time,
#   - tests that call need() for a program or a module that is not in HOST of tests/requirements_support.py:
#     cross compilers, clang, valgrind, gcc -m32, cmake, a browser.
# build/tests/passed.txt lists the tests that passed; `make test-rest` runs all others, so no test runs twice.
# Every skip goes through tests/requirements_support.py and is listed with its reason at the end. If the variable CI
# is set, a test without its packages of apt or pip fails; .ci/run installs all packages.
# JOBS=N is the number of processes of pytest. The default is the number of processors plus one, at most 9, because some
# tests wait. For `make test-rest`, whose tests wait less, it is the number of processors, at most 8.

PYTHON ?= python3
ifndef JOBS
PROCESSORS := $(shell nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)
JOBS := $(shell echo $$(($(PROCESSORS) < 8 ? $(PROCESSORS) + 1 : 9)))
test-rest: JOBS := $(shell echo $$(($(PROCESSORS) < 8 ? $(PROCESSORS) : 8)))
endif
VENV := .venv
BIN := $(VENV)/bin
BARE := build/without-packages
TORCH := build/torch
TORCH_PYTHON ?= $(shell $(PYTHON) scripts/pythons.py --path --versions 3.11 3.12 3.13)
RELEASE := build/release
LOCK = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--custom-compile-command "make lock" $(UPGRADE)
# uv installs packages in a third of pip's time. A mirror of PyPI: UV_DEFAULT_INDEX.
UV := $(BIN)/uv pip install --quiet --no-config --python
# The tests of a file share what they build. The order is that of tests/conftest.py.
PYTEST = -m pytest -q -n $(JOBS) --dist loadfile --no-loadscope-reorder
# COVERAGE=1 measures the coverage: CI does it once, over both tiers.
RUN := $(BIN)/$(if $(COVERAGE),coverage run,python)
# Without compiled modules each of the many child processes compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE
# The tests of opwest where packages of single features cannot be installed, and the modules of these packages.
BARE_TESTS := $(addprefix tests/,cli/test_cli_packages.py cli/test_cli_doctor.py golden invalid llvm/test_llvmlite_absent.py unit/drafting \
	unit/llvm)
BARE_LACKS := llvmlite smpclient serial cbor2 west
# The tests of the code that uses each dependency of opwest, and the extras bundle and models.
LOWEST := build/lowest
LOWEST_TESTS := $(addprefix tests/,golden/test_golden.py unit/manifest unit/objects unit/llvm unit/board cli/test_cli_inspect.py \
	bundles/test_build_format.py models/test_model_files.py)

.PHONY: demo golden test test-times test-all test-rest test-without-packages test-pythons bench docs docs-pictures campaign graphs boards board-sweep matrix bundles plans fuzz models torch-environment torch-models npu-model kernels mutated-models mutate-mlf unpacked-models mutation pass-mutants dist lock release-check lowest clean

demo: $(VENV)/.installed
	@$(BIN)/python scripts/demo.py

# mypy runs beside the tests: with the cache of an earlier run, it ends first.
test: $(VENV)/.installed-dev
	@echo "== lint"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check -q .
	@echo "== types and tests"
	@rm -rf build/coverage && mkdir -p build/coverage
	@$(BIN)/mypy >build/mypy.txt & types=$$!; \
	$(RUN) $(PYTEST) --tier=host; status=$$?; \
	wait $$types || { status=1; echo "== types"; }; \
	cat build/mypy.txt; \
	exit $$status

# The slowest tests of the last make test and make test-rest.
test-times:
	@$(PYTHON) scripts/test_times.py

test-all:
	@$(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory test-rest

# With COVERAGE=1 for both, the coverage includes that of make test.
test-rest: $(VENV)/.installed-all
	@echo "== remaining tests"
	@mkdir -p build/coverage
	@$(RUN) $(PYTEST) --tier=rest
ifdef COVERAGE
	@echo "== coverage"
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage json --quiet
	@$(BIN)/python scripts/check_coverage.py build/coverage/coverage.json
endif
	@$(MAKE) --no-print-directory test-without-packages

# All other features also work where llvmlite, west or smpclient cannot be installed.
test-without-packages: $(BARE)/.installed
	@echo "== tests without llvmlite, west and smpclient"
	@for module in $(BARE_LACKS); do \
		! $(BARE)/bin/python -c "import $$module" 2>/dev/null || { echo "$$module is installed in $(BARE)"; exit 1; }; \
	done
	@OPWEST_TESTS_WITHOUT="$(BARE_LACKS)" $(BARE)/bin/python $(PYTEST) $(BARE_TESTS)

# TESTS="tests/unit" for other tests.
test-pythons: $(VENV)/.created
	@$(PYTHON) scripts/pythons.py --jobs $(JOBS) $(TESTS)

docs: $(VENV)/.installed-docs
	@REPOSITORY='$(REPOSITORY)' $(BIN)/python scripts/site

docs-pictures: docs
	@$(BIN)/python scripts/site_pictures.py

bench: $(VENV)/.installed-dev
	@$(BIN)/python benchmarks

# Other runs take a sample (tests/campaign.py).
campaign: $(VENV)/.installed-all
	@OPWEST_CAMPAIGN=1 $(BIN)/pytest --tier=all -rP tests/compile/test_compile_state.py tests/accelerators \
		tests/unit/llvm tests/unit/objects tests/unit/plan tests/unit/update tests/unit/write

boards: $(VENV)/.installed-all
	@OPWEST_CAMPAIGN=1 $(BIN)/python $(PYTEST) --tier=all tests/zephyr tests/llvm

# The table is printed after failures, too.
matrix: $(VENV)/.installed-all
	@rm -rf build/matrix
	@status=0; \
	OPWEST_CAMPAIGN=1 $(BIN)/python $(PYTEST) --dist load --tier=all tests/zephyr/test_matrix_on_zephyr.py || status=1; \
	$(BIN)/python scripts/host_matrix.py || status=1; \
	exit $$status
board-sweep: $(VENV)/.installed-dev
	@$(BIN)/python tests/boards/sweep.py --page docs/contributing/board-sweep.md

golden: $(VENV)/.installed-dev
	@$(BIN)/python tests/golden

bundles: $(VENV)/.installed-all
	@OPWEST_CAMPAIGN=1 $(BIN)/python $(PYTEST) --tier=all tests/bundles tests/unit/board/test_bundle*.py tests/zephyr/test_bundle*.py \
		tests/zephyr/test_two_models_ota_on_zephyr.py

plans: $(VENV)/.installed-dev
	@$(BIN)/python benchmarks/planner.py

# Findings are stored in tests/fuzz/regressions.zip, which the tests replay.
fuzz: $(VENV)/.installed-dev
	@$(BIN)/python tests/fuzz --json build/fuzz/readers.json \
		$(if $(RUNS),--runs $(RUNS)) $(if $(SECONDS),--seconds $(SECONDS))
	@$(BIN)/python tests/fuzz/fuzz_device.py --json build/fuzz/device.json $(if $(RUNS),--runs $(RUNS))

models: $(VENV)/.installed-all
	@OPWEST_CAMPAIGN=1 $(BIN)/python $(PYTEST) --tier=all tests/models tests/zephyr/test_model_operators_on_zephyr.py

torch-environment: $(TORCH)/.installed

# Not by uv: pip's configuration can name the index of PyTorch's builds without CUDA. Unused modules are not compiled.
$(TORCH)/.installed: requirements/torch.txt requirements/torch-tools.txt
	@echo "== creating the environment $(TORCH)"
	@$(TORCH_PYTHON) -m venv --clear $(TORCH)
	@$(TORCH)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile -r requirements/torch.txt
	@$(TORCH)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps -r requirements/torch-tools.txt
	@touch $@

torch-models: $(VENV)/.installed-all $(TORCH)/.installed
	@OPWEST_CAMPAIGN=1 $(BIN)/python $(PYTEST) --tier=all tests/pytorch tests/zephyr/test_torch_models_on_zephyr.py

npu-model: $(VENV)/.installed-all
	@OPWEST_CAMPAIGN=1 $(BIN)/python $(PYTEST) --tier=all tests/npu_model

graphs: $(VENV)/.installed-all
	@$(BIN)/python tests/graphs $(ARGUMENTS)

kernels: $(VENV)/.installed-all
	@OPWEST_CAMPAIGN=1 $(BIN)/python $(PYTEST) --tier=all tests/kernels

mutated-models: $(VENV)/.installed-all $(TORCH)/.installed
	@OPWEST_CAMPAIGN=1 $(BIN)/pytest -q --tier=all tests/models/test_mutated_files.py

mutate-mlf: $(VENV)/.installed-all
	@$(BIN)/python tests/fuzz --reader mlf --runs 10000

unpacked-models: $(VENV)/.installed-dev
	@$(BIN)/python tests/importers/unpacked_models.py $(MODELS)

# A separate environment: Zephyr's scripts use the Python of the workspace.
$(VENV)/.created: requirements/uv.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "opwest needs Python 3.11 or newer; this is $$($(PYTHON) --version). Try: make PYTHON=python3.12"; exit 1; }
	@echo "== creating the environment $(VENV)"
	@$(PYTHON) -m venv $(VENV) || \
		{ echo "the venv module does not work (Debian: apt-get install python3-venv)"; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r requirements/uv.txt
	@touch $@

$(VENV)/.installed: pyproject.toml | $(VENV)/.created
	@echo "== installing opwest"
	@$(UV) $(VENV) -e .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml requirements/dev.txt | $(VENV)/.created
	@echo "== installing opwest and the requirements of its tests"
	@$(UV) $(VENV) --require-hashes -r requirements/dev.txt
	@$(UV) $(VENV) --no-deps --no-build-isolation -e .
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: pyproject.toml | $(VENV)/.created
	@echo "== installing the requirements of the site"
	@$(UV) $(VENV) -e '.[docs]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-all: pyproject.toml requirements/all.txt | $(VENV)/.created
	@echo "== installing opwest and the requirements of all its tests"
	@$(UV) $(VENV) --require-hashes -r requirements/all.txt
	@$(UV) $(VENV) --no-deps --no-build-isolation -e .
	@touch $@ $(VENV)/.installed-dev $(VENV)/.installed-docs $(VENV)/.installed

$(BARE)/.installed: pyproject.toml | $(VENV)/.created
	@echo "== creating the environment $(BARE)"
	@$(BIN)/uv venv --quiet --clear $(BARE)
	@$(BIN)/python scripts/requirements.py --extra test --without llvmlite pyserial smpclient west >$(BARE)/requirements.txt
	@$(UV) $(BARE) -r $(BARE)/requirements.txt
	@$(UV) $(BARE) --no-deps -e .
	@touch $@

dist: $(RELEASE)/.installed
	@$(RELEASE)/bin/python scripts/dist.py

# The versions of requirements/*.txt are kept unless UPGRADE=--upgrade is given.
lock: $(VENV)/.created
	@echo "== resolving requirements/*.txt"
	@$(LOCK) --extra all pyproject.toml -o requirements/all.txt
	@$(LOCK) --extra dev -c requirements/all.txt pyproject.toml -o requirements/dev.txt
	@for extra in release uv; do \
		$(BIN)/python scripts/requirements.py --extra $$extra --only-extras | \
			$(LOCK) -c requirements/all.txt - -o requirements/$$extra.txt || exit 1; \
	done

release-check: $(VENV)/.installed-all
	@for system in win32 darwin; do $(BIN)/mypy --platform $$system --cache-dir build/mypy-$$system || exit 1; done
	@OPWEST_CAMPAIGN=1 $(BIN)/python $(PYTEST) --tier=all tests/release

lowest: $(LOWEST)/.installed
	@echo "== tests with the lowest versions"
	@$(LOWEST)/bin/python $(PYTEST) --tier=all $(LOWEST_TESTS)

$(LOWEST)/.installed: pyproject.toml | $(VENV)/.created
	@echo "== creating the environment $(LOWEST)"
	@$(BIN)/uv venv --quiet --clear $(LOWEST)
	@$(BIN)/python scripts/requirements.py --extra test bundle models | $(BIN)/uv pip compile --quiet \
		--resolution lowest-direct --python $(LOWEST) --output-file $(LOWEST)/requirements.txt -
	@$(UV) $(LOWEST) -r $(LOWEST)/requirements.txt
	@$(UV) $(LOWEST) --no-deps -e .
	@touch $@

$(RELEASE)/.installed: requirements/release.txt | $(VENV)/.created
	@echo "== creating the environment $(RELEASE)"
	@$(BIN)/uv venv --quiet --clear $(RELEASE)
	@$(UV) $(RELEASE) --require-hashes -r requirements/release.txt
	@touch $@

clean:
	rm -rf build $(VENV) examples/*/objects

pass-mutants: $(VENV)/.installed-all
	@$(BIN)/python tests/graphs/mutants.py $(ARGUMENTS)

# The first run records the tests; it is made again after `rm -r build/mutation`.
mutation: $(VENV)/.installed-all
	@$(BIN)/python scripts/mutation $(ARGUMENTS)
