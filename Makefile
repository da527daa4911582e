.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:

PY := .venv/bin/python
# Written last by requirements/install.sh's caller: an interrupted set-up is taken up again, a finished one does nothing.
READY := .venv/.ready
# Several of them mostly wait for daemons: four keep two cores busy. The tests of a file run in one of them.
PROCESSES := -n 4 --dist loadfile --no-loadscope-reorder --quick-jvms
SUITE := tests/unit tests/contract tests/integration tests/security
FAST := not (spark or metastore or postgres or mariadb or hdfs or s3 or crash or heavy or long or kubernetes)

.PHONY: help setup jars check test test-fast test-k8s test-azure test-kerberos test-all demo bench bench-all docs site pictures clean lock

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | while IFS="$$(printf '\t')" read -r name what; do printf '  make %-13s %s\n' "$$name" "$$what"; done

setup: $(READY) ## make the virtual environment .venv from the lock files

$(READY): requirements/dev.txt requirements/bootstrap.txt requirements/build.txt requirements/install.sh pyproject.toml .src/lakewarden/__init__.py
	@requirements/install.sh
	@touch $@

jars: $(READY) ## fetch the jars for Spark and for the tests' servers into the user's cache
	@$(PY) -m lakewarden.jobs.engines.spark.jars
	@cd tests && ../$(PY) -m support.servers.jars

check: $(READY) ## lint, format, types, the import contracts, the docs' links
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
	.venv/bin/mypy tests bench examples
	.venv/bin/lint-imports
	.venv/bin/mkdocs build -q

test: $(READY) jars ## the tests on real Spark and real servers, but for what takes long
	$(PY) -m pytest -q $(PROCESSES) -m "not long" $(SUITE) $(ARGS)

test-fast: $(READY) ## the tests that need neither Java nor a server and kill nothing
	$(PY) -m pytest -q -n 2 --dist loadfile -m "$(FAST)" tests/unit tests/contract $(ARGS)

test-k8s: $(READY) ## the chart on a real Kubernetes node (root, Go, Debian; minutes the first time)
	$(PY) -m pytest -s tests/kubernetes $(ARGS)

test-azure: $(READY) ## tables on the emulator of Azure's blob storage (Node.js; 365 MB from npm the first time)
	$(PY) -m pytest tests/azure $(ARGS)

test-kerberos: $(READY) jars ## an HDFS that requires Kerberos, and who works on it by keytab
	$(PY) -m pytest tests/kerberos $(ARGS)

test-all: test-k8s test-azure test-kerberos ## all of these, and the tests that take long, for hours
	$(PY) -m pytest -q $(PROCESSES) $(SUITE) $(ARGS)

demo: $(READY) jars ## a real metastore, local Spark, real flights: watch lakewarden take over
	@$(PY) -m examples.demo

bench: $(READY) jars ## measure speed, one benchmark after the other; print all figures as JSON
	@$(PY) -m bench -o json $(ARGS)

bench-all: $(READY) jars ## the same, then compare results for hours: random histories, kills, an adversary
	@$(PY) -m bench --checks -o json $(ARGS)

docs: $(READY) ## write the generated pages under docs/reference anew
	@$(PY) -m lakewarden.daemon.cli.reference docs/reference
	@$(PY) -m lakewarden.daemon.cli.completion.generate
	@$(PY) -m lakewarden.catalog.validation.reference_page > docs/reference/checks.md
	@cd tests && ../$(PY) -m support.reference.pages ../docs/reference
	@cd tests && ../$(PY) -m support.crashes.crash_page > ../docs/reference/crashes.md
	@cd tests && ../$(PY) -m support.kubernetes.chart > README.md && mv README.md ../helm/lakewarden/README.md
	@cd tests && ../$(PY) -m support.usecases.page > use-cases.md && mv use-cases.md ../docs/reference/use-cases.md

site: $(READY) ## build the docs as a site: build/site/index.html; a link that leads nowhere is an error
	.venv/bin/mkdocs build

pictures: $(READY) ## draw the terminals of docs/pictures anew
	@cd tests && ../$(PY) -m support.pictures ../docs/pictures

lock: $(READY) ## renew the lock files and the hashes of the jars
	@requirements/lock.sh
	@$(PY) -m lakewarden.jobs.engines.spark.jars --lock
	@$(PY) -m lakewarden.jobs.engines.spark.s3.jars --lock
	@cd tests && ../$(PY) -m support.servers.jars --lock

clean: ## remove caches, build results and the demo's folder; keep .venv and the jars
	rm -rf .demo .cache build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage
	rm -rf spark-warehouse metastore_db derby.log
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
