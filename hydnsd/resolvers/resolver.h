/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A resolver as hydnsd and the program know it: index, page, configuration, services, access list, rules. It outlives the
 * connection of its plugin as long as its heartbeat is not stale, so that the plugin can come back to it, also after a
 * restart of hydnsd.
 */
#ifndef HYDNSD_RESOLVERS_RESOLVER_H
#define HYDNSD_RESOLVERS_RESOLVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "hydns-kern/loader/loader.h"
#include "hydnsd/resolvers/preload.h"
#include "hydnsd/resolvers/changed_names.h"

struct hydnsd;

enum hydnsd_resolver_state {
	HYDNSD_RESOLVER_FREE,
	HYDNSD_RESOLVER_DISCONNECTED,  /* has a page, but no plugin is connected */
	HYDNSD_RESOLVER_CONFIGURING,
	HYDNSD_RESOLVER_READY,
	HYDNSD_RESOLVER_STALE,         /* its process has crashed, and its rules go on (stale.h) */
	HYDNSD_RESOLVER_CLOSING,       /* released; its rules are being withdrawn */
};

/* A UDP socket that a resolver has bound. */
struct hydnsd_socket {
	uint8_t addr[16];              /* IPv4-mapped, network order; all zero or ::ffff:0.0.0.0: any */
	uint16_t port;                 /* network order */
	bool any4, any6;               /* a wildcard, for these families */
};

#define HYDNSD_NOTES_MAX 32

/* A socket that was refused, and why. */
struct hydnsd_refusal {
	struct hydnsd_socket socket;
	char why[HYDNS_WHY];
};
#define HYDNSD_REFUSALS_MAX 64         /* more are refused too, but not shown */

struct hydnsd_note {
	enum hydns_note_kind kind;
	char *text;                    /* printable */
};

struct hydnsd_resolver {
	enum hydnsd_resolver_state state;
	struct hydns_hello hello;      /* zero after a restart of hydnsd, until the plugin is back */
	uint64_t session;              /* of the plugin; 0: none */
	uint64_t min_generation;       /* of the last WITHDRAW: offers with an older one are discarded */
	struct hydnsd_changed_names changed_names; /* since then */
	uint32_t epoch_seen;           /* rules of former epochs are withdrawn, or are about to be */
	bool has_log_ring, has_budgets; /* of this configuration */
	bool live;                     /* the program may answer for it (READY is set) */
	struct hydns_resolver_config config; /* as in the program's map */
	struct hydns_acl_entry *acl;   /* as the plugin sent it, for the current or coming configuration */
	uint32_t acl_count;
	bool acl_stale;                /* not live: the list in the kernel could not follow the host's routes */
	struct hydnsd_socket *sockets;
	uint32_t socket_count;
	struct hydnsd_refusal *refusals;
	uint32_t refusal_count;
	struct hydnsd_note note[HYDNSD_NOTES_MAX];
	uint32_t note_count;
	struct hydnsd_preload_counts preload;
	bool all_read;                 /* of its last session: every message, and every frame of its rings, was acted upon */
	uint64_t stale_since_ms;
};

/* At the start of hydnsd: takes over the resolvers that have a page, as disconnected, and withdraws what they have of former
 * epochs; withdraws all rules of those that have none. */
void hydnsd_resolver_adopt(struct hydnsd *d);
/* The plugin's connection has ended. The resolver stays until its process has ended or its heartbeat is stale. */
void hydnsd_resolver_leave(struct hydnsd *d, uint32_t i);
/* Takes away the resolver's page, services, lanes and secrets, and withdraws its rules. cause: for the log. */
void hydnsd_resolver_release(struct hydnsd *d, uint32_t i, const char *cause);
/* Releases one disconnected resolver, if there is one. */
void hydnsd_resolver_release_disconnected(struct hydnsd *d);
/* Periodic: releases disconnected resolvers that have ended or whose heartbeat is stale, and withdraws rules of former
 * epochs. */
void hydnsd_resolver_tick(struct hydnsd *d);

/* As in `hydnsctl status`. */
const char *hydnsd_resolver_state_name(const struct hydnsd *d, uint32_t i);

#endif
