# Needs Python, make and (for the fast kernels) a C++20 compiler. Everything else goes into $(VENV).
#
#   make test PYTEST_ARGS="-k topk -x"      extra arguments for pytest
#   make test-all TEST_MINUTES=45           skip the tests that would start later than that
#   make test-mutants ARGS="--only csrc"    extra arguments for python -m tests.mutation
#   make bench ARGS="--help"                extra arguments for demo, examples, bench, reproduce and test-sanitize
#   make docs-serve PORT=8001               another port
#   make install PYTHON=python3.12          another interpreter (for a new $(VENV))

PYTHON  ?= python3
VENV    ?= .venv
WORKERS ?= 2
ARGS    ?=
PYTEST_ARGS ?=
TEST_MINUTES ?=
PORT    ?= 8000
SECONDS ?= 600
SEED    ?= 0

BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check
STAMP  := $(VENV)/.installed
DOCS_STAMP := $(VENV)/.installed-docs
DATA_STAMP := $(VENV)/.installed-data
WHEEL_STAMP := $(VENV)/.installed-wheel

# Python files are used in place, so only these call for a new build.
BUILD_INPUTS := pyproject.toml CMakeLists.txt constraints.txt $(shell find csrc -name '*.[ch]pp' 2>/dev/null)

# The installed package knows its Python files by name: one more or one less calls for it, too.
MODULES := build/modules.txt
BUILD_INPUTS += $(shell mkdir -p build; find src -name '*.py' | LC_ALL=C sort > $(MODULES).new; \
	cmp -s $(MODULES).new $(MODULES) && rm $(MODULES).new || mv $(MODULES).new $(MODULES); echo $(MODULES))

# With a C++ compiler at hand, a kernel that does not compile is an error and not a reason to
# fall back to plain torch. SOFTORDER_REQUIRE_NATIVE=0 allows it.
COMPILER := $(shell command -v "$${CXX:-c++}" || command -v g++ || command -v clang++)
ifneq ($(COMPILER),)
$(STAMP): export SOFTORDER_REQUIRE_NATIVE ?= 1
endif

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install demo examples fuzz test test-slow test-all test-gpu test-machines test-mutants test-sanitize test-wheel wheel lint format bench reproduce docs docs-serve playground clean distclean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(STAMP) ## make .venv and install softorder into it, editable, with all tools

$(STAMP): $(BUILD_INPUTS)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install -c constraints.txt -C build-dir=build/cmake -e ".[test,lint,plot,bench]"
	@touch $@

$(VENV)/.installed-%: $(STAMP)
	$(PIP) install -c constraints.txt "softorder[$*]"
	@touch $@

COMPARED := sparse_autoencoder mixture_of_experts token_selection pruning robust_regression

examples: $(STAMP) ## run the examples in full: their tables and figures go to examples/results
	for name in $(COMPARED); do $(BIN)/python -m examples.$$name $(ARGS) || exit 1; done
	$(BIN)/python -m benchmarks.example_results transformer_layer sharded_classifier

demo: $(STAMP) ## train a small network through a soft top-k, print tables, write a report
	$(BIN)/softorder demo $(ARGS)

# Two test processes share the cores: idle OpenMP threads must sleep, not spin.
test test-slow test-all test-machines test-mutants test-sanitize: export OMP_WAIT_POLICY ?= passive
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup $(if $(TEST_MINUTES),--minutes $(TEST_MINUTES))

test: $(STAMP) ## run the tests, without those marked slow (six minutes on two cores)
	$(PYTEST) $(PYTEST_ARGS)

test-slow: $(STAMP) ## run the tests marked slow, and no others
	$(PYTEST) -m slow $(PYTEST_ARGS)

test-all: $(STAMP) ## run all the tests
	$(PYTEST) -m "" $(PYTEST_ARGS)

test-mutants: $(STAMP) ## seed defects in a copy and show which test notices each (hours)
	$(BIN)/python -m tests.mutation -n $(WORKERS) $(ARGS)

test-gpu: $(STAMP) ## run the laws and the kernels' tests on this machine's GPU
	TRITON_INTERPRET=0 SOFTORDER_TEST_DEVICE=cuda $(BIN)/python -m pytest -m "" tests/kernels/test_gpu.py $(PYTEST_ARGS)

test-machines: $(STAMP) ## run the kernels on emulated CPUs: old x86-64 and aarch64 (needs qemu)
	$(BIN)/python -m tests.machines

fuzz: $(STAMP) ## random calls of every operator, judged three ways; derivatives: make fuzz SECONDS=600 SEED=0
	$(BIN)/python -m tests.fuzz.run --from $(SEED) --calls 1000000 --seconds $(SECONDS) $(ARGS)
	$(BIN)/python -m tests.fuzz.derivatives --from $(SEED) --seconds $(SECONDS)

test-sanitize: $(STAMP) ## run the kernels' tests and a fuzzer under gcc's sanitizers (20 minutes)
	$(BIN)/python -m tests.fuzz.sanitize address thread $(ARGS)

lint: $(STAMP) ## check style, formatting, types and the import layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP) ## reformat the Python code and apply the safe fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP) ## time the operators against softmax, topk, sort and the peers
	$(BIN)/softorder bench $(ARGS)

reproduce: $(DATA_STAMP) ## run the papers' experiments, the quick presets (under an hour)
	$(BIN)/softorder reproduce $(or $(ARGS),--all)

docs: export NO_MKDOCS_2_WARNING ?= 1
docs: $(DOCS_STAMP) ## build the documentation into site/
	$(BIN)/mkdocs build --strict

docs-serve: docs ## build the documentation and show it on localhost:8000
	$(BIN)/python -m http.server --bind localhost --directory site $(PORT)

playground: ## open the playground of the documentation in a browser
	$(PYTHON) -m webbrowser -t "file://$(CURDIR)/docs/playground/index.html"

# The wheel is built from the sdist. auditwheel finds the oldest glibc that can run it and names the
# wheel after it; without a patcher it refuses to copy libraries into it.
wheel: export SOFTORDER_REQUIRE_NATIVE ?= 1
wheel: $(WHEEL_STAMP) ## make an sdist and a manylinux wheel in dist/ (Linux)
	rm -rf build/dist dist
	$(BIN)/python -m build --outdir build/dist
	$(BIN)/auditwheel repair --patcher none --wheel-dir dist build/dist/*.whl
	mv build/dist/*.tar.gz dist

test-wheel: wheel ## install both into fresh environments, with and without a compiler, and try them
	SOFTORDER_DIST=dist $(BIN)/python -m pytest -m slow tests/packaging $(PYTEST_ARGS)

clean: ## remove builds and caches, keep .venv
	rm -rf build dist site .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests benchmarks experiments -type d -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

distclean: clean ## remove .venv too
	rm -rf $(VENV)
