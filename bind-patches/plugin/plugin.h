/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hydns query plugin for BIND: what its files share. One instance per view that loads it and per
 * configuration; answers are offered only where a single view exists.
 */
#ifndef HYDNS_BIND_PLUGIN_H
#define HYDNS_BIND_PLUGIN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <isc/log.h>
#include <isc/mem.h>
#include <dns/cache.h>
#include <dns/db.h>
#include <ns/hooks.h>
#include <ns/types.h>
#include "publish/publish.h"

/* --- options.c: the plugin's parameters, the same names and meanings as Unbound's hydns clause ---------- */
struct hydns_options {
	bool enable, allow_unlogged, allow_unlimited;
	char *socket;             /* of the instance's memory context */
	uint32_t capacity, admission, window, min_ttl, max_ttl, refresh, flush_timeout;
};
/* Parses and checks text (NULL: all defaults) with BIND's own grammar; errors are logged with file and
 * line. *out is written on success only. */
isc_result_t hydns_options_parse(const char *text, const char *file, unsigned long line, isc_mem_t *mctx,
				 isc_log_t *lctx, struct hydns_options *out);
void hydns_options_free(struct hydns_options *o, isc_mem_t *mctx);

/* --- hydns.c: the instance -------------------------------------------------------------------------------- */
struct hydns_instance {
	isc_mem_t *mctx;
	struct hydns_options o;
	bool peer_sizes;                  /* a server clause limits the size of responses */
	pthread_mutex_t starting;
	atomic_bool started;              /* start() was tried; publish is what came of it */
	const dns_view_t *view;           /* the instance's own, from the start on */
	ns_server_t *server;              /* NULL before the first start; attached */
	bool exported;                    /* hydnsd was told who is answered where */
	struct hydns_counts counted;      /* kernel answers that named's counters have; locked by starting */
	_Atomic(struct hydns_publish *) publish; /* NULL: there is no link to hydnsd */
	atomic_bool open;                 /* answers may be offered */
	dns_cachelistener_t listener;     /* of the active instance alone, */
	dns_zonelistener_t zones;         /* as this one */
	atomic_uint changing;             /* changes of zones under way: nothing is offered */
	_Atomic(dns_acl_t *) zones_acl;   /* attached: says of zones what the view's allow-query says */
};
void hydns_say(enum hydns_log_level level, const char *text);

/* Looks at the obstacles again, for something may have changed. */
void hydns_reconsider(struct hydns_instance *inst, struct hydns_publish *p);

/* --- answer.c: which answers are everybody's ---------------------------------------------------------------- */
ns_hookresult_t hydns_on_setup(void *arg, void *data, isc_result_t *result);
ns_hookresult_t hydns_on_resume(void *arg, void *data, isc_result_t *result);
ns_hookresult_t hydns_on_lookup(void *arg, void *data, isc_result_t *result);
ns_hookresult_t hydns_on_send(void *arg, void *data, isc_result_t *result);
ns_hookresult_t hydns_on_rendered(void *arg, void *data, isc_result_t *result);

/* --- zones.c: answers from zones ------------------------------------------------------------------------------ */
/* Of the zone that is about to be looked into: false for mirror zones, whose data count as cached, and those that
 * only say where to ask. */
bool hydns_zone_is_authoritative(const query_ctx_t *qctx);
/* True when answers from it are everybody's. */
bool hydns_zone_is_fit(struct hydns_instance *inst, const query_ctx_t *qctx);
/* True when everything in the response, as it was rendered, is sent to everybody who has room for it. */
bool hydns_response_is_complete(const ns_client_t *client);
/* Before the instance goes. */
void hydns_zones_forget_acl(struct hydns_instance *inst);
/* From now on the instance is told of zones' changes. */
void hydns_zones_listen(struct hydns_instance *inst);

/* --- stats.c: kernel answers in named's own counters -------------------------------------------------------- */
ns_hookresult_t hydns_on_stats(void *arg, void *data, isc_result_t *result);
/* Counts what is not counted yet, before the instance stops publishing. */
void hydns_stats_end(struct hydns_instance *inst);

/* --- export.c: what the configuration allows, to whom, where ------------------------------------------------- */
/* Calls say() with each reason why nothing can be offered for the instance's view; returns how many. */
int hydns_obstacles(const struct hydns_instance *inst, void (*say)(void *arg, const char *reason), void *arg);
/* Tells p who is answered where. False: not possible, and logged. */
bool hydns_export(const ns_client_t *client, struct hydns_publish *p);

#endif
