/* SPDX-License-Identifier: BSD-3-Clause */
/* What Unbound 1.22 and 1.26 call or do differently. Included after config.h. */
#ifndef HYDNS_COMPAT_H
#define HYDNS_COMPAT_H

#include "util/data/msgparse.h"

#ifdef TTL_IS_EXPIRED    /* 1.26 */
/* A cache entry is over in the second of its end. */
#define HYDNS_LAST_SECOND 0
#define HYDNS_LOCAL_ZONE(zones, name, len, labels, type) \
	local_zones_lookup(zones, name, len, labels, LDNS_RR_CLASS_IN, type, 0)
/* of an answer by UDP, without TLS */
#define HYDNS_LOG_REPLY(q, addr, len, took, cached, reply, to) \
	log_reply_info(NO_VERBOSE, q, addr, len, took, cached, reply, to, comm_udp, NULL)
/* Replies dropped after discard-timeout have a counter of their own. */
#define HYDNS_COUNT_DISCARDED(svr, n) ((svr)->num_queries_discard_timeout += (n))
#define HYDNS_DISCARDED_ARE_DROPPED 0
#else
#define HYDNS_LAST_SECOND 1
#define HYDNS_LOCAL_ZONE(zones, name, len, labels, type) \
	local_zones_lookup(zones, name, len, labels, LDNS_RR_CLASS_IN, type)
#define HYDNS_LOG_REPLY(q, addr, len, took, cached, reply, to) \
	log_reply_info(NO_VERBOSE, q, addr, len, took, cached, reply, to, comm_udp)
#define HYDNS_COUNT_DISCARDED(svr, n) ((void)0)
#define HYDNS_DISCARDED_ARE_DROPPED 1
#endif

#endif
