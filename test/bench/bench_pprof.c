// SPDX-License-Identifier: Apache-2.0
/*
 * The cost of building and writing a profile of a busy series: 5,000 different stacks (or as many
 * as the argument says) of 10 to 60 frames out of 4,000 functions, with names as long as in C++ and
 * Go programs. The names are synthetic, so real results will differ; calls repeat like in programs
 * (each function calls a few others). Go's encoder then writes the same profile (checkprofile
 * -encode).
 *
 * wire.h's WIRE_LEVEL was chosen from this table.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/nsec.h"
#include "pprof/flame.h"
#include "pprof/pprof.h"
#include "pprof/reader.h"
#include "pprof/wire.h"
#include "support/figure.h"

#define FUNCTIONS 4000u
#define SAMPLES	  5000u
#define ROUNDS	  10

DEFINE_CLEANUP(struct pprof *, pprof_freep, pprof_free);

static void must(int r, const char *what)
{
	if (r) {
		fprintf(stderr, "bench_pprof: %s: %d\n", what, r);
		exit(1);
	}
}

/* The same numbers in each run. */
static uint32_t next(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*state >> 33);
}

static const char *const words[] = {"net",    "http",  "Server", "handle", "Request", "parse",
				    "buffer", "Write", "flush",	 "std",	   "vector",  "map",
				    "query",  "Plan",  "scan",	 "index",  "Lock",    "worker"};

static uint32_t add_location(struct pprof *p, uint32_t map, uint32_t i)
{
	uint64_t seed = i * 977 + 1;
	struct pprof_line line;
	char name[160], file[96];
	uint32_t location;
	size_t len = 0;

	for (uint32_t n = 3 + next(&seed) % 4; n--;)
		len += (size_t)snprintf(name + len, sizeof(name) - len,
					"%s::", words[next(&seed) % array_size(words)]);
	snprintf(name + len, sizeof(name) - len, "f%u", i);
	snprintf(file, sizeof(file), "/usr/src/app/%s/%s_%u.cc", words[i % 7], words[i % 11],
		 i / 20);
	must(pprof_function(p, name, name, file, 10 + i % 900, &line.function), "function");
	line.line = 10 + i % 900 + next(&seed) % 40;
	must(pprof_location(p, map, 0x401000 + (uint64_t)i * 213, &line, 1, &location), "location");
	return location;
}

static struct pprof *build(size_t n_samples)
{
	static const struct pprof_opts opts = {
		.types = {{"samples", "count"}, {"cpu", "nanoseconds"}},
		.n_types = 2,
		.period_type = {"cpu", "nanoseconds"},
		.period = 10309278,
		.time_ns = 1700000000000000000,
		.duration_ns = 60000000000,
		.max_bytes = PPROF_BYTES_MAX,
		.max_samples = PPROF_SAMPLES_MAX,
	};
	static const struct pprof_mapping mapping = {.start = 0x400000,
						     .limit = 0x900000,
						     .path = "/usr/bin/app",
						     .has_functions = true};
	uint32_t locations[FUNCTIONS], map;
	struct pprof *p = NULL;
	uint64_t seed = 42;

	must(pprof_new(&opts, &p), "new");
	must(pprof_mapping(p, &mapping, &map), "mapping");
	for (uint32_t i = 0; i < FUNCTIONS; i++)
		locations[i] = add_location(p, map, i);
	while (pprof_tables(p)->n_samples < n_samples) {
		uint32_t stack[64], depth = 10 + next(&seed) % 51, at = next(&seed) % 4;
		int64_t n = 1 + next(&seed) % 3;

		for (uint32_t i = depth; i-- > 0;) {
			stack[i] = locations[at];
			at = (at * 3 + 1 + next(&seed) % 3) % FUNCTIONS;
		}
		must(pprof_sample(p, stack, depth, (int64_t[]){n, n * opts.period}, NULL, 0),
		     "sample");
	}
	return p;
}

static double cpu_ms(void)
{
	return (double)nsec_read(CLOCK_PROCESS_CPUTIME_ID) / 1e6;
}

static void bench_level(const struct pprof *p, int level)
{
	_cleanup_(buf_deinit) struct buf gz = BUF_INIT(64u << 20);
	double start = cpu_ms();

	for (int i = 0; i < ROUNDS; i++) {
		buf_reset(&gz);
		must(wire_encode(pprof_tables(p), level, &gz), "encode");
	}
	printf("  gzip level %d   %8.2f ms %9zu bytes%s\n", level, (cpu_ms() - start) / ROUNDS,
	       gz.len, level == WIRE_LEVEL ? "  <- used" : "");
	if (level == WIRE_LEVEL) {
		figure((cpu_ms() - start) / ROUNDS, "ms", "encode");
		figure((double)gz.len, "bytes", "encoded");
	}
}

static void bench_read(const struct pprof *p)
{
	_cleanup_(buf_deinit) struct buf gz = BUF_INIT(64u << 20);
	double start, read, add, show;
	struct reader *rd = NULL;
	struct flame *f = NULL;
	json_t *json = NULL;
	const char *why;
	char *text;

	must(pprof_encode(p, &gz), "encode");
	start = cpu_ms();
	must(reader_new(gz.data, gz.len, 64u << 20, &rd, &why), "read");
	read = cpu_ms() - start;
	must(flame_new(&f), "flame");
	must(flame_add(f, reader_tables(rd), NULL), "flame");
	add = cpu_ms() - start - read;
	must(flame_json(f, FLAME_SHOWN_MAX, &json), "json");
	text = json_dumps(json, JSON_COMPACT);
	show = cpu_ms() - start - read - add;
	printf("  read it back   %8.2f ms\n  flame tree     %8.2f ms\n"
	       "  flame JSON     %8.2f ms %9zu bytes\n",
	       read, add, show, text ? strlen(text) : 0);
	figure(read + add + show, "ms", "read and make a flame graph");
	free(text);
	json_decref(json);
	flame_free(f);
	reader_free(rd);
}

static long peak_kib(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

/* The memory of our encoder, then all of Go's. */
static void bench_go(const struct pprof *p)
{
	_cleanup_(buf_deinit) struct buf gz = BUF_INIT(64u << 20);
	char path[] = "/tmp/bench_pprof.XXXXXX", command[128];
	const long before = peak_kib();
	int fd = mkstemp(path);

	must(pprof_encode(p, &gz), "encode");
	printf("  memory to encode %6ld KB with the result\n", peak_kib() - before);
	fflush(stdout);
	must(fd < 0 || write(fd, gz.data, gz.len) != (ssize_t)gz.len, "write");
	close(fd);
	snprintf(command, sizeof(command), "$(test/tool.sh checkprofile) -encode %d %s", ROUNDS,
		 path);
	must(system(command), command); // NOLINT(cert-env33-c)
	unlink(path);
}

int main(int argc, char **argv)
{
	_cleanup_(pprof_freep) struct pprof *p = NULL;
	double start = cpu_ms();

	p = build(argc > 1 ? strtoul(argv[1], NULL, 10) : SAMPLES);
	printf("pprof: %zu samples, %u functions\n  build          %8.2f ms %9zu bytes at most\n",
	       pprof_tables(p)->n_samples, FUNCTIONS, cpu_ms() - start, pprof_bytes(p));
	bench_go(p);
	for (int level = 0; level <= 9; level++)
		bench_level(p, level);
	bench_read(p);
	printf("  largest RSS    %8ld KB\n", peak_kib());
	return 0;
}
