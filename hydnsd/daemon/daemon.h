/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What the parts of the daemon share. */
#ifndef HYDNSD_DAEMON_DAEMON_H
#define HYDNSD_DAEMON_DAEMON_H

#include <netinet/in.h>

#include "hydns-kern/loader/loader.h"
#include "hydnsd/resolvers/resolver.h"
#include "hydnsd/daemon/grace.h"
#include "hydnsd/daemon/loop.h"
#include "hydnsd/daemon/options.h"
#include "hydnsd/netdev/facts.h"
#include "hydnsd/rules/rules.h"

struct hydnsd_sessions;
struct hydnsd_services;
struct hydnsd_interfaces;
struct hydnsd_addresses;
struct hydnsd_sources;
struct hydnsd_control;
struct hydnsd_withdrawals;
struct hydnsd_activity;
struct hydnsd_former;
struct hydnsd_lanes;
struct hydnsd_parking;
struct hydnsd_forwarding;
struct hydnsd_monitor;
struct hydnsd_exchange;
struct hydnsd_guard;

struct hydnsd {
	struct hydnsd_options options;
	int argc;                      /* to read the options again */
	char *const *argv;
	int signal_fd;
	struct hydnsd_watch *signal_watch;
	uint64_t started_ns;
	bool pid_written;
	struct hydns_composition with; /* what the program consists of */
	struct hydnsd_facts facts;     /* what the interfaces ask of it */
	uint64_t asked_ns[HYDNS_PARTS]; /* by part, when a resolver asked for it last; 0: never */
	bool adopted;                  /* the store was taken over from a former hydnsd */
	bool keep;                     /* at the stop: leave the program answering */
	bool stopping;                 /* and nothing is left */
	struct hydnsd_loop *loop;
	struct hydns_kern *kern;
	struct hydnsd_rules *rules;
	struct hydnsd_grace *grace;
	struct hydnsd_withdrawals *withdrawals;
	struct hydnsd_sessions *sessions;
	struct hydnsd_services *services;
	struct hydnsd_interfaces *interfaces;
	struct hydnsd_lanes *lanes;
	struct hydnsd_addresses *addresses;
	struct hydnsd_sources *sources;
	struct hydnsd_control *control;
	struct hydnsd_exchange *exchange;
	struct hydnsd_activity *activity;
	struct hydnsd_parking *parking; /* NULL: the program can park nothing */
	struct hydnsd_forwarding *forwarding; /* NULL: the program can forward nothing */
	struct hydnsd_monitor *monitor; /* NULL: option monitor is off */
	struct hydnsd_guard *guard;    /* NULL: option guard is off */
	struct hydnsd_former *former;  /* NULL: it has left no counts */
	struct hydnsd_missing_table *missing;
	struct hydnsd_resolver resolver[HYDNS_RESOLVERS];
	uint64_t offers_received;
	uint64_t rejected[HYDNSD_REJECTIONS];
	struct hydnsd_bound_counts {        /* how often clients came up against the option of this name */
		uint64_t plugin_connections, plugin_connections_per_user, plugin_requests, plugin_rate;
	} bound_counts;
	uint64_t sessions_dropped;     /* for a broken ring or message */
	uint64_t cookie_writes;          /* begun so far ... */
	uint64_t cookie_write[HYDNS_RESOLVERS]; /* ... and the last one of each resolver (cookies.c) */
	uint64_t changed;              /* names that resolvers said had changed */
};

#endif
