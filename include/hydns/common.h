/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What all sides agree on: version, limits, variants, times. The other headers here are for one pair of readers each:
 *   abi.h       hydnsd, hydnsctl and a plugin: the version as a program says it
 *   rule.h      hydnsd and the program: the rule store
 *   resolver.h  hydnsd or a plugin, and the program: what the program knows of a resolver, and counts for it
 *   ring.h      a plugin and hydnsd: offers and changes
 *   session.h   a plugin and hydnsd: messages of the plugin socket
 *   parking.h   hydnsd and the program: queries that wait for a resolution
 *   switch.h    hydnsd, hydnsctl and the program: the kill switch
 *   forwarding.h  all of them: queries that go straight to an upstream server
 *   logged.h    all of them: answers that the resolver would have logged
 *   budgets.h   a plugin and the program: how often each client has asked a resolver that limits its clients
 *   rates.h     a plugin and the program: how many responses each client has had from a resolver that limits these
 *   names.h     a plugin and the program: the names of zones whose answers are all in the kernel
 *   nsec3.h     all of them: names as NSEC3 records have them
 *   soa.h       a plugin and the program: the SOA of each of these zones, as it is now
 *   preload.h   BIND's plugin and hydnsctl: which questions preloading asks
 * In all of them: integers are in the machine's byte order unless a field says "network order"; "monotonic" is
 * CLOCK_MONOTONIC; no structure has padding without a name.
 */
#ifndef HYDNS_COMMON_H
#define HYDNS_COMMON_H

#include <linux/types.h>

#define HYDNS_ABI_VERSION      28    /* of maps, rings and messages together; another version means other pins */
#define HYDNS_PIN_DIR          "/sys/fs/bpf/hydns"

/* --- shared memory ------------------------------------------------------------------------------------ */
/* A word that another thread, process or program may read or write at the same time: once, and in one piece. */
#ifdef __BPF__
#define HYDNS_READ_ONCE(word) (*(const volatile __typeof__(word) *)&(word))
#define HYDNS_WRITE_ONCE(word, value) (*(volatile __typeof__(word) *)&(word) = (value))
#else
#define HYDNS_READ_ONCE(word) __atomic_load_n(&(word), __ATOMIC_RELAXED)
#define HYDNS_WRITE_ONCE(word, value) __atomic_store_n(&(word), (value), __ATOMIC_RELAXED)
#endif

/* --- DNS messages ------------------------------------------------------------------------------------- */
#define HYDNS_NAME_MAX         255   /* octets of a name in wire format, with its root label: RFC 1035 section 3.1 */
#define HYDNS_QUESTION_MAX     (HYDNS_NAME_MAX + 4)
#define HYDNS_QUERY_MAX        512   /* longest UDP payload of a query that the program reads */
#define HYDNS_OPT_LEN          11    /* an OPT record without options: RFC 6891 section 6.1.2 */

/* The variant of a question: which queries an answer is for. */
#define HYDNS_VARIANT_DO       0x01  /* with EDNS DO: RFC 3225 */
#define HYDNS_VARIANT_NO_RD    0x02  /* without RD */
#define HYDNS_VARIANTS         0x03
/* Of a rule alone: it is a template (names.h), which no query finds by its own name. Each answer from it is made for the query's. */
#define HYDNS_VARIANT_TEMPLATE 0x04

/* --- limits of one host ------------------------------------------------------------------------------- */
#define HYDNS_RESOLVERS        16    /* a BIND's views are one resolver each */
#define HYDNS_SERVICES         16384 /* address and port pairs */
#define HYDNS_INTERFACES       64    /* that the program is attached to */
#define HYDNS_ACL_ENTRIES      131072 /* prefixes of one resolver */
#define HYDNS_THREADS_MAX      64    /* rings of one resolver */

/* --- times -------------------------------------------------------------------------------------------- */
#define HYDNS_NS_PER_US        1000ULL
#define HYDNS_NS_PER_MS        1000000ULL
#define HYDNS_NS_PER_S         1000000000ULL

/* A plugin writes its heartbeat every BEAT, and every REST once nothing has been put into its rings for QUIET. The resolver's
 * rules count while the heartbeat is younger than STALE. */
#define HYDNS_HEARTBEAT_BEAT_NS   100000000ULL
#define HYDNS_HEARTBEAT_QUIET_NS  1000000000ULL
#define HYDNS_HEARTBEAT_REST_NS   500000000ULL
#define HYDNS_HEARTBEAT_STALE_NS  900000000ULL
/* After it has passed one query for refresh, the program answers the others for this long before it passes the next. */
#define HYDNS_REFRESH_REARM_MS    100U
/* The part of a rule's life in which queries pass for refresh is at least this long, and at most half the life: an
 * authoritative server that needs a retransmission must still be in time. */
#define HYDNS_REFRESH_MIN_MS      2000U

#define HYDNS_STATIC_ASSERT(cond, why) _Static_assert(cond, why)

#endif
