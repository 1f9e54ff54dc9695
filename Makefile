# SPDX-License-Identifier: Apache-2.0
#
# podprof's one build file. Everything is made below build/ and nothing else is touched, so that
# "rm -rf build" is a clean tree. Short lines; V=1 shows the commands.
#
#   build/podprof            the agent
#   build/obj/               its objects and the library they are linked from (libpodprof.a)
#   build/san/               the same sources under ASan and UBSan, for the tests
#   build/tsan/              the same once more under ThreadSanitizer, for the tests with threads
#   build/count/             its parsers once more, counting their work
#   build/fuzzobj/           the same once more, for libFuzzer
#   build/gen/               generated headers and sources (BPF skeleton, protobuf)
#   build/bpf/               BPF objects
#   build/test/              test programs, with the results of the last run

B := build
ARCH := $(shell uname -m | sed 's/aarch64/arm64/; s/x86_64/x86/')
OTHER_ARCH := $(if $(filter arm64,$(ARCH)),x86,arm64)
VERSION := $(shell git describe --always --dirty --tags 2>/dev/null || echo unknown)

CC ?= gcc
CXX ?= g++
CLANG ?= clang
PROGRAMS_CLANG = $(shell $(CLANG) -dumpversion | cut -d. -f1)
# A verifier accepts what one compiler makes of a program, and may refuse what another one does. So the agent is made
# again with the programs by Debian 13's clang, which Debian 12 has, too.
NEWER_CLANG ?= clang-19
NEWER := $(B)/newer
BPFTOOL ?= $(shell command -v bpftool 2>/dev/null || echo /usr/sbin/bpftool)
PREFIX ?= /usr/local
IMAGE ?= podprof:$(VERSION)
DESTDIR ?=

.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:
comma := ,
MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := all

ifeq ($(V),1)
Q :=
say = @:
else
Q := @
say = @printf '  %-8s %s\n' '$(1)' '$(2)'
endif

# ---------------------------------------------------------------- flags

WARN := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
	-Wvla -Wundef -Wformat=2 -Wno-format-nonliteral -Wno-unused-parameter -fno-common
DEFS := -D_GNU_SOURCE
INCS := -Iagent -I$(B)/gen -Ibpf -Itest
HARDEN := -fPIE -fstack-protector-strong -fstack-clash-protection -D_FORTIFY_SOURCE=2
ifeq ($(ARCH),x86)
HARDEN += -fcf-protection=full
endif
ifeq ($(ARCH),arm64)
HARDEN += -mbranch-protection=standard
endif
CFLAGS ?= -O2 -g
ALL_CFLAGS := -std=gnu11 $(WARN) $(DEFS) $(INCS) $(CFLAGS)
# -g1: functions and lines, as ASan prints them. Variables as well take a fifth more to compile.
SANITIZE := -O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all -pthread
SAN_CFLAGS := -std=gnu11 $(WARN) $(DEFS) $(INCS) $(SANITIZE)
# gcc warns of fences, which its ThreadSanitizer does not see. Ours order what BPF programs and the agent write.
TSAN := -O1 -g1 -fno-omit-frame-pointer -fsanitize=thread -pthread
TSAN_CFLAGS := -std=gnu11 $(WARN) -Wno-tsan $(DEFS) $(INCS) $(TSAN)
# libre2 of Debian 13 needs C++17. Without -Wshadow: a function may have the name of a struct in a header of C.
CXX_STD := -std=gnu++17 -fno-exceptions -fno-rtti
CXX_FLAGS := $(CXX_STD) $(filter-out -Wshadow -Wstrict-prototypes -Wmissing-prototypes,$(WARN)) $(DEFS) $(INCS)
# Of the programs of the tests: lld links them in a fifth of ld's time, and there are 400.
TEST_LD := $(if $(shell command -v ld.lld),-fuse-ld=lld -Wl$(comma)--build-id=sha1)
LINK_HARDEN := -pie -Wl,-z,relro,-z,now,-z,noexecstack -Wl,--as-needed
LIBS := -lbpf -ldw -lelf -llzma -lcurl -lmicrohttpd -lssl -lcrypto -lcrypt -lyaml -ljansson -lprotobuf-c -lz -lre2 -liberty \
	-lm -lstdc++ -pthread

# ---------------------------------------------------------------- sources

AGENT_SRC := $(sort $(wildcard agent/*.c agent/*/*.c))
LIB_SRC := $(filter-out agent/main.c,$(AGENT_SRC))
CXX_SRC := $(sort $(wildcard agent/*/*.cc))
PROTO := $(sort $(wildcard proto/*.proto))
GEN_SRC := $(PROTO:proto/%.proto=$(B)/gen/%.pb-c.c)
GEN_HDR := $(GEN_SRC:.c=.h) $(B)/gen/version.h
ASSETS := $(sort $(wildcard agent/server/assets/*.css agent/server/assets/*.js agent/server/assets/*.svg))
GEN_SRC += $(B)/gen/assets.c
BPF_SRC := $(sort $(wildcard bpf/*.bpf.c))
BPF_OTHER := $(BPF_SRC:bpf/%.bpf.c=$(B)/bpf/other/%.bpf.o)
ifneq ($(BPF_SRC),)
GEN_HDR += $(B)/gen/podprof.skel.h
endif
# Programs that only tests load, each with a skeleton of its own.
TEST_BPF_SRC := $(sort $(wildcard test/bpf/*.bpf.c))
RUNTIME_HDR := $(B)/gen/podprof_runtime.skel.h
TEST_HDR := $(TEST_BPF_SRC:test/bpf/%.bpf.c=$(B)/gen/%.skel.h) $(RUNTIME_HDR)

LIB_OBJ := $(LIB_SRC:%.c=$(B)/obj/%.o) $(CXX_SRC:%.cc=$(B)/obj/%.o) $(GEN_SRC:$(B)/%.c=$(B)/obj/%.o)
SAN_OBJ := $(LIB_SRC:%.c=$(B)/san/%.o) $(CXX_SRC:%.cc=$(B)/san/%.o) $(GEN_SRC:$(B)/%.c=$(B)/san/%.o)
TSAN_OBJ := $(SAN_OBJ:$(B)/san/%=$(B)/tsan/%)

SUPPORT_SRC := $(sort $(wildcard test/support/*.c))
SUPPORT_OBJ := $(SUPPORT_SRC:%.c=$(B)/san/%.o)
TSAN_SUPPORT_OBJ := $(SUPPORT_SRC:%.c=$(B)/tsan/%.o)
UNIT := $(patsubst %.c,$(B)/%,$(sort $(wildcard test/unit/*/test_*.c)))
# Unit tests with an event loop, or threads of their own. Two need a process with one thread, and ThreadSanitizer has one
# of its own.
TSAN_UNIT := $(patsubst %.c,$(B)/tsan/%,$(filter-out %/test_supervise.c %/test_cgroupnode.c, \
	$(sort $(shell grep -lE 'base/loop\.h|support/(threads|until)\.h|pthread_create' test/unit/*/test_*.c))))
BPF_TEST := $(patsubst %.c,$(B)/%,$(sort $(wildcard test/bpf/test_*.c)))
FUZZ_SRC := $(sort $(wildcard test/fuzz/*/fuzz_*.c))
REPLAY := $(FUZZ_SRC:test/fuzz/%.c=$(B)/test/replay/%)
FUZZ := $(FUZZ_SRC:%.c=$(B)/%)
BENCH := $(patsubst %.c,$(B)/%,$(sort $(wildcard test/bench/bench_*.c)))
# Its parsers count their work (test/complexity/count.h).
COMPLEXITY := $(patsubst %.c,$(B)/%,$(sort $(wildcard test/complexity/test_*.c)))
COUNTED := base codescan cpu discovery doctor elf export gofile goheap metadata pprof procmap profile relabel runtimes server symbolize \
	unwind unwindtable
COUNT_OBJ := $(patsubst %,$(B)/count/%.o,$(sort $(basename $(wildcard $(COUNTED:%=agent/%/*.c) $(COUNTED:%=agent/%/*.cc)))))
# Attackers and their victim, for containers: static, and without sanitizers.
HOSTILE := $(addprefix $(B)/hostile/,attack stallfs victim worstfile goring)
GUEST := $(B)/test/kernels/guest $(B)/test/kernels/runtimes
NEWER_GUEST := $(GUEST:$(B)/%=$(NEWER)/%)

# Not what tests compile themselves.
TIDY_SRC := $(AGENT_SRC) $(sort $(filter-out test/data/% test/fixtures/% \
	$(filter-out test/bench/bench_%,$(wildcard test/bench/*.c)), \
	$(wildcard test/*/*.c test/*/*/*.c)))
TIDY := $(TIDY_SRC:%.c=$(B)/lint/%.ok) $(CXX_SRC:%.cc=$(B)/lint/%.ok)

# ---------------------------------------------------------------- what people type

##@ Everyday
.PHONY: help setup all run check install image manifest clean
help: ## this list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install what is missing to build and test (Debian, as root)
	$(Q)test/setup.sh all

all: $(B)/podprof ## build the agent: build/podprof

run: ## install what is missing, build, and profile this node with a page on loopback
	$(Q)test/setup.sh build
	$(Q)$(MAKE) --no-print-directory -j$$(nproc) all
	$(Q)exec $(B)/podprof agent $(RUN_FLAGS)

# All run to their end, whatever the others find. Tests with a live agent or kernel wait most of their time: they get
# a CPU first, then the unit tests (check-unit), then lint. The attacks come after the other tests: they take names
# from all agents of the machine, and a CPU from everybody.
CHECKS := check-e2e check-bpf check-unit check-kernel check-compiler check-fuzz check-counts check-page check-deploy check-format
check: ## install what is missing, build and run every test
	$(Q)test/setup.sh all
	$(Q)test/run.sh begin
	$(Q)$(MAKE) --no-print-directory -j$$(nproc) all check-build
	$(Q)nice -n 10 $(MAKE) --no-print-directory -k -j$$(nproc) lint & lint=$$!; \
		$(MAKE) --no-print-directory -k -j$$((2 * $$(nproc))) $(CHECKS) || failed=yes; \
		$(MAKE) --no-print-directory check-hostile || failed=yes; \
		wait $$lint || failed=yes; \
		test/run.sh summary && [ -z "$$failed" ]

image: ## container image podprof:VERSION (buildah, podman or docker)
	$(Q)test/image.sh "$(IMAGE)" "$(VERSION)"

manifest: ## render deploy/podprof.yaml from the chart
	@mkdir -p $(B)
	$(Q)test/deploy.sh render > $(B)/podprof.yaml && mv $(B)/podprof.yaml deploy/podprof.yaml

install: all ## install the program (DESTDIR, PREFIX)
	install -D -m 0755 $(B)/podprof $(DESTDIR)$(PREFIX)/bin/podprof

clean: ## remove build/
	rm -rf $(B)

##@ Parts of check
.PHONY: check-build check-unit check-bpf check-kernel check-compiler check-fuzz check-counts check-page check-format check-deploy check-e2e check-hostile lint lint-c format limits settings
check-build: $(UNIT) $(COMPLEXITY) $(BPF_TEST) $(REPLAY) $(GUEST) $(NEWER)/podprof $(NEWER_GUEST) $(HOSTILE) $(BPF_OTHER) $(BENCH) ## build every test program and benchmark
check-unit: $(UNIT) $(COMPLEXITY) ## unit tests under ASan and UBSan; the growth of parsers' work
	$(Q)nice -n 5 test/run.sh unit $(UNIT) $(COMPLEXITY)

check-bpf: $(BPF_TEST) ## BPF programs in the real kernel (root)
	$(Q)test/run.sh bpf $(BPF_TEST)

check-kernel: $(B)/podprof $(GUEST) ## the oldest kernel that can be had, booted in QEMU
	$(Q)B=$(B) ARCH=$(ARCH) test/kernels/check.sh oldest

check-compiler: $(NEWER)/podprof $(NEWER_GUEST) ## the same with BPF programs by NEWER_CLANG and Debian 13's libbpf, and in the real kernel (root)
	$(Q)B=$(NEWER) ARCH=$(ARCH) SYSROOT="$$(test/kernels/debian.sh tree trixie "$$(dpkg --print-architecture)" libbpf1 libdw1t64):/" \
		test/kernels/check.sh oldest
	$(Q)B=$(NEWER) ARCH=$(ARCH) test/kernels/check.sh here

check-fuzz: $(REPLAY) ## every fuzzer on its corpus
	$(Q)test/run.sh fuzz $(REPLAY)

lint: $(GEN_HDR) $(B)/podprof ## clang-tidy, shell scripts, who includes whom, licence lines
	$(Q)B=$(B) test/lint.sh
	$(Q)$(MAKE) --no-print-directory $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$$(nproc)) lint-c

lint-c: $(TIDY) ## clang-tidy on what has changed since it last passed

format: ## reformat the C files
	$(Q)git ls-files '*.c' 'agent/*.cc' '*.h' | xargs clang-format -i

limits: ## generate docs/design/limits.md from the limits in the code
	@mkdir -p $(B)
	$(Q)test/limits.py > $(B)/limits.md && mv $(B)/limits.md docs/design/limits.md

settings: $(B)/podprof ## generate docs/settings.md from the help of podprof agent
	$(Q)test/settings.py $(B)/podprof > $(B)/settings.md && mv $(B)/settings.md docs/settings.md

check-counts: ## whether the comparison of counts finds a regression, and the arithmetic of bench-overhead
	$(Q)test/run.sh counts
check-page: ## the scripts of the page, with Node
	$(Q)test/run.sh page

check-deploy: ## the chart: helm lint, renders, deploy/podprof.yaml is what it renders
	$(Q)test/deploy.sh check

check-e2e: all ## containers under containerd, a real push handler, promtool: the short form
	$(Q)e2e/run.sh

check-hostile: all $(HOSTILE) ## containers that attack the agent, and what their neighbours lose: the short form (root)
	$(Q)test/run.sh hostile

# The layout is that of clang-format 14 (Debian 12). Later versions differ from it in a few places: those
# are shown and are not an error.
check-format: ## whether the C files are formatted
	$(Q)git ls-files '*.c' 'agent/*.cc' '*.h' | if clang-format --version | grep -q 'version 14\.'; then \
		xargs clang-format --dry-run -Werror; else \
		xargs clang-format --dry-run 2>&1 | grep warning: || true; fi

# ---------------------------------------------------------------- the program

$(B)/podprof: $(B)/obj/agent/main.o $(B)/obj/libpodprof.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LINK_HARDEN) $(LDFLAGS) -o $@ $^ $(LIBS)

$(NEWER)/podprof: $(B)/obj/agent/main.o $(NEWER)/bpfobj.o $(B)/obj/libpodprof.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LINK_HARDEN) $(LDFLAGS) -o $@ $^ $(LIBS)

$(B)/san/podprof: $(B)/san/agent/main.o $(B)/san/libpodprof.a
	$(call say,LINK,$@)
	$(Q)$(CC) -fsanitize=address,undefined $(LDFLAGS) -o $@ $^ $(LIBS)

$(B)/tsan/podprof: $(B)/tsan/agent/main.o $(B)/tsan/libpodprof.a
	$(call say,LINK,$@)
	$(Q)$(CC) -fsanitize=thread $(LDFLAGS) -o $@ $^ $(LIBS)

$(B)/obj/libpodprof.a: $(LIB_OBJ)
$(B)/san/libpodprof.a: $(SAN_OBJ)
$(B)/san/libsupport.a: $(SUPPORT_OBJ)
$(B)/tsan/libpodprof.a: $(TSAN_OBJ)
$(B)/tsan/libsupport.a: $(TSAN_SUPPORT_OBJ)
$(B)/obj/libpodprof.a.members: MEMBERS := $(LIB_OBJ)
$(B)/san/libpodprof.a.members: MEMBERS := $(SAN_OBJ)
$(B)/san/libsupport.a.members: MEMBERS := $(SUPPORT_OBJ)
$(B)/tsan/libpodprof.a.members: MEMBERS := $(TSAN_OBJ)
$(B)/tsan/libsupport.a.members: MEMBERS := $(TSAN_SUPPORT_OBJ)
%.a: %.a.members
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $(filter %.o,$^)

# A removed member, or one that was built before it became a member, is no newer than the archive.
%.a.members: FORCE
	@mkdir -p $(@D)
	@echo '$(MEMBERS)' | cmp -s - $@ || echo '$(MEMBERS)' > $@

# A change of compiler or flags rebuilds what depends on them.
$(B)/flags: FORCE
	@mkdir -p $(B)
	@echo '$(CC) $(ALL_CFLAGS) $(CXX) $(CXX_FLAGS) $(HARDEN) $(LDFLAGS) $(LIBS)' | cmp -s - $@ || \
		echo '$(CC) $(ALL_CFLAGS) $(CXX) $(CXX_FLAGS) $(HARDEN) $(LDFLAGS) $(LIBS)' > $@
.PHONY: FORCE

$(B)/obj/%.o: %.c $(B)/flags | $(GEN_HDR)
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(HARDEN) -MMD -MP -c -o $@ $<

$(B)/obj/%.o: %.cc $(B)/flags | $(GEN_HDR)
	$(call say,CXX,$<)
	@mkdir -p $(@D)
	$(Q)$(CXX) $(CXX_FLAGS) $(CFLAGS) $(HARDEN) -MMD -MP -c -o $@ $<

$(B)/obj/gen/%.o: $(B)/gen/%.c $(B)/flags
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(HARDEN) -MMD -MP -c -o $@ $<

$(B)/san/%.o: %.c $(B)/flags | $(GEN_HDR)
	$(call say,CC-SAN,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(SAN_CFLAGS) -MMD -MP -c -o $@ $<

# test/support/verified.h
$(B)/san/test/bpf/%.o: SAN_CFLAGS += -DPROGRAMS_CLANG=$(PROGRAMS_CLANG)

$(B)/san/%.o: %.cc $(B)/flags | $(GEN_HDR)
	$(call say,CXX-SAN,$<)
	@mkdir -p $(@D)
	$(Q)$(CXX) $(CXX_FLAGS) $(SANITIZE) -MMD -MP -c -o $@ $<

$(B)/san/gen/%.o: $(B)/gen/%.c $(B)/flags
	$(call say,CC-SAN,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(SAN_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/tsan/%.o: %.c $(B)/flags | $(GEN_HDR)
	$(call say,CC-TSAN,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(TSAN_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/tsan/%.o: %.cc $(B)/flags | $(GEN_HDR)
	$(call say,CXX-TSAN,$<)
	@mkdir -p $(@D)
	$(Q)$(CXX) $(CXX_FLAGS) $(TSAN) -MMD -MP -c -o $@ $<

$(B)/tsan/gen/%.o: $(B)/gen/%.c $(B)/flags
	$(call say,CC-TSAN,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(TSAN_CFLAGS) -MMD -MP -c -o $@ $<

# ---------------------------------------------------------------- generated

# Written only when the version is another one, so that a commit does not rebuild everything.
$(B)/gen/version.h: FORCE
	@mkdir -p $(@D)
	@echo '#define PODPROF_VERSION "$(VERSION)"' | cmp -s - $@ || \
		echo '#define PODPROF_VERSION "$(VERSION)"' > $@

$(B)/gen/%.pb-c.c $(B)/gen/%.pb-c.h: proto/%.proto
	$(call say,PROTOC,$<)
	@mkdir -p $(@D)
	$(Q)protoc-c --proto_path=proto --c_out=$(B)/gen $<

$(B)/gen/assets.c: agent/server/assets/embed.sh $(ASSETS)
	$(call say,EMBED,$@)
	@mkdir -p $(@D)
	$(Q)agent/server/assets/embed.sh $(ASSETS) > $@

BPF_CFLAGS := -std=gnu11 -O2 -g -target bpf -mcpu=v2 -Wall -Wextra -Werror -Wno-unused-parameter \
	-Ibpf

$(B)/bpf/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CLANG) $(BPF_CFLAGS)' | cmp -s - $@ || echo '$(CLANG) $(BPF_CFLAGS)' > $@

$(B)/bpf/%.bpf.o: bpf/%.bpf.c $(B)/bpf/flags
	$(call say,BPF,$<)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -D__TARGET_ARCH_$(ARCH) -MMD -MP -MT $@ -MF $(@:.o=.d) -c -o $@ $<

# The architecture that this machine is not: built to see that it can be, not loaded.
$(B)/bpf/other/%.bpf.o: bpf/%.bpf.c $(B)/bpf/flags
	$(call say,BPF,$< ($(OTHER_ARCH)))
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -D__TARGET_ARCH_$(OTHER_ARCH) -MMD -MP -MT $@ -MF $(@:.o=.d) -c -o $@ $<

$(B)/bpf/podprof.linked.o: $(BPF_SRC:bpf/%.bpf.c=$(B)/bpf/%.bpf.o)

# The agent once more, with the programs by NEWER_CLANG.
$(NEWER)/bpf/%.bpf.o: bpf/%.bpf.c $(B)/bpf/flags
	$(call say,BPF,$< ($(NEWER_CLANG)))
	@mkdir -p $(@D)
	$(Q)$(NEWER_CLANG) $(BPF_CFLAGS) -D__TARGET_ARCH_$(ARCH) -MMD -MP -MT $@ -MF $(@:.o=.d) -c -o $@ $<

$(NEWER)/bpf/podprof.linked.o: $(BPF_SRC:bpf/%.bpf.c=$(NEWER)/bpf/%.bpf.o)

$(NEWER)/gen/podprof.skel.h: $(NEWER)/bpf/podprof.linked.o

# In front of the library, whose own stays out.
$(NEWER)/bpfobj.o: agent/profile/bpfobj.c $(NEWER)/gen/podprof.skel.h $(B)/flags | $(GEN_HDR)
	$(call say,CC,$<)
	$(Q)$(CC) -I$(NEWER)/gen $(ALL_CFLAGS) $(HARDEN) -MMD -MP -c -o $@ $<

$(B)/gen/podprof.skel.h: $(B)/bpf/podprof.linked.o

$(B)/bpf/test/%.bpf.o: test/bpf/%.bpf.c $(B)/bpf/flags
	$(call say,BPF,$<)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -Itest -D__TARGET_ARCH_$(ARCH) -MMD -MP -MT $@ -MF $(@:.o=.d) -c -o $@ $<

# The programs once more, with the runtime that tests have (test/bpf/runtime_test.h).
$(B)/bpf/runtime/%.bpf.o: bpf/%.bpf.c $(B)/bpf/flags
	$(call say,BPF,$< (runtime))
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -Itest -DFRAME_RUNTIMES_TEST='"bpf/runtime_test.bpf.h"' \
		-D__TARGET_ARCH_$(ARCH) -MMD -MP -MT $@ -MF $(@:.o=.d) -c -o $@ $<

$(B)/bpf/runtime/podprof.linked.o: $(BPF_SRC:bpf/%.bpf.c=$(B)/bpf/runtime/%.bpf.o)

$(RUNTIME_HDR): $(B)/bpf/runtime/podprof.linked.o

# One object and one skeleton of all programs, in each of the three kinds.
$(B)/bpf/podprof.linked.o $(NEWER)/bpf/podprof.linked.o $(B)/bpf/runtime/podprof.linked.o:
	$(call say,BPF-LINK,$@)
	$(Q)$(BPFTOOL) gen object $@ $^

$(B)/gen/podprof.skel.h $(NEWER)/gen/podprof.skel.h $(RUNTIME_HDR):
	$(call say,SKEL,$@)
	@mkdir -p $(@D)
	$(Q)$(BPFTOOL) gen skeleton $< name podprof_bpf > $@

$(filter-out $(RUNTIME_HDR),$(TEST_HDR)): $(B)/gen/%.skel.h: $(B)/bpf/test/%.bpf.o
	$(call say,SKEL,$@)
	@mkdir -p $(@D)
	$(Q)$(BPFTOOL) gen skeleton $< name $*_bpf > $@

# ---------------------------------------------------------------- tests

TEST_LIBS := $(B)/san/libsupport.a $(B)/san/libpodprof.a
# test/support/allocfail.h
ALLOC_WRAP := $(patsubst %,-Wl$(comma)--wrap=%,malloc calloc realloc reallocarray strdup strndup)

# ELF files of each kind for tests to read; test/support/fixture.h finds them.
FIXTURE_DIR := $(B)/test/fixtures
FIXTURES := $(addprefix $(FIXTURE_DIR)/,plain-pie plain-fixed other-fixed plain-static \
	plain-stripped cxx asm bare bare-stripped zoo-pie zoo-lazy zoo-static \
	short zoo-nocfi zoo-fp keeper ape bat cat cow dog plugin_ant plugin_bee)
FIXTURES += $(addprefix $(FIXTURE_DIR)/,cxx.debug cxx-linked cxx-checked cxx-other cxx-mini debuginfod)
FIXTURES += $(addprefix $(FIXTURE_DIR)/,inline-gcc2 inline-gcc3 inline-gcc4 inline-gcc5 inline-clang4 inline-clang5 \
	inline-lto inline-gz inline-linked inline.debug inline-dwz nested nested-small forged \
	inline-split4 inline-split5 inline-clangsplit4 inline-clangsplit5 \
	inline-package4 inline-package5 inline-clangpackage4 inline-clangpackage5)
FIXTURES += $(addprefix $(FIXTURE_DIR)/,work-O2 work-O3 work-static work-static-pie \
	cxxwork-O2 cxxwork-O3 cxxwork-static)
$(FIXTURE_DIR)/plain-pie: FIXTURE_FLAGS := -fPIE -pie
$(FIXTURE_DIR)/plain-fixed $(FIXTURE_DIR)/other-fixed: FIXTURE_FLAGS := -fno-pie -no-pie
$(FIXTURE_DIR)/plain-static: FIXTURE_FLAGS := -fno-pie -static
$(FIXTURE_DIR)/plain-stripped: FIXTURE_FLAGS := -fPIE -pie -s
$(FIXTURE_DIR)/asm: FIXTURE_FLAGS := -nostdlib -static
$(FIXTURE_DIR)/zoo-pie: FIXTURE_FLAGS := -fPIE -pie -O2 -fomit-frame-pointer -Wl,-z,now
$(FIXTURE_DIR)/zoo-lazy: FIXTURE_FLAGS := -fPIE -pie -O2 -fomit-frame-pointer -Wl,-z,lazy
$(FIXTURE_DIR)/zoo-static: FIXTURE_FLAGS := -fno-pie -static -O3 -fomit-frame-pointer
$(FIXTURE_DIR)/zoo-fp: FIXTURE_FLAGS := -fPIE -pie -fno-omit-frame-pointer
# ape and bat lie at the same addresses, and so do cat and cow.
ANIMAL = -O2 -fomit-frame-pointer -pthread -DANIMAL=$(@F)
$(FIXTURE_DIR)/ape: FIXTURE_FLAGS = $(ANIMAL) -DFRAME=100 -fno-pie -static
$(FIXTURE_DIR)/bat: FIXTURE_FLAGS = $(ANIMAL) -DFRAME=200 -fno-pie -static
$(FIXTURE_DIR)/cat: FIXTURE_FLAGS = $(ANIMAL) -DFRAME=300 -DPLUGINS -fno-pie -no-pie
$(FIXTURE_DIR)/cow: FIXTURE_FLAGS = $(ANIMAL) -DFRAME=400 -DPLUGINS -fno-pie -no-pie
$(FIXTURE_DIR)/dog: FIXTURE_FLAGS = $(ANIMAL) -DFRAME=500 -DPLUGINS -fPIE -pie
PLUGIN = -O2 -fomit-frame-pointer -fPIC -shared -DPLUGIN=$(@F)
$(FIXTURE_DIR)/plugin_ant: FIXTURE_FLAGS = $(PLUGIN) -DFIRST=busy -DSECOND=idle
$(FIXTURE_DIR)/plugin_bee: FIXTURE_FLAGS = $(PLUGIN) -DFIRST=idle -DSECOND=busy
$(FIXTURE_DIR)/keeper: FIXTURE_FLAGS := -static
$(FIXTURE_DIR)/keeper: test/fixtures/attribution/keeper.c
	$(BUILD_FIXTURE)
$(addprefix $(FIXTURE_DIR)/,ape bat cat cow dog): test/fixtures/attribution/animal.c
	$(BUILD_FIXTURE)
$(addprefix $(FIXTURE_DIR)/,plugin_ant plugin_bee): test/fixtures/attribution/plugin.c
	$(BUILD_FIXTURE)
$(FIXTURE_DIR)/work-O2 $(FIXTURE_DIR)/cxxwork-O2: FIXTURE_FLAGS := -fPIE -pie -O2 -fomit-frame-pointer
$(FIXTURE_DIR)/work-O3 $(FIXTURE_DIR)/cxxwork-O3: FIXTURE_FLAGS := -fno-pie -no-pie -O3 -fomit-frame-pointer
$(FIXTURE_DIR)/work-static $(FIXTURE_DIR)/cxxwork-static: FIXTURE_FLAGS := -fno-pie -static -O2 -fomit-frame-pointer
$(FIXTURE_DIR)/work-static-pie: FIXTURE_FLAGS := -fPIE -static-pie -O2 -fomit-frame-pointer
$(FIXTURE_DIR)/work-%: test/fixtures/stacks/work.c
	$(BUILD_FIXTURE)
$(FIXTURE_DIR)/cxxwork-%: test/fixtures/stacks/work.cc
	$(BUILD_FIXTURE)
$(FIXTURE_DIR)/plain-%: test/fixtures/elf/plain.c
	$(BUILD_FIXTURE)
$(FIXTURE_DIR)/other-%: test/fixtures/elf/plain.c
	$(BUILD_FIXTURE)
# As a vendor's library may come: without tables.
$(FIXTURE_DIR)/zoo-nocfi: $(FIXTURE_DIR)/zoo-static
	$(call say,FIXTURE,$@)
	$(Q)objcopy --remove-section=.eh_frame $< $@
$(FIXTURE_DIR)/short: FIXTURE_FLAGS := -fPIE -pie -O2 -fomit-frame-pointer
$(FIXTURE_DIR)/short: test/bench/short_burn.c
	$(BUILD_FIXTURE)
$(FIXTURE_DIR)/zoo-%: test/fixtures/unwind/zoo.c
	$(BUILD_FIXTURE)
$(FIXTURE_DIR)/asm: test/fixtures/elf/asm.S
	$(BUILD_FIXTURE)
$(FIXTURE_DIR)/bare: FIXTURE_FLAGS := -nostdlib -shared
$(FIXTURE_DIR)/bare: test/fixtures/elf/bare.S
	$(BUILD_FIXTURE)
$(FIXTURE_DIR)/bare-stripped: $(FIXTURE_DIR)/bare
	$(call say,FIXTURE,$@)
	$(Q)objcopy --strip-all $< $@
$(FIXTURE_DIR)/cxx: test/fixtures/elf/cxx.cc
	$(BUILD_FIXTURE)
# Stripped, as distributions do it: with a debug file found by build id, by name and checksum, or another
# build's in its place, and with the symbols inside.
$(FIXTURE_DIR)/cxx.debug: $(FIXTURE_DIR)/cxx
	$(call say,FIXTURE,$@)
	$(Q)objcopy --only-keep-debug $< $@
$(FIXTURE_DIR)/cxx-linked $(FIXTURE_DIR)/cxx-checked: $(FIXTURE_DIR)/cxx-%: $(FIXTURE_DIR)/cxx $(FIXTURE_DIR)/cxx.debug
	$(call say,FIXTURE,$@)
	$(Q)objcopy --strip-all --add-gnu-debuglink=$(FIXTURE_DIR)/cxx.debug \
		$(if $(filter checked,$*),--remove-section=.note.gnu.build-id) $< $@
$(FIXTURE_DIR)/cxx-other: $(FIXTURE_DIR)/cxx $(FIXTURE_DIR)/plain-pie
	$(call say,FIXTURE,$@)
	$(Q)objcopy --strip-all --add-gnu-debuglink=$(FIXTURE_DIR)/plain-pie $< $@
$(FIXTURE_DIR)/debuginfod: test/tool.sh
	$(call say,FIXTURE,$@)
	$(Q)ln -sfn "$$(test/tool.sh debuginfod)" $@
$(FIXTURE_DIR)/cxx-mini: $(FIXTURE_DIR)/cxx
	$(call say,FIXTURE,$@)
	$(Q)objcopy --only-keep-debug $< $@.symbols && xz -f $@.symbols && \
		objcopy --strip-all --add-section=.gnu_debugdata=$@.symbols.xz $< $@ && rm $@.symbols.xz
# With DWARF of each version and compiler, compressed, and in a file beside the program.
$(FIXTURE_DIR)/nested: FIXTURE_FLAGS := -fPIE -pie -O2 -g
$(FIXTURE_DIR)/nested-small: FIXTURE_FLAGS := -fPIE -pie -Os -g
$(FIXTURE_DIR)/nested $(FIXTURE_DIR)/nested-small: test/fixtures/elf/nested.c
	$(BUILD_FIXTURE)
$(FIXTURE_DIR)/forged: FIXTURE_FLAGS := -fPIE -pie -O1 -g
$(FIXTURE_DIR)/forged: test/fixtures/elf/forged.c
	$(BUILD_FIXTURE)
$(FIXTURE_DIR)/inline-gcc2: FIXTURE_FLAGS := -fPIE -pie -O2 -g -gdwarf-2 -gstrict-dwarf
$(FIXTURE_DIR)/inline-gcc3: FIXTURE_FLAGS := -fPIE -pie -O2 -g -gdwarf-3 -gstrict-dwarf
$(FIXTURE_DIR)/inline-lto: FIXTURE_FLAGS := -fPIE -pie -O2 -g -flto -ffunction-sections
$(FIXTURE_DIR)/inline-gcc4: FIXTURE_FLAGS := -fPIE -pie -O2 -g -gdwarf-4
$(FIXTURE_DIR)/inline-gcc5: FIXTURE_FLAGS := -fPIE -pie -O2 -g -gdwarf-5
$(FIXTURE_DIR)/inline-gz: FIXTURE_FLAGS := -fPIE -pie -O2 -g -gdwarf-4 -gz
$(FIXTURE_DIR)/inline-clang%: test/fixtures/elf/inline.cc
	$(call say,FIXTURE,$@)
	@mkdir -p $(@D)
	$(Q)$(CLANG)++ -fPIE -pie -O2 -g -gdwarf-$* -Wl,--build-id -o $@ $<
# The functions in a file beside the program, .dwo.
$(FIXTURE_DIR)/inline-split4: FIXTURE_FLAGS := -fPIE -pie -O2 -g -gdwarf-4 -gsplit-dwarf
$(FIXTURE_DIR)/inline-split5: FIXTURE_FLAGS := -fPIE -pie -O2 -g -gdwarf-5 -gsplit-dwarf
$(FIXTURE_DIR)/inline-clangsplit%: test/fixtures/elf/inline.cc
	$(call say,FIXTURE,$@)
	@mkdir -p $(@D)
	$(Q)$(CLANG)++ -fPIE -O2 -g -gdwarf-$* -gsplit-dwarf -c -o $@.o $< && \
		$(CLANG)++ -pie -Wl,--build-id -o $@ $@.o && rm $@.o
# The functions in a package beside the program, .dwp, between the units of another program.
# binutils of later Debians have none; the one of 12 does not read DWARF 5
$(FIXTURE_DIR)/inline-package4: PACKAGER = $$(command -v dwp || echo llvm-dwp)
$(FIXTURE_DIR)/inline-package5: PACKAGER := llvm-dwp
$(FIXTURE_DIR)/inline-package%: test/fixtures/elf/inline.cc test/fixtures/elf/cxx.cc
	$(call BUILD_PACKAGE,$(CXX))
$(FIXTURE_DIR)/inline-clangpackage%: PACKAGER := llvm-dwp
$(FIXTURE_DIR)/inline-clangpackage%: test/fixtures/elf/inline.cc test/fixtures/elf/cxx.cc
	$(call BUILD_PACKAGE,$(CLANG)++)
$(FIXTURE_DIR)/inline-linked: $(FIXTURE_DIR)/inline-gcc4 $(FIXTURE_DIR)/inline.debug
	$(call say,FIXTURE,$@)
	$(Q)objcopy --strip-all --add-gnu-debuglink=$(FIXTURE_DIR)/inline.debug $< $@
$(FIXTURE_DIR)/inline.debug: $(FIXTURE_DIR)/inline-gcc4
	$(call say,FIXTURE,$@)
	$(Q)objcopy --only-keep-debug $< $@
# dwz moves what two files have in common into a third.
$(FIXTURE_DIR)/inline-dwz: $(FIXTURE_DIR)/inline-gcc4
	$(call say,FIXTURE,$@)
	$(Q)cp $< $@ && cp $< $@-other && \
		dwz -m $@.debug -M $(abspath $@.debug) $@ $@-other && rm $@-other
$(FIXTURE_DIR)/inline-%: test/fixtures/elf/inline.cc
	$(BUILD_FIXTURE)
# Relabelling rules and patterns with Prometheus' answers, always the same ones.
RELABEL_CASES := $(FIXTURE_DIR)/relabel-cases.jsonl
$(RELABEL_CASES): $(wildcard test/oracle/relabel/*)
	$(call say,FIXTURE,$@)
	@mkdir -p $(@D)
	$(Q)tool=$$(test/tool.sh relabelcases) && $$tool 1 6000 > $@
$(B)/test/unit/relabel/test_prometheus: | $(RELABEL_CASES)
define BUILD_FIXTURE
$(call say,FIXTURE,$@)
@mkdir -p $(@D)
$(Q)$(if $(filter %.cc,$<),$(CXX),$(CC)) -O1 -g0 -D_GNU_SOURCE -Wl,--build-id $(FIXTURE_FLAGS) -o $@ $<
endef

# The files that the program names are gone in the end.
define BUILD_PACKAGE
$(call say,FIXTURE,$@)
@mkdir -p $@.d
$(Q)for i in inline cxx; do \
	$1 -fPIE -O2 -g -gdwarf-$* -gsplit-dwarf -c -o $@.d/$$i.o test/fixtures/elf/$$i.cc || exit; done
$(Q)sed 's/main/other/' test/fixtures/elf/inline.cc >$@.d/other.cc && \
	$1 -fPIE -O2 -g -gdwarf-$* -gsplit-dwarf -c -o $@.d/other.o $@.d/other.cc
$(Q)$1 -pie -Wl,--build-id -o $@ $@.d/inline.o && \
	$(PACKAGER) -o $@.dwp $@.d/cxx.dwo $@.d/inline.dwo $@.d/other.dwo && rm -r $@.d
endef

$(UNIT) $(BPF_TEST): | $(FIXTURES)
# The process that reads DWARF has the limits of the program, not of the sanitizers.
$(B)/test/unit/symbolize/test_dwarf: | $(B)/podprof
$(BPF_TEST:$(B)/%=$(B)/san/%.o) $(BPF_TEST:$(B)/%=$(B)/lint/%.ok) $(BENCH:$(B)/%=$(B)/obj/%.o): | $(TEST_HDR)
$(UNIT) $(BPF_TEST): $(B)/%: $(B)/san/%.o $(TEST_LIBS)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(TEST_LD) -fsanitize=address,undefined $(ALLOC_WRAP) -o $@ $(filter %.o,$^) \
		-Wl,--start-group $(TEST_LIBS) -liberty -Wl,--end-group -lcmocka $(LIBS)

$(TSAN_UNIT): | $(FIXTURES)
$(B)/tsan/test/unit/symbolize/test_dwarf: | $(B)/podprof
$(TSAN_UNIT): $(B)/tsan/test/unit/%: $(B)/tsan/test/unit/%.o $(B)/tsan/libsupport.a $(B)/tsan/libpodprof.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(TEST_LD) -fsanitize=thread $(ALLOC_WRAP) -o $@ $(filter %.o,$^) \
		-Wl,--start-group $(filter %.a,$^) -liberty -Wl,--end-group -lcmocka $(LIBS)

COUNT_FLAGS := -O1 -g1 -fno-builtin -fsanitize-coverage=trace-pc
COUNT_WRAP := $(patsubst %,-Wl$(comma)--wrap=%,memcpy memmove memset memcmp memchr memrchr memmem strlen strnlen strchr \
	strrchr strspn strcspn strstr strcmp strncmp inflate lzma_code json_loadb yaml_parser_parse)
$(B)/count/%.o: %.c $(B)/flags | $(GEN_HDR)
	$(call say,CC-COUNT,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 $(WARN) $(DEFS) $(INCS) $(COUNT_FLAGS) -MMD -MP -c -o $@ $<
$(B)/count/%.o: %.cc $(B)/flags | $(GEN_HDR)
	$(call say,CXX-COUNT,$<)
	@mkdir -p $(@D)
	$(Q)$(CXX) $(CXX_FLAGS) $(COUNT_FLAGS) -MMD -MP -c -o $@ $<

# The counting objects come before the library, which has the rest.
$(B)/count/libcount.a: $(COUNT_OBJ)
$(B)/count/libcount.a.members: MEMBERS := $(COUNT_OBJ)
COMPLEXITY_PARTS := complexity/count.o complexity/growth.o $(patsubst %,support/%.o,elfmake elfworst heapimage jitmake packagemake)
$(COMPLEXITY): $(B)/%: $(B)/obj/%.o $(COMPLEXITY_PARTS:%=$(B)/obj/test/%) \
	$(B)/count/libcount.a $(B)/obj/libpodprof.a
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(TEST_LD) $(COUNT_WRAP) -o $@ $^ -lcmocka $(LIBS)

# The agent's parts that know the runtimes, before the library's.
$(B)/test/bpf/test_runtimes: $(B)/san/test/bpf/runtime_agent.o
$(B)/san/test/bpf/runtime_agent.o $(B)/obj/test/bpf/runtime_agent.o \
	$(B)/lint/test/bpf/runtime_agent.ok: | $(RUNTIME_HDR)

$(REPLAY): $(B)/test/replay/%: $(B)/san/test/fuzz/%.o $(B)/san/test/fuzz/replay.o $(TEST_LIBS)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(TEST_LD) -fsanitize=address,undefined -o $@ $< $(B)/san/test/fuzz/replay.o $(TEST_LIBS) $(LIBS)

# One empty file for each source that clang-tidy had nothing to say about, with its headers as
# dependencies. It has the time at which clang-tidy began, so that what is changed while it runs is
# looked at again; another version, other flags or checks look at everything again.
TIDY_CFLAGS = $(if $(filter %.cc,$<),$(CXX_STD),-std=gnu11) $(DEFS) $(INCS)
# One function at a time: across calls it takes every "return -errno" for a possible success.
TIDY_ANALYZER := -Xclang -analyzer-config -Xclang ipa=none
$(B)/lint/flags: FORCE
	@mkdir -p $(@D)
	@{ echo '$(CXX_STD) $(TIDY_CFLAGS) $(TIDY_ANALYZER)'; clang-tidy --version; \
		cat .clang-tidy test/.clang-tidy | sha256sum; } > $@.now
	@cmp -s $@.now $@ || cp $@.now $@
	@find $${XDG_CACHE_HOME:-$${HOME:-/root}/.cache}/podprof-tools/tidy -mtime +30 -delete 2>/dev/null || true

define RUN_TIDY
$(call say,TIDY,$<)
@mkdir -p $(@D)
@touch $(@:.ok=.began)
$(Q)CLANG=$(CLANG) test/tidy.sh $(B)/lint/flags $(@:.ok=) $< $(TIDY_CFLAGS) $(TIDY_ANALYZER)
@mv $(@:.ok=.began) $@
endef
$(B)/lint/%.ok: %.c $(B)/lint/flags | $(GEN_HDR)
	$(RUN_TIDY)
$(B)/lint/%.ok: %.cc $(B)/lint/flags | $(GEN_HDR)
	$(RUN_TIDY)

# What a virtual machine runs first: no sanitizers, and stacks that are known (support/burn.h).
$(B)/obj/test/kernels/plain.o: private HARDEN += -fomit-frame-pointer
$(B)/test/kernels/guest: $(addprefix $(B)/obj/test/kernels/,guest.o entities.o plain.o)
$(B)/test/kernels/runtimes: $(addprefix $(B)/obj/test/,kernels/runtimes.o bpf/runtime_agent.o)
$(NEWER)/test/kernels/guest: $(addprefix $(B)/obj/test/kernels/,guest.o entities.o plain.o) $(NEWER)/bpfobj.o
$(NEWER)/test/kernels/runtimes: $(addprefix $(B)/obj/test/,kernels/runtimes.o bpf/runtime_agent.o)
$(GUEST) $(NEWER_GUEST): $(B)/obj/test/support/burn.o $(B)/obj/libpodprof.a
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(LINK_HARDEN) $(LDFLAGS) -o $@ $(filter %.o,$^) $(B)/obj/libpodprof.a $(LIBS)

$(B)/hostile/attack $(B)/hostile/stallfs $(B)/hostile/victim: $(B)/hostile/%: test/hostile/%.c $(B)/flags
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -O2 $(WARN) $(DEFS) -Itest -fomit-frame-pointer -static -pthread -o $@ $<
$(B)/hostile/stallfs: test/support/fusewire.h

$(B)/hostile/worstfile: $(addprefix $(B)/obj/test/,hostile/worstfile.o support/elfworst.o support/elfmake.o)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LINK_HARDEN) -o $@ $^ -lcmocka

$(B)/hostile/goring: $(wildcard test/hostile/goring/*)
	$(call say,GO,$@)
	@mkdir -p $(@D)
	$(Q)cd test/hostile/goring && CGO_ENABLED=0 ../../go.sh build -ldflags=-checklinkname=0 -o $(abspath $@) .

##@ Longer
.PHONY: fuzz hostile check-relabel bench bench-counts bench-compare bench-workloads bench-idle bench-growth bench-large bench-names bench-symbols bench-images bench-turns bench-starved bench-overhead bench-runtimes bench-frames e2e e2e-cluster e2e-long e2e-san check-backends check-pyroscope check-parca check-go check-go-load check-go-programs check-symbols check-kernels check-rows check-attribution check-entities arm64 check-arm64 check-tsan
KERNELS ?= 5.10 6.1 6.12 6.16 6.18 7.2 7.3
ARM64_KERNELS ?= 5.10 6.1 7.3
check-kernels: $(B)/podprof $(GUEST) ## KERNELS fetched and booted in QEMU, arm64's, this machine's (minutes)
	$(Q)B=$(B) ARCH=$(ARCH) test/kernels/check.sh $(KERNELS) here
	$(Q)$(MAKE) --no-print-directory check-arm64

# The libraries come out of Debian's arm64 packages; the machine stays of one architecture.
SYSROOT = $(shell test/kernels/debian.sh sysroot arm64 $$(test/setup.sh libraries))
arm64: ## cross-build for arm64: build/arm64/podprof
	$(Q)test/setup.sh arm64
	$(Q)$(MAKE) --no-print-directory ARCH=arm64 B=build/arm64 \
		CC="aarch64-linux-gnu-gcc --sysroot=$(SYSROOT)" \
		CXX="aarch64-linux-gnu-g++ --sysroot=$(SYSROOT)" all build/arm64/test/kernels/guest \
		build/arm64/test/kernels/runtimes

# Debian's releases with the language runtimes for the guest. Without one (PYTHON_SUITE=) the guest has no such runtime.
PYTHON_SUITE ?= bookworm
NODE_SUITE ?= bookworm
JAVA_SUITE ?= bookworm
# The OpenJDK of these that JAVA_SUITE has: 8 is in sid, 11 in bullseye, 21 and 25 in trixie.
JAVA_RELEASE ?= 17
check-tsan: $(TSAN_UNIT) ## unit tests with threads under ThreadSanitizer (minutes)
	$(Q)nice -n 5 test/run.sh tsan $(TSAN_UNIT)

check-arm64: arm64 ## the arm64 programs in ARM64_KERNELS, booted in QEMU, with CPython, Node and OpenJDK of these suites
	$(Q)B=build/arm64 ARCH=arm64 SYSROOT=$(SYSROOT) \
		PYTHON=$(if $(PYTHON_SUITE),$$(test/kernels/debian.sh tree $(PYTHON_SUITE) arm64 python3.11-minimal python3.13-minimal)) \
		NODE=$(if $(NODE_SUITE),$$(test/kernels/debian.sh tree $(NODE_SUITE) arm64 nodejs)) \
		JAVA=$(if $(JAVA_SUITE),$$(test/kernels/debian.sh tree $(JAVA_SUITE) arm64 openjdk-$(JAVA_RELEASE)-jre-headless)) \
		test/kernels/check.sh $(ARM64_KERNELS)

# One of each minor release that podprof reads; "go" in PATH fetches those it is not (1.21 or newer).
GO_VERSIONS ?= 1.16.15 1.17.13 1.18.10 1.19.13 1.20.14 1.21.13 1.22.12 1.23.12 1.24.13 1.25.5 1.26.8 1.27.3
GO_TESTS := $(addprefix $(B)/test/unit/,gofile/test_gopclntab unwind/test_gorows unwind/test_gostacks \
	goheap/test_process goheap/test_load goprofile/test_heap \
	goprofile/test_gopprof cmd/test_heap_kinds goprofile/test_heapcontention)
GO_MATRIX := $(B)/test/unit/goprofile/test_gomatrix
check-go: $(GO_TESTS) $(GO_MATRIX) $(B)/podprof ## the Go readers and Go's stacks against GO_VERSIONS, fetched (minutes)
	$(Q)PODPROF_TEST_GO="$(GO_VERSIONS)" $(GO_MATRIX)
	$(Q)for v in $(GO_VERSIONS); do \
		echo "  GO       $$v" && PODPROF_TEST_GO=$$v TEST_SECONDS=900 test/run.sh unit $(GO_TESTS) || exit 1; done
	$(Q)B=$(B) test/oracle/gostacks.sh $(GO_VERSIONS)

check-symbols: $(B)/podprof ## names and lines of the machine's files against three other programs: FOLDERS, SYMBOLS=--help (minutes)
	$(Q)PODPROF=$(B)/podprof EU_ADDR2LINE=$$(test/tool.sh eu-addr2line) \
		test/oracle/symbols.py $(SYMBOLS) $(or $(FOLDERS),/usr/bin /usr/lib/$(shell uname -m)-linux-gnu)

check-go-programs: $(B)/podprof ## heaps of Go programs in Debian's packages, fetched and run (root, minutes)
	$(Q)B=$(B) test/oracle/goprograms.sh $(or $(SUITES),bookworm trixie sid)

GO_LOAD := $(B)/test/unit/goheap/test_load
check-go-load: $(GO_LOAD) ## heaps read READS (100000) times under load, of each of GO_VERSIONS (an hour)
	$(Q)for v in $(GO_VERSIONS); do \
		PODPROF_TEST_GO=$$v PODPROF_TEST_READS=$(or $(READS),100000) $(GO_LOAD) || exit 1; done

RELABEL_TEST := $(B)/test/unit/relabel/test_prometheus
check-relabel: $(RELABEL_TEST) ## rules and patterns against Prometheus' own: CASES (100000), SEED (a new one); a minute
	$(Q)seed=$(or $(SEED),$$(date +%s)) && echo "  SEED     $$seed" && \
		tool=$$(test/tool.sh relabelcases) && $$tool $$seed $(or $(CASES),100000) > $(B)/test/relabel-cases.jsonl
	$(Q)PODPROF_TEST_RELABEL_CASES=$(B)/test/relabel-cases.jsonl $(RELABEL_TEST)

FUZZ_SECONDS ?= 60
fuzz: $(FUZZ) ## search with libFuzzer, FUZZ_SECONDS each (60)
	$(Q)test/run.sh search $(FUZZ_SECONDS) $(FUZZ)

# libFuzzer wants coverage in everything it drives, so there is a library of its own, by clang.
FUZZ_SANITIZE := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -pthread
FUZZ_CFLAGS := -std=gnu11 $(DEFS) $(INCS) $(FUZZ_SANITIZE)
FUZZ_LIB_SRC := $(LIB_SRC) $(filter-out %/test.c %/allocfail.c,$(SUPPORT_SRC))
FUZZ_LIB_OBJ := $(FUZZ_LIB_SRC:%.c=$(B)/fuzzobj/%.o) $(CXX_SRC:%.cc=$(B)/fuzzobj/%.o) $(GEN_SRC:$(B)/%.c=$(B)/fuzzobj/%.o)
$(B)/fuzzobj/libpodprof.a: $(FUZZ_LIB_OBJ)
$(B)/fuzzobj/libpodprof.a.members: MEMBERS := $(FUZZ_LIB_OBJ)

$(B)/fuzzobj/%.o: %.c $(B)/flags | $(GEN_HDR)
	$(call say,CC-FUZZ,$<)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(FUZZ_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/fuzzobj/%.o: %.cc $(B)/flags | $(GEN_HDR)
	$(call say,CXX-FUZZ,$<)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(CXX_FLAGS) $(FUZZ_SANITIZE) -MMD -MP -c -o $@ $<

$(B)/fuzzobj/gen/%.o: $(B)/gen/%.c $(B)/flags
	$(call say,CC-FUZZ,$<)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(FUZZ_CFLAGS) -MMD -MP -c -o $@ $<

$(FUZZ): $(B)/%: $(B)/fuzzobj/%.o $(B)/fuzzobj/libpodprof.a
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(TEST_LD) -fsanitize=fuzzer,address,undefined -o $@ $^ -lcmocka $(LIBS)

hostile: all $(HOSTILE) ## all attacks one by one, and the table of what others lose (root, minutes): ATTACKS (names ...)
	$(Q)test/hostile/hostile.py --long $(ATTACKS)

# An hour of profiles with a simulated clock (e2e/backends/hour.sh).
HOUR := $(B)/test/tools/hour
e2e: all $(HOUR) ## all end-to-end tests: check-e2e, then podprof in a cluster of one node (root, minutes)
	$(Q)test/setup.sh cluster
	$(Q)test/run.sh begin
	$(Q)e2e/run.sh || failed=yes; \
		e2e/backends/run.sh 4 5 || failed=yes; \
		e2e/backends/hour.sh hour || failed=yes; \
		e2e/backends/hour.sh away || failed=yes; \
		e2e/cluster/run.sh || failed=yes; \
		PODPROF_E2E_SHAPE=container e2e/cluster/run.sh || failed=yes; \
		test/run.sh summary && [ -z "$$failed" ]

check-backends: all $(HOUR) ## all destinations at once, each behind a proxy with a new fault every PHASE seconds (50): lost, twice, memory; then two hours with a simulated clock, one of them away and killed (root, a quarter of an hour)
	$(Q)e2e/backends/run.sh $(or $(PHASE),50) 10
	$(Q)e2e/backends/hour.sh hour
	$(Q)e2e/backends/hour.sh away

check-pyroscope: all ## a live agent's profiles in a whole Pyroscope, to the nanosecond: PYROSCOPE=PROGRAM, PYROSCOPE_SECONDS (70) (root, three minutes)
	$(Q)e2e/backends/pyroscope.sh $(or $(PYROSCOPE),$(error PYROSCOPE is the path of Pyroscope's server)) $(or $(PYROSCOPE_SECONDS),70)

check-parca: all ## a live agent's profiles in a whole Parca, sent and scraped, to the nanosecond: PARCA=PROGRAM, PARCA_SECONDS (60) (root, four minutes)
	$(Q)e2e/backends/parca.sh $(or $(PARCA),$(error PARCA is the path of Parca's server)) $(or $(PARCA_SECONDS),60)

e2e-cluster: all ## the cluster alone: TESTS (names ...)
	$(Q)e2e/cluster/run.sh $(TESTS)

e2e-long: all ## the cluster while a service account's token expires: a quarter of an hour
	$(Q)e2e/cluster/run.sh tokens

# Leaks at its end fail it, too. It is larger: what was freed is kept for a while.
e2e-san: $(B)/san/podprof $(HOSTILE) ## the same, and the attacks of check-hostile, with an agent under ASan and UBSan
	$(Q)PODPROF=$(abspath $<) e2e/run.sh
	$(Q)PODPROF=$(abspath $<) PODPROF_RSS_KIB=500000 PODPROF_TIMES=4 test/hostile/hostile.py

BENCH_JSON := $(B)/bench
$(BENCH_JSON):
	@mkdir -p $@

bench: all $(BENCH) | $(BENCH_JSON) ## all benchmarks in C, workloads, idle, counts: one table, with ratios to the run before; PROFILER: NAME=COMMAND of another one beside the workloads (root, half an hour)
	$(Q)test/bench/bench.py --build $(B) --json $(BENCH_JSON)/bench.json $(if $(PROFILER),--profiler '$(PROFILER)') $(BENCH)

bench-images: all $(B)/test/bench/bench_symbolize ## names of many files, cold: cost by source and program: FOLDERS
	$(Q)BUILD=$(B) test/bench/images.py $(IMAGES) $(or $(FOLDERS),/usr)

bench-counts: all $(B)/test/bench/bench_lines | $(BENCH_JSON) ## instructions, lines, bytes, system calls; ratios to the run before (root, a minute)
	$(Q)test/bench/counts.py run --build $(B) --before $(BENCH_JSON)/counts.json --json $(BENCH_JSON)/counts.json

bench-compare: all $(B)/test/bench/bench_lines ## these counts against BASE, another commit; fails if one grew by 5 % (root, minutes)
	+$(Q)JOBS=$(if $(findstring jobserver,$(MAKEFLAGS)),,-j$$(nproc)) test/bench/compare.sh $(BASE)

bench-workloads: all | $(BENCH_JSON) ## the agent's cost in four workloads (root, minutes; WORKLOADS=--help)
	$(Q)test/bench/workloads.py --json $(BENCH_JSON)/workloads.json $(WORKLOADS)

bench-idle: all | $(BENCH_JSON) ## wake-ups and system calls of a quiet node's agent (root, minutes; IDLE=--help)
	$(Q)test/bench/idle.py --json $(BENCH_JSON)/idle.json $(IDLE)

bench-growth: all | $(BENCH_JSON) ## cost by processes, programs, containers, rate (root, minutes; GROWTH=--help)
	$(Q)test/bench/growth.py --json $(BENCH_JSON)/growth.json $(GROWTH)
	$(Q)test/bench/plots.py $(BENCH_JSON)/growth.json $(BENCH_JSON)/growth.svg

bench-names: all ## frames without a name in profiles of usual programs, by reason (root, two minutes)
	$(Q)test/bench/names.py

bench-large: all ## memory and names with the largest programs at once (root, four minutes; LARGE=--help)
	$(Q)test/bench/large.py $(LARGE)

bench-symbols: all ## names by podprof, addr2line and llvm-symbolizer: cost and equal answers: FILES
	$(Q)PODPROF=$(B)/podprof test/bench/symbolizers.py $(or $(FILES),$(B)/podprof)

bench-turns: all ## what blocks the event loop: processes, spinners, floods (root, minutes; TURNS=--help)
	$(Q)test/bench/turns.py $(TURNS)

bench-starved: all ## what a starved agent delivers (root, a minute; STARVED=--help)
	$(Q)test/bench/starved.py $(STARVED)

bench-overhead: all | $(BENCH_JSON) ## what other programs lose by the agent beside them (root, a quarter of an hour; OVERHEAD=--help)
	$(Q)test/bench/overhead.py --json $(BENCH_JSON)/overhead.json $(OVERHEAD)

bench-runtimes: all | $(BENCH_JSON) ## stacks and cost beside servers in Python, Java and Node (root, minutes, downloads; RUNTIMES=--help)
	$(Q)test/bench/runtimes.py --json $(BENCH_JSON)/runtimes.json $(RUNTIMES)

bench-frames: all $(B)/test/bench/runs | $(BENCH_JSON) ## BPF time a frame in deep stacks of Python, Java and Node (root, minutes; FRAMES=--help)
	$(Q)test/bench/frames.py --json $(BENCH_JSON)/frames.json $(FRAMES)

# Many files, so not under the sanitizers.
ROW_ORACLE := $(B)/test/oracle/rows
$(ROW_ORACLE): $(B)/obj/test/oracle/rows.o $(B)/obj/test/support/rowsoracle.o $(B)/obj/test/support/rowparse.o $(B)/obj/libpodprof.a
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(LINK_HARDEN) -o $@ $^ $(LIBS)

STACK_ORACLE := $(B)/test/oracle/stacks
$(STACK_ORACLE): $(B)/obj/test/oracle/stacks.o \
	$(addprefix $(B)/obj/test/support/,stackoracle.o stopping.o hostwalk.o hostspace.o) $(B)/obj/libpodprof.a
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(LINK_HARDEN) -o $@ $^ $(LIBS)

check-stacks: $(STACK_ORACLE) $(B)/podprof $(FIXTURES) ## stacks against libdwfl, and sampled: PROGRAMS (a part of the name), or all (minutes)
	$(Q)B=$(B) test/oracle/stacks.sh $(PROGRAMS)

check-rows: $(ROW_ORACLE) ## unwind rows against readelf: FILES, or all programs of this machine (minutes)
	$(Q)$(ROW_ORACLE) $(FILES)

ATTRIBUTION := $(B)/test/bpf/test_attribution
check-attribution: $(ATTRIBUTION) ## no sample with another program's frames: 100,000 programs, recycled pids (minutes)
	$(Q)PODPROF_TEST_PROGRAMS=$(or $(PROGRAMS),100000) $(ATTRIBUTION)

ENTITIES := $(B)/test/bpf/test_entities
check-entities: $(ENTITIES) ## no sample goes to another's container: ENTITY_SECONDS (60) of moving, short and dying processes (root)
	$(Q)PODPROF_TEST_SECONDS=$(or $(ENTITY_SECONDS),60) $(ENTITIES)

# Saves a living process's stack as a test case (test/data/walk/README.md).
WALKSAVE := $(B)/test/tools/walksave
$(WALKSAVE): $(B)/obj/test/tools/walksave.o \
	$(addprefix $(B)/obj/test/support/,stopping.o hostwalk.o hostspace.o) $(B)/obj/libpodprof.a
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(LINK_HARDEN) -o $@ $^ $(LIBS)

# Saves what is read of a living Go process as a seed for fuzz_heapimage.
HEAPSAVE := $(B)/test/tools/heapsave
$(HEAPSAVE): $(B)/obj/test/tools/heapsave.o $(B)/obj/test/support/heapsaved.o $(B)/obj/libpodprof.a
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(LINK_HARDEN) -o $@ $^ $(LIBS)

# What frames.py measures with.
RUNS := $(B)/test/bench/runs
$(B)/obj/test/bench/runs.o: $(B)/gen/runs.skel.h
$(RUNS): $(B)/obj/test/bench/runs.o $(B)/obj/libpodprof.a
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(LINK_HARDEN) -o $@ $^ $(LIBS)

$(HOUR): $(B)/obj/test/tools/hour.o $(B)/obj/test/support/profiles.o $(B)/obj/libpodprof.a
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(LINK_HARDEN) -Wl,--wrap=http_start,--wrap=worker_submit -o $@ $^ $(LIBS) -lcmocka

# Its frames are what is measured, so it keeps them.
$(B)/obj/test/support/burn.o: private HARDEN += -O1 -fno-omit-frame-pointer
$(B)/obj/test/bench/bench_walk.o: private HARDEN += -fno-omit-frame-pointer
# What bench_walk runs in the kernel.
$(B)/test/bench/bench_walk: | $(B)/test/bench/walk.bpf.o
$(B)/test/bench/%.bpf.o: test/bench/%.bpf.c $(wildcard bpf/*/*.h) $(B)/bpf/flags
	$(call say,BPF,$<)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -D__TARGET_ARCH_$(ARCH) -c -o $@ $<
# The walker of bench_lines calls a function of the benchmark at each access to memory.
$(B)/lines/hostwalk.o: test/support/hostwalk.c $(wildcard bpf/*/*.h test/support/*.h)
	$(call say,CC,$< (accesses))
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(HARDEN) -fsanitize=thread -c -o $@ $<
BENCH_SUPPORT := $(addprefix $(B)/obj/test/support/,burn.o figure.o hostwalk.o hostspace.o kernelwalk.o)
$(B)/test/bench/bench_short: | $(FIXTURE_DIR)/short
# It needs a server.
$(B)/test/bench/bench_export: $(addprefix $(B)/obj/test/support/,profiles.o sink.o)
$(B)/test/bench/bench_export: private LIBS += -lcmocka
$(B)/test/bench/bench_lines: $(B)/%: $(B)/obj/%.o $(B)/lines/hostwalk.o \
	$(addprefix $(B)/obj/test/support/,burn.o figure.o stopping.o hostspace.o) $(B)/obj/libpodprof.a
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(LINK_HARDEN) -o $@ $^ $(LIBS)
$(filter-out %/bench_lines,$(BENCH)): $(B)/%: $(B)/obj/%.o $(BENCH_SUPPORT) $(B)/obj/libpodprof.a
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(LINK_HARDEN) -o $@ $^ $(LIBS)

-include $(shell find $(B)/obj $(B)/san $(B)/tsan $(B)/count $(B)/fuzzobj $(B)/bpf $(B)/newer $(B)/lint -name '*.d' 2>/dev/null)
