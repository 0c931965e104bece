# The two commands of the README, and the parts they are made of.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
MINUTES ?= 10
COUNT  ?= 200
# Tests at once: many of them wait, so three share two processors. With four, what starts Java takes too long.
WORKERS ?= $(shell n=`nproc`; echo $$((n < 8 ? n + n / 2 : 12)))
PARALLEL = -n $(WORKERS) --dist loadgroup --no-loadscope-reorder
WITHOUT_DRIVERS = not (campaign or spark or standalone or yarn or kubernetes)
# What `make shaken` repeats: the tests that have changed since a commit, by default those not committed yet.
SINCE  ?= HEAD
TESTS  ?= $(shell git diff --name-only --diff-filter=d $(SINCE) -- 'tests/**/test_*.py'; \
	git ls-files --others --exclude-standard -- 'tests/**/test_*.py')

.PHONY: run test check unit lint types contracts prepared tests shaken chaos soak trials log-kills campaigns format clean

run: $(VENV)/installed  ## one real push job, from the data in examples/ to its result
	$(BIN)/orchestrator run examples/flights.sql

test: lint types contracts tests  ## everything that CI checks

lint: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/installed-test
	$(BIN)/mypy

contracts: $(VENV)/installed-test
	$(BIN)/lint-imports

# What many tests need and no package brings: made once per machine.
prepared: $(VENV)/installed-test
	$(BIN)/python -m tests.servers.kubernetes.binary
	$(BIN)/python -m tests.class_archive

tests: prepared
	$(BIN)/pytest $(PARALLEL)

check: WORKERS = $(shell echo $$((2 * `nproc`)))  # what these tests start is small, and most of them wait
check: lint types contracts  ## before each commit: all but the tests that start a Spark driver or a cluster
	$(BIN)/pytest $(PARALLEL) -m '$(WITHOUT_DRIVERS)'

unit: $(VENV)/installed-test  ## the tests that start nothing: seconds
	$(BIN)/pytest $(PARALLEL) tests/unit

shaken: prepared  ## tests in random order again and again: make shaken COUNT=50 TESTS=tests/unit
	@test -n '$(TESTS)' || { echo 'no test has changed since $(SINCE): name some by TESTS=' >&2; exit 1; }
	for run in `seq $(COUNT)`; do \
		$(BIN)/pytest $(PARALLEL) -q -p randomly -p no:cacheprovider $(TESTS) || exit 1; \
	done

chaos: $(VENV)/installed-test  ## the queues under faults for as long as you like: make chaos MINUTES=120
	$(BIN)/python -m tests.chaos --minutes $(MINUTES)

soak: $(VENV)/installed-test  ## jobs under faults for as long as you like: make soak MINUTES=120
	$(BIN)/python -m tests.chaos.job_soak --minutes $(MINUTES)

trials: $(VENV)/installed-test  ## workers killed at random on each real backend: make trials COUNT=200
	ORCHESTRATOR_TRIALS=$(COUNT) $(BIN)/pytest -s tests/chaos/test_trials.py

log-kills: $(VENV)/installed-test  ## processes that log killed at random: make log-kills COUNT=200
	ORCHESTRATOR_LOG_KILLS=$(COUNT) $(BIN)/pytest -s tests/chaos/test_log_kills.py

# All that asks `tests/sampling.py` how much to try; one after the other, for some of them measure times.
CAMPAIGNS = tests/chaos tests/acceptance/test_interrupt.py tests/acceptance/test_two_workers.py \
	tests/integration/test_doctor.py tests/integration/test_driver_logs.py tests/integration/test_scrubber.py

campaigns: prepared  ## every campaign to its full length, of which CI tries a sample
	ORCHESTRATOR_CAMPAIGNS=1 $(BIN)/pytest --durations 20 $(CAMPAIGNS)

format: $(VENV)/installed-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed; $(PYTHON) is `$(PYTHON) --version`. Set PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/installed-test: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@ $(VENV)/installed

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis examples/output
