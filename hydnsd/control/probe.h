/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The frame of a dry run: a query as an ordinary client sends it. */
#ifndef HYDNSD_CONTROL_PROBE_H
#define HYDNSD_CONTROL_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "hydns/resolver.h"
#include "hydnsd/rules/wire.h"

#define HYDNSD_PROBE_COOKIE_MOST 64    /* octets: more than the program accepts */
#define HYDNSD_PROBE_MOST        512   /* longest frame: a name of 255 octets, over IPv6, with such a cookie, takes 412 */

struct hydnsd_query {
	struct hydnsd_name name;       /* in the letters of the client */
	uint16_t qtype;                /* network order */
	bool norec;
	bool edns, dnssec_ok;          /* dnssec_ok and a cookie: only with edns */
	uint16_t edns_size;
	uint8_t cookie_len;            /* 0: no COOKIE option */
	uint8_t cookie[HYDNSD_PROBE_COOKIE_MOST];
};

/* client: IPv4-mapped, of the service's family. Returns the frame's length. */
size_t hydnsd_probe_frame(const struct hydnsd_query *q, const uint8_t client[16], const struct hydns_service_key *service,
			  uint8_t frame[HYDNSD_PROBE_MOST]);

#endif
