/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What `explain' is about: a question, a client, or a client's question. */
#ifndef HYDNSD_CONTROL_ASKED_H
#define HYDNSD_CONTROL_ASKED_H

#include <jansson.h>
#include "hydnsd/control/probe.h"

struct hydnsd_asked {
	struct hydnsd_name name;       /* lower case; len 0: any question */
	uint8_t variant;               /* HYDNS_VARIANT_*, of the rule */
	struct hydnsd_query query;     /* as the client sends it */
	bool has_client;
	uint8_t client[16];            /* IPv4-mapped, network order */
};

/* Reads a request of `explain' into *q, which is zero. NULL, or the error. */
const char *hydnsd_asked_read(const json_t *request, struct hydnsd_asked *q);

#endif
