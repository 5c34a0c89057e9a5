# Two commands matter: `make demo` and `make test`. Both set up everything they need below .venv.
PYTHON ?= python3
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal
# cargo would look for a job server in them.
unexport MAKEFLAGS MFLAGS
# Tests start hundreds of Pythons: each would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test frameworks test-frameworks test-lowest build check rust-check python-test bench table schemas reference site clean

demo: build
	$(BIN)/pyaccount plan examples/cifar10-dp-sgd.yaml
	$(BIN)/pyaccount certify examples/cifar10-dp-sgd.yaml

# The release build keeps one core busy, and tests in Python wait for it: the other checks run beside it, and give way.
test:
	$(MAKE) --no-print-directory PYTHON=$(PYTHON) --jobs=3 --output-sync=target .venv/compiled rust-check check
	$(PYTEST)
	@echo "Training with PyTorch, JAX and the trainers of others is tested by make test-frameworks."

# With PyTorch, Opacus, transformers, TRL, Lightning, Flower and JAX: what `make test` skips. Their environment takes 7 GB, and is
# kept outside of the checkout by the hash of its lock. JAX warns of every fork of a process that has imported it; what tests fork
# does not use it.
KEPT := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/pyaccount
FRAMEWORKS := $(KEPT)/frameworks-$(shell cksum <tests/frameworks.lock | cut -d' ' -f1)
LOWEST := $(KEPT)/lowest-$(shell cksum <tests/lowest.lock | cut -d' ' -f1)

frameworks: $(FRAMEWORKS)/installed

test-frameworks: build frameworks
	PIP_QUIET=1 VIRTUAL_ENV=$(FRAMEWORKS) $(BIN)/maturin develop --release --locked --quiet
	PYACCOUNT_FRAMEWORKS=1 $(FRAMEWORKS)/bin/python -m pytest -n auto --dist worksteal \
		-W "ignore:os.fork() was called:RuntimeWarning" tests/adapters tests/auditing tests/data tests/integrations tests/training

# With the oldest dependencies that pyproject.toml allows, on Python 3.11: documents, commands, pages and examples. Left out is what
# shows words of the newest ones: schemas as pydantic writes them, and completions of click.
test-lowest: build $(LOWEST)/installed
	PIP_QUIET=1 VIRTUAL_ENV=$(LOWEST) $(BIN)/maturin develop --release --locked --quiet
	$(LOWEST)/bin/python -m pytest -n auto --dist worksteal tests/document tests/cli tests/pages tests/house/test_readme.py \
		-k "not schema_prints and not does_not_block and not snippets_of_the_pages" --ignore tests/cli/test_help.py

$(FRAMEWORKS)/installed: LOCK := tests/frameworks.lock
$(LOWEST)/installed: LOCK := tests/lowest.lock
$(FRAMEWORKS)/installed $(LOWEST)/installed:
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --no-compile --quiet --disable-pip-version-check --require-hashes -r $(LOCK) || \
		{ echo "$(LOCK) could not be installed: nothing is tested with it" >&2; exit 1; }
	touch $@

# The compiled core, installed in place; cargo rebuilds only what changed.
build: .venv/installed
	PIP_QUIET=1 PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/maturin develop --release --locked --quiet

# Most modules of what is installed are never imported: those that are get compiled then.
.venv/installed: tests/requirements.lock
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --no-compile --quiet --disable-pip-version-check --require-hashes -r tests/requirements.lock
	touch $@

# What tests import becomes bytecode here, once and beside the tests in Rust; every worker of theirs would do it anew.
.venv/compiled: .venv/installed | build
	$(BIN)/python -m pytest -n 0 --collect-only -qqq --no-summary >$@ || { cat $@; rm $@; false; }

# Formatting, lints and types of Python.
check: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	nice $(BIN)/mypy

# The same of Rust, and its tests. Clippy and rustfmt are optional parts of a toolchain.
rust-check:
	if cargo fmt --version >/dev/null 2>&1; then cargo fmt --all --check; fi
	if cargo clippy --version >/dev/null 2>&1; then nice cargo clippy --locked --quiet --workspace --all-targets -- -D warnings; fi
	nice cargo test --locked --quiet -p pyaccount-core --lib

python-test: build
	$(PYTEST)

# Side by side with peers, in an environment of their own.
bench: benchmarks/.venv/installed
	PIP_QUIET=1 VIRTUAL_ENV=$(CURDIR)/benchmarks/.venv benchmarks/.venv/bin/maturin develop --release --locked --quiet
	benchmarks/.venv/bin/python benchmarks/composition.py
	benchmarks/.venv/bin/python benchmarks/monte_carlo.py
	benchmarks/.venv/bin/python benchmarks/opake_peer.py
	benchmarks/.venv/bin/python benchmarks/batches.py
	benchmarks/.venv/bin/python benchmarks/noise.py
	benchmarks/.venv/bin/python benchmarks/optimisers.py
	cargo run --locked --quiet --release -p pyaccount-core --example kernel
	benchmarks/.venv/bin/python benchmarks/startup.py

benchmarks/.venv/installed: benchmarks/requirements.lock
	$(PYTHON) -m venv benchmarks/.venv
	benchmarks/.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r benchmarks/requirements.lock
	touch $@

# The CIFAR-10 table of the b-min-sep paper, ours beside theirs: some ten minutes.
table: build
	$(BIN)/python examples/cifar10_table.py

# Write the JSON Schemas anew after a change of the models.
schemas: build
	$(BIN)/python -m pyaccount.schemas schemas

# Write the reference pages and the pictures of the documentation anew after a change of the models or commands.
reference: build
	$(BIN)/python .ci/site/reference.py docs/reference
	$(BIN)/python .ci/site/cells.py docs/reference/cells.md
	$(BIN)/python docs/pictures/samplers.py
	$(BIN)/python docs/pictures/budgets.py

# The documentation as a site, in an environment of its own and without the core: target/site/html/index.html. With --quiet warnings
# would not be counted, and --strict would let them pass.
site: .ci/site/.venv/installed
	.ci/site/.venv/bin/python .ci/site/pages.py target/site
	NO_MKDOCS_2_WARNING=1 .ci/site/.venv/bin/mkdocs build --strict -f target/site/mkdocs.yml

.ci/site/.venv/installed: .ci/site/requirements.lock
	$(PYTHON) -m venv .ci/site/.venv
	.ci/site/.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r .ci/site/requirements.lock
	touch $@

clean:
	rm -rf .venv benchmarks/.venv .ci/site/.venv target
