# BlueCap for Linux
# =================
#
# Whatever a target needs and the machine lacks is installed by it (Scripts/dependencies, with apt-get).

SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -euc
.DEFAULT_GOAL := help

PYTHON := .build/python/.packages
# The programs that are installed: they contain Swift's libraries.
TOOL := .build/static/release/bluecap
GATEWAY := Gateway/.build/static/release/bluecap-gateway
STATIC := -c release --static-swift-stdlib --disable-local-rpath -Xlinker -z -Xlinker relro -Xlinker -z -Xlinker now
# 3.8 MB less. Nothing looks up symbols of a program by their names, which Swift's own arguments would export. Only glibc 2.36,
# which Debian 12 has, and later load relocations in the short form.
SMALL := -Xswiftc -use-ld=lld -Xswiftc -Xclang-linker -Xswiftc -static-libgcc -Xlinker --icf=safe -Xlinker --no-export-dynamic \
    $(shell printf 'glibc 2.36\n%s\n' "$$(getconf GNU_LIBC_VERSION)" | sort -C -V && echo -Xlinker -z -Xlinker pack-relative-relocs)
# Where Swift's own LLVM tools are.
LLVM = $(shell dirname "$$(readlink -f "$$(command -v swift)")")

##@ Use

run: dependencies-build ## Build, and scan simulated peripherals for ten seconds: needs no radio
	swift build --product bluecap
	.build/debug/bluecap scan --simulated --duration 10

run-example: dependencies-build ## Run the examples with simulated peripherals
	swift build
	.build/debug/bluecap simulate -- .build/debug/ReadBatteryExample
	.build/debug/bluecap simulate -- .build/debug/ConnectExample
	.build/debug/bluecap simulate -- .build/debug/ScriptExample
	.build/debug/bluecap simulate -- .build/debug/HeartRateExample
	.build/debug/bluecap simulate --peripherals Examples/Rooms/lock.json -- .build/debug/PairExample
	.build/debug/bluecap simulate --peripherals Examples/Rooms/sensors.json -- timeout --preserve-status 5 .build/debug/SensorGatewayExample
	.build/debug/bluecap simulate -- .build/debug/ScanExample

##@ Install

install: $(TOOL) ## Install the tool, its manual pages and completions: PREFIX=/usr/local DESTDIR=
	Scripts/install $(TOOL)

uninstall: ## Remove what make install has installed with the same PREFIX and DESTDIR
	Scripts/install --uninstall

gateway-install: $(GATEWAY) ## Install the gateway, its unit for systemd, manual pages and completions: PREFIX=/usr/local DESTDIR=
	Scripts/install $(GATEWAY)

gateway-uninstall: ## Remove what make gateway-install has installed with the same PREFIX and DESTDIR
	Scripts/install --uninstall bluecap-gateway

deb: $(TOOL) dependencies-deb ## Make a Debian package of the tool and an archive with the same files in .build/deb, with SHA256SUMS
	Scripts/deb $(TOOL)

deb-arm64: $(TOOL) dependencies-deb dependencies-arm64 ## Make the package and the archive for Debian 13 on arm64, on an x86-64 machine
	Scripts/arm64-test --tool
	Scripts/deb --arm64 .build/arm64/package $(TOOL)

deb-test: deb dependencies-deb-test ## Install that package on new systems of Debian 12 and 13, and run it there
	Scripts/deb --test

consumer-test: dependencies-build ## Use the library in a new package: what it fetches, builds and runs
	swift build --product bluecap
	Scripts/consumer-test .build/debug/bluecap

# After `make deb` as a user, `sudo make install` builds nothing: root needs no Swift.
$(TOOL): Package.swift $(shell find Sources -type f)
	Scripts/dependencies build
	swift build --product bluecap --scratch-path .build/static $(STATIC) $(SMALL)
	touch $@

$(GATEWAY): Package.swift Gateway/Package.swift $(shell find Sources Gateway/Sources -type f)
	Scripts/dependencies build gateway
	swift build --package-path Gateway --product bluecap-gateway --scratch-path Gateway/.build/static $(STATIC)
	touch $@

##@ Check

.PHONY: build
build: dependencies-build ## Build all, the tests too
	swift build --build-tests

build-optimized: dependencies-build ## Build the library and the tool as programs are shipped, with -c release
	swift build -c release --scratch-path .build/optimized

test: dependencies-build dependencies-test python ## Run all tests but the radio tests
	swift build --build-tests
	Scripts/run-tests

test-fast: dependencies-build ## Run the tests that start no other program: less than a minute after the build
	swift build --build-tests
	Scripts/run-tests --fast

explore: dependencies-build ## Play the random tests with new seeds: SECONDS=120, SEEDS=500, FILTER="Module.Class"
	swift build --build-tests
	Scripts/explore $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEEDS),--seeds $(SEEDS)) $(FILTER)

radio-test: dependencies-build dependencies-radio python ## Run the radio tests beside a real bluetoothd: BLUEZ="5.66 5.82-debian"
	swift build --build-tests
	RADIO_BLUEZ="$${BLUEZ:-$${RADIO_BLUEZ-}}" Scripts/radio-tests

radio-test-all: ## Run the radio tests with every BlueZ that the library is for, and with two main.conf each
	$(MAKE) radio-test BLUEZ=all

radio-self-test: dependencies-radio python ## Check the radio lab itself
	Tests/RadioLab/self-test

lint: dependencies-build dependencies-test dependencies-lint ## Check form, module walls, warnings and shell scripts
	Scripts/lint

check-api: dependencies-build ## Compare the public API with that of the last release, which Documentation/API has
	swift build
	Scripts/check-api

test-service: dependencies-build ## Test the package ServiceLifecycle: managers as services, and its example with a signal
	swift build --product bluecap
	swift build --package-path ServiceLifecycle --build-tests
	Scripts/run-tests --build ServiceLifecycle/.build/debug
	.build/debug/bluecap simulate -- timeout --preserve-status --kill-after 30 5 ServiceLifecycle/.build/debug/BatteryService

gateway: dependencies-build dependencies-gateway ## Run a broker, the gateway and its page with simulated peripherals: SECONDS=20 PORT=8080
	swift build --product bluecap
	swift build --package-path Gateway --product bluecap-gateway
	Gateway/Scripts/run-simulated $(SECONDS)

gateway-test: dependencies-build dependencies-gateway dependencies-gateway-test ## Test the package Gateway, with real brokers on this machine
	swift build --package-path Gateway --build-tests
	Scripts/run-tests --build Gateway/.build/debug --processes 2

gateway-soak: dependencies-build dependencies-gateway dependencies-gateway-test ## Play the long forms of the tests of Gateway: 200 kills, memory over ten minutes, and more random walks
	swift build --package-path Gateway --build-tests
	BLUECAP_LONG=1 BLUECAP_KILLS=200 BLUECAP_OUTAGE=60 BLUECAP_WALKS=5000 BLUECAP_MESSAGES=100000 \
		Scripts/run-tests --build Gateway/.build/debug --processes 2
	@grep -hE '^([0-9]+ kills|200 values|seed [0-9]+: .* links|Broker|Cluster|Disk|Clock|bluetoothd|full|recovered|reused).*[0-9]' Gateway/.build/debug/test-logs/*.log

gateway-scale: dependencies-build dependencies-gateway dependencies-gateway-test ## Measure many gateways with Mosquitto and a cluster: GATEWAYS=2 DEVICES=5 SECONDS=5
	swift build -c release --package-path Gateway --product bluecap-gateway
	swift build -c release --package-path Gateway --product scale-simulators
	Gateway/Benchmarks/gateway-scale $(if $(GATEWAYS),--gateways $(GATEWAYS) --interval 1) $(if $(DEVICES),--devices $(DEVICES)) \
	    $(if $(SECONDS),--seconds $(SECONDS)) --output .build/gateway-scale.json

test-optimized: dependencies-build dependencies-test python ## Run the tests as programs are shipped, built with -c release
	swift build -c release --build-tests -Xswiftc -enable-testing --scratch-path .build/optimized
	Scripts/run-tests --build .build/optimized/release

test-arm64: dependencies-build dependencies-arm64 ## Compile for arm64, and run the tests of pure values there, emulated
	Scripts/arm64-test

test-tsan: dependencies-build dependencies-test python ## Run the tests under the thread sanitizer
	swift build --build-tests --sanitize thread --scratch-path .build/thread
	Scripts/run-tests --build .build/thread/debug

# Without its search for leaks: it does not know the forms in which Swift keeps addresses (weak references, payloads of
# enums), and takes what is held there for lost. And without its own stacks for local variables: tests count the depth of the stack.
test-asan: dependencies-build dependencies-test python ## Run the tests under the address sanitizer
	swift build --build-tests --sanitize address -Xswiftc -use-ld=lld --scratch-path .build/address
	ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=0 Scripts/run-tests --build .build/address/debug

soak: dependencies-build dependencies-test ## Flood a scan for ten minutes, connect twenty thousand times with faults
	swift build --build-tests
	SOAK_SECONDS=600 swift test --skip-build --filter FloodTests
	SOAK_ROUNDS=20000 swift test --skip-build --filter ConnectionSoakTests

coverage: dependencies-build dependencies-test python ## Run the tests and say which lines they miss
	swift build --build-tests --enable-code-coverage --scratch-path .build/coverage
	rm -f .build/coverage/*.profraw
	LLVM_PROFILE_FILE="$$PWD/.build/coverage/%p.profraw" Scripts/run-tests --build .build/coverage/debug
	"$(LLVM)/llvm-profdata" merge -o .build/coverage/tests.profdata .build/coverage/*.profraw
	"$(LLVM)/llvm-cov" report --ignore-filename-regex '(Tests|checkouts)/' \
	    -instr-profile .build/coverage/tests.profdata .build/coverage/debug/BlueCapPackageTests.xctest

##@ Measure

bench-bus: dependencies-build dependencies-bench python ## Compare our scanner and our central with others on one bus
	Benchmarks/bench-bus
	Benchmarks/bench-gatt
	Benchmarks/bench-updates

bench-counts: dependencies-build dependencies-bench ## Count instructions and allocations of an event: THAN=another build of Benchmarks
	Benchmarks/bench-counts $(if $(THAN),--than $(THAN))

bench-growth: dependencies-build dependencies-bench ## Measure an event with 100 to 100,000 devices, a notification with 1 to 100 connected peripherals
	Benchmarks/bench-growth

bench-screen: $(TOOL) ## Measure the full-screen program with 1,000 peripherals: its processor time in a minute
	Benchmarks/bench-screen $(TOOL)

bench-futures: dependencies-build ## Measure promises, futures and streams
	Benchmarks/bench-futures

##@ Write

format: ## Bring the Swift sources into form
	git ls-files --cached --others --exclude-standard '*.swift' | xargs swift format --in-place --parallel

docs: dependencies-build ## Build the documentation and the guides as one site in .build/docs/site, warnings as errors
	swift build
	Scripts/docs

docs-open: ## Show the site that make docs has built, in a browser if there is one: PORT=8000
	Scripts/docs open $(PORT)

picture: dependencies-build dependencies-test ## Draw the pictures of the documentation, from what the tool draws on a terminal
	swift build --product bluecap
	Scripts/picture .build/debug/bluecap

##@ Keep house

python: $(PYTHON) ## Put a Python with bleak, bluez-peripheral and dbusmock into .build/python
$(PYTHON): Scripts/python-packages.txt
	Scripts/dependencies test
	/usr/bin/python3 -m venv --clear --system-site-packages .build/python
	.build/python/bin/pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

clean: ## Remove all that was built
	rm -rf .build Benchmarks/.build ServiceLifecycle/.build Gateway/.build

dependencies-%:
	@Scripts/dependencies $*

help:
	@echo "BlueCap for Linux. What to make:"
	@awk -F ':.*## ' '/^##@/ { printf "\n%s\n", substr($$0, 5) } /^[a-z0-9-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile

.PHONY: build-optimized run run-example install uninstall gateway-install gateway-uninstall deb deb-arm64 deb-test consumer-test check-api test test-fast explore radio-test radio-test-all radio-self-test lint test-optimized test-tsan test-asan test-arm64 test-service gateway gateway-test gateway-soak gateway-scale soak coverage bench-bus bench-counts bench-growth bench-screen bench-futures format \
    docs docs-open picture python clean help
