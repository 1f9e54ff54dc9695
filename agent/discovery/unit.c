// SPDX-License-Identifier: Apache-2.0
/*
 * systemd makes a cgroup for each unit, inside the cgroups of its slices:
 *
 *	/system.slice/ssh.service
 *	/user.slice/user-1000.slice/session-3.scope		a login session
 *	/user.slice/user-1000.slice/user@1000.service/init.scope	a user's own systemd,
 *	/user.slice/user-1000.slice/user@1000.service/app.slice/web.service	and a unit of it
 *
 * Units of different users can have the same name, so the user is part of a unit's identity. The
 * outermost component tells the user: the user can make up the inner ones.
 *
 * The number of a session means nothing after its end, so all sessions of a user get the name of
 * the user's slice. init.scope, the process of a systemd, gets the name of the parent component.
 *
 * Podman and CRI-O start a monitor for each container, in a scope with the container's id,
 * "libpod-conmon-<id>.scope". All monitors of a slice count as a single unit, "libpod-conmon".
 *
 * Source: the manuals systemd.slice(5), systemd.special(7), pam_systemd(8), user@.service(5).
 */
#include "discovery/unit.h"

#include <stddef.h>

#include "base/cleanup.h"
#include "discovery/cgroup_line.h"

/* Quality of a component as a name: 2 for a unit with processes, 1 for a slice (a group of units),
 * 0 for no unit. */
static int rank_of(struct strview component)
{
	static const char *const types[] = {".service", ".scope", ".mount", ".socket", ".swap"};

	for (size_t i = 0; i < array_size(types); i++)
		if (strview_suffix(&component, types[i]))
			return strview_empty(&component) ? 0 : 2;
	if (strview_suffix(&component, ".slice"))
		return strview_empty(&component) ? 0 : 1;
	return 0;
}

/* "<prefix>1000<suffix>" */
static bool has_number(struct strview component, const char *prefix, const char *suffix,
		       struct strview *ret)
{
	uint64_t number;

	if (!strview_prefix(&component, prefix) || !strview_suffix(&component, suffix) ||
	    !strview_only_u64(component, 10, &number))
		return false;
	*ret = component;
	return true;
}

bool unit_is_manager(struct strview component, struct strview *ret_user)
{
	return has_number(component, "user@", ".service", ret_user);
}

bool unit_has_processes(struct strview component)
{
	return rank_of(component) == 2;
}

static bool is_session(struct strview component)
{
	return strview_prefix(&component, "session-") && strview_suffix(&component, ".scope") &&
	       !strview_empty(&component);
}

/* State of the descent along a path; the unit is empty until one is found. */
struct walk {
	struct unit unit;
	int rank;
	size_t at;	       /* its place in the path */
	struct strview slice;  /* the last slice, */
	struct strview above;  /* and the slice around it */
	struct strview user;   /* the outermost user */
	struct strview parent; /* the previous component */
};

static struct strview user_of(struct strview component)
{
	struct strview user;

	if (unit_is_manager(component, &user) || has_number(component, "user-", ".slice", &user))
		return user;
	return strview_of("");
}

/* True if the component takes its name from the parent, the previous finding. */
static bool is_nameless(const struct walk *w, struct strview component)
{
	struct strview user;

	if (strview_is(&component, "init.scope"))
		return unit_is_manager(w->parent, &user);
	return is_session(component) && has_number(w->parent, "user-", ".slice", &user);
}

static struct strview name_of(struct strview component)
{
	static const char *const monitors[] = {"libpod-conmon", "crio-conmon"};

	for (size_t i = 0; i < array_size(monitors); i++) {
		struct strview rest = component;

		if (strview_prefix(&rest, monitors[i]) && strview_starts(&rest, "-"))
			return (struct strview){component.p, rest.p};
	}
	return component;
}

static void walk_component(struct walk *w, struct strview component, size_t at)
{
	const int rank = rank_of(component);

	if (strview_empty(&w->user))
		w->user = user_of(component);
	if (rank == 1) {
		w->above = w->slice;
		w->slice = component;
	}
	if (rank && is_nameless(w, component)) {
		w->rank = rank; /* counts as named */
	} else if (rank && rank >= w->rank) {
		w->unit.name = name_of(component);
		w->unit.slice = rank == 1 ? w->above : w->slice;
		w->rank = rank;
	}
	w->at = w->rank == rank && rank ? at : w->at;
	w->parent = component;
}

static struct walk walk(struct strview path)
{
	struct walk w = {.unit = {strview_of(""), strview_of(""), strview_of("")},
			 .slice = strview_of(""),
			 .above = strview_of(""),
			 .user = strview_of(""),
			 .parent = strview_of("")};
	struct strview component;

	for (size_t at = 1; strview_until(&path, '/', &component); at++)
		walk_component(&w, component, at);
	w.unit.user = w.user;
	return w;
}

bool unit_of_path(struct strview path, struct unit *ret)
{
	const struct walk w = walk(path);

	if (!w.rank)
		return false;
	*ret = w.unit;
	return true;
}

bool unit_of_proc(struct strview proc_cgroup, struct unit *ret)
{
	struct walk best = {0}, w;
	struct cgroup_line line;

	while (cgroup_line_next(&proc_cgroup, &line)) {
		w = walk(line.path);
		if (w.rank > best.rank || (w.rank && w.rank == best.rank && w.at > best.at))
			best = w;
	}
	if (!best.rank)
		return false;
	*ret = best.unit;
	return true;
}
