# Everything is made from here; `make` alone prints what there is.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.DEFAULT_GOAL := help
# Every target with a description is a command and not a file.
.PHONY: $(shell awk -F: '/^[a-z-]+:.*## /{print $$1}' $(MAKEFILE_LIST))

help: ## show this help
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml setup.py src/barnabas/wire/record_codec.py src/barnabas/wire/record_encoder.py src/barnabas/wire/record_builder.py src/barnabas/wire/key_hash.py src/barnabas/wire/record_headers.py src/barnabas/wire/record_filter.py src/barnabas/wire/produce_frame.py src/barnabas/wire/named_tuple.pxd src/barnabas/wire/record_bytes.pxd src/barnabas/wire/sip_hash.pxd $(wildcard src/barnabas/wire/avro/*.pxd) src/barnabas/wire/avro/columns.py src/barnabas/wire/avro/values.py src/barnabas/wire/avro/decoder.py
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@

install: $(STAMP) ## make the virtual environment and install everything into it

check: $(STAMP) ## format, lint, types, layers: what every commit must pass
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest -q -p no:randomly tests/tidy

format: $(STAMP) ## let ruff put the source in order
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Hundreds of processes import the same modules: without compiled files each of them compiles them anew.
unexport PYTHONDONTWRITEBYTECODE
# Three workers for two cores: many tests wait for processes and timeouts. One of them runs all of Spark's tests.
TEST_WORKERS ?= 3
# A test that hangs fails and is named, with what every thread was at. Where no signal reaches it (inside of uvloop or of
# librdkafka), its worker is ended after a while longer.
TEST_LIMITS  := --timeout 240 -o faulthandler_timeout=360 -o faulthandler_exit_on_timeout=true
test: check ## everything that runs in minutes
	$(BIN)/pytest -q -n $(TEST_WORKERS) --dist loadfile $(TEST_LIMITS) --durations 20 -m 'not slow' --ignore=tests/tidy

test-slow: $(STAMP) ## what takes longer: failures of Spark pipelines, every bit flip, commands over whole clusters
	$(BIN)/pytest -q -m slow

docs: $(STAMP) ## write the docs that are derived from the code
	$(BIN)/python -m tools.gen_docs
	$(BIN)/python tools/client_reference.py

console: $(STAMP) ## build the pages of the console with npm, and write the manifest of their sources
	cd console && npm install --no-save --no-fund --no-audit && npm run check && npm test && npm run build
	$(BIN)/python -m tools.console_manifest

demo: $(STAMP) ## a shop in PostgreSQL is captured, joined and counted on Spark, written to SQL and Iceberg, while processes are killed
	@$(BIN)/python -m tools.demo

kill: $(STAMP) ## kill a broker under load 100 times and look for what was lost (minutes)
	BARNABAS_KILLS=100 $(BIN)/pytest -q -s tests/integration/test_kill.py

CLUSTER_KILLS ?= 100
ROLE_KILLS    ?= 20
KILL_CLIENTS  ?= librdkafka,java,barnabas,aiokafka
cluster-kill: $(STAMP) ## kill brokers, controllers and coordinators of clusters, restart and freeze them, cut their network, and look for what was lost (hours; KILL_CLIENTS=a,b)
	BARNABAS_KILL_CLIENTS=$(KILL_CLIENTS) BARNABAS_CLUSTER_KILLS=20 BARNABAS_CLIENT_KILLS=$(CLUSTER_KILLS) BARNABAS_ROLE_KILLS=$(ROLE_KILLS) \
		BARNABAS_CLUSTER_RESTARTS=$(ROLE_KILLS) BARNABAS_CLUSTER_FREEZES=$(ROLE_KILLS) BARNABAS_CLUSTER_CUTS=$(ROLE_KILLS) $(BIN)/pytest -q -s -m 'slow or java or not java' \
		tests/integration/test_cluster_kill.py tests/integration/test_cluster_clients.py tests/integration/test_cluster_roles.py tests/integration/test_cluster_cut.py

cluster-copy: $(STAMP) ## copy 100,000 records exactly once while brokers and copiers are killed 60 times, for both group protocols (minutes)
	BARNABAS_COPY_RECORDS=100000 BARNABAS_COPY_KILLS=60 $(BIN)/pytest -q -s tests/integration/test_cluster_copy.py

failover: $(STAMP) ## how long clients wait when a broker is killed, beside Apache Kafka (half an hour)
	$(BIN)/python -m bench.failover

kill-spark: $(STAMP) ## kill drivers, workers, executors, brokers and commits under a pipeline 50 times (half an hour)
	BARNABAS_SPARK_RUNS=36 BARNABAS_SPARK_CLUSTER_RUNS=14 $(BIN)/pytest -q -s tests/spark/test_failures.py -k pipeline

kill-streams: $(STAMP) ## kill drivers, workers, executors, brokers, commits and checkpoints under two stateful applications 30 times each (an hour)
	BARNABAS_SPARK_RUNS=20 BARNABAS_SPARK_CLUSTER_RUNS=10 $(BIN)/pytest -q -s tests/spark/test_failures.py -k application

CONNECT_KILLS ?= 30
kill-connect: $(STAMP) ## kill drivers, workers, the broker and the database under change capture and sinks 30 times (half an hour)
	BARNABAS_CONNECT_KILLS=$(CONNECT_KILLS) $(BIN)/pytest -q -s -m slow tests/spark/test_connect_killed.py

copier: $(STAMP) ## copy 100,000 messages in transactions under 20 kills of the broker (Java; minutes)
	BARNABAS_COPIER_MESSAGES=100000 BARNABAS_COPIER_KILLS=20 $(BIN)/pytest -q -s -m java tests/compat/test_message_copier.py

FUZZ_FRAMES ?= 1000000
FUZZ_RUNS   ?= 1000000
fuzz: $(STAMP) ## broken frames over a socket, a million of them; then the codecs, if atheris is installed (minutes)
	$(BIN)/python tests/fuzz/fuzz_socket.py --frames $(FUZZ_FRAMES)
	@if $(BIN)/python -c 'import atheris' 2> /dev/null; then \
		$(BIN)/python tests/fuzz/fuzz_wire.py -runs=$(FUZZ_RUNS) && \
		$(BIN)/python tests/fuzz/fuzz_records.py -runs=$(FUZZ_RUNS) && \
		$(BIN)/python tests/fuzz/fuzz_avro.py -runs=$(FUZZ_RUNS); \
	else echo 'atheris is not installed: the codecs are left to the property tests'; fi

SIM_SEEDS ?= 10000
sim: $(STAMP) ## everything that runs in virtual time, under many seeds (minutes)
	BARNABAS_SIM_SEEDS=$(SIM_SEEDS) $(BIN)/pytest -q tests/sim

conformance: $(STAMP) ## other people's tests, clients and tools (fetches from Maven, npm, Go and Debian; about an hour)
	$(BIN)/pytest -q -m 'java or not java' tests/compat
	$(BIN)/pytest -q -m java tests/unit tests/tidy
	$(BIN)/python -m conformance run --peer barnabas
	$(BIN)/python -m conformance.streams
	$(BIN)/python -m conformance.streams.applications

conformance-streams: $(STAMP) ## the Streams API beside Kafka's test driver: 119 topologies, 10,000 records, 3 seeds; three applications beside Kafka Streams
	$(BIN)/python -m conformance.streams
	$(BIN)/python -m conformance.streams.applications

conformance-%: $(STAMP) ## one suite: librdkafka, librdkafka-consumer, kafka-python, tools, clients, registry or connect
	$(BIN)/python -m conformance run --peer barnabas --suite $*

bench: $(STAMP) ## beside Apache Kafka, every row (the best part of an hour)
	$(BIN)/python -m bench full --fresh

bench-streams: $(STAMP) ## Streams beside Kafka Streams, Quix Streams and Faust (hours, on a quiet machine; fetches from Maven and PyPI)
	$(BIN)/python -m bench.streams $(BENCH_STREAMS)

bench-quick: $(STAMP) ## beside Apache Kafka, a few rows (minutes)
	$(BIN)/python -m bench quick

ground: $(STAMP) ## figures of one broker alone: start-up, memory, raw throughput
	$(BIN)/python -m bench ground

wheel: $(STAMP) ## build a source archive and manylinux wheels into dist (needs a C compiler)
	$(BIN)/python -m tools.wheel

clean: ## remove what was built
	rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis src/*.egg-info
	find src -name '*.so' -delete
