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

.PHONY: install run demo-streaming servers docs pages test check unit lint types contracts prepared tests shaken golden chaos soak trials log-kills connector-kills soak-push tuning
.PHONY: fuzz campaigns format lock audit audit-where-reachable clean

install: $(VENV)/installed  ## the package and its command into .venv, and nothing else

run: install  ## one real push job, from the data in examples/ to its result
	$(BIN)/orchestrator run examples/flights.sql

demo-streaming: $(VENV)/installed-test  ## clicks from a Kafka, counted by a job, arrive in a Redis: all of them started for it
	$(BIN)/python -m tests.demo_streaming

servers: $(VENV)/installed-test  ## a Kafka and a PostgreSQL for docs/kafka-to-postgresql.md, until Ctrl-C
	$(BIN)/python -m tests.tutorial_servers

test: $(VENV)/installed-test  ## everything that CI checks; what tests need is made beside the checks of the code
	$(MAKE) --jobs=2 --output-sync=target lint types contracts prepared
	$(MAKE) tests

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
	$(BIN)/python -m tests.servers.spark_lines
	$(BIN)/python -m tests.class_archive

tests: prepared
	ORCHESTRATOR_DRAW=1 $(BIN)/pytest $(PARALLEL)

check: WORKERS = $(shell echo $$((2 * `nproc`)))  # what these tests start is small, and most of them wait
check: lint types contracts  ## before each commit: all but the tests that start a Spark driver or a cluster
	ORCHESTRATOR_DRAW=1 $(BIN)/pytest $(PARALLEL) -m '$(WITHOUT_DRIVERS)'

unit: $(VENV)/installed-test  ## the tests that start nothing: seconds
	$(BIN)/pytest $(PARALLEL) tests/unit

shaken: prepared  ## tests in random order again and again: make shaken COUNT=50 TESTS=tests/unit
	@test -n '$(TESTS)' || { echo 'no test has changed since $(SINCE): name some by TESTS=' >&2; exit 1; }
	for run in `seq $(COUNT)`; do \
		$(BIN)/pytest $(PARALLEL) -q -p randomly -p no:cacheprovider $(TESTS) || exit 1; \
	done

SITE = build/docs
SPHINX = $(BIN)/python -m sphinx --fresh-env --fail-on-warning --keep-going --jobs auto --quiet --conf-dir docs

docs: $(VENV)/installed-test  ## the documentation as a site in build/docs; a broken link is an error, as any warning
	$(SPHINX) --doctree-dir $(SITE)/.doctrees . $(SITE)
	@echo "open $(SITE)/index.html"

pages: $(VENV)/installed-test  ## the parts of the documentation that are made from the code
	$(BIN)/python -m docs

golden: $(VENV)/installed-test  ## what the SQL splitter and compiler make of tests/golden now: review it by git diff
	$(BIN)/python -m tests.golden

chaos: $(VENV)/installed-test  ## the queues under faults for as long as you like: make chaos MINUTES=120
	$(BIN)/python -m tests.chaos --minutes $(MINUTES)

soak: $(VENV)/installed-test  ## jobs under faults for as long as you like: make soak MINUTES=120
	$(BIN)/python -m tests.chaos.job_soak --minutes $(MINUTES)

trials: $(VENV)/installed-test  ## workers killed at random on each real backend: make trials COUNT=200
	ORCHESTRATOR_TRIALS=$(COUNT) $(BIN)/pytest -s tests/chaos/test_trials.py

log-kills: $(VENV)/installed-test  ## processes that log killed at random: make log-kills COUNT=200
	ORCHESTRATOR_LOG_KILLS=$(COUNT) $(BIN)/pytest -s tests/chaos/test_log_kills.py

CONNECTOR_KILLS = tests/integration/jdbc/test_kills.py tests/integration/test_drain_kills.py \
	tests/integration/test_elasticsearch_kills.py tests/integration/test_http_kills.py \
	tests/integration/test_lake_kills.py tests/integration/test_executor_kills.py $(PUSH_KILLS)
PUSH_KILLS = tests/integration/test_push_kills.py

connector-kills: prepared  ## drivers and executors killed at random while they write: make connector-kills
	ORCHESTRATOR_CAMPAIGNS=1 $(BIN)/pytest $(CONNECTOR_KILLS)

soak-push: prepared  ## the same of pushes, 50 kills, while their target fails, too: make soak-push
	ORCHESTRATOR_CAMPAIGNS=1 $(BIN)/pytest $(PUSH_KILLS)

tuning: $(VENV)/installed-test  ## the loop of the tuning with real jobs, local and on a standalone cluster, an hour
	$(BIN)/python benchmarks/tuning.py --real local,standalone

fuzz: $(VENV)/installed-test  ## inputs made from what they reach, for as long as you like: make fuzz MINUTES=120
	for target in definition script settings nodes log_lines; do \
		$(BIN)/python -m tests.fuzz $$target --seconds `expr 60 \* $(MINUTES) / 5` \
			--corpus .fuzz/$$target --findings .fuzz/findings || exit 1; \
	done

# All that asks `tests/sampling.py` how much to try; one after the other, for some of them measure times.
CAMPAIGNS = tests/chaos tests/acceptance/test_interrupt.py tests/acceptance/test_two_workers.py \
	tests/integration/test_doctor.py tests/integration/test_driver_logs.py tests/integration/test_scrubber.py \
	tests/integration/test_sql_streams.py tests/integration/test_sql_bad_rows_kills.py \
	tests/integration/test_sql_stream_bad_rows.py tests/integration/test_worker_memory.py $(CONNECTOR_KILLS)

campaigns: prepared  ## every campaign to its full length, of which CI tries a sample
	ORCHESTRATOR_CAMPAIGNS=1 $(BIN)/pytest --durations 20 $(CAMPAIGNS)

format: $(VENV)/installed-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed; $(PYTHON) is `$(PYTHON) --version`. Set PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# Versions and hashes stand in requirements/*.txt, so every machine installs the same bytes. What has no wheel is
# built with the locked build tools: a build environment of pip's own would fetch newer ones, unchecked.
PIP    = $(BIN)/pip install --quiet --disable-pip-version-check --no-deps
LOCKED = $(PIP) --no-build-isolation --require-hashes

$(VENV)/built: requirements/build.txt | $(BIN)/python
	$(PIP) --require-hashes --only-binary :all: -r $<
	@touch $@

# pip is quiet, and the packages take minutes: Spark alone is 450 MB.
ANNOUNCED = @echo "installing `grep -c '^[a-z].*==' $(1)` packages into $(VENV): this takes a minute or two" >&2

$(VENV)/installed: pyproject.toml requirements/run.txt $(VENV)/built
	$(call ANNOUNCED,requirements/run.txt)
	$(LOCKED) --report $(VENV)/run.json -r requirements/run.txt
	$(PIP) --no-build-isolation --editable .
	@touch $@
	@echo "installed; \`source $(VENV)/bin/activate\` puts the command orchestrator on the PATH of a terminal" >&2

$(VENV)/installed-test: pyproject.toml requirements/test.txt $(VENV)/built
	$(call ANNOUNCED,requirements/test.txt)
	$(LOCKED) --report $(VENV)/test.json -r requirements/test.txt
	$(PIP) --no-build-isolation --editable .
	@touch $@ $(VENV)/installed

TOOLS   = $(VENV)/tools
COMPILE = $(TOOLS)/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	--annotation-style line --custom-compile-command 'make lock'

$(TOOLS)/bin/python: | $(BIN)/python
	$(BIN)/python -m venv $(TOOLS)

$(TOOLS)/bin/uv: | $(TOOLS)/bin/python
	$(TOOLS)/bin/pip install --quiet --disable-pip-version-check 'uv>=0.9,<1'

$(TOOLS)/bin/pip-audit: requirements/audit.txt | $(TOOLS)/bin/python
	$(TOOLS)/bin/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r $<
	@touch $@

lock: $(TOOLS)/bin/uv  ## the newest versions that pyproject.toml allows, with their hashes
	$(COMPILE) pyproject.toml --extra test --constraint requirements/spark.in --output-file requirements/test.txt
	$(COMPILE) requirements/build.in --constraint requirements/test.txt --output-file requirements/build.txt
	$(COMPILE) pyproject.toml --constraint requirements/test.txt --output-file requirements/run.txt
	$(COMPILE) pyproject.toml --extra kubernetes --extra sls --constraint requirements/test.txt \
		--output-file requirements/image.txt
	$(COMPILE) requirements/audit.in --constraint requirements/test.txt --output-file requirements/audit.txt

AUDIT = $(TOOLS)/bin/pip-audit --disable-pip --progress-spinner off $(AUDIT_OPTIONS)

# Needs the advisories of PyPI. --strict: a package of which nothing could be found out is a failure, no success.
audit: $(TOOLS)/bin/pip-audit  ## known vulnerabilities in what is locked; requirements/accepted.txt has exceptions
	for part in build test image audit; do \
		$(AUDIT) --strict --require-hashes -r requirements/$$part.txt \
			`sed -n 's/^\([A-Z][A-Za-z0-9-]*\).*/--ignore-vuln \1/p' requirements/accepted.txt` || exit 1; \
	done

# A mirror of packages may have no advisories. They are there if they name one of a release that is known to have some.
audit-where-reachable: $(TOOLS)/bin/pip-audit  ## the same in CI, where the advisories may be out of reach
	@if echo 'pyyaml==5.3' | $(AUDIT) --no-deps -r /dev/stdin 2>/dev/null | grep -qE '(PYSEC|GHSA|CVE)-'; then $(MAKE) audit; \
	else echo 'no audit of known vulnerabilities: the advisories are out of reach' >&2; fi

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build examples/output
