/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hydns query plugin for BIND: what its files share. One instance per view that loads it and per
 * configuration; to hydnsd each is a resolver of its own.
 */
#ifndef HYDNS_BIND_PLUGIN_H
#define HYDNS_BIND_PLUGIN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <isc/log.h>
#include <isc/mem.h>
#include <isc/netaddr.h>
#include <dns/cache.h>
#include <isccfg/aclconf.h>
#include <ns/hooks.h>
#include <ns/types.h>
#include "plugin/plugin.h"

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

struct hydns_socket {
	int fd;
	ino_t inode;                      /* another one, or none, when named has closed it */
};

/* --- hydns.c: the instance -------------------------------------------------------------------------------- */
struct hydns_instance {
	isc_mem_t *mctx;
	struct hydns_options o;
	struct hydns_instance *next;      /* of all that exist */
	cfg_aclconfctx_t *load;           /* tells the configuration it was loaded with from others; attached */
	bool peer_sizes;                  /* a server clause limits the size of responses */
	pthread_mutex_t starting;
	bool awaited;                     /* it is still to start; hydns.c's */
	atomic_bool started;              /* start() was tried; plugin is what came of it */
	const dns_view_t *view;           /* the instance's own, from the start on */
	ns_server_t *server;              /* NULL before the first start; attached */
	dns_aclenv_t *env;                /* as server */
	in_port_t port;                   /* where queries come, from the start on */
	struct hydns_socket *socket;      /* named's own, copies of which hydnsd was given */
	size_t sockets;
	struct hydns_acl_entry *acl;      /* as hydnsd was told it */
	size_t acls;
	bool exported;                    /* hydnsd was told who is answered where */
	struct hydns_counts counted;      /* kernel answers that named's counters have; locked by starting */
	_Atomic(struct hydns_plugin *) plugin;  /* NULL: there is no link to hydnsd */
	atomic_bool open;                 /* answers may be offered */
	_Atomic(dns_acl_t *) zones_acl;   /* attached: says of zones what the view's allow-query says */
	atomic_bool quiet;                /* stock.c: no hook may begin */
	_Atomic uint64_t looked_ms;       /* stock.c: when it looked for changes */
};
void hydns_say(enum hydns_log_level level, const char *text);
/* Ends what it publishes; the next response starts anew. No hook of it may be running. */
void hydns_restart(struct hydns_instance *inst);
void hydns_restart_all(void);
/* One that has left and whose tables this instance, which starts, may go on with, the caller's from now on; or NULL. */
struct hydns_plugin *hydns_take_former(struct hydns_instance *inst);
/* The instance's view is used: where another configuration was being loaded, that has failed, and the former goes on. */
void hydns_goes_on(struct hydns_instance *inst);
/* Calls use() for each that publishes, which does not end meanwhile: for threads that are no loops. */
void hydns_each_plugin(void (*use)(struct hydns_plugin *p, void *arg), void *arg);

/* Looks at the obstacles again, for something may have changed. */
void hydns_reconsider(struct hydns_instance *inst, struct hydns_plugin *p);

/* --- answer.c: which answers are everybody's ---------------------------------------------------------------- */
ns_hookresult_t hydns_on_setup(void *arg, void *data, isc_result_t *result);
ns_hookresult_t hydns_on_resume(void *arg, void *data, isc_result_t *result);
ns_hookresult_t hydns_on_lookup(void *arg, void *data, isc_result_t *result);
ns_hookresult_t hydns_on_answer(void *arg, void *data, isc_result_t *result);
ns_hookresult_t hydns_on_done(void *arg, void *data, isc_result_t *result);
ns_hookresult_t hydns_on_send(void *arg, void *data, isc_result_t *result);
/* Whether hydns_on_send() has found the response worth offering: then it is to be given to hydns_rendered(), which
 * offers the message as it is sent. */
bool hydns_is_wanted(const ns_client_t *client);
void hydns_rendered(struct hydns_instance *inst, const ns_client_t *client, const uint8_t *wire, size_t len);

/* --- notices.c for the patched named, stock.c for any other: what named tells, and what must be found out ------- */
struct hydns_hook {
	ns_hookpoint_t point;
	ns_hook_action_t action;          /* NULL: the end of the list */
};
/* That of NS_QUERY_SETUP comes first. */
extern const struct hydns_hook hydns_hooks[];
/* What the operator must know of this named, or NULL. */
extern const char *const hydns_warning;
/* While a zone changes nothing is offered, so that no answer from its former data comes to the kernel after those have
 * been withdrawn. */
bool hydns_zones_are_changing(void);
/* False, and logged, when this named is not the one that the plugin was built for. */
bool hydns_fits(void);
/* From now on the instance learns what changes; false: too many do. */
bool hydns_listen(struct hydns_instance *inst);
/* When it returns, the instance does not, and no hook of it runs. */
void hydns_unlisten(struct hydns_instance *inst);
/* The last instance has gone: this code may be unloaded. */
void hydns_end(void);

/* --- zones.c: answers from zones ------------------------------------------------------------------------------ */
/* Of the zone that is about to be looked into: false for mirror zones, whose data count as cached, and those that
 * only say where to ask. */
bool hydns_zone_is_authoritative(const query_ctx_t *qctx);
/* True when answers from it are everybody's. */
bool hydns_zone_is_fit(struct hydns_instance *inst, const query_ctx_t *qctx);
/* NONE when everything in the response, as it was rendered, is sent to everybody who has room for it. */
enum hydns_not_offered_why hydns_why_incomplete(const ns_client_t *client);
/* Before the instance goes. */
void hydns_zones_forget_acl(struct hydns_instance *inst);

/* --- stats.c: kernel answers in named's own counters -------------------------------------------------------- */
ns_hookresult_t hydns_on_stats(void *arg, void *data, isc_result_t *result);
/* Counts what is not counted yet, before the instance stops publishing. */
void hydns_stats_end(struct hydns_instance *inst);

/* --- acl.c: lists as a table of prefixes --------------------------------------------------------------------- */
struct hydns_judge {
	const dns_view_t *view;
	const ns_server_t *server;
	dns_aclenv_t *env;                /* what localhost and localnets are */
	const isc_netaddr_t *dest;        /* addresses where the view's clients ask */
	size_t dests;
	bool limited;                     /* who is counted by rate-limit is only answered with a valid cookie */
};
/* Which clients may be answered: *n entries for hydnsd, to be freed; NULL: out of memory. */
struct hydns_acl_entry *hydns_acl_compile(const struct hydns_judge *j, size_t *n);
/* Whether queries to the address may be this view's, and whether its *-on lists surely let them be answered there. */
bool hydns_view_hears(const dns_view_t *view, dns_aclenv_t *env, const isc_netaddr_t *dest);
bool hydns_view_answers_at(const dns_view_t *view, dns_aclenv_t *env, const isc_netaddr_t *dest);
/* Whether rate-limit counts answers such as the kernel gives, not only errors. */
bool hydns_rrl_limits_answers(const dns_view_t *view);

/* --- export.c: what the configuration allows, to whom, where ------------------------------------------------- */
/* The reasons why nothing can be offered for the instance's view; returns how many. */
size_t hydns_obstacles(const struct hydns_instance *inst, const char *reasons[HYDNS_OBSTACLES_MAX]);
/* Tells p who is answered where. False: not possible, and logged. */
bool hydns_export(struct hydns_instance *inst, const ns_client_t *client, struct hydns_plugin *p);
/* True when the interfaces have changed who may be answered, or named listens at other sockets, since then. */
bool hydns_export_is_old(const struct hydns_instance *inst);

#endif
