/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_TEST_SUPPORT_TIMERS_H
#define PODPROF_TEST_SUPPORT_TIMERS_H

/* Number of timer descriptors of this process that are armed, or expired and not read yet, as the
 * kernel shows them. */
int timers_armed(void);

#endif
