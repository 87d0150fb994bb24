/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The plugin object, for files that work with more than one of its parts. Nothing here is for resolvers. */
#ifndef PLUGIN_INTERNAL_H
#define PLUGIN_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include "plugin/changes/changes.h"
#include "plugin/clock.h"
#include "plugin/link/link.h"
#include "plugin/offers/hot.h"
#include "plugin/offers/offers.h"
#include "plugin/page/page.h"
#include "plugin/plugin.h"
#include "plugin/preload/preload.h"
#include "plugin/queue/upstream.h"

struct hydns_thread {
	struct hydns_plugin *plugin;
	struct hydns_sample sample;         /* of its queries */
	struct hydns_hot hot;            /* the sketch is this thread's */
	struct hydns_producer ring;
	struct hydns_left_out left_out;  /* of the next offer */
	/* Written by this thread, read by the link thread: ring position after the last CHANGED frame; 0: there was none. */
	_Atomic uint32_t changed_head;
} __attribute__((aligned(HYDNS_CACHE_LINE)));

/* What the link thread knows of the rings since its last heartbeat. */
enum hydns_rest {
	HYDNS_REST_BUSY,                /* a frame was put into one */
	HYDNS_REST_QUIET,               /* none was */
	HYDNS_REST_RESTING,             /* none was for so long that it beats less often: the next frame wakes it */
};

struct hydns_plugin {
	struct hydns_plugin_options o;  /* strings owned */
	uint64_t seed[2];                /* of its tables' keys; sent to hydnsd */
	struct hydns_pages *pages;
	struct hydns_offered *offered;
	struct hydns_names *names;
	struct hydns_rrset_ends *ends;
	struct hydns_subtrees *subtrees; /* NULL: the resolver serves no zones */
	struct hydns_thread *thread;     /* o.threads of them */
	int doorbell;                    /* its number stays, what it refers to changes with hydnsd */
	_Atomic bool ready;              /* hydnsd has acknowledged READY */
	_Atomic enum hydns_rest rest;
	/* Numbers the intervals with a connection (odd) and without (even). Without one no rule is published, so all rules
	 * that were killed in such an interval stay dead to its end. */
	_Atomic uint32_t interval;
	_Atomic uint32_t dead_in;        /* interval without hydnsd in which all rules were killed ... */
	_Atomic uint32_t grace_in;     /* ... and a grace period has passed since */
	_Atomic uint32_t store_serial;       /* READY connections that began with an empty store so far */
	_Atomic uint32_t offered_in;        /* the last of them with an offer; UINT32_MAX: none */
	_Atomic uint64_t withdrawn;      /* generation of the last withdrawal */
	_Atomic bool closed;             /* for good: no offer is taken, and the epoch of all taken ones is over */
	_Atomic bool grace_over;         /* and a grace period has passed since */
	_Atomic bool stopping;           /* the link thread is to end; closed is set before */
	_Atomic bool edns_size_logged;   /* each is logged once */
	_Atomic bool grace_logged;
	bool started;
	pthread_t link;
	struct hydns_plugin *former;    /* ended by the link thread before it connects; NULL: none, or done */
	struct hydns_dnstap_options dnstap; /* what o.dnstap was; its strings are owned */
	_Atomic(struct hydns_tap *) tap;    /* of the link thread; NULL: no answers are logged */
	struct hydns_leave leave;
	struct hydns_reload_suspension suspension;
	struct hydns_requests requests;
	struct hydns_pending pending;
	struct hydns_secrets secrets;
	struct hydns_budgets budgets;
	uint64_t budget_seed[HYDNS_BUDGET_SEEDS]; /* on the page; secret */
	struct hydns_forward_list forwards;
	struct hydns_guard_zones guard;
	_Atomic(struct hydns_preload *) preload; /* NULL: no zone is preloaded */
	pthread_rwlock_t preload_lock;   /* held for writing where that ends */
	struct sockaddr_storage preload_from; /* where its queries come from; fixed before preload is set */
	_Atomic uint64_t preload_told;   /* answers to its queries that were offered or are none to keep, since it last cleared this */
	struct hydns_lanes *lanes;       /* NULL: no packet rings */
	struct hydns_ways *ways;         /* of datagrams that leave by them; NULL: no packet rings */
	struct hydns_upstream *upstream; /* NULL: none for queries to upstream */
	bool rings_taken;                /* both are a successor's: its link thread begins when this one's has ended */
	int gate;                        /* AF_XDP socket that is never bound: while it is open, the program redirects */
	_Atomic bool clients_open;       /* queries of clients come by them */
	_Atomic bool upstream_open;      /* queries to upstream may leave by them */
	/* configuration, fixed before the start */
	int *service;
	size_t services;
	struct hydns_notes notes;
	/* configuration that may be replaced: these, and in o what hydns_plugin_reconfigure() says. ready is set under the lock too, and
	 * only while hydnsd has the present one. */
	pthread_mutex_t configuring;
	uint32_t configuration;         /* number of the present one */
	struct hydns_acl_entry *acl;
	size_t acls;
};

static inline uint32_t hydns_store_serial(struct hydns_plugin *p)
{
	return atomic_load_explicit(&p->store_serial, memory_order_relaxed);
}

/* Tells the answers to a question apart: by their ends, or if fixed, by what was withdrawn between them. */
static inline uint32_t hydns_answer_id(const struct hydns_plugin *p, bool fixed, time_t expires)
{
	return fixed ? (uint32_t)atomic_load(&p->withdrawn) : (uint32_t)expires;
}

#endif
