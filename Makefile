# Needs python3 >= 3.11 and make; everything else goes into .venv, on first use.
#
#   make test ARGS="-k pager -x"      arguments for the tool behind a target
#   make PYTHON=python3.13 test       which Python creates .venv

PYTHON ?= python3
JOBS   ?= 2
ARGS   ?=

PY     := .venv/bin/python
STAMP  := .venv/.stamp
PYTEST := $(PY) -m pytest

.DEFAULT_GOAL := help
.PHONY: help run test test-quick test-all coverage doctest examples lint format types pyright mypy verifytypes \
        layers docs conformance contract record clientset captures news bench bench-quick bench-report \
        bench-peers bench-parts bench-gate reconnect-storm fuzz simulate scoreboard soak \
        mutants differential release control-plane check clean venv

help:           ## this list
	@sed -n 's/^\([a-z-]*\):.*## */  \1\t/p' Makefile | expand -t 18

run: venv       ## watch something live: the cluster that kubectl would use, else a demo cluster
	@$(PY) -m kinform watch $(ARGS)

test: venv      ## all tests, in parallel; e2e ones are skipped where no control plane can start
	$(PYTEST) -n $(JOBS) --dist loadgroup --max-worker-restart 0 $(ARGS)

test-quick: venv ## the quick round, a minute: nothing slow, no control plane
	HYPOTHESIS_PROFILE=quick $(PYTEST) -n $(JOBS) --dist loadgroup --max-worker-restart 0 \
	  -m "not slow and not e2e" --ignore tests/bench --ignore tests/peers $(ARGS)

test-all:       ## the tests on every supported Python that is installed; ARGS=--quick: the quick round
	$(PYTHON) tools/test_all.py $(ARGS)

coverage: venv  ## the tests with branch coverage; pages in build/coverage/html
	$(PY) -m coverage run -m pytest $(ARGS) && $(PY) -m coverage html -q && $(PY) -m coverage report

doctest: venv   ## the examples in docstrings, README and guides
	$(PYTEST) --doctest-modules --doctest-glob='*.md' -p no:randomly src/kinform docs README.md $(ARGS)

examples: venv  ## the programs in examples/, on a control plane
	$(PY) tools/run_examples.py $(ARGS)

lint: venv      ## ruff: rules and format
	$(PY) -m ruff check . && $(PY) -m ruff format --check .

format: venv    ## repair what ruff can repair
	$(PY) -m ruff check --fix . && $(PY) -m ruff format .

types: pyright mypy verifytypes ## pyright strict, mypy strict, completeness of the public types

pyright: venv
	$(PY) -m pyright --warnings -p pyproject.toml

mypy: venv
	$(PY) -m mypy

verifytypes: venv
	$(PY) tools/verify_types.py

layers: venv    ## import-linter: who may import whom
	.venv/bin/lint-imports --no-logo

docs: venv      ## Sphinx; fails on a name that leads nowhere
	$(PY) -m sphinx -n -W -E --keep-going -q docs build/docs && echo build/docs/index.html

conformance: venv ## write docs/conformance.md and the guide's table of names from the tests
	$(PY) -m tools.conformance $(ARGS)

news: venv      ## the changelog entry that the fragments make
	$(PY) -m towncrier build --draft --version next

contract: venv  ## write docs/apiserver.md: the embedded server held against the recorded real one
	$(PY) -m tools.contract score $(ARGS)

record: venv    ## ask a real kube-apiserver anew: its answers, its API, its wire format
	$(PY) -m tools.contract record
	$(PY) tools/record_api.py
	$(PY) tools/record_protobuf.py
	$(PY) -m tools.record_watch

clientset: venv ## write the typed models and clients from the recorded API
	$(PY) -m tools.clientset $(ARGS)

captures: venv  ## the pictures of the command in the docs
	$(PY) -m tools.captures $(ARGS)

bench: venv     ## kinform beside client-go and other clients, in full (an hour); bench/results
	$(PY) -m bench.compare --full $(ARGS)

bench-quick: venv ## the same with fewer objects and rounds (minutes); build/bench/quick
	$(PY) -m bench.compare --quick $(ARGS)

bench-report: venv ## the table and the plots anew, from the figures of the last full run
	$(PY) -m bench.compare --report bench/results/latest.json $(ARGS)

bench-peers: venv ## build the peers that are programs: client-go, and kube-rs where cargo is
	$(PY) -m bench.compare --build $(ARGS)

bench-parts: venv ## the benchmarks of single parts of kinform
	$(PY) -m bench $(ARGS)

bench-gate: venv ## what the hot paths cost, against bench/gate/baseline.json
	$(PY) -m bench.gate $(ARGS)

reconnect-storm: venv ## a server restarts under 1,000 informers; ARGS="--server control-plane --informers 200"
	$(PY) -m bench.reconnect $(ARGS)

simulate: venv  ## 10,000 seeded schedules of faults (40 to 60 minutes); ARGS="--seeds 500" for fewer
	$(PY) -m kinform simulate --seeds 10000 $(ARGS)

mutants: venv   ## mistakes put into kinform, each to be found by the simulator; docs/mutants.md
	$(PY) -m tools.mutants $(ARGS)

differential: venv ## 2,000 scripts for client-go's informer and ours; docs/differences.md
	$(PY) -m tools.differential --jobs $(JOBS) $(ARGS)

fuzz: venv      ## look for inputs that parsers fail on, ten minutes; ARGS="watch --seconds 60 --seed 2"
	$(PY) -m tools.fuzz --jobs $(JOBS) $(ARGS)

scoreboard: venv ## the same faults for every client (20 minutes); bench/results/scoreboard.md
	$(PY) -m bench.scoreboard $(ARGS)

soak: venv      ## churn and random faults for 20 minutes (ARGS="--hours 24"); build/soak
	$(PY) -m tools.soak $(ARGS)

release: venv   ## the wheel, built twice and equal, its digest and bill of materials; build/release
	$(PY) -m tools.release $(ARGS)

control-plane:  ## build etcd, kube-apiserver and friends into a per-user cache (needs Go)
	$(PYTHON) tools/control-plane/build.py $(ARGS)

check: lint types layers docs doctest test ## all that must pass before a change goes in

clean:          ## remove what was built (not the environments)
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

venv: $(STAMP)

$(STAMP): pyproject.toml constraints.txt tools/environment.py
	@$(PYTHON) tools/environment.py
