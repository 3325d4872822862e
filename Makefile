# What a developer does here. The lanes of `make test` are described, one function each, in .ci/lanes.

RUN := target/latest.becalm
PREFIX ?= /usr/local
# Where cargo puts what it builds.
BUILT := $(or $(CARGO_TARGET_DIR),target)

.PHONY: help run install wheel dist release reproducible mpi book pictures test test-attack test-fresh soak fleets bench fmt lint test-unit test-root \
	test-lab lab kernel-matrix test-browser test-packages test-mpi \
	test-bench test-fuzz fuzz test-sanitize check-aarch64

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.* ## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

# With the profile of the tests, which is compiled in half of the time and measures with the same loops. Not incrementally: what makes the next
# build quicker takes a sixth of this one.
run: ## record all CPUs for 10 s, with sources as far as this user may see them, and print the report
	CARGO_INCREMENTAL=0 cargo build --package becalm
	rm -rf $(RUN)
	$(BUILT)/debug/becalm record --duration 10s -o $(RUN)

install: ## binary, manual pages and completions below DESTDIR and PREFIX
	cargo build --release --package becalm
	packaging/lay-out $(BUILT)/release/becalm $(DESTDIR)$(PREFIX)

dist: ## packages of what is committed, for Debian, for RPM, static and as sources, with checksums and an SBOM, in target/dist
	packaging/build $(BUILT)/packages/programs
	packaging/dist $(BUILT)/packages/programs $(BUILT)/dist

release: ## make dist, of a version that is ready to be released, with its packages tried; as root; see docs/src/releasing.md
	packaging/release $(BUILT)/dist

reproducible: ## make dist twice, in other folders: that all bytes are the same
	packaging/reproducible

wheel: ## the Python package with the program in it, into target/wheels
	@.ci/wheel

mpi: ## becalm-mpi, with the MPI whose mpicc is found first or that MPICC names; installs Open MPI where there is none
	@.ci/need mpi libclang
	@export MPICC=$$(.ci/need --mpicc) && .ci/bindings --release && cargo build --release --package becalm-mpi
	@echo 'run it as: mpirun -n 2 $(BUILT)/release/becalm-mpi'

book: ## the book as pages for a browser, in target/book, with every link held; installs mdBook below .cache
	@.ci/need python-packages
	@.ci/book .cache/python/bin/mdbook $(BUILT)/book

pictures: ## the pictures of README and book anew, with a session that is run here; needs chromium and pngquant
	@.ci/need chromium pngquant
	cargo build --package becalm --bin becalm --example page_bundles
	@bundles=$$(mktemp -d) && $(BUILT)/debug/examples/page_bundles $$bundles && .ci/pictures $(BUILT)/debug/becalm $$bundles; \
		status=$$?; rm -rf $$bundles; exit $$status

test: ## all lanes below, one after the other, with a summary
	@.ci/lanes

test-attack: ## as root: all tries of every row of docs/src/attacks.md, a hundred kills of each command among them; about 25 min
	cargo test --no-run --test root_attack
	@rm -f $(BUILT)/attacks
	@status=0; BECALM_CI=1 BECALM_ATTACK=full BECALM_ATTACK_TABLE=$$(realpath $(BUILT))/attacks \
		cargo test --no-fail-fast --test root_attack -- --test-threads=1 || status=$$?; \
		printf '\n'; { printf 'what\ttries\twrong\n'; cat $(BUILT)/attacks; } | column -t -s "$$(printf '\t')"; exit $$status

soak: ## as root: becalm watch for half an hour [MINUTES=30]: nothing grows, and it costs what it says
	cargo test --no-run --test root_becalm
	BECALM_CI=1 MINUTES=$(or $(MINUTES),30) cargo test --test root_becalm -- --ignored --nocapture watch::soak

fleets: ## as root, with Slurm: of 20 fleets of 32 equal nodes, at most one has a node that is named; about 10 min
	cargo test --no-run --test root_becalm
	BECALM_CI=1 cargo test --test root_becalm -- --ignored --nocapture slurm::root_of_twenty_fleets

test-fresh: ## as root: make run, make mpi and all that the lanes install and build, on a new Debian in a folder, and on a worse one
	@.ci/fresh
	@.ci/fresh --neighbors

lint: ## formatting, clippy and documentation, with warnings denied; licenses and duplicates of dependencies
	@.ci/lanes lint

test-unit: ## unit, property, golden and documentation tests; no root needed
	@.ci/lanes commands unit

test-root: ## tests that record with the running kernel's tracing; as root
	@.ci/lanes root measure

test-lab: ## real kernels in an emulator
	@.ci/lanes lab

lab: ## one scenario with its console: SCENARIO=NAME [KERNEL=rt|stock|cloud] [CPUS=2..4] [CMDLINE='nohz_full=1']
	@.ci/lab scenario

kernel-matrix: ## what kernels and boot parameters cost, beside each other, in an emulator: [SETTINGS=stock,nohz_full]
	@.ci/lab matrix

test-browser: ## the pages of report --html in headless Chromium; pages and screenshots in target/browser
	@.ci/lanes browser

test-packages: ## packages for Debian and RPM: made, installed, run and removed, on a copy of this system; as root
	@.ci/lanes packages

test-mpi: ## becalm-mpi: its tests, and real jobs of Open MPI and MPICH, which it installs
	@.ci/lanes mpi predictions

test-bench: ## a twentieth of each benchmark: that it runs, not how fast
	@.ci/lanes bench

test-fuzz: ## every fuzz target for 10 s
	@.ci/lanes fuzz

fuzz: ## one fuzz target on all CPUs: TARGET=NAME [TIME=1h]; without TARGET it says which there are
	@.ci/need c++
	@target='$(TARGET)'; unset TARGET; .ci/fuzz hunt "$$target" '$(TIME)'

test-sanitize: ## the unsafe code, with every access to memory checked
	@.ci/lanes sanitize

check-aarch64: ## what differs on aarch64: type check, and its tests, emulated
	@.ci/lanes aarch64

bench: ## every claim about speed and quietness, both sides measured in one run, with a summary; see bench/README.md
	@.ci/need python-packages
	@# With the Python package's extension, which is a library.
	cargo build --release
	CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=false cargo build --release --bin becalm --target-dir $(BUILT)/unchecked
	UNCHECKED=$(BUILT)/unchecked/release/becalm $(BUILT)/release/becalm-bench

fmt: ## format everything
	cargo fmt --all
