// SPDX-License-Identifier: Apache-2.0
/*
 * Discovery reports each new entity. From then on, a look visits all living entities once a second,
 * and after each changed list of the metadata, in slices of an entity each. The look compares the
 * entity's metadata, some hash lookups, with the version behind its labels (its stamp), and labels
 * the entity again after a change. The lookups also keep the metadata module searching for unknown
 * containers. While no entity waits for names or labels, only a list can bring news, and there is a
 * look every five seconds.
 */
#include "naming/naming.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/labels.h"
#include "base/loop.h"
#include "base/metric.h"
#include "base/nsec.h"
#include "discovery/discovery.h"
#include "naming/names.h"

#define NAMING_LOOK_NS	    NSEC_PER_SEC
/* Looks of a settled node are fewer by this factor, and later by up to the slack where the loop has
 * nothing else to do: still often enough for the metadata not to forget its containers. */
#define NAMING_REST	    5
#define NAMING_REST_SLACK   4
/* Budget of CPU time for labels in a look. It suffices for some thousand entities under usual
 * rules. The next look labels the rest. */
#define NAMING_CPU_NS	    (200 * NSEC_PER_MSEC)
/* An entity with more expensive labels is labelled only in every sixteenth look. So a pod with
 * constant changes leaves time for the others. */
#define NAMING_COSTLY_NS    (5 * NSEC_PER_MSEC)
#define NAMING_COSTLY_LOOKS 16

/* How the wait for a container's names ended. */
enum waited {
	WAITED_OK,
	WAITED_POD,	    /* only its pod's names are known: a sandbox, or late metadata */
	WAITED_NO_MATCH,    /* the cgroup path names no pod, and no source has the id */
	WAITED_UNKNOWN_ID,  /* the cgroup path names a pod, but no server has the id */
	WAITED_UNREACHABLE, /* no source answers */
	WAITED_DENIED,	    /* every source refuses */
	WAITED_GONE,	    /* the container ended before any source knew it */
	WAITED_MAX,
};

static const char *const waited_names[WAITED_MAX] = {
	[WAITED_OK] = "ok",
	[WAITED_POD] = "pod_only",
	[WAITED_NO_MATCH] = "no_match",
	[WAITED_UNKNOWN_ID] = "unknown_id",
	[WAITED_UNREACHABLE] = "unreachable",
	[WAITED_DENIED] = "denied",
	[WAITED_GONE] = "gone",
};

/* Of a look: living containers, and excluded entities. */
struct look_counts {
	size_t n_containers[METADATA_OUTCOME_MAX];
	size_t n_left_out;
};

/* @counts: of the last look; @counting: of the look under way. */
struct naming {
	struct discovery *discovery;
	struct metadata *metadata;
	struct labelling labelling;
	uint64_t generation; /* of labelling: number of the settings */
	struct loop_source *look;
	bool is_looking;
	struct entity *looked_at; /* in this look, the last; owned */
	struct look_counts counts, counting;
	uint64_t n_waited[WAITED_MAX];
	uint64_t n_labels_left_out;
	uint64_t n_rules_gave_up;
	uint64_t n_put_off;
	uint64_t (*cpu_clock)(void);
	uint64_t cpu_ns; /* for labels since the last look */
	unsigned int n_looks;
	uint64_t look_ns; /* between two looks */
	bool early;	  /* the next look is for a list and shares the last look's budget */
	bool restless;	  /* the next look may find news without a list */
};

/* The stamp: the version of the inputs of an entity's labels, never 0. It combines the settings'
 * number, the pod's version and these flags. */
#define STAMP_NAMED	 1u /* at least the pod's name is known */
#define STAMP_OWN	 2u /* the entity's own name is known */
#define STAMP_WHOLE	 4u /* no further names are to come */
#define STAMP_SETTLED	 8u /* the pod's annotations are known, or no source has them */
#define STAMP_PENDING	 16u
#define STAMP_LEVEL	 32u /* in a pod, but in none of the containers */
#define STAMP_COSTLY	 64u /* labelling took long; not an input of the labels */
#define STAMP_POD	 7   /* shift of the pod's version */
#define STAMP_GENERATION 48  /* shift of the settings' number, which begins with 1 */

static unsigned int known_of(const struct names *names)
{
	unsigned int known = 0;

	if (names_known(names))
		known |= STAMP_NAMED | (names->known.partial ? 0 : STAMP_WHOLE);
	if (names->outcome == METADATA_OK || names->outcome == METADATA_PLAIN)
		known |= STAMP_OWN;
	return known;
}

/* Orders flags by how much they know. */
static unsigned int rank(uint64_t known)
{
	unsigned int whole = known & STAMP_WHOLE ? 1 : 0;

	if (known & STAMP_OWN)
		return 3 + whole;
	return known & STAMP_NAMED ? 1 + whole : 0;
}

/* A runtime knows pods, but not their annotations. */
static bool is_settled(const struct naming *naming, const struct entity *entity,
		       const struct names *names)
{
	const struct container *state = names->known.state;

	if (!metadata_has_server(naming->metadata) || names->outcome == METADATA_PLAIN)
		return true;
	if (!names->known.pod)
		return !entity->id.pod_uid[0];
	return !state || state->pod != names->known.pod;
}

static uint64_t stamp_of(const struct naming *naming, const struct entity *entity,
			 const struct names *names, bool pending)
{
	uint64_t stamp = naming->generation << STAMP_GENERATION | known_of(names);

	if (is_settled(naming, entity, names))
		stamp |= STAMP_SETTLED;
	if (names_of_pod(names, entity))
		stamp |= STAMP_LEVEL;
	if (names->known.pod)
		stamp |= names->known.pod->version << STAMP_POD;
	return stamp | (pending ? STAMP_PENDING : 0);
}

/* True if the present labels are based on more. A list may lack earlier pods for a moment (the
 * kubelet's just after its start), and an ended entity keeps its names. */
static bool knows_more(const struct entity *entity, const struct names *names)
{
	return rank(entity->stamp) > rank(known_of(names));
}

/* True while further names may still arrive. */
static bool is_pending(const struct naming *naming, const struct entity *entity,
		       const struct names *names)
{
	const uint64_t all = STAMP_WHOLE | (names_of_pod(names, entity) ? STAMP_NAMED : STAMP_OWN);

	return entity_has_dirs(entity->kind) && names->outcome != METADATA_SANDBOX &&
	       names->outcome != METADATA_NOT_ASKED && (known_of(names) & all) != all &&
	       (entity->stamp & all) != all && metadata_active(naming->metadata) &&
	       nsec_monotonic() < entity->first_seen_ns + ENTITY_PENDING_NS;
}

/* After -ENOMEM the stamp stays, and the next look tries again. */
static void label(struct naming *naming, struct entity *entity, const struct names *names,
		  uint64_t stamp)
{
	_cleanup_(labelled_deinit) struct labelled is = {0};
	uint64_t start_ns = naming->cpu_clock(), took_ns;

	/* a pending entity is selected once it has a name */
	if (labelling_apply(&naming->labelling, names, entity, !(stamp & STAMP_PENDING), false,
			    &is))
		return;
	if (entity_leave_out(entity, is.why[0] ? is.why : NULL))
		return;
	entity_set_labels(entity, &is.labels, &is.settings);
	entity->named = names_known(names);
	took_ns = naming->cpu_clock() - start_ns;
	naming->cpu_ns += took_ns;
	entity->stamp = stamp | (took_ns > NAMING_COSTLY_NS ? STAMP_COSTLY : 0);
	naming->n_labels_left_out += is.n_left_out;
	naming->n_rules_gave_up += is.gave_up;
}

static enum waited waited(const struct entity *entity, const struct names *names)
{
	if (entity->stamp & STAMP_OWN)
		return WAITED_OK;
	if (entity->named)
		return WAITED_POD;
	if (!entity_alive(entity))
		return WAITED_GONE;
	if (names->outcome == METADATA_DENIED)
		return WAITED_DENIED;
	if (names->outcome == METADATA_UNREACHABLE)
		return WAITED_UNREACHABLE;
	return entity->id.pod_uid[0] ? WAITED_UNKNOWN_ID : WAITED_NO_MATCH;
}

static bool is_put_off(const struct naming *naming, const struct entity *entity)
{
	return naming->cpu_ns > NAMING_CPU_NS ||
	       (entity->stamp & STAMP_COSTLY && naming->n_looks % NAMING_COSTLY_LOOKS != 0);
}

/* The entity keeps its labels. An entity that was never selected is excluded until then. */
static void put_off(struct naming *naming, struct entity *entity)
{
	naming->n_put_off++;
	naming->restless = true;
	if (!entity->stamp)
		(void)entity_leave_out(entity, "rules not yet applied");
}

static void name_entity(struct naming *naming, struct entity *entity, const struct names *names)
{
	bool pending = is_pending(naming, entity, names);
	uint64_t stamp = stamp_of(naming, entity, names, pending);

	if ((entity->stamp & ~(uint64_t)STAMP_COSTLY) != stamp && !knows_more(entity, names)) {
		if (is_put_off(naming, entity)) {
			put_off(naming, entity);
			return;
		}
		label(naming, entity, names, stamp);
		naming->restless |= (entity->stamp & ~(uint64_t)STAMP_COSTLY) != stamp;
	}
	if (entity->pending && !pending)
		naming->n_waited[waited(entity, names)]++;
	entity->pending = pending;
	naming->restless = naming->restless || pending || names->known.missing;
}

/* Fails only for an invalid delay. */
static void arm(struct naming *naming, uint64_t delay_ns)
{
	(void)loop_arm(naming->look, delay_ns, 0); /* fails only for an invalid delay */
}

static void on_entity(void *ctx, struct entity *entity)
{
	struct naming *naming = ctx;
	const bool rested = !naming->restless;
	struct names names;

	names_find(naming->metadata, entity, &names);
	name_entity(naming, entity, &names);
	if (rested && naming->restless && !naming->is_looking)
		arm(naming, naming->look_ns);
}

static void look_at(struct naming *naming, struct entity *entity)
{
	struct names names;

	/* an ended entity keeps its labels */
	if (entity_alive(entity) || entity->pending) {
		names_find(naming->metadata, entity, &names);
		name_entity(naming, entity, &names);
		if (entity->kind == ENTITY_CONTAINER && entity_alive(entity))
			naming->counting.n_containers[names.outcome]++;
	}
	naming->counting.n_left_out += entity->left_out != NULL;
}

static void look_begin(struct naming *naming)
{
	naming->counting = (struct look_counts){.n_left_out = 0};
	naming->restless = false;
	if (!naming->early) {
		naming->cpu_ns = 0;
		naming->n_looks++;
	}
	naming->early = false;
	naming->is_looking = true;
}

/* A list that has come meanwhile begins the next look at once. */
static void look_end(struct naming *naming)
{
	naming->is_looking = false;
	naming->counts = naming->counting;
	if (naming->early || naming->restless)
		arm(naming, naming->early ? 0 : naming->look_ns);
	else /* fails only for an invalid delay */
		(void)loop_arm_within(naming->look, NAMING_REST * naming->look_ns,
				      NAMING_REST_SLACK * naming->look_ns);
}

/* The next entity. The reference keeps the one before in the list. */
static bool look(void *ctx)
{
	struct naming *naming = ctx;
	struct entity *entity;

	if (!naming->is_looking)
		look_begin(naming);
	entity = discovery_next_entity(naming->discovery, naming->looked_at);
	if (entity)
		entity_ref(entity);
	entity_unref(naming->looked_at);
	naming->looked_at = entity;
	if (entity)
		look_at(naming, entity);
	else
		look_end(naming);
	return entity;
}

/* Looks at once: an entity may have waited for this list for seconds. */
static void on_list(void *ctx)
{
	struct naming *naming = ctx;

	naming->early = true;
	if (!naming->is_looking)
		arm(naming, 0);
}

static uint64_t thread_cpu_ns(void)
{
	return nsec_read(CLOCK_THREAD_CPUTIME_ID);
}

DEFINE_CLEANUP(struct naming *, naming_freep, naming_free);

int naming_configure(struct naming *naming, const struct naming_settings *settings,
		     struct pattern_error *ret_error)
{
	struct labelling fresh = {0};
	int r = labelling_init(settings, &fresh, ret_error);

	if (r) {
		labelling_deinit(&fresh);
		return r;
	}
	labelling_deinit(&naming->labelling);
	naming->labelling = fresh;
	naming->generation++;
	naming->n_looks = NAMING_COSTLY_LOOKS - 1; /* the next look includes costly entities */
	naming->restless = true;
	if (naming->look && !naming->is_looking)
		arm(naming, naming->look_ns);
	return 0;
}

int naming_new(const struct naming_opts *opts, struct naming **ret, struct pattern_error *ret_error)
{
	_cleanup_(naming_freep) struct naming *naming = calloc(1, sizeof(*naming));
	struct metadata_opts metadata = opts->metadata;
	int r;

	if (!naming)
		return -ENOMEM;
	naming->cpu_clock = opts->cpu_ns ? opts->cpu_ns : thread_cpu_ns;
	metadata.loop = opts->loop;
	metadata.source = opts->source;
	metadata.ctx = opts->ctx;
	metadata.listed = on_list;
	metadata.listed_ctx = naming;
	naming->look_ns = opts->look_ns ? opts->look_ns : NAMING_LOOK_NS;
	r = naming_configure(naming, &opts->settings, ret_error);
	if (!r)
		r = metadata_new(&metadata, &naming->metadata);
	if (!r)
		r = loop_add_steps(opts->loop, look, naming, &naming->look);
	if (r)
		return r;
	arm(naming, naming->look_ns);
	naming->discovery = opts->discovery;
	discovery_listen(naming->discovery, on_entity, naming);
	*ret = take_ptr(naming);
	return 0;
}

void naming_free(struct naming *naming)
{
	if (!naming)
		return;
	if (naming->discovery)
		discovery_listen(naming->discovery, NULL, NULL);
	metadata_free(naming->metadata);
	labelling_deinit(&naming->labelling);
	loop_remove(naming->look);
	entity_unref(naming->looked_at);
	free(naming);
}

const char *naming_setting(const struct entity *entity, const char *setting, bool *ret_known)
{
	*ret_known = entity->stamp & STAMP_SETTLED;
	return labels_get(&entity->settings, setting);
}

int naming_explain(struct naming *naming, const struct entity *entity, struct labelled *ret,
		   char *ret_name)
{
	struct names names;

	names_find(naming->metadata, entity, &names);
	names_text(&names, entity, ret_name);
	return labelling_apply(&naming->labelling, &names, entity, true, true, ret);
}

void naming_describe(const struct naming *naming, char *ret, size_t size)
{
	metadata_describe(naming->metadata, ret, size);
}

void naming_collect(void *ctx, struct metric_sink *sink)
{
	static const struct metric_family_desc containers = {
		"podprof_metadata_containers", METRIC_GAUGE,
		"Containers by the state of their names.", NULL};
	static const struct metric_family_desc waits = {
		"podprof_metadata_waits", METRIC_COUNTER,
		"Containers that waited for their names, by outcome.", NULL};
	static const struct metric_family_desc left_out = {
		"podprof_entities_excluded", METRIC_GAUGE,
		"Containers, units and programs excluded from profiling.", NULL};
	static const struct metric_family_desc labels = {
		"podprof_labels_dropped", METRIC_COUNTER,
		"Labels not set: too many, or an invalid name.", NULL};
	static const struct metric_family_desc gave_up = {
		"podprof_relabel_timeouts", METRIC_COUNTER,
		"Timeouts of relabelling rules and of patterns of --select or --ignore; the "
		"entity is then excluded.",
		NULL};
	static const struct metric_family_desc put_off = {
		"podprof_entities_relabel_deferred", METRIC_COUNTER,
		"Deferrals of an entity's new labels by the CPU budget.", NULL};
	const struct naming *naming = ctx;

	metadata_collect(naming->metadata, sink);
	metric_by_name(sink, &waits, "outcome", naming->n_waited, waited_names, WAITED_MAX);
	metric_family(sink, &left_out);
	metric_u64(sink, naming->counts.n_left_out, NULL, 0);
	metric_family(sink, &labels);
	metric_u64(sink, naming->n_labels_left_out, NULL, 0);
	metric_family(sink, &gave_up);
	metric_u64(sink, naming->n_rules_gave_up, NULL, 0);
	metric_family(sink, &put_off);
	metric_u64(sink, naming->n_put_off, NULL, 0);
	metric_family(sink, &containers);
	for (int i = 0; i < METADATA_OUTCOME_MAX; i++)
		metric_u64(sink, naming->counts.n_containers[i],
			   &(struct metric_label){"outcome", metadata_outcome_name(i)}, 1);
}
