// SPDX-License-Identifier: Apache-2.0
/*
 * Hot-plug. When a CPU goes offline, the kernel removes its events for good. A read of the
 * descriptor still returns the last count, without an error, so a CPU that comes back would be
 * silent. Therefore podprof compares the kernel's list of CPUs with the open events, and each count
 * with the previous count. cpu-clock counts the CPU's time, idle or not, so an unchanged count
 * means that the event died before the previous check. The counts of other events may stand still
 * for other reasons; a dead event of these is found if the CPU is offline during a check.
 */
#include "profile/perf_events.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/root.h"
#include "base/vec.h"
#include "profile/event.h"

/* Bytes of the kernel's list of CPUs: 8192 single numbers with commas have 40 KB. Reached: the list
 * is malformed: CPU profiling does not start. */
#define PERF_EVENTS_LIST_MAX 65536

void perf_events_init(struct perf_events *c, const struct event *event, uint64_t period,
		      int program, const struct root *sys)
{
	*c = (struct perf_events){.event = event, .period = period, .program = program, .sys = sys};
}

static void cpu_event_close(struct cpu_event *cpu_event)
{
	if (cpu_event->fd < 0)
		return;
	/* waits for a handler running on the CPU */
	ioctl(cpu_event->fd, PERF_EVENT_IOC_DISABLE, 0);
	close(cpu_event->fd);
	cpu_event->fd = -1;
}

void perf_events_deinit(struct perf_events *c)
{
	for (size_t i = 0; i < c->n; i++)
		cpu_event_close(&c->items[i]);
	free(c->items);
	c->items = NULL;
	c->n = 0;
	c->cap = 0;
}

bool perf_events_parse_list(struct strview list, void (*fn)(void *ctx, unsigned int cpu), void *ctx)
{
	struct strview range;
	uint64_t first, last;

	while (strview_until(&list, ',', &range)) {
		if (!strview_u64(&range, 10, &first))
			return false;
		last = first;
		if (strview_char(&range, '-') && !strview_u64(&range, 10, &last))
			return false;
		if (!strview_empty(&range) || last < first || last >= PERF_EVENTS_CPUS_MAX)
			return false;
		for (uint64_t cpu = first; cpu <= last; cpu++)
			fn(ctx, (unsigned int)cpu);
	}
	return true;
}

struct marking {
	struct perf_events *perf_events;
	int error;
};

static void mark_online(void *ctx, unsigned int cpu)
{
	struct marking *m = ctx;
	struct perf_events *c = m->perf_events;
	int r;

	if (m->error)
		return;
	r = vec_grow(&c->items, &c->cap, (size_t)cpu + 1, sizeof(*c->items), PERF_EVENTS_CPUS_MAX);
	if (r) {
		m->error = r;
		return;
	}
	for (; c->n <= cpu; c->n++)
		c->items[c->n] = (struct cpu_event){.fd = -1};
	c->items[cpu].online = true;
}

/* Call @fn for each CPU in one of the kernel's lists. 0, PERF_EVENTS_NO_LIST, PERF_EVENTS_ODD_LIST.
 */
static int read_list(const struct root *sys, const char *path,
		     void (*fn)(void *ctx, unsigned int cpu), void *ctx)
{
	_cleanup_(buf_deinit) struct buf b = BUF_INIT(PERF_EVENTS_LIST_MAX);
	struct strview all, line;

	if (root_read(sys, path, &b) != 0)
		return PERF_EVENTS_NO_LIST;
	all = strview_of_bytes(b.data, b.len);
	if (!strview_line(&all, &line) || !perf_events_parse_list(line, fn, ctx))
		return PERF_EVENTS_ODD_LIST;
	return 0;
}

int perf_events_for_each_online(const struct root *sys, void (*fn)(void *ctx, unsigned int cpu),
				void *ctx)
{
	return read_list(sys, "devices/system/cpu/online", fn, ctx);
}

/* Set @online of each CPU; valid only after a return value of 0. */
static int read_online(struct perf_events *c)
{
	struct marking marking = {.perf_events = c};
	int r;

	for (size_t i = 0; i < c->n; i++)
		c->items[i].online = false;
	r = perf_events_for_each_online(c->sys, mark_online, &marking);
	return marking.error ? marking.error : r;
}

static void note_highest(void *ctx, unsigned int cpu)
{
	unsigned int *limit = ctx;

	if (cpu >= *limit)
		*limit = cpu + 1;
}

unsigned int perf_events_possible(const struct root *sys)
{
	unsigned int limit = 0;

	return read_list(sys, "devices/system/cpu/possible", note_highest, &limit) ? 0 : limit;
}

/* Open and enable the event of a CPU. A failure is counted and is no error: the other CPUs are
 * still sampled. */
static void cpu_event_open(struct perf_events *c, size_t cpu)
{
	_cleanup_(close_fdp) int fd = event_open(c->event, c->period, (int)cpu);

	c->attaching = false;
	if (fd == -ENODEV || fd == -ENXIO)
		return; /* it went offline after we read the list */
	if (fd < 0) {
		c->failed++;
		c->error = fd;
		return;
	}
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, c->program) < 0 ||
	    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0) {
		c->failed++;
		c->error = -errno;
		c->attaching = true;
		return;
	}
	c->items[cpu].fd = take_fd(fd);
	c->items[cpu].count = 0;
	c->opened++;
}

/* Whether the event still counts. */
static bool cpu_event_alive(const struct perf_events *c, struct cpu_event *cpu_event)
{
	uint64_t count;

	if (!c->event->clock)
		return true;
	if (read(cpu_event->fd, &count, sizeof(count)) != sizeof(count) ||
	    count == cpu_event->count)
		return false;
	cpu_event->count = count;
	return true;
}

int perf_events_follow(struct perf_events *c)
{
	int r = read_online(c);

	if (r)
		return r;
	for (size_t cpu = 0; cpu < c->n; cpu++) {
		struct cpu_event *cpu_event = &c->items[cpu];

		if (cpu_event->fd >= 0 && (!cpu_event->online || !cpu_event_alive(c, cpu_event)))
			cpu_event_close(cpu_event);
		if (cpu_event->fd < 0 && cpu_event->online)
			cpu_event_open(c, cpu);
	}
	return 0;
}

bool perf_events_whole(const struct perf_events *c)
{
	for (size_t cpu = 0; cpu < c->n; cpu++)
		if (c->items[cpu].online && c->items[cpu].fd < 0)
			return false;
	return true;
}

size_t perf_events_n_open(const struct perf_events *c)
{
	size_t n = 0;

	for (size_t cpu = 0; cpu < c->n; cpu++)
		n += c->items[cpu].fd >= 0;
	return n;
}

const char *perf_events_outcome_name(int outcome)
{
	static const char *const names[] = {
		[PERF_EVENTS_OK] = "ok",
		[PERF_EVENTS_NO_LIST] = "no_list",
		[PERF_EVENTS_ODD_LIST] = "odd_list",
	};

	return outcome >= 0 && outcome < PERF_EVENTS_OUTCOME_MAX ? names[outcome] : "unknown";
}
