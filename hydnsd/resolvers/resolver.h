/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A resolver as the program knows it: an index, a page, a configuration, services, an ACL, rules. It
 * outlives the connection of its plugin for as long as its heartbeat is fresh, so that the plugin can
 * come back to it, also after a restart of hydnsd.
 */
#ifndef HYDNSD_RESOLVERS_RESOLVER_H
#define HYDNSD_RESOLVERS_RESOLVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "hydns-kern/loader/loader.h"
#include "hydnsd/resolvers/changed_names.h"

struct hydnsd;

enum hydnsd_resolver_state {
	HYDNSD_RESOLVER_FREE,
	HYDNSD_RESOLVER_DISCONNECTED,       /* has a page, but no plugin is connected */
	HYDNSD_RESOLVER_CONFIGURING,
	HYDNSD_RESOLVER_READY,
	HYDNSD_RESOLVER_CLOSING,      /* released; its rules are being withdrawn */
};

/* A UDP socket that a resolver has bound. */
struct hydnsd_socket {
	uint8_t addr[16];              /* IPv4-mapped, network order; all zero or ::ffff:0.0.0.0: any */
	uint16_t port;                 /* network order */
	bool any4, any6;               /* a wildcard, for these families */
};

#define HYDNSD_NOTES_MAX 32

/* A socket that was not taken, and why. */
struct hydnsd_refusal {
	struct hydnsd_socket socket;
	char why[HYDNS_WHY];
};
#define HYDNSD_REFUSALS_MAX 64         /* more are refused all the same, but not shown */

struct hydnsd_note {
	enum hydns_note_kind kind;
	char *text;                    /* printable */
};

struct hydnsd_resolver {
	enum hydnsd_resolver_state state;
	struct hydns_hello hello;      /* zero for one taken over whose plugin is not back yet */
	uint64_t session;              /* of the plugin; 0: none */
	uint64_t min_generation;       /* of the last WITHDRAW: offers with an older one are discarded */
	struct hydnsd_changed_names changed_names; /* of single names since */
	uint32_t epoch_seen;
	bool live;                     /* the program may answer for it (READY is set) */
	struct hydns_resolver_config config;
	struct hydns_acl_entry *acl;
	uint32_t acl_count;            /* gathered, of the current or coming configuration */
	bool acl_stale;                   /* not live, because the routes could not be put into the ACL in the kernel */
	struct hydnsd_socket *sockets;
	uint32_t socket_count;
	struct hydnsd_refusal *refusals;
	uint32_t refusal_count;
	struct hydnsd_note note[HYDNSD_NOTES_MAX];
	uint32_t note_count;
};

/* Marks as orphans those whose pages the pins hold; withdraws rules and services of all others, and what orphans have
 * of another epoch. */
void hydnsd_resolver_adopt(struct hydnsd *d);

/* The session of the resolver that holds this page (-1: no page); 0: there is none. */
uint64_t hydnsd_resolver_session(const struct hydnsd *d, int page_fd);
/*
 * A plugin says HELLO. page_fd: the page it holds, or -1; a former session of its resolver has been ended. Returns the
 * index and fills *welcome; *new_page is a descriptor to hand over (to be closed by the caller), or -1 when the old page
 * stays. Negative errno and a line in why when refused.
 */
int hydnsd_resolver_begin(struct hydnsd *d, uint64_t session, const struct hydns_hello *h,
			   int page_fd, struct hydns_welcome *welcome, int *new_page, char *why,
			   size_t room);
/* A reconfiguration begins: no answers until READY. */
int hydnsd_resolver_reset(struct hydnsd *d, uint32_t i, const struct hydns_hello *h);
int hydnsd_resolver_add_acl(struct hydnsd *d, uint32_t i, const struct hydns_acl_entry *e, uint32_t n,
			     char *why, size_t room);
/* len: octets of the text. */
int hydnsd_resolver_add_note(struct hydnsd *d, uint32_t i, const struct hydns_note *n, size_t len);
int hydnsd_resolver_ready(struct hydnsd *d, uint32_t i, char *why, size_t room);
/* The host's routes judge sources otherwise than before: so do the access lists in the kernel when this returns. True: one
 * could not be changed, nothing is answered by it, and it is to be tried again. */
bool hydnsd_resolver_sources(struct hydnsd *d);
/* The plugin's connection is gone; the resolver perhaps is not. */
void hydnsd_resolver_leave(struct hydnsd *d, uint32_t i);
/* True when the process of a resolver that has a page has ended: its connection is to be ended, and it is to be released. */
bool hydnsd_resolver_ended(const struct hydnsd *d, uint32_t i);
/* The resolver is gone: its rules, services and page go. */
void hydnsd_resolver_release(struct hydnsd *d, uint32_t i, const char *cause);

/* Periodic: releases orphans with a stale heartbeat, cleans up behind an advanced epoch. */
void hydnsd_resolver_tick(struct hydnsd *d);

/* What its rules must bear to count; 0: it has no page. */
uint32_t hydnsd_resolver_epoch(const struct hydnsd *d, uint32_t i);
/* It has suspended rules, some or all, until hydnsd has acted upon what waits in its rings. */
bool hydnsd_resolver_suspended(const struct hydnsd *d, uint32_t i);
/* This rule is among them. */
bool hydnsd_resolver_suspends(const struct hydnsd *d, const struct hydns_rule *rule);
/* Nanoseconds since the last beat, UINT64_MAX when it has none. */
uint64_t hydnsd_resolver_age(const struct hydnsd *d, uint32_t i);
/* Answers since the resolver's page was made; exact at the time of the call. */
void hydnsd_resolver_counts(struct hydnsd *d, uint32_t i, struct hydns_counts *out);
const char *hydnsd_resolver_state_name(const struct hydnsd *d, uint32_t i);

#endif
