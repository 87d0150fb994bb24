/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The plugin library of the hydns module, in the daemon only: from a worker's requests to offers, and from remote
 * control to withdrawals. For functions that take a struct hydns_daemon, NULL means that the module is not in use:
 * they do nothing then.
 */
#ifndef HYDNS_DAEMON_H
#define HYDNS_DAEMON_H

#include <stdatomic.h>
#include "hydns.h"
#include "hydns/ports.h"
#include "plugin/forward_zones.h"

struct acl_addr;
struct auth_zone;
struct config_file;
struct daemon;
struct edns_data;
struct remote_stream;
struct ub_server_stats;
struct worker;

/* How this resolver answers, as hydnsd gets it at the start. A change needs a reload. */
struct hydns_reply_options {
	uint16_t flags;           /* HYDNS_RESOLVER_* */
	uint16_t edns_size;
	uint16_t max_udp;
};

struct hydns_daemon {
	struct daemon* daemon;    /* borrowed */
	struct hydns_plugin* plugin;
	struct hydns_reply_options reply_options;
	struct hydns_stale stale;       /* as hydnsd has it */
	atomic_int open;          /* answers may be offered */
	int exported;             /* hydnsd has the access list and the services */
	int closing;              /* a reload, or the end, has begun */
	/* whether it goes on over a reload: hydns_unchanged.c */
	int suspended;            /* the rules wait for that to be known; closing is set, too */
	int altered;              /* a command has altered what the configuration says */
	int mixed;                /* fast_reload has changed it, and leaves some options as they were */
	uint64_t text;            /* digest of the configuration's text */
	uint64_t read;            /* of the one that fast_reload has read last; written by its thread, before the workers have it */
	uint64_t files;           /* of what was read from other files */
	int threads;
	struct hydns_context* contexts;
	struct hydns_counts base; /* at the last reset of the statistics */
	struct hydns_counts last; /* the last that came from hydnsd */
	long long shown;          /* answers in the statistics under way */
	int forwards;             /* zones may be forwarded in the kernel */
	int log_wants;                  /* hydns_dnstap_wants() at the start */
	_Atomic int limits;             /* hydns_limits_are_counted(), at the start or the last fast_reload */
	struct hydns_forward_notes forward_notes; /* why others are not: as noted last */
	struct hydns_forward_name* preloaded;     /* zones; NULL: none */
};

/* --- life ------------------------------------------------------------------------------------------ */
/* After the configuration is applied and the workers are created, before they run. When it returns, no answer of the
 * former configuration is left in the kernel, or they wait until hydns_daemon_run(), for it is the same. former: what served that
 * configuration; it is freed, or returned; may be NULL.
 * Returns NULL when the module is not in use, and logs why unless hydns is not in module-config. */
struct hydns_daemon* hydns_daemon_start(struct daemon* daemon, struct hydns_daemon* former);
/* When the other workers have started, and the first one is about to: connects to hydnsd. */
void hydns_daemon_run(struct hydns_daemon* d);
/* Ends all offers; the rules made of them no longer count. Calls gone(arg) (NULL: none) when the kernel sends none of
 * their answers any more, mostly on another thread. d is not NULL. */
void hydns_daemon_leave(struct hydns_daemon* d, void (*gone)(void* arg), void* arg);
/* When the workers have stopped, before the caches are freed. On a reload it does not wait: it returns d, to be given to
 * hydns_daemon_start(), which waits. When Unbound ends (ends), it waits itself, frees d and returns NULL. */
struct hydns_daemon* hydns_daemon_cleanup(struct hydns_daemon* d, int ends);
/* The options of the plugin, by the configuration as it is now; they point into it, and to *log, which it fills. */
struct hydns_plugin_options hydns_daemon_options(struct daemon* daemon, struct hydns_dnstap_options* log);
/* HYDNS_QUEUE_*: what packet rings are wanted for. */
uint32_t hydns_daemon_queue_parts(const struct config_file* cfg);
/* The context of a worker, called by the worker's own thread. NULL: it has none. */
struct hydns_context* hydns_daemon_context(struct hydns_daemon* d, int thread);

/* --- a reload that changes nothing (hydns_unchanged.c) ------------------------------------------------------ */
/* The configuration is in use. */
void hydns_unchanged_begin(struct hydns_daemon* d);
/* As hydns_daemon_leave(), but if all may go on as before the rules only wait. */
void hydns_unchanged_suspend(struct hydns_daemon* d, void (*gone)(void* arg), void* arg);
/* The workers have stopped. 0: d has to leave. */
int hydns_unchanged_stopped(struct hydns_daemon* d);
/* The next configuration was read; nothing of it is in use. cached: the caches were kept. If it is another one, d leaves: a listening
 * socket may be about to be opened where d holds a copy of one. */
void hydns_unchanged_read(struct hydns_daemon* d, const struct config_file* cfg, int cached);
/* It is in use. True: it is the same; d serves it when _resume() was called. False: d has left. */
int hydns_unchanged_goes_on(struct hydns_daemon* d);
void hydns_unchanged_resume(struct hydns_daemon* d);
/* fast_reload has read the configuration, on a thread of its own; it is not yet in use. */
void hydns_unchanged_fast_read(struct hydns_daemon* d, const struct config_file* cfg);
/* It is in use; whether it is the same. */
int hydns_unchanged_reloaded(struct hydns_daemon* d);

/* --- fast_reload (hydns_reload.c), from Unbound 1.23 on --------------------------------------------------- */
/* An option that differs and that fast_reload can't change, from place *at on, which is advanced; NULL: none is left. */
const char* hydns_reload_forbids(const struct config_file* was, const struct config_file* is, size_t* at);
/* The configuration was replaced, and no worker works by the former one any more; by the first worker's thread. When it returns, no
 * answer of the former one is left in the kernel, and none comes, unless the two are the same. */
void hydns_daemon_reloaded(struct hydns_daemon* d);

/* --- packet rings (hydns_queue.c) ---------------------------------------------------------------------- */
/* Has the worker watch its rings, if it has some. By the worker's own thread, when its sockets and event base exist. 0: out of
 * memory. */
int hydns_queue_start(struct hydns_context* h, struct worker* worker);
/* When the workers have stopped. */
void hydns_queue_stop(struct hydns_context* h);
void hydns_queue_receive(struct hydns_context* h);
int hydns_queue_send(struct hydns_context* h, struct comm_reply* repinfo, struct sldns_buffer* pkt);
/* Queries to upstream: as the functions of hydns.h. */
int hydns_upstream_query(struct hydns_context* h, struct pending* pend, struct sldns_buffer* pkt);
void hydns_upstream_port_end(struct hydns_context* h, int port);

/* --- answers (hydns_offer.c) ------------------------------------------------------------------------- */
extern const struct hydns_hooks hydns_offer_hooks;
/* Before the query is looked up anywhere. acl: the entry that let the client in; now: the worker's clock. */
void hydns_request_begin(struct hydns_context* h, struct comm_reply* repinfo, struct acl_addr* acl,
	struct query_info* qinfo, struct edns_data* edns, time_t now);
/* A reply was encoded into pkt from the cache, whose entries are still locked. */
void hydns_cache_answer(struct hydns_context* h, struct query_info* qinfo, struct reply_info* rep,
	struct sldns_buffer* pkt, uint16_t udp_size, struct edns_data* edns, int secure, time_t now);
/* A failure was encoded into pkt, because the cached answer has not passed validation; its entries are still locked. */
void hydns_cache_bogus(struct module_env* env, struct query_info* qinfo, struct reply_info* rep, struct sldns_buffer* pkt,
	struct edns_data* edns);
/* Whether the entry that answered the request under way is due for refresh. */
int hydns_refresh_due(const struct hydns_context* h);
/* The question, with the name as it stands there; RD is taken to be set. */
struct hydns_question hydns_question_of(const uint8_t* name, const struct query_info* qinfo, const struct edns_data* edns);
/* Whether the program can write the reply's OPT record; bogus: with extended errors. */
int hydns_edns_is_general(const struct edns_data* edns, int bogus);
/* Whether pkt, encoded from rep for a client with room for udp_size octets, has all additional data, or had room for them. */
int hydns_nothing_left_out(const struct reply_info* rep, struct sldns_buffer* pkt, uint16_t udp_size, const struct edns_data* edns);

/* --- auth-zones (hydns_zones.c) ------------------------------------------------------------------------ */
/* As hydns_zone_answer(). now: the worker's clock. */
void hydns_zones_offer(struct hydns_context* h, const struct query_info* qinfo, const struct reply_info* rep,
	struct sldns_buffer* pkt, uint16_t udp_size, const struct edns_data* edns, time_t now);
/* Whether clients get the answer to this question from an auth-zone, as long as that does not fall back. */
int hydns_zones_answer(const struct module_env* env, const struct query_info* qinfo);
/* Whether there are auth-zones at all. */
int hydns_zones_exist(struct daemon* daemon);
/* As hydns_zone_changing() and hydns_zone_changed(). Any thread. */
void hydns_zones_changing(struct hydns_daemon* d, const uint8_t* name, size_t len);
void hydns_zones_changed(struct hydns_daemon* d, const uint8_t* name, size_t len);

/* --- preloaded zones (hydns_preload.c) ------------------------------------------------------------------- */
/* After the plugin's start, if answers may be offered: preloads the zones of the configuration, until the plugin leaves. */
void hydns_preload_begin(struct hydns_daemon* d);
/* The zone, if clients are answered from it and it has data; locked for reading, with the auth-zones. NULL: nothing is. */
struct auth_zone* hydns_preload_open_zone(struct hydns_daemon* d, const uint8_t* origin, size_t len);
void hydns_preload_close_zone(struct hydns_daemon* d, struct auth_zone* z);
/* Whether the two name other zones to be preloaded. */
int hydns_preload_differs(const struct config_file* was, const struct config_file* is);

/* --- their names (hydns_names.c), as struct hydns_preload_options wants them; arg: struct hydns_daemon --------- */
int hydns_names_all(void* arg, const uint8_t* origin, size_t origin_len, struct hydns_preload_names* to);
int hydns_names_look(void* arg, const uint8_t* origin, size_t origin_len, const uint8_t* name, size_t name_len,
	struct hydns_name_data* data);
/* Whether the zone's denials have proofs. */
int hydns_zone_is_signed(struct auth_zone* z);

/* --- configuration (hydns_config.c) ------------------------------------------------------------------ */
/* Whether clients that this entry lets in all get the same answers. */
int hydns_acl_is_plain(const struct acl_addr* acl);
struct hydns_reply_options hydns_config_reply_options(struct daemon* daemon);
/* The reasons why nothing can be offered; returns how many there are. */
size_t hydns_config_obstacles(struct daemon* daemon, const char* reasons[HYDNS_OBSTACLES_MAX]);
/* Gives p the access list, the services and the cookie secrets. False: not possible, and logged. */
int hydns_config_export(struct daemon* daemon, struct hydns_plugin* p);
/* Gives p the secrets with which this resolver makes and verifies DNS cookies at this moment. */
void hydns_config_cookies(struct daemon* daemon, struct hydns_plugin* p);
/* Gives the plugin of d the options that shape replies, and the access list, as they are now. After a reload by the running workers. */
void hydns_config_export_again(struct hydns_daemon* d);
/* After an option was set at run time: stops offers if they are no longer possible, resumes them if they are again. was: they were
 * until now. */
void hydns_config_recheck(struct hydns_daemon* d, int was);

/* Whether Unbound answers a client that has waited for some time with expired data. It does so by its own clock, and only to clients
 * that it knows of: so no query may be parked. set_option can change it at run time. */
int hydns_config_gives_stale(const struct config_file* cfg);
/** what Unbound itself would give when it can ask nobody; nothing without hydns-stale-after-crash */
struct hydns_stale hydns_config_stale(const struct config_file* cfg);

/* The ports that the host had reserved when this process began, for queries to upstream by packet rings; 0 of them: none. A
 * chroot comes later. */
struct hydns_port_run hydns_config_reserved_ports(void);
/* Takes these out of the n ports that sockets for queries to upstream choose from, unless hydns-queue-upstream is no or nothing
 * would be left. Returns how many are left. */
int hydns_config_leave_ports(const struct config_file* cfg, int* ports, int n);
/* Ports that packet rings must not use either. */
void hydns_config_avoid_ports(struct daemon* daemon, struct hydns_plugin* p);

/* --- logged answers (hydns_dnstap.c) ------------------------------------------------------------------- */
#define HYDNS_WANTS_DNSTAP      0x01
#define HYDNS_WANTS_QUERIES     0x02     /* lines as of log-queries ... */
#define HYDNS_WANTS_REPLIES     0x04     /* ... and log-replies ... */
#define HYDNS_WANTS_DESTINATION 0x08     /* ... with log-destaddr */
int hydns_dnstap_sees_clients(const struct config_file* cfg);
/* What kernel answers leave behind by this configuration. */
int hydns_dnstap_wants(const struct config_file* cfg);
/* The same for the plugin. 0: they leave nothing behind. Its strings are valid until the next call. */
int hydns_dnstap_options(struct daemon* daemon, struct hydns_dnstap_options* o);

/* Writes a client's message instead of Unbound: as hydns_logs_message(). */
int hydns_dnstap_takes(struct hydns_context* h, int reply, struct sockaddr_storage* client, struct sockaddr_storage* service,
	struct sldns_buffer* msg, const struct timeval* at);

/* --- TLS to the collector (hydns_tls.c) ----------------------------------------------------------------- */
void hydns_tls_options(struct daemon* daemon, struct hydns_dnstap_options* o);

/* --- ip-ratelimit (hydns_limits.c) ---------------------------------------------------------------------- */
/* Whether kernel answers are counted by it. */
int hydns_limits_are_counted(const struct config_file* cfg);
/* Whether the operator limits how many queries of a client wait at once (wait-limit): Unbound must see each. */
int hydns_limits_waiting(const struct config_file* cfg);
/* Gives the plugin the limits as they are now. */
void hydns_limits_set(struct daemon* daemon, struct hydns_plugin* p);
/* As hydns_rate_counted() and hydns_rate_now(). */
void hydns_limits_charge(struct hydns_context* h, const struct sockaddr_storage* addr, socklen_t addrlen, time_t now,
	int* second, int* before, int* after);
int hydns_limits_spent(struct hydns_context* h, const struct sockaddr_storage* addr, socklen_t addrlen, time_t now, int own);

/* --- forward zones (hydns_forward.c) -------------------------------------------------------------------- */
/* Makes the list of zones that the kernel may forward, as of now, and gives it to the plugin if it is news. At the start, and after
 * whatever may have changed it, before that is withdrawn. Takes the locks of zones, one after the other. */
void hydns_forward_refresh(struct hydns_daemon* d);

/* --- remote control (hydns_control.c) ----------------------------------------------------------------- */
/* What a command withdraws. Lives as long as the command. */
struct hydns_control {
	struct hydns_daemon* daemon;
	int action;               /* enum in hydns_control.c; 0: nothing (left) to do */
	int late;                 /* act only when the command has ended: it holds locks until then */
	size_t name_len;
	uint8_t name[HYDNS_NAME_MAX];
};
void hydns_control_begin(struct hydns_control* c, struct hydns_daemon* d, const char* command);
/* The command has made its changes and is about to say ok. c may be NULL. */
void hydns_control_finish(struct hydns_control* c);
/* True when the command ends this configuration. c may be NULL. */
int hydns_control_leaves(const struct hydns_control* c);
/* After that. Calls say_ok(arg) when the kernel sends none of its answers any more, mostly on another thread. */
void hydns_control_leave(struct hydns_control* c, void (*say_ok)(void* arg), void* arg);
/* The command has ended, perhaps halfway. */
void hydns_control_end(struct hydns_control* c);

/* --- statistics (hydns_stats.c) ----------------------------------------------------------------------- */
/* All for the first worker's thread alone. */
/* Asks hydnsd for its counts, which the functions below then use. Waits for a short time. */
void hydns_stats_ask(struct hydns_daemon* d);
/* Adds the kernel's answers since the last reset, as cache hits, and parked queries that were dropped, as those that missed the cache. */
void hydns_stats_add(struct hydns_daemon* d, struct ub_server_stats* svr);
/* How many of the latter there were. */
long long hydns_stats_dropped(struct hydns_daemon* d);
/* Sets the counts back to zero, as of the last answer of hydnsd. */
void hydns_stats_reset(struct hydns_daemon* d);
/* Prints the module's own lines (hydns_control.c). 0: the connection is gone. */
int hydns_stats_print(struct hydns_daemon* d, struct remote_stream* stream);

#endif
