/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What an analyser has found, from the content of its map, as text with numbers. */
#ifndef HYDNSD_MONITOR_FINDINGS_H
#define HYDNSD_MONITOR_FINDINGS_H

#include <stddef.h>
#include <stdint.h>

#include "hydns/monitor.h"
#include "hydns/resolver.h"            /* text.h needs it */
#include "hydnsd/control/text.h"

#define HYDNSD_FINDINGS     10
#define HYDNSD_FINDING_TEXT (HYDNSD_ADDRESS_TEXT + HYDNSD_NAME_TEXT + HYDNSD_TYPE_TEXT + 32)

struct hydnsd_finding {
	char what[HYDNSD_FINDING_TEXT];
	uint64_t least, most;          /* between these is the number, for certain */
};
struct hydnsd_findings {
	uint32_t count;
	struct hydnsd_finding item[HYDNSD_FINDINGS];
};

/* map: all elements of the analyser's map, of each its CPUs'. Those that are most frequent come first. */
void hydnsd_findings_make(enum hydns_analyser a, const void *map, uint32_t cpus, struct hydnsd_findings *out);

#endif
