# Everything that a person can run. `make demo` and `make test` set up what they need by themselves.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# Every test starts a Python or two: compiled once, whatever the environment says.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test check format bench table e2e conformance servers lock clean

demo: $(READY)
	$(BIN)/hel-lsp demo

test: $(READY)
	$(BIN)/pytest -n auto --ignore tests/lsp/test_soak.py
	$(BIN)/pytest tests/lsp/test_soak.py # by itself: it measures handles and memory

check: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/basedpyright
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(READY)
	$(BIN)/python -m benchmarks

table: $(READY)
	$(BIN)/python -m tests.lsp.capability_table

e2e: $(READY)
	editors/vscode/test/run.sh

conformance: $(READY)
	$(BIN)/python -m tests.mcp.conformance

servers: $(READY)
	$(BIN)/pytest tests/mcp/published_servers.py

lock: $(READY)
	$(BIN)/uv pip compile -q --generate-hashes --universal --no-header --python-version 3.11 pyproject.toml -o requirements/run.txt
	$(BIN)/uv pip compile -q --generate-hashes --universal --no-header --python-version 3.11 pyproject.toml --group dev -o requirements/dev.txt

clean:
	rm -rf $(VENV) .tools editors/vscode/node_modules editors/vscode/out

# Cleared: what another Python left in it would mix with this one's library.
$(READY): requirements/uv.txt requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "hel-lsp needs Python 3.11 or newer: make PYTHON=python3.12 …"; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/uv.txt
	$(BIN)/uv pip sync -q --python $(BIN)/python --require-hashes requirements/dev.txt
	$(BIN)/uv pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@
