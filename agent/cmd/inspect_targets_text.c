// SPDX-License-Identifier: Apache-2.0
/*
 * For people at a terminal. What is profiled comes first, and of that what has the names of pods;
 * of an entity the labels one a line, each with where it is from, since that is the question when
 * one is not as it should be.
 */
#include "cmd/inspect_targets.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmd/cmd.h"

/* Processes of one entity that are named, and the widest columns; longer texts push the next
 * one. */
#define TEXT_PROCESSES 8
#define TEXT_NAME      64
#define TEXT_VALUE     48

static void pad(const char *s, size_t width)
{
	size_t n = strlen(s);

	cmd_print(s);
	printf("%*s", n < width ? (int)(width - n) : 0, "");
}

static const char *display_name(const struct target_view *v)
{
	return v->name[0] ? v->name : "(unknown)";
}

/* The longest of them, but not more than @max. */
static size_t value_width(const struct labels *l)
{
	size_t width = 0;

	for (size_t i = 0; i < l->n; i++) {
		size_t n = strlen(l->items[i].value);

		if (n > width && n <= TEXT_VALUE)
			width = n;
	}
	return width;
}

static void print_what(const struct target_view *v)
{
	const struct entity *entity = v->entity;
	const struct cgroup_id *id = &entity->id;
	struct strview user;

	printf("    %s", inspect_targets_what(v));
	if (entity->kind == ENTITY_CONTAINER) {
		printf(", %s ", cgroup_runtime_name(id->runtime));
		cmd_print(id->container_id);
	} else if (entity->kind == ENTITY_POD) {
		printf(" %s: what is in it and in no container of it", id->pod_uid);
	}
	if (cgroup_user(id, &user))
		printf(", of user %.*s", (int)strview_len(&user), user.p);
	else if (id->outer_id[0])
		printf(", in container %.12s", id->outer_id);
	putchar('\n');
	if (entity->pending)
		puts("    its name is still waited for");
}

static void print_labels(const struct target_view *v)
{
	size_t width = value_width(&v->is.labels);

	for (size_t i = 0; i < v->is.labels.n; i++) {
		const struct label *label = &v->is.labels.items[i];
		const char *origin = labels_get(&v->is.origins, label->name);

		printf("    %-20s ", label->name);
		pad(label->value, width);
		printf("  ");
		cmd_print(origin ? origin : "");
		putchar('\n');
	}
	for (size_t i = 0; i < v->is.settings.n; i++) {
		const struct label *setting = &v->is.settings.items[i];

		printf("    %-20s ", "setting");
		printf("%s=", setting->name);
		cmd_print(setting->value);
		putchar('\n');
	}
}

static void print_processes(const struct target_view *v)
{
	size_t shown = v->n_processes < TEXT_PROCESSES ? v->n_processes : TEXT_PROCESSES;

	printf("    %-20s ", "processes");
	for (size_t i = 0; i < shown; i++)
		printf("%s%" PRIu64 " %s", i ? ", " : "", v->processes[i].pid.pid,
		       v->processes[i].comm);
	if (v->n_processes > shown)
		printf(" and %zu more", v->n_processes - shown);
	puts(v->n_processes ? "" : "none");
}

static void print_summary(const struct target_view *views, size_t n, const char *sources)
{
	size_t kinds[ENTITY_KIND_MAX] = {0}, n_sandboxes = 0, left_out = 0;

	for (size_t i = 0; i < n; i++) {
		if (strcmp(inspect_targets_what(&views[i]), "sandbox") == 0)
			n_sandboxes++;
		else
			kinds[views[i].entity->kind]++;
		left_out += views[i].is.why[0] != '\0';
	}
	printf("%zu containers, ", kinds[ENTITY_CONTAINER]);
	if (n_sandboxes)
		printf("%zu sandboxes, ", n_sandboxes);
	if (kinds[ENTITY_POD])
		printf("%zu pods, ", kinds[ENTITY_POD]);
	printf("%zu units, %zu programs; %zu not profiled\n", kinds[ENTITY_UNIT],
	       kinds[ENTITY_PROCESS], left_out);
	printf("names from: %s\n", *sources ? sources : "nobody is asked");
}

void inspect_targets_text(const struct target_view *views, size_t n, const char *sources)
{
	for (size_t i = 0; i < n; i++) {
		const struct target_view *v = &views[i];

		cmd_print(display_name(v));
		putchar('\n');
		if (v->is.why[0]) {
			printf("    NOT PROFILED: ");
			cmd_print(v->is.why);
			putchar('\n');
		}
		print_what(v);
		print_labels(v);
		print_processes(v);
		putchar('\n');
	}
	print_summary(views, n, sources);
}

static size_t name_width(const struct target_view *views, size_t n)
{
	size_t width = strlen("NAME");

	for (size_t i = 0; i < n; i++) {
		size_t length = strlen(display_name(&views[i]));

		if (length > width && length <= TEXT_NAME)
			width = length;
	}
	return width;
}

void inspect_targets_brief(const struct target_view *views, size_t n, const char *sources)
{
	size_t width = name_width(views, n);

	pad("NAME", width);
	printf("  %-9s  %9s  %-24s  %s\n", "KIND", "PROCESSES", "SERVICE", "PROFILED");
	for (size_t i = 0; i < n; i++) {
		const struct target_view *v = &views[i];
		const char *service = labels_get(&v->is.labels, "service_name");

		pad(display_name(v), width);
		printf("  %-9s  %9zu  ", inspect_targets_what(v), v->n_processes);
		pad(service ? service : "-", 24);
		printf("  ");
		cmd_print(v->is.why[0] ? "no: " : "yes");
		cmd_print(v->is.why);
		putchar('\n');
	}
	print_summary(views, n, sources);
}
