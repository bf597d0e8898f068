.DEFAULT_GOAL := help
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# At most this many test processes; each has a database of its own.
JOBS   ?= 2

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 16

$(STAMP): requirements-dev.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@touch $@

install: $(STAMP)  ## make the virtualenv and install what is pinned

demo: $(STAMP)  ## watch prices become alerts and mail; SECONDS=30 bounds it, PORT=8000 moves it
	@$(BIN)/python -m winecellar.demo --port $(or $(PORT),8000) $(if $(SECONDS),--seconds $(SECONDS))

demo-incident: $(STAMP)  ## play the 341 dead letters from the alarm to the redrive; PORT=8010 moves its admin
	@$(BIN)/python -m winecellar.demo.incident --port $(or $(PORT),8010)

test: $(STAMP)  ## run all checks and tests; PG=16 uses the other embedded server
	@JOBS=$(JOBS) $(BIN)/python -m tests.run

check: $(STAMP)  ## run the static checks alone: format, lint, types, imports, migrations
	@$(BIN)/python -m tests.run --checks-only

format: $(STAMP)  ## format the code
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .

requirements: $(STAMP)  ## pin requirements*.in anew, with hashes
	$(BIN)/python -m pip install -q uv
	$(BIN)/uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url requirements.in -o requirements.txt
	$(BIN)/uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url -c requirements.txt requirements-dev.in -o requirements-dev.txt

audit: $(STAMP)  ## write the SBOM, and ask whether what is pinned has known holes
	@$(BIN)/python -m tests.audit

fuzz: $(STAMP)  ## feed every parser N=100000 damaged inputs; SEED=7 repeats a run
	@$(BIN)/python -m tests.fuzz -n $(or $(N),100000) $(if $(SEED),--seed $(SEED))

bench: $(STAMP)  ## compare the queue's speed with its peers'; QUICK=1 for a small run
	@$(BIN)/python -m tests.benchmarks $(if $(QUICK),--quick)

chaos: $(STAMP)  ## break everything for SECONDS=90, by SEED=1, at RATE=400 messages a second, and see whether the promises were kept
	@$(BIN)/python -m tests.chaos --seconds $(or $(SECONDS),90) --seed $(or $(SEED),1) --rate $(or $(RATE),400) $(if $(REPORT),--report)

stop: $(STAMP)  ## stop the embedded Postgres servers
	@$(BIN)/python -m winecellar.embedded stop
	@WINECELLAR_PG_NAME=postgres-test $(BIN)/python -m winecellar.embedded stop
	@WINECELLAR_PG_NAME=demo $(BIN)/python -m winecellar.embedded stop
	@WINECELLAR_PG_NAME=demo-incident $(BIN)/python -m winecellar.embedded stop

clean: stop  ## remove the virtualenv and all local data
	rm -rf $(VENV) var staticfiles

.PHONY: help install demo demo-incident test check format requirements audit fuzz bench chaos stop clean
