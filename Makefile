# Thin wrappers over the CMake presets and tools/. `make help` lists them.
.DEFAULT_GOAL := help
.PHONY: long-context help run serve build test test-models test-sdk fuzz-api bench bench-serving drills kv-quality lint sanitize fuzz configure all-targets

PROMPT ?= Hello! Who are you, and what can you do for me?
PORT ?= 8080
MODELS ?= smollm2
BATCHES ?= 8,16
PEERS ?=
KV_LONG ?= q8
DATA ?= ../shared/data
KV ?= q8 q6 q4
PARTS ?=

# As the user wrote it, so that a $ in a prompt stays a $; exported, so that no shell reads it.
export PROMPT_TEXT := $(value PROMPT)
# Where rustup puts cargo, also when the shell's start files do not know yet.
export PATH := $(PATH):$(HOME)/.cargo/bin

BUILD := build

help:
	@echo 'make run [PROMPT="..."]  set up, build, fetch SmolLM2 once, answer one prompt'
	@echo 'make serve [PORT=8080]   set up, build, fetch SmolLM2 once, serve it; Ctrl-C ends it'
	@echo 'make build               release build; the program is build/cicada'
	@echo 'make test                set up, build and run every test that CI runs'
	@echo 'make test-models         tests with all three real models and against llama.cpp (1.5 GB)'
	@echo 'make test-sdk            the newest vendor clients and their own tests against a live server (fetches them)'
	@echo 'make fuzz-api            6,000 bad requests to both APIs'
	@echo 'make bench [MODELS="smollm2 ..."] [PEERS="name=/path/llama-bench ..."] [README=1]'
	@echo '                         speed beside llama.cpp (built from source, 10 minutes once)'
	@echo 'make bench-serving [README=1]  the server beside llama-server: 1 to 16 clients, an agent, a long prompt (15 minutes)'
	@echo 'make drills [DATA=../shared/data]  engines killed, clients that leave, a recorded trace, the cost of metrics (an hour)'
	@echo 'make kv-quality [KV="q8 q6 q4"] [PARTS="perplexity ..."] [DATA=../shared/data]'
	@echo '                         what a narrower KV cache costs: perplexity, GSM8K, needles (hours; goes on where it stopped)'
	@echo 'make lint                layers, headers, objects, sizes, format; clang-tidy on changes'
	@echo 'make sanitize            unit and kernel tests under address, undefined and thread sanitizers (long)'
	@echo 'make long-context         SmolLM2 over 131,072 tokens: memory and speed (half an hour or more)'
	@echo 'make fuzz [FUZZ_SECONDS=60]  every fuzzer for a while'

run: build
	@$(BUILD)/cicada pull smollm2 >/dev/null
	@$(BUILD)/cicada run -m smollm2 -p "$$PROMPT_TEXT"

serve: build
	@$(BUILD)/cicada pull smollm2 >/dev/null
	@exec $(BUILD)/cicada serve -m smollm2 --port "$(PORT)"

build:
	@tools/setup.sh build
	@$(MAKE) --no-print-directory configure
	@cmake --build $(BUILD) --target cicada

# ninja configures again by itself when a CMake file changes.
configure:
	@test -f $(BUILD)/build.ninja || cmake --preset release

all-targets: configure
	@cmake --build $(BUILD)

test:
	@tools/setup.sh test
	@$(MAKE) --no-print-directory all-targets
	@tools/venv.sh tests
	@tools/run_tests.sh $(BUILD) smollm2 -LE 'slow|gpu|models'

test-models:
	@tools/setup.sh test
	@$(MAKE) --no-print-directory all-targets
	@tools/venv.sh tests oracle
	@tools/run_tests.sh $(BUILD) smollm2,gemma3-270m,qwen2.5-coder-1.5b -L 'models|golden|e2e'

# Not part of `make test`: it fetches the newest clients.
test-sdk: build
	@$(BUILD)/cicada pull smollm2 >/dev/null
	@tests/sdk/run_sdk.py $(BUILD)

fuzz-api: build
	@CICADA_PROGRAM=$(BUILD)/cicada tests/sdk/fuzz_api.py

bench: build
	@for model in $(MODELS); do $(BUILD)/cicada pull "$$model" >/dev/null || exit; done
	@llamacpp=$$(bench/peers/llamacpp.sh) && bench/compare.py $(addprefix -m ,$(MODELS)) --batches "$(BATCHES)" --answer 128 \
		--peer "llama.cpp=$$llamacpp" $(addprefix --peer ,$(PEERS)) $(if $(README),--readme)

bench-serving: build
	@$(BUILD)/cicada pull smollm2 >/dev/null
	@llamacpp=$$(bench/peers/llamacpp.sh) && bench/serving.py --peer "$${llamacpp%/*}/llama-server" $(if $(README),--publish)

drills: build
	@$(BUILD)/cicada pull smollm2 >/dev/null
	@bench/drills.py kill
	@bench/drills.py leave
	@bench/drills.py trace --csv "$(DATA)/azure-llm-trace-2023/conv.csv"
	@bench/serving_cost.py metrics
	@bench/serving_cost.py buffers

kv-quality: build
	@for model in smollm2 gemma3-270m qwen2.5-coder-1.5b; do $(BUILD)/cicada pull "$$model" >/dev/null || exit; done
	@bench/kv_quality.py --cicada $(BUILD)/cicada --data "$(DATA)" --out out/kv-quality --kv "$(KV)" $(PARTS)

lint:
	@tools/setup.sh lint
	@$(MAKE) --no-print-directory all-targets
	@ctest --test-dir $(BUILD) -L lint --output-on-failure
	@tools/check_tidy.sh $(BUILD)

sanitize:
	@tools/setup.sh test
	@tools/sanitize.sh

fuzz:
	@tools/setup.sh fuzz
	@tools/fuzz.sh $(or $(FUZZ_SECONDS),60)

# Speed only: the model was trained for 8,192 tokens.
long-context: build
	@$(BUILD)/cicada pull smollm2 >/dev/null
	@$(BUILD)/cicada bench -m smollm2 -p 0 -n 16 -d 131056 -r 1 --kv $(KV_LONG)
