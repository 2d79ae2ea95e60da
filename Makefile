# Every habit of this project is one target. Each makes its own set-up: git, make and Python >= 3.11 are all they need.
# PYTHON=... names the Python to use; .ci/install finds one otherwise.

PATH ?= /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH PYTHON
# pytest keeps the tests it has compiled: reading them takes half as long then.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
# What is installed, one stamp a set of packages: nothing is installed twice until one of these files changes.
PACKAGE := .venv/package.stamp
DEV := .venv/dev.stamp
DOCS := .venv/docs.stamp
BENCH := .venv/bench.stamp
PROOFS := .venv/proofs.stamp
SETUP := pyproject.toml constraints.txt .ci/install

.DEFAULT_GOAL := help
.NOTPARALLEL: # all targets share one .venv
.PHONY: help demo data test proofs check format docs metrics bench clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

demo: $(PACKAGE) ## show what `mlm` does, on logs that it leaves in .cache/demo
	@rm -rf .cache/demo
	@mkdir -p .cache
	@$(BIN)/python -m mlm_command demo .cache/demo

data: $(PACKAGE) ## bring the real logs of two examples
	@$(BIN)/python .ci/logs.py

# A worker that dies ends the run, which names its test: replaced, xdist 3.8 would wait for its tests for ever.
WORKERS := -n 2 --max-worker-restart 0

# Two workers fill two cores: a second thread of Polars in each would cost, and gain nothing.
test: $(DEV) ## run the tests, in a few minutes (ARGS="-k f1 -x" are given to pytest)
	@POLARS_MAX_THREADS=1 $(BIN)/python -m pytest $(WORKERS) -m "not proof" $(ARGS)

proofs: $(DEV) $(PROOFS) ## run the tests that take long: memory, threads, killed processes, large draws (ARGS as for test)
	@.ci/browser || true # without one its tests fail, and say so
	@$(BIN)/python .ci/logs.py || true # likewise
	@$(BIN)/python -m pytest $(WORKERS) -m proof $(ARGS)

check: $(DEV) ## lint, formatting, types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: $(DEV) ## mend lint and formatting where that can be done by itself
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs: $(DOCS) ## build the documentation into site/
	$(BIN)/zensical build --clean --strict
	@$(BIN)/python .ci/text_pages.py

metrics: $(PACKAGE) ## write docs/metrics.md anew, from the docstrings
	@$(BIN)/python .ci/metrics_page.py

bench: $(BENCH) ## time the library and others (ARGS="auc --rows 1000000" are given to the benchmarks)
	@$(BIN)/python -m tests.benchmarks $(ARGS)

clean: ## remove all that make made
	rm -rf .venv site dist .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(PACKAGE): $(SETUP)
	@echo "Setting up .venv ..."
	@.ci/install
	@touch $@

$(DEV): $(SETUP)
	@echo "Setting up .venv for development ..."
	@.ci/install --group dev
	@touch $@ $(PACKAGE)

$(PROOFS): $(SETUP)
	@echo "Setting up .venv for the proofs ..."
	@.ci/install --group proofs
	@touch $@ $(PACKAGE)

$(DOCS): $(SETUP)
	@echo "Setting up .venv for the documentation ..."
	@.ci/install --group docs
	@touch $@ $(PACKAGE)

$(BENCH): $(SETUP)
	@echo "Setting up .venv for the benchmarks ..."
	@.ci/install --group bench
	@touch $@ $(PACKAGE)
