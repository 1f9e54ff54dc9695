// SPDX-License-Identifier: Apache-2.0
/*
 * Whether an agent with these settings works here, with the reasons and remedies for any failing
 * part. The settings are the agent's own flags, variables and file, so in the agent's pod the
 * command needs no options.
 */
#include "doctor/doctor.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/cmdline.h"
#include "config/config.h"
#include "cpu/sampler.h"
#include "profile/oncpu.h"
#include "settings.h"

struct examination {
	struct config config;
	bool json;
	struct probe_results results;
	struct findings findings;
};

static void examination_deinit(struct examination *e)
{
	config_deinit(&e->config);
}

/* ---------------------------------------------------------------- CPU profiles, for a moment */

static void drop_profile(void *ctx, struct profile *profile)
{
	(void)ctx;
	profile_free(profile);
}

/* Load what the agent would load with the first process of each runtime. */
static void try_runtimes(const struct bpfobj *object, struct kernelside *ret)
{
	struct bpfobj_runtime loaded;

	for (uint32_t i = FRAME_RUNTIME_NONE + 1; i < FRAME_RUNTIME_MAX; i++) {
		int r = bpfobj_load_runtime(object, i, &loaded);

		if (r) {
			ret->n_refused++;
			snprintf(ret->runtime_why, sizeof(ret->runtime_why), "%s",
				 r < 0 ? strerror(-r) : loaded.why);
		}
		if (r >= 0)
			bpfobj_runtime_deinit(&loaded);
	}
}

static void note_trial(const struct cpu_profiler *cpu, struct kernelside *ret)
{
	const struct oncpu *oncpu = cpu_sampler_oncpu(cpu_profiler_sampler(cpu));
	const struct bpfobj *object = oncpu_object(oncpu);

	ret->has_loop = bpfobj_has_loop(object);
	ret->lacks_dumps = bpfobj_lacks_dumps(object);
	try_runtimes(object, ret);
	ret->load_ns = bpfobj_load_ns(object);
	ret->n_cpus = oncpu_n_cpus(oncpu);
	snprintf(ret->cpu_why, sizeof(ret->cpu_why), "%s", oncpu_why(oncpu));
}

static int try_cpu(const struct config *config, struct loop *loop, const struct root *proc,
		   const struct root *sys, struct discovery *discovery, struct kernelside *ret)
{
	struct cpu_profiler_opts opts = settings_cpu(config);
	struct cpu_profiler *cpu = NULL;

	opts.loop = loop;
	opts.proc = proc;
	opts.sys = sys;
	opts.discovery = discovery;
	opts.out = drop_profile;
	ret->tried = true;
	ret->result = cpu_profiler_new(&opts, &ret->why, &cpu);
	if (ret->result)
		return ret->result == -ENOMEM && !*ret->why.text ? -ENOMEM : 0;
	note_trial(cpu, ret);
	cpu_profiler_free(cpu);
	return 0;
}

/* ---------------------------------------------------------------- output */

/* Long lines are not wrapped: the output is also read and searched in logs. @next may have the same
 * remedy, or be NULL. */
static void print_finding(const struct finding *f, const struct finding *next)
{
	const char *outcome =
		f->outcome == FINDING_MISSING ? "MISSING" : finding_outcome_name(f->outcome);

	printf("%-9s %-22s %s%s%s\n", outcome, f->check, f->found, *f->means ? " - " : "",
	       f->means);
	if (*f->remedy && (!next || strcmp(f->remedy, next->remedy) != 0))
		printf("%32s -> %s\n", "", f->remedy);
}

static void print_sum(const struct findings *f)
{
	const size_t n_missing = findings_count(f, FINDING_MISSING);
	const size_t n_degraded = findings_count(f, FINDING_DEGRADED);

	if (n_missing)
		printf("\n%zu missing, %zu degraded: requested parts do not work here\n", n_missing,
		       n_degraded);
	else if (n_degraded)
		printf("\n%zu degraded: all requested parts work here, some with a fallback\n",
		       n_degraded);
	else
		printf("\nall requested parts work here\n");
}

static const char *or_null(const char *s)
{
	return *s ? s : NULL;
}

static int print_json(const struct findings *f)
{
	int r = 0;

	for (size_t i = 0; i < f->n && !r; i++)
		r = cmd_print_json(json_pack("{s:s, s:s, s:s, s:s?, s:s?}", "check",
					     f->items[i].check, "outcome",
					     finding_outcome_name(f->items[i].outcome), "found",
					     f->items[i].found, "means", or_null(f->items[i].means),
					     "remedy", or_null(f->items[i].remedy)));
	return r;
}

static int print(const struct examination *e)
{
	if (e->json)
		return print_json(&e->findings);
	for (size_t i = 0; i < e->findings.n; i++)
		print_finding(&e->findings.items[i],
			      i + 1 < e->findings.n ? &e->findings.items[i + 1] : NULL);
	print_sum(&e->findings);
	return 0;
}

/* ---------------------------------------------------------------- the command line */

static int print_help(void)
{
	printf("usage: podprof doctor [--json] [AGENT FLAGS]\n"
	       "\n"
	       "Checks whether an agent with these settings works on this node, and shows the "
	       "reason and\n"
	       "the remedy for each part that does not. The settings are those of 'podprof agent': "
	       "its\n"
	       "flags (see 'podprof agent --help'), variables and file. Run doctor in the place of "
	       "the\n"
	       "agent, as the same user:\n"
	       "\n"
	       "  kubectl exec ds/podprof -- podprof doctor\n"
	       "\n"
	       "Each line is a check. ok: passed. degraded: works with a fallback. MISSING: a "
	       "requested\n"
	       "part does not work. doctor loads BPF programs, reads processes and asks servers as "
	       "the\n"
	       "agent does. It sends, stores and changes nothing. If an agent already runs here, "
	       "doctor\n"
	       "asks this agent instead of taking samples itself.\n"
	       "\n"
	       "  --json  one JSON object a line: check, outcome (ok, degraded, missing), found,\n"
	       "          means, remedy\n"
	       "  --help  this text\n"
	       "\n"
	       "Exit status: 0 all requested parts work, 1 a part is missing, 2 wrong usage\n");
	return CMD_DONE;
}

/* Removes this command's own option from the agent's options. */
static void take_own(struct examination *e, int *argc, char **argv)
{
	int n = 1;

	for (int i = 1; i < *argc; i++)
		if (strcmp(argv[i], "--json") == 0)
			e->json = true;
		else
			argv[n++] = argv[i];
	argv[n] = NULL;
	*argc = n;
}

int cmd_doctor(int argc, char **argv)
{
	_cleanup_(examination_deinit) struct examination e = {.json = false};
	struct settings_naming_opts naming;
	struct discovery_opts discovery;
	struct doctor_opts opts = {.config = &e.config, .try_cpu = try_cpu};
	int status, r;

	take_own(&e, &argc, argv);
	if (!cmdline_settings("doctor", argc, argv, print_help, &e.config, &status))
		return status;
	log_set(LOG_ERROR, LOG_FORMAT_LOGFMT); /* warnings are already findings */
	settings_naming_opts_init(&naming, &e.config);
	discovery = settings_discovery(&e.config);
	opts.discovery = &discovery;
	opts.metadata = &naming.opts.metadata;
	r = doctor_look(&opts, &e.results);
	if (!r) {
		doctor_check(&e.results, &e.findings);
		r = print(&e);
	}
	if (r)
		cmd_error("doctor: cannot run all checks: %s", strerror(-r));
	status = r || findings_count(&e.findings, FINDING_MISSING) ? CMD_FAILED : CMD_DONE;
	return cmdline_finish("doctor", status);
}
