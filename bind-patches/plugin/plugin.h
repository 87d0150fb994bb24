/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hydns query plugin for BIND: what its files share. One instance per view that loads it and per
 * configuration; to hydnsd each is a resolver of its own.
 */
#ifndef HYDNS_BIND_PLUGIN_H
#define HYDNS_BIND_PLUGIN_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <isc/log.h>
#include <isc/mem.h>
#include <isc/netaddr.h>
#include <dns/cache.h>
#include <dns/nsec3.h>
#include <isccfg/aclconf.h>
#include <isccfg/cfg.h>
#include <ns/hooks.h>
#include <ns/types.h>
#include "hydns/ports.h"
#include "plugin/forward_zones.h"
#include "plugin/plugin.h"

#define HYDNS_PENDING_AUTO     UINT32_MAX
#define HYDNS_WAITING_PLACES   16384
#define HYDNS_DIGEST           32

/* --- options.c: the plugin's parameters, the same names and meanings as Unbound's hydns clause ---------- */
enum hydns_choice { HYDNS_AUTO, HYDNS_YES, HYDNS_NO };
enum hydns_dnstap_mode { HYDNS_COMPLETE, HYDNS_SAMPLE, HYDNS_UNLOGGED };
struct hydns_names {
	size_t count;
	struct hydns_forward_name *name;  /* lower case; from malloc() */
};
struct hydns_options {
	bool enable, allow_unlogged, allow_unlimited, query_log, stale_after_crash;
	enum hydns_choice queue, queue_upstream;
	uint32_t queue_frames;
	enum hydns_dnstap_mode dnstap;
	uint32_t dnstap_one_in, log_buffer; /* log_buffer: megabytes */
	uint32_t pending_max, pending_per_question; /* or HYDNS_PENDING_AUTO */
	char *socket;             /* of the instance's memory context */
	struct hydns_names forward;   /* zones that the kernel may forward */
	struct hydns_names preload;   /* zones whose answers are all to be in the kernel */
	uint32_t capacity, admission, window, min_ttl, max_ttl, refresh, flush_timeout;
};
/* Parses and checks text (NULL: all defaults) with BIND's own grammar. Logs errors with file and line. Writes *out on
 * success only. */
isc_result_t hydns_options_parse(const char *text, const char *file, unsigned long line, isc_mem_t *mctx,
				 isc_log_t *lctx, struct hydns_options *out);
/* Whether clients' queries or those to upstream may take packet rings. */
bool hydns_options_want_rings(const struct hydns_options *o);
void hydns_options_free(struct hydns_options *o, isc_mem_t *mctx);

/* What a configuration says: a digest of its whole text. */
struct hydns_written {
	bool known;
	bool outside;                     /* other programs or libraries decide answers, too: dyndb, dlz */
	uint8_t digest[HYDNS_DIGEST];
};

struct hydns_socket {
	int fd;
	ino_t inode;                      /* to see whether named has closed it */
};

/* --- hydns.c: the instance -------------------------------------------------------------------------------- */
struct hydns_instance {
	isc_mem_t *mctx;
	struct hydns_options o;
	struct hydns_instance *next;      /* in the list of all instances */
	cfg_aclconfctx_t *load;           /* identifies the configuration that it was loaded with; attached */
	struct hydns_written written;     /* what that says */
	bool touched;                     /* by a command, which may have changed what holds; main loop */
	const cfg_aclconfctx_t *heir;     /* the configuration whose instance may go on with its rules; hydns.c's */
	bool kept;                        /* it has the rules of a former one, but not yet its own cookie secrets; main loop */
	bool waits;                       /* until named has exchanged its views, for the rules of a former one; hydns.c's */
	struct hydns_own_queries *own;    /* what that says of named's own queries */
	bool peer_sizes;                  /* a server clause limits the size of responses */
	struct hydns_stale stale;         /* as hydnsd has it */
	unsigned lines;                   /* of named's query log that kernel answers have since the start */
	bool logs_drops;                  /* named logs each response that rate-limit drops */
	struct hydns_rate_sharing *sharing; /* rates.c's; NULL: nothing is shared */
	struct hydns_dnstap_options dnstap; /* where named writes dnstap messages; its strings are the instance's */
	pthread_mutex_t starting;
	bool awaited;                     /* it has not started yet; hydns.c's */
	atomic_bool started;              /* hydns_start() was tried; plugin is the result */
	const dns_view_t *view;           /* the instance's own, from the start on */
	ns_server_t *server;              /* NULL before the first start; attached */
	dns_aclenv_t *env;                /* as server */
	in_port_t port;                   /* where queries come, from the start on */
	struct hydns_socket *socket;      /* named's own, copies of which hydnsd has */
	size_t sockets;
	struct hydns_acl_entry *acl;      /* as hydnsd has it */
	size_t acls;
	bool acl_is_full;                 /* it has more prefixes than there is room for, so hydnsd has none */
	bool exported;                    /* hydnsd has the access list and the services */
	struct hydns_counts counted;      /* kernel answers that named's counters have; locked by starting */
	_Atomic(struct hydns_plugin *) plugin;  /* NULL: there is no link to hydnsd */
	atomic_bool open;                 /* answers may be offered */
	_Atomic(dns_acl_t *) zones_acl;   /* attached: an allow-query of zones that is the same as the view's */
	atomic_bool quiet;                /* stock.c: no hook may begin */
	_Atomic uint64_t looked_ms;       /* stock.c: when it last looked for changes */
	atomic_uint waiting[HYDNS_WAITING_PLACES]; /* parking.c: clients, by question */
	atomic_uint all_waiting;
	struct hydns_forward_config *forwards; /* NULL: it names no zone */
	struct hydns_names preloaded;     /* zones that it preloads since the start, or tries to; locked by starting */
	struct hydns_preloading *preloading; /* preload.c's: what their thread has of the instance; NULL: it has never preloaded */
	atomic_bool has_failures;         /* answers that are some were offered */
	struct hydns_forward_notes forward_notes; /* which are refused, as noted last; locked by starting */
};
void hydns_named_log(enum hydns_log_level level, const char *text);
/* Ends what it offers; the next response starts it again. No hook of it may be running. */
void hydns_restart(struct hydns_instance *inst);
void hydns_restart_all(void);
/* A plugin object that has left, whose tables this instance, which starts, goes on with; the caller's from now on. NULL:
 * there is none. rings: better one with packet rings, else better one without. */
struct hydns_plugin *hydns_take_former(struct hydns_instance *inst, bool rings);
/* The instance starts without a plugin object. Returns NULL. */
struct hydns_plugin *hydns_start_without(struct hydns_instance *inst);
/* A view with this instance is in use. If another configuration was being loaded, its load has failed: makes the
 * instances of this one offer again. */
void hydns_instance_resume(struct hydns_instance *inst);
/* The views of a new configuration are in use, all loops are paused, and nobody has been answered by them: this instance, of one of
 * them, goes on with the rules of a former one that waits for this, or begins anew. */
struct hydns_start;
void hydns_instance_exchanged(struct hydns_instance *inst, const struct hydns_start *by);
/* Calls use() for each plugin object that offers, and keeps it meanwhile: for threads that are no loops. */
void hydns_each_plugin(void (*use)(struct hydns_plugin *p, void *arg), void *arg);

/* --- dnstap.c: logged answers ------------------------------------------------------------------------------------ */
/* What the configuration says of dnstap, to out, whose strings are the caller's to free by hydns_dnstap_free(). */
void hydns_dnstap_read(const cfg_obj_t *config, isc_mem_t *mctx, struct hydns_dnstap_options *out);
void hydns_dnstap_free(struct hydns_dnstap_options *o, isc_mem_t *mctx);
/* Whether the view's dnstap has messages that kernel answers would be missing in. */
bool hydns_dnstap_sees_answers(const dns_view_t *view);
/* What of them the plugin writes, to *out; path: room for the file's name. */
void hydns_dnstap_options(const struct hydns_instance *inst, const dns_view_t *view, struct hydns_dnstap_options *out,
			  char path[PATH_MAX]);

/* --- lines.c: lines of named's query log -------------------------------------------------------------------------- */
/* Which lines named writes now that kernel answers are to have, too: NS_SERVER_LOGQUERIES, NS_SERVER_LOGRESPONSES. */
unsigned hydns_lines_wanted(const struct hydns_instance *inst);
/* For struct hydns_dnstap_options, with these as lines and the view's name. */
void hydns_lines_write(const struct hydns_dnstap_options *o, const struct hydns_logged *r, const uint8_t *query, const uint8_t *reply);

/* --- start.c: the start of an instance ------------------------------------------------------------------------- */
/* What is to become of its rules if named crashes, by the configuration and by rndc serve-stale. */
struct hydns_stale hydns_stale_wanted(const struct hydns_instance *inst, const dns_view_t *view);
struct hydns_start {
	dns_view_t *view;
	ns_server_t *server;
	dns_aclenv_t *env;
	in_port_t port;                   /* where queries come */
};
/* Does nothing after the first call. */
void hydns_start(struct hydns_instance *inst, const struct hydns_start *by);
/* Checks the obstacles again after something may have changed: ends offers or allows them again. */
void hydns_reconsider(struct hydns_instance *inst, struct hydns_plugin *p);

/* --- answer.c: from a query to an offer ----------------------------------------------------------------------- */
ns_hookresult_t hydns_on_setup(void *arg, void *data, isc_result_t *result);
ns_hookresult_t hydns_on_resume(void *arg, void *data, isc_result_t *result);
ns_hookresult_t hydns_on_lookup(void *arg, void *data, isc_result_t *result);
ns_hookresult_t hydns_on_answer(void *arg, void *data, isc_result_t *result);
ns_hookresult_t hydns_on_done(void *arg, void *data, isc_result_t *result);
ns_hookresult_t hydns_on_send(void *arg, void *data, isc_result_t *result);
/* HYDNS_VARIANT_* of the client's query. */
uint8_t hydns_variant_of(const ns_client_t *client);
/* Whether hydns_on_send() has found the response worth offering. If so, hydns_rendered() must get it as named sends it,
 * and offers it. */
bool hydns_is_wanted(const ns_client_t *client);
void hydns_rendered(struct hydns_instance *inst, const ns_client_t *client, const uint8_t *wire, size_t len);

/* --- parking.c for the patched named: questions that several clients wait for; stock.c for any other: none is parked ---- */
ns_hookresult_t hydns_on_context(void *arg, void *data, isc_result_t *result);
ns_hookresult_t hydns_on_context_end(void *arg, void *data, isc_result_t *result);
/* For a query context that resumes: how often the question of its client was asked by queries that are parked, if this is the end of
 * what they wait for; then *key is the question's. Else 0. */
uint32_t hydns_parked_for(const query_ctx_t *qctx, uint64_t *key);
/* How long a query of the view may be parked, in milliseconds; 0: none is. */
uint32_t hydns_park_ms(const dns_view_t *view);
/* How many at once: wanted, or what named's own limit suggests. */
uint32_t hydns_pending(const struct hydns_instance *inst, const dns_view_t *view, uint32_t wanted);
/* The operator limits how many clients wait for one resolution: named must see each. */
bool hydns_waiting_is_limited(const dns_view_t *view);

/* --- failures.c for the patched named: failures that it remembers; stock.c for any other: none is known ------------------- */
/* Whether named gives everybody the failure that it is about to send, from its memory; sets *end, from when on it does not. */
bool hydns_failure_is_remembered(const query_ctx_t *qctx, time_t *end);
/* The thread's next offer, of a failure, depends on named's memory of failures; and: that is empty now. */
void hydns_failure_depends(struct hydns_thread *t);
void hydns_failures_withdraw(struct hydns_plugin *p);
/* The query context has the result of a fetch: counts it for hydnsd's guard. */
void hydns_fetch_ended(struct hydns_plugin *p, const query_ctx_t *qctx);

/* --- response.c: which responses are the same for everybody ------------------------------------------------------ */
/* What named has looked into for a query: both for some chains of aliases. */
struct hydns_sources {
	bool cache, zone;
	bool unfit;                       /* a zone for which hydns_zone_is_fit() is false */
};
struct hydns_response {
	bool fixed;                       /* its records are from zones, else from the cache */
	bool secure;
	uint32_t ttl;                     /* the lowest of its records */
};
/* Whether the query is of the shape that the program answers, whatever its question. */
bool hydns_query_is_plain(const ns_client_t *client);
/* NONE when the failure that named remembers may be offered. name: the question's. */
enum hydns_not_offered_why hydns_why_failure_not_offered(const query_ctx_t *qctx, const isc_region_t *name);
/* NONE when the response to a plain query may be offered: fills *out. name: the question's. */
enum hydns_not_offered_why hydns_why_not_offered(const query_ctx_t *qctx, const struct hydns_sources *s,
						 const isc_region_t *name, struct hydns_response *out);
/* The same, by the response as it was rendered. */
enum hydns_not_offered_why hydns_why_rendered_not_offered(const ns_client_t *client, const uint8_t *wire, size_t len,
							  bool fixed, bool secure);

/* --- resumed.c for the patched named; stock.c for any other ---------------------------------------------------------------- */
/* Whether the response that named is about to send is made of what its cache has now, and all of it. Take the offer's stamp before. */
bool hydns_cache_gives(const query_ctx_t *qctx);

/* --- notices.c for the patched named: what it notifies plugins of; stock.c for any other: finds it out ------------- */
struct hydns_hook {
	ns_hookpoint_t point;
	ns_hook_action_t action;          /* NULL: the end of the list */
};
/* That of NS_QUERY_SETUP comes first. */
extern const struct hydns_hook hydns_hooks[];
/* What the operator must know of this named, or NULL. */
extern const char *const hydns_warning;
/* False, and logged, when this named is not the one that the plugin was built for. */
bool hydns_named_is_known(void);
/* From now on the instance is notified of changes; false: too many instances are. */
bool hydns_listen(struct hydns_instance *inst);
/* The same, in the place of another one, which is not any more when it returns. Both have the same plugin object meanwhile. */
void hydns_listen_instead(struct hydns_instance *former, struct hydns_instance *inst);
/* When it returns, the instance is not notified any more, and no hook of it runs. */
void hydns_unlisten(struct hydns_instance *inst);
/* The last instance has gone: named may unload this code. */
void hydns_unload(void);

/* --- queue_upstream.c for the patched named: its own queries by packet rings; stock.c for any other: none -------------- */
/* What a configuration says of them; to be freed. NULL: there is no memory, or named is not patched. */
struct hydns_own_queries *hydns_own_queries_read(const cfg_obj_t *config);
/* The ports that they may leave from, but for those that are to be avoided (own: a struct hydns_own_queries). */
struct hydns_port_run hydns_own_queries_ports(const struct hydns_own_queries *q);
bool hydns_own_queries_avoid(void *own, uint16_t port);
/* Whether both say the same. */
bool hydns_own_queries_agree(const struct hydns_own_queries *a, const struct hydns_own_queries *b);
/* Why they take sockets although the host may have rings for them, or NULL. */
const char *hydns_own_queries_obstacle(const struct hydns_own_queries *q);
/* --- demand.c for the patched named: packet rings that the configuration demands; stock.c for any other ------------------ */
/* NS_CONFIGURED: such an instance starts at once. named ends unless it then gets its rings within a bounded time, if it is
 * itself starting. */
ns_hookresult_t hydns_on_configured(void *arg, void *data, isc_result_t *result);
/* A plugin statement: its text between the braces, as it is in the configuration, and where it ends. */
struct hydns_statement {
	const cfg_obj_t *config;
	const char *text, *file;
	unsigned long line;
	isc_mem_t *mctx;
	isc_log_t *lctx;
};
/* The options of the statement's view; NULL: the configuration has no view. */
const cfg_obj_t *hydns_statement_view(const struct hydns_statement *s);
/* Logs why o, the options of s, demands rings in vain. ISC_R_SUCCESS: that is not known before named runs. */
isc_result_t hydns_demand_check(const struct hydns_options *o, const struct hydns_statement *s);

/* --- keep.c for the patched named: rules that outlive a reload; stock.c for any other: none do -------------------------------- */
/* What the configuration says, to *out. */
void hydns_keep_read(const cfg_obj_t *config, struct hydns_written *out);
/* Why the rules of former can't stay when this instance's configuration takes the place of its; NULL: they may. */
const char *hydns_keep_obstacle(const struct hydns_instance *former, const struct hydns_instance *inst);
/* As hydns_instance_exchanged(): moves all that former has to inst, which starts thereby. NULL, or why not; then nothing has moved. */
const char *hydns_keep(struct hydns_instance *former, struct hydns_instance *inst, const struct hydns_start *by);
/* NS_CONFIGURED: it has them. */
void hydns_keep_configured(struct hydns_instance *inst);
/* NS_EXCHANGED. */
ns_hookresult_t hydns_on_exchanged(void *arg, void *data, isc_result_t *result);

/* --- preload.c for the patched named: zones whose answers are all to be in the kernel; stock.c for any other: none ------------ */
/* Whether the options or a zone of this view, the instance's, say that a zone is to be preloaded. */
bool hydns_preload_is_wanted(const struct hydns_instance *inst, dns_view_t *view);
/* The object has started: begins to preload these zones. */
void hydns_preload_begin(struct hydns_instance *inst, struct hydns_plugin *p);
/* Whether they are others than those that it preloads. */
bool hydns_preload_is_news(struct hydns_instance *inst);
/* The thread that preloads for former does so for inst from now on, whose view it looks into. NULL, or why not. No hook of either may
 * be running. */
const char *hydns_preload_hand_over(struct hydns_instance *former, struct hydns_instance *inst);
/* Before the instance goes, and after its plugin object. */
void hydns_preload_end(struct hydns_instance *inst);

/* --- preload_names.c ------------------------------------------------------------------------------------------------- */
/* How a zone with NSEC3 records hashes names. */
struct hydns_zone_hashing {
	uint8_t algorithm;
	uint16_t iterations;
	unsigned char salt[DNS_NSEC3_SALTSIZE];
	size_t salt_len;
};
/* A version of a zone's data; attached while it is looked at. */
struct hydns_zone_data {
	dns_view_t *view;
	dns_zone_t *zone;
	dns_db_t *db;
	dns_dbversion_t *version;
	enum hydns_proofs proofs;
	struct hydns_zone_hashing hashing;
};
enum hydns_proofs hydns_zone_proofs(dns_db_t *db, dns_dbversion_t *version, struct hydns_zone_hashing *how);
/* Adds all of its names. */
void hydns_zone_names(const struct hydns_zone_data *z, struct hydns_preload_names *to);
/* What it has at this name, which is at or below its origin. */
struct hydns_name_data hydns_zone_look(const struct hydns_zone_data *z, const dns_name_t *name);
/* soa.c: of this version, which may be one that is not committed. False: there is none. */
bool hydns_soa_of(dns_db_t *db, dns_dbversion_t *version, struct hydns_zone_soa *out);

/* --- forward_config.c for the patched named: zones that the kernel may forward, as they are configured; stock.c for any other: none */
/* Adds the names of a list of strings to out. NULL, or what is wrong with the one at *at. */
const char *hydns_names_read(const cfg_obj_t *list, struct hydns_names *out, const cfg_obj_t **at);
/* False: no memory. */
bool hydns_names_add(struct hydns_names *list, const struct hydns_forward_name *name);
/* Logs why named does not forward a zone that o, the options of s, names: all others are not asked, or not by UDP. */
isc_result_t hydns_forward_check(const struct hydns_options *o, const struct hydns_statement *s);
/* What else the configuration says of the zones in the statement's view. */
struct hydns_forward_config {
	struct hydns_names others;        /* zones with forwarders, or expressly without, the named ones included */
	struct hydns_names unvalidated;   /* validate-except */
	bool orders, filters;             /* rrset-order; deny-answer-* */
};
/* NULL: no memory. */
struct hydns_forward_config *hydns_forward_configured(const struct hydns_statement *s);
void hydns_forward_config_free(struct hydns_forward_config *c);
/* --- forward.c for the patched named: which of them named relays unchanged; stock.c for any other: none --------------------- */
/* Makes the list of zones that the kernel may forward, as of now, and gives it to p if it is news. At the start, and after each command
 * that may concern it, before what has changed is withdrawn. */
void hydns_forward_refresh(struct hydns_instance *inst, struct hydns_plugin *p);

/* --- queue.c for the patched named: packet rings of its loops; stock.c for any other: none --------------------------- */
/* What the instance may ask packet rings for: HYDNS_QUEUE_*, or 0. One view has them, the first with the plugin that may. */
uint32_t hydns_queue_parts(const struct hydns_instance *inst);
/* Notes that another view has the rings, or what keeps named's own queries from them, if so. */
void hydns_queue_note(const struct hydns_instance *inst, struct hydns_plugin *p);
bool hydns_queue_has_rings(struct hydns_plugin *p);
/* The loops use the rings of p, if it has some: at once, or when those that they use end. */
void hydns_queue_use(struct hydns_plugin *p);
/* named's own sockets leave the ports of this instance's queries by rings alone. */
void hydns_queue_leave_ports(const struct hydns_instance *inst);
/* When it returns, no loop uses the rings of p (NULL: nothing happens); what they hold waits. */
void hydns_queue_pause(struct hydns_plugin *p);
/* After hydns_plugin_gone(): hydnsd forgets whose answers come by these rings, so what waits for some is asked again. */
void hydns_queue_forget(struct hydns_plugin *p);
/* The rings of this first thread end: see struct hydns_plugin_options. What lies in them is answered by sockets, also when
 * named unloads this code first. */
void hydns_queue_end(const struct hydns_lane_thread *first);

/* --- zones.c: answers from zones ------------------------------------------------------------------------------ */
/* Of the zone that named is about to look into: false for mirror zones, whose data count as cached, and for zones that
 * only say where to ask. */
bool hydns_zone_is_authoritative(const query_ctx_t *qctx);
/* True when answers from it are the same for everybody. */
bool hydns_zone_is_fit(struct hydns_instance *inst, const query_ctx_t *qctx);
/* NONE when everything in the rendered response goes to all clients that have room for it. */
enum hydns_not_offered_why hydns_why_zone_not_offered(const ns_client_t *client);
/* The zone that named answers from is told to p, before the answer is offered. */
void hydns_zone_tell(struct hydns_plugin *p, const ns_client_t *client);
/* Before the offer of an answer from zones: what it depends on and does not show. */
void hydns_zone_dependencies(struct hydns_thread *t, const ns_client_t *client);
/* Before the instance goes. */
void hydns_zones_forget_acl(struct hydns_instance *inst);

/* --- stats.c: kernel answers in named's own counters -------------------------------------------------------- */
ns_hookresult_t hydns_on_stats(void *arg, void *data, isc_result_t *result);
/* Counts what is not counted yet, before the instance ends its offers. */
void hydns_stats_end(struct hydns_instance *inst);

/* --- rates.c for the patched named: rate-limit together with the kernel; stock.c for any other: it counts alone ------------- */
bool hydns_rates_are_shared(const struct hydns_instance *inst, const dns_view_t *view);
/* Before p starts: the limits. */
void hydns_rates_give(const struct hydns_instance *inst, const dns_view_t *view, struct hydns_plugin *p);
/* From the start on named counts with p; until _unshare() has returned. */
void hydns_rates_share(struct hydns_instance *inst, struct hydns_plugin *p);
void hydns_rates_unshare(struct hydns_instance *inst);
/* What named counts its response to the client by, and a failure; 0: it does not. */
uint64_t hydns_account_of(const ns_client_t *client);
uint64_t hydns_failure_account(const struct hydns_instance *inst, const ns_client_t *client);

/* --- drops.c --------------------------------------------------------------------------------------------------- */
/* Whether the configuration has named log each response that rate-limit drops. */
bool hydns_drops_are_logged(const cfg_obj_t *config);

/* --- acl.c: lists as a table of prefixes --------------------------------------------------------------------- */
struct hydns_judge {
	const dns_view_t *view;
	const ns_server_t *server;
	dns_aclenv_t *env;                /* what localhost and localnets are */
	const isc_netaddr_t *dest;        /* addresses where the view's clients ask */
	size_t dests;
	bool limited;                     /* there are clients that rate-limit counts, ... */
	bool shared;                      /* ... together with what the kernel answers them; else they need a valid cookie */
};
/* Which clients the kernel may answer: *n entries for hydnsd, which the caller frees; NULL: out of memory. */
struct hydns_acl_entry *hydns_acl_compile(const struct hydns_judge *j, size_t *n);
/* Whether queries to the address may be this view's, and whether its *-on lists allow answers there in any case. */
bool hydns_view_hears(const dns_view_t *view, dns_aclenv_t *env, const isc_netaddr_t *dest);
bool hydns_view_answers_at(const dns_view_t *view, dns_aclenv_t *env, const isc_netaddr_t *dest);
/* Whether rate-limit counts responses. */
bool hydns_rrl_limits(const dns_view_t *view);

/* --- export.c: what the configuration allows, to whom, where ------------------------------------------------- */
/* The instance of a view, or NULL. */
const struct hydns_instance *hydns_instance_of(const dns_view_t *view);
/* The reasons why nothing can be offered for the instance's view; returns how many there are. */
size_t hydns_obstacles(const struct hydns_instance *inst, const char *reasons[HYDNS_OBSTACLES_MAX]);
/* Gives p the access list, the services and the cookie secrets. False: not possible, and logged. */
bool hydns_export(struct hydns_instance *inst, struct hydns_plugin *p);
/* True when the access list and the sockets of inst are not those that hydnsd has of former: the same instance, or of a configuration
 * that says the same. They change with the interfaces. */
bool hydns_export_is_old(const struct hydns_instance *former, const struct hydns_instance *inst);
/* Gives p the cookie secrets alone. False: there are too many, and it has none. */
bool hydns_export_cookies(const struct hydns_instance *inst, struct hydns_plugin *p);

#endif
