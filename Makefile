# The two commands that matter are `make demo` and `make test`. Both set up everything that they need, once: the
# environment lives in .venv, and stamp files in it remember what has been installed from which sources.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test test-slow test-all core lint format types notebooks lessons play binder docs pictures reference wire bench simulate kills connector-kills log-kills chaos clusters soak interrupts mutants pipelines contention corruption fuzz large doctor install install-dev install-docs clean

# Many processes import the workbench: one compiles it to bytecode for all.
unexport PYTHONDONTWRITEBYTECODE

VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# The first interpreter that runs and is new enough; override with `make PYTHON=/path/to/python demo`.
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for python in python3.13 python3.12 python3.11 python3 python; do \
	"$$python" -c '$(NEW_ENOUGH)' >/dev/null 2>&1 && echo "$$python" && break; done)

ARGS ?=
BENCH ?= grouping
KILLS ?= 300
RESTARTS ?= 50
INTERRUPTS ?= 200
FUZZ ?= 50000
SOAK ?= 1800
RUNS ?= 100
VERSION ?=
SITE := build/$(if $(VERSION),versions/$(VERSION),docs)

EXTENSION_SOURCES := $(shell find extension -type f \
	-not -path '*/node_modules/*' -not -path '*/lib/*' -not -path '*/labextension/*' -not -path '*/.yarn/*' \
	-not -path '*/__pycache__/*' -not -name '*.tsbuildinfo' -not -name '.*' 2>/dev/null)

KERNEL_SOURCES := $(shell find workbench/compiled -name '*.py' -o -name '*.c') workbench/durations.py

help:  ## list the targets (the default)
	@echo "Streaming Workbench. Usage: make TARGET, where TARGET is one of"
	@sed -n 's/^\([a-z-]*\):.*##\(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

demo: install  ## install everything, then open the first notebook in JupyterLab
	@echo "Opening JupyterLab on notebooks/01_first_stream.ipynb; Ctrl-C here ends it."
	@$(BIN)/workbench demo $(ARGS)

test: install-dev  ## run the tests of every module in about five minutes; installs everything first
	@echo "Running the tests. 'make test-all' also runs the slow ones (ARGS=\"-k magics\" narrows both down)."
	@$(BIN)/python -m pytest --numprocesses auto -m "not slow" $(ARGS)

test-slow: install-dev  ## run the tests that 'make test' leaves out: browsers, Spark, simulations, whole systems
	@echo "Running the slow tests."
	@$(BIN)/python -m pytest --numprocesses auto -m slow $(ARGS)

test-all: install-dev  ## run all tests, in about 19 minutes
	@echo "Running all tests."
	@$(BIN)/python -m pytest --numprocesses auto $(ARGS)

core: install-dev  ## test the engine in an environment of its own, with only what requirements/core.txt names
	@echo "Installing requirements/core.txt and the workbench without its dependencies into $(VENV)/core."
	@"$(PYTHON)" -m venv "$(VENV)/core"
	@$(VENV)/core/bin/python -m pip --disable-pip-version-check --quiet install -r requirements/core.txt "hatchling>=1.27"
	@$(VENV)/core/bin/python -m pip --disable-pip-version-check --quiet install --no-deps --no-build-isolation .
	@WORKBENCH_CORE_PYTHON=$(abspath $(VENV))/core/bin/python $(BIN)/python -m pytest tests/project/test_core.py $(ARGS)

lint: install-dev  ## check style and formatting
	@echo "Checking style and formatting."
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

format: install-dev  ## format the sources
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

types: install-dev  ## check the types
	@echo "Checking the types."
	@$(BIN)/mypy

notebooks: install-dev  ## run every notebook from top to bottom, without a browser
	@echo "Running the notebooks."
	@$(BIN)/jupyter execute notebooks/*.ipynb

lessons: install  ## make the notebooks of the course from workbench/lessons/sources
	@$(BIN)/workbench lessons --copy --replace --directory notebooks/course

play: install-dev  ## play the lessons in a Chromium as a learner does (ARGS="01 04 --pauses 30 --scheme dark")
	@echo "Playing the lessons; each takes about half a minute."
	@PYTHONPATH=tests/support $(BIN)/python -m play $(ARGS)

binder: install-dev  ## build the last commit as Binder does and play a lesson in it without a network; as root (ARGS=07)
	@PYTHONPATH=tests/support $(BIN)/python -m rehearse_binder $(ARGS)

docs: install-docs lessons  ## build the documentation as a site, in build/docs (VERSION=0.1.0: beside other versions)
	@echo "Building the documentation; it runs the lessons."
	@DOCS_VERSION=$(VERSION) $(BIN)/python -m sphinx -q -W --keep-going -c docs/site . $(SITE)
	@echo "The site is in $(SITE): open $(SITE)/index.html."

pictures: install-dev  ## retake the pictures of docs/images in a Chromium (ARGS=lab or ARGS=pages: some of them)
	@echo "Taking the pictures."
	@PYTHONPATH=tests/support $(BIN)/python -m pictures $(ARGS)

reference: install-dev  ## regenerate docs/reference.md from the docstrings
	@PYTHONPATH=tests/project $(BIN)/python -m reference

wire: install-dev  ## regenerate the types of the extension's messages from workbench/wire
	@PYTHONPATH=tests/support $(BIN)/python -m wire_types

bench: install  ## run a benchmark (BENCH=grouping)
	@$(BIN)/workbench bench $(BENCH) $(ARGS)

soak: install  ## run a live job with a fault every ten seconds and check it (SOAK=1800)
	@$(BIN)/workbench soak --seconds $(SOAK) $(ARGS)

interrupts: install-dev  ## interrupt cells that handle jobs at random moments; each ends within 2 s (INTERRUPTS=200)
	@WORKBENCH_INTERRUPTS=$(INTERRUPTS) WORKBENCH_INTERRUPTED_S=2 $(BIN)/python -m pytest tests/system/test_interrupts.py $(ARGS)

kills: install-dev  ## kill -9 the process of running jobs at random moments (KILLS=300)
	@WORKBENCH_KILLS=$(KILLS) $(BIN)/python -m pytest tests/system/test_kills.py $(ARGS)

connector-kills: install-dev  ## the same between Redis, PostgreSQL, Kafka, NATS and MQTT, which also restart (KILLS=300 RESTARTS=50)
	@WORKBENCH_KILLS=$(KILLS) WORKBENCH_RESTARTS=$(RESTARTS) $(BIN)/python -m pytest tests/system/test_connector_kills.py $(ARGS)

log-kills: install-dev  ## the same with tables read from PostgreSQL's log, in their copy and behind it (KILLS=300)
	@WORKBENCH_KILLS=$(KILLS) $(BIN)/python -m pytest tests/system/test_log_kills.py $(ARGS)

chaos: install-dev  ## attack jobs between servers that restart, hang and lose connections (RUNS=100, ARGS="--seed 1 --only kafka")
	@PYTHONPATH=tests/support $(BIN)/python -m chaos --runs $(RUNS) $(ARGS)

clusters: install-dev  ## kill Spark executors, let JVMs run out of memory, and run more random pipelines on Spark
	@WORKBENCH_CLUSTERS=1 $(BIN)/python -m pytest tests/spark/test_cluster_spark.py tests/spark/test_engine_spark.py \
		tests/browser/test_watch_browser.py $(ARGS)

simulate: install  ## run deterministic simulations (SEEDS=200)
	@$(BIN)/workbench simulate $(if $(SEEDS),--seeds $(SEEDS)) $(ARGS)

mutants: install-dev  ## plant every bug of tests/support/mutants and verify that simulations find it
	@WORKBENCH_MUTANTS=all $(BIN)/python -m pytest -s tests/simulation/test_invariants.py $(ARGS)

pipelines: install-dev  ## compare random pipelines with DuckDB: 2,000, 400 in batches, 400 for each architecture
	@WORKBENCH_PIPELINES=2000 WORKBENCH_CARRIED=400 WORKBENCH_ARCHITECTURE_PIPELINES=400 $(BIN)/python -m pytest \
		--numprocesses auto tests/simulation/test_random_pipelines.py tests/simulation/test_carried_pipelines.py \
		tests/simulation/test_random_architectures.py $(ARGS)

contention: install-dev  ## run live threads against each other: 2,000 runs, 2,000 changes to a running job
	@WORKBENCH_CONTENTION=2000 $(BIN)/python -m pytest tests/system/test_contention.py $(ARGS)

corruption: install-dev  ## damage checkpoints: every truncation, 10,000 flipped bits
	@WORKBENCH_ALL_DAMAGE=1 $(BIN)/python -m pytest tests/system/test_corruption.py $(ARGS)

fuzz: install-dev  ## read files, messages and texts with random changes (FUZZ=50000)
	@WORKBENCH_FUZZ=$(FUZZ) $(BIN)/python -m pytest tests/system/test_fuzz.py $(ARGS)

large: install-dev  ## checkpoint more than 1 GB of state with 1 % of changes; needs 8 GB of memory
	@WORKBENCH_LARGE=1 $(BIN)/python -m pytest -s tests/runtime/test_incremental.py -k one_gigabyte $(ARGS)

doctor: install  ## check this machine and suggest fixes
	@$(BIN)/workbench doctor $(ARGS)

install: $(VENV)/.workbench $(VENV)/.kernels $(VENV)/.extension  ## only set up what the demo needs

install-dev: $(VENV)/.dev install  ## only set up what the tests need

install-docs: install $(VENV)/.docs

clean:  ## remove the environment and everything that was built; histories and results stay
	@echo "Removing $(VENV), builds and caches."
	@rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
	@rm -rf extension/lib extension/node_modules extension/.yarn extension/workbench_jupyterlab/labextension
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/pyvenv.cfg:
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer was found: install one, or name it with" \
		"'make PYTHON=/path/to/python ...'." >&2; exit 1; }
	@"$(PYTHON)" -c '' >/dev/null 2>&1 || { echo "$(PYTHON) does not run: name a Python 3.11 or newer with" \
		"'make PYTHON=/path/to/python ...'." >&2; exit 1; }
	@"$(PYTHON)" -c '$(NEW_ENOUGH)' || { echo "$(PYTHON) is $$("$(PYTHON)" --version 2>&1), but 3.11 or newer is" \
		"needed: install one, or name it with 'make PYTHON=/path/to/python ...'." >&2; exit 1; }
	@"$(PYTHON)" -c 'import venv, ensurepip' 2>/dev/null || { echo "$(PYTHON) cannot create environments: install" \
		"its venv module, on Debian and Ubuntu with 'sudo apt-get install python3-venv'." >&2; exit 1; }
	@echo "Creating the environment $(VENV) with $$("$(PYTHON)" --version)."
	@"$(PYTHON)" -m venv "$(VENV)"

$(VENV)/.workbench: pyproject.toml | $(VENV)/pyvenv.cfg
	@echo "Installing the workbench and the packages that it builds on (the first time: a few minutes, about 1.5 GB)."
	@$(PIP) install --editable .
	@touch $@ $(VENV)/.kernels

$(VENV)/.kernels: $(KERNEL_SOURCES) | $(VENV)/.workbench
	@echo "Compiling the kernels (half a minute; without a C compiler they are compiled when they are first needed)."
	@$(BIN)/python -m workbench.compiled.native.building || true
	@touch $@

$(VENV)/.extension: $(EXTENSION_SOURCES) | $(VENV)/.workbench
	@echo "Building and installing the JupyterLab extension (about a minute; Node comes along as a package)."
	@$(PIP) install ./extension
	@touch $@

$(VENV)/.docs: pyproject.toml | $(VENV)/.workbench
	@echo "Installing the tools that build the documentation."
	@$(PIP) install 'hatchling>=1.27' editables  # which the next command builds with
	@$(PIP) install --no-build-isolation --editable '.[docs]'
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/pyvenv.cfg
	@echo "Installing the workbench, the packages that it builds on (the first time: a few minutes, about 1.5 GB)," \
		"and the tools that the tests need."
	@$(PIP) install --editable '.[dev]'
	@touch $@ $(VENV)/.workbench $(VENV)/.kernels
