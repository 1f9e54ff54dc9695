/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_DOCTOR_PROBE_RESULTS_H
#define PODPROF_DOCTOR_PROBE_RESULTS_H

/* All that was found out, for the checks: what one finds explains what another does. */

#include "doctor/kernelside.h"
#include "doctor/listener.h"
#include "doctor/network.h"
#include "doctor/node.h"
#include "doctor/storedir.h"
#include "doctor/reading.h"
#include "doctor/rights.h"
#include "doctor/sources.h"

/**
 * struct probe_results
 * @config:     the settings that are asked for; borrowed
 * @in_cluster: we are in a pod of Kubernetes
 * @no_proc:    --proc-root cannot be opened: an enum root_outcome, or -errno. Then nothing of what
 * is read there is known
 */
struct probe_results {
	const struct config *config;
	bool in_cluster;
	int no_proc;
	struct rights rights;
	struct kernelside kernel;
	struct node node;
	struct reading reading;
	struct sources sources;
	struct network network;
	struct listener listener;
	struct storedir storedir;
};

#endif
