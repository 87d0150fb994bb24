/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the patched named notifies plugins of: flushes, commands, changes in the cache, changes of zones, dnstap messages, the interfaces,
 * and requests for statistics.
 */
#include <pthread.h>
#include <string.h>
#include <strings.h>
#include <isc/loop.h>
#include <isc/mem.h>
#include <isc/tid.h>
#include <isc/util.h>
#include <isc/work.h>
#include <dns/cache.h>
#include <dns/db.h>
#include <dns/dnstap.h>
#include <dns/name.h>
#include <ns/interfacemgr.h>
#include "plugin.h"

/* A flush, on the main loop. The data have left the cache already. */
static ns_hookresult_t on_flushed(void *arg, void *data, isc_result_t *result)
{
	const ns_flushed_t *flushed = arg;
	struct hydns_instance *inst = data;
	struct hydns_plugin *p = atomic_load(&inst->plugin);
	isc_region_t r;

	UNUSED(result);
	if (p == NULL)
		return NS_HOOK_CONTINUE;
	if (flushed->name == NULL) {
		hydns_plugin_withdraw(p, HYDNS_SCOPE_ALL, NULL, 0);
	} else {
		dns_name_toregion(flushed->name, &r);
		hydns_plugin_withdraw(p, flushed->tree ? HYDNS_SCOPE_SUBTREE : HYDNS_SCOPE_NAME, r.base, r.length);
	}
	return NS_HOOK_CONTINUE;
}

/* True for commands that change no answer, and for those of whose flush or change of a zone the plugin was notified.
 * reload and reconfig have made a new instance, unless they were for a single zone. */
static bool command_is_harmless(const char *command)
{
	static const char *const harmless[] = {
		"null", "status", "stats", "reset-stats", "recursing", "dumpdb", "secroots", "zonestatus", "showzone",
		"notify", "trace", "notrace", "testgen", "tcp-timeouts", "fetchlimit", "memprof", "dnstap", "dnstap-reopen",
		"sync", "stop", "halt", "flush", "flushname", "flushtree", "scan", "reload", "reconfig", "freeze", "thaw", "unfreeze",
		"refresh", "retransfer", "sign", "signing", "loadkeys", "dnssec",
	};

	for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
		if (strcasecmp(command, harmless[i]) == 0)
			return true;
	return false;
}

/* Whether an instance must start anew to be what it is to be now: the lines of named's query log change with the thread that writes
 * them, so that each answer has those of its time, preloaded zones with the thread that asks for them, and what is to become of rules
 * after a crash (rndc serve-stale) with what hydnsd was told. */
static bool is_old(struct hydns_instance *inst)
{
	if (hydns_stale_wanted(inst, inst->view).longest != inst->stale.longest)
		return true;
	return hydns_lines_wanted(inst) != inst->lines || hydns_preload_is_news(inst);
}

static void restart(struct hydns_instance *inst)
{
	isc_loopmgr_t *loops = isc_loop_getloopmgr(isc_loop());

	isc_loopmgr_pause(loops);
	hydns_restart(inst);
	isc_loopmgr_resume(loops);
	if (hydns_preload_is_wanted(inst, UNCONST(inst->view)))
		hydns_start(inst, &(struct hydns_start){ .view = UNCONST(inst->view), .server = inst->server, .env = inst->env,
							 .port = inst->port });
}

/* An unknown command withdraws everything: better one withdrawal too many than one old answer. */
static ns_hookresult_t on_command(void *arg, void *data, isc_result_t *result)
{
	struct hydns_instance *inst = data;
	struct hydns_plugin *p;

	UNUSED(result);
	hydns_instance_resume(inst);
	pthread_mutex_lock(&inst->starting);    /* a start under way may have seen what was before the command */
	p = atomic_load(&inst->plugin);
	pthread_mutex_unlock(&inst->starting);
	if (command_is_harmless(arg))
		return NS_HOOK_CONTINUE;
	inst->touched = true;
	if (p == NULL)
		return NS_HOOK_CONTINUE;
	if (is_old(inst)) {
		restart(inst);
		return NS_HOOK_CONTINUE;
	}
	pthread_mutex_lock(&inst->starting);
	hydns_forward_refresh(inst, p);
	pthread_mutex_unlock(&inst->starting);
	if (strcasecmp(arg, "delzone") == 0)
		hydns_plugin_zone_gone(p);
	hydns_plugin_withdraw(p, HYDNS_SCOPE_ALL, NULL, 0);
	hydns_reconsider(inst, p);
	return NS_HOOK_CONTINUE;
}

/* --- what changes in the cache without a flush -------------------------------------------------------------- */
/* The instances that are notified, for threads that can't wait for a lock. No thread uses one that was taken out after
 * the listener has been set again. */
static _Atomic(struct hydns_instance *) instances[HYDNS_RESOLVERS];

struct below {
	isc_mem_t *mctx;
	size_t len;
	uint8_t name[HYDNS_NAME_MAX];
};

static void withdraw_one(struct hydns_plugin *p, void *arg)
{
	const struct below *b = arg;

	hydns_plugin_withdraw(p, HYDNS_SCOPE_SUBTREE, b->name, b->len);
}

/* Waits for hydnsd, so it runs on no loop. */
static void withdraw_below(void *arg)
{
	hydns_each_plugin(withdraw_one, arg);
}

static void free_below(void *arg, isc_result_t result)
{
	struct below *b = arg;

	UNUSED(result);
	isc_mem_putanddetach(&b->mctx, b, sizeof(*b));
}

static void below_changed(struct hydns_instance *inst, const isc_region_t *name)
{
	struct below *b = isc_mem_get(inst->mctx, sizeof(*b));

	*b = (struct below){ .len = name->length };
	isc_mem_attach(inst->mctx, &b->mctx);
	memcpy(b->name, name->base, name->length);
	isc_work_enqueue(isc_loop(), ISC_WORKLANE_FAST, withdraw_below, free_below, b);
}

/* Called for each instance: views may share a cache, and the listener does not learn which cache has changed. */
static void notify(struct hydns_instance *inst, const isc_region_t *name, dns_rdatatype_t type, dns_cachechange_t how,
		 isc_stdtime_t was, isc_stdtime_t is)
{
	struct hydns_plugin *p = atomic_load(&inst->plugin);
	isc_loop_t *loop = isc_loop();
	struct hydns_thread *t;

	if (p == NULL)
		return;
	/* A thread that is no loop has no ring, and while named ends no worker takes a task: withdraws everything with
	 * one store. */
	if (loop == NULL || isc_tid() >= isc_tid_count() || isc_loop_shuttingdown(loop)) {
		hydns_plugin_changed(hydns_plugin_thread(p, 0), NULL, 0);
		return;
	}
	t = hydns_plugin_thread(p, isc_tid());
	switch (how) {
	case dns_cachechange_data:
		hydns_plugin_changed(t, name->base, name->length);
		break;
	case dns_cachechange_ttl:
		hydns_plugin_ttl_update(t, name->base, name->length, type, HYDNS_SECTION_ANSWER,
				      (time_t)was, (time_t)is);
		break;
	case dns_cachechange_below:
		below_changed(inst, name);
		break;
	}
}

/* On the thread that changes the cache, which holds a lock there. */
static void on_changed(dns_cachelistener_t *listener, const dns_name_t *name, dns_rdatatype_t type,
		       dns_cachechange_t how, isc_stdtime_t was, isc_stdtime_t is)
{
	isc_region_t r;

	UNUSED(listener);
	dns_name_toregion(name, &r);
	for (size_t i = 0; i < HYDNS_RESOLVERS; i++) {
		struct hydns_instance *inst = atomic_load(&instances[i]);

		if (inst != NULL)
			notify(inst, &r, type, how, was, is);
	}
}

static dns_cachelistener_t listener = { .changed = on_changed };

/* --- dnstap messages of clients ------------------------------------------------------------------------------- */
static int64_t since_1970(const isc_time_t *t)
{
	return (int64_t)isc_time_seconds(t) * HYDNS_NS_PER_S + isc_time_nanoseconds(t);
}

/* Takes the message if it is of the instance's view. */
static bool take(const struct hydns_instance *inst, const dns_dtclient_t *c)
{
	struct hydns_plugin *p = inst->view == c->view ? atomic_load(&inst->plugin) : NULL;
	bool reply = c->type == DNS_DTTYPE_CR || c->type == DNS_DTTYPE_AR;
	isc_time_t now;
	struct hydns_tap_message m = {
		.reply = reply, .auth = c->type == DNS_DTTYPE_AQ || c->type == DNS_DTTYPE_AR,
		.query_ns = since_1970(c->asked), .client = &c->client->type.sa, .service = &c->service->type.sa,
		.wire = isc_buffer_base(c->message), .len = isc_buffer_usedlength(c->message),
	};

	if (p == NULL)
		return false;
	if (reply)
		now = isc_time_now();
	m.real_ns = reply ? since_1970(&now) : m.query_ns;
	if (c->type == DNS_DTTYPE_AR && c->zone != NULL && c->zone->base != NULL) {
		m.zone = c->zone->base;
		m.zone_len = c->zone->length;
	}
	return hydns_plugin_logs_own(p, &m);
}

/* On any loop. */
static bool takes_message(dns_dtlistener_t *taker, const dns_dtclient_t *client)
{
	bool taken = false;

	UNUSED(taker);
	for (size_t i = 0; i < HYDNS_RESOLVERS && !taken; i++) {
		struct hydns_instance *inst = atomic_load(&instances[i]);

		taken = inst != NULL && take(inst, client);
	}
	return taken;
}

static dns_dtlistener_t taker = { .takes = takes_message };

/* --- the interfaces ------------------------------------------------------------------------------------------ */
/* On the main loop. When named listens elsewhere, or the access list has changed, the instances start again with their
 * next responses. */
static void on_scanned(void *arg, bool listening)
{
	isc_loopmgr_t *loops = isc_loop_getloopmgr(isc_loop());
	bool restart = false;

	UNUSED(arg);
	for (size_t i = 0; i < HYDNS_RESOLVERS; i++) {
		struct hydns_instance *inst = atomic_load(&instances[i]);

		restart = restart || (inst != NULL && atomic_load(&inst->plugin) != NULL &&
				      (listening || hydns_export_is_old(inst, inst)));
	}
	if (!restart)
		return;
	isc_loopmgr_pause(loops);
	hydns_restart_all();
	isc_loopmgr_resume(loops);
}

/* --- zones --------------------------------------------------------------------------------------------------- */
static pthread_rwlock_t notifying = PTHREAD_RWLOCK_INITIALIZER;

/* Whether it was true for any plugin. */
static bool notify_all(bool (*what)(struct hydns_plugin *p, const struct hydns_zone_version *v), const struct hydns_zone_version *v)
{
	bool any = false;

	pthread_rwlock_rdlock(&notifying);
	for (size_t i = 0; i < HYDNS_RESOLVERS; i++) {
		struct hydns_instance *inst = atomic_load(&instances[i]);
		struct hydns_plugin *p = inst != NULL ? atomic_load(&inst->plugin) : NULL;

		any |= p != NULL && what(p, v);
	}
	pthread_rwlock_unlock(&notifying);
	return any;
}

static bool zone_changes(struct hydns_plugin *p, const struct hydns_zone_version *v)
{
	hydns_plugin_zone_version(p, v);
	return true;
}

static bool zone_has_changed(struct hydns_plugin *p, const struct hydns_zone_version *v)
{
	hydns_plugin_zone_changed(p);
	hydns_plugin_zone_served(p, v);
	return true;
}

static bool zone_is_settled(struct hydns_plugin *p, const struct hydns_zone_version *v)
{
	hydns_plugin_zone_settled(p, v);
	return true;
}

/* named's words for what a version changes are the plugin's. */
_Static_assert(DNS_ZONECHANGE_SOA == (int)HYDNS_ZONE_SOA && DNS_ZONECHANGE_NS == (int)HYDNS_ZONE_NS &&
	       DNS_ZONECHANGE_NSEC == (int)HYDNS_ZONE_NSEC && DNS_ZONECHANGE_DATA == (int)HYDNS_ZONE_DATA &&
	       DNS_ZONECHANGE_EXISTENCE == (int)HYDNS_ZONE_COMES_OR_GOES && DNS_ZONECHANGE_CUT == (int)HYDNS_ZONE_CUT &&
	       DNS_ZONECHANGE_SECURITY == (int)HYDNS_ZONE_SECURITY && DNS_ZONECHANGE_PROOF == (int)HYDNS_ZONE_PROOF,
	       "the same bits");

/* Of the change that this thread makes: it notifies of its begin and its end, and of no other in between. */
static _Thread_local struct hydns_zone_version under_way;

static bool take_name(void *arg, const dns_name_t *name, unsigned int what, unsigned int labels)
{
	struct hydns_zone_version *v = arg;
	dns_name_t top = DNS_NAME_INITEMPTY;
	isc_region_t r, t;

	dns_name_toregion(name, &r);
	dns_name_getlabelsequence(name, dns_name_countlabels(name) - labels, labels, &top);
	dns_name_toregion(&top, &t);
	hydns_zone_version_changes(v, r.base, r.length, what, t.length);
	return !v->whole;
}

static void take_names(const dns_zonenames_t *names, struct hydns_zone_version *v)
{
	names->each(names, take_name, v);
	if (!v->whole)
		(void)hydns_soa_of(names->db, names->version, &v->soa);
}

/* Names and NSEC3 records. To compare two databases of so many takes the thread that exchanges them, mostly a loop, some tenths of a
 * second. */
#define EXCHANGED_MOST 250000U

static bool is_small(dns_db_t *db)
{
	return dns_db_nodecount(db, dns_dbtree_main) + dns_db_nodecount(db, dns_dbtree_nsec3) <= EXCHANGED_MOST;
}

/* The zone gets another database. Most of that may be as it was. */
static void take_differences(const dns_zonenames_t *names, struct hydns_zone_version *v)
{
	if (notify_all(hydns_plugin_zone_exchanged, v) && is_small(names->former) && is_small(names->db))
		names->each(names, take_name, v);
	else
		v->whole = true;
}

/* Before the new data are served, on any thread. names: NULL when all may change. */
static void on_zone_changing(dns_zonelistener_t *zone_listener, const dns_name_t *origin, const dns_zonenames_t *names)
{
	struct hydns_zone_version *v = &under_way;
	isc_region_t r;

	UNUSED(zone_listener);
	dns_name_toregion(origin, &r);
	hydns_zone_version_end(v);     /* the last one, if its end was notified to nobody */
	hydns_zone_version_begin(v, r.base, r.length);
	v->exchanged = names != NULL && names->former != NULL;
	if (names == NULL)
		v->whole = true;
	else if (!v->exchanged)
		take_names(names, v);
	hydns_zone_version_mark(v);
	if (v->exchanged)
		take_differences(names, v);
	(void)notify_all(zone_changes, v);
}

static void on_zone_changed(dns_zonelistener_t *zone_listener, const dns_name_t *origin)
{
	struct hydns_zone_version *v = &under_way;

	UNUSED(zone_listener);
	UNUSED(origin);
	(void)notify_all(zone_has_changed, v);
	hydns_zone_version_unmark(v);
	(void)notify_all(zone_is_settled, v);  /* what is asked for now may be offered */
	hydns_zone_version_end(v);
}

static dns_zonelistener_t zone_listener = { .changing = on_zone_changing, .changed = on_zone_changed };

/* --- which instances are notified ----------------------------------------------------------------------------- */
static pthread_mutex_t members_lock = PTHREAD_MUTEX_INITIALIZER;

static bool any_instance(void)
{
	for (size_t i = 0; i < HYDNS_RESOLVERS; i++)
		if (atomic_load(&instances[i]) != NULL)
			return true;
	return false;
}

static bool replace(struct hydns_instance *from, struct hydns_instance *to)
{
	for (size_t i = 0; i < HYDNS_RESOLVERS; i++) {
		struct hydns_instance *expected = from;

		if (atomic_compare_exchange_strong(&instances[i], &expected, to))
			return true;
	}
	return false;
}

bool hydns_listen(struct hydns_instance *inst)
{
	bool first, done;

	pthread_mutex_lock(&members_lock);
	first = !any_instance();
	done = replace(NULL, inst);
	if (first && done) {
		hydns_zone_marks_forget();    /* of changes whose end was notified to nobody */
		dns_cache_listen(&listener);
		dns_dt_listen(&taker);
		dns_db_listen(&zone_listener);
		ns_interfacemgr_listen(on_scanned, NULL);
	}
	pthread_mutex_unlock(&members_lock);
	return done;
}

/* Until no listener uses an instance that it has found before: those of the cache (RCU), and those of zones. */
static void await_listeners(dns_cachelistener_t *next)
{
	dns_cache_listen(next);
	pthread_rwlock_wrlock(&notifying);
	pthread_rwlock_unlock(&notifying);
}

void hydns_listen_instead(struct hydns_instance *former, struct hydns_instance *inst)
{
	pthread_mutex_lock(&members_lock);
	(void)replace(former, inst);
	await_listeners(&listener);
	pthread_mutex_unlock(&members_lock);
}

/* The last instance removes the listeners: named may unload this code. */
void hydns_unlisten(struct hydns_instance *inst)
{
	bool any;

	pthread_mutex_lock(&members_lock);
	if (replace(inst, NULL)) {
		hydns_stats_end(inst);
		any = any_instance();
		if (!any) {
			ns_interfacemgr_listen(NULL, NULL);
			dns_db_listen(NULL);
			dns_dt_listen(NULL);
		}
		await_listeners(any ? &listener : NULL);
	}
	pthread_mutex_unlock(&members_lock);
}

/* --- hooks --------------------------------------------------------------------------------------------------- */
static ns_hookresult_t on_rendered(void *arg, void *data, isc_result_t *result)
{
	const ns_rendered_t *rendered = arg;

	UNUSED(result);
	hydns_rendered(data, rendered->client, isc_buffer_base(rendered->wire), isc_buffer_usedlength(rendered->wire));
	return NS_HOOK_CONTINUE;
}

const struct hydns_hook hydns_hooks[] = {
	{ NS_QUERY_SETUP, hydns_on_setup },
	{ NS_QUERY_QCTX_INITIALIZED, hydns_on_context },
	{ NS_QUERY_QCTX_DESTROYED, hydns_on_context_end },
	{ NS_QUERY_RESUME_BEGIN, hydns_on_resume },
	{ NS_QUERY_LOOKUP_BEGIN, hydns_on_lookup },
	{ NS_QUERY_GOT_ANSWER_BEGIN, hydns_on_answer },
	{ NS_QUERY_DONE_BEGIN, hydns_on_done },
	{ NS_QUERY_DONE_SEND, hydns_on_send },
	{ NS_CLIENT_RENDERED, on_rendered },
	{ NS_CACHE_FLUSHED, on_flushed },
	{ NS_CONTROL_DONE, on_command },
	{ NS_STATS_WANTED, hydns_on_stats },
	{ NS_EXCHANGED, hydns_on_exchanged },
	{ NS_CONFIGURED, hydns_on_configured },
	{ NS_HOOKPOINTS_COUNT, NULL },
};

const char *const hydns_warning = NULL;

/* named has checked the number of the plugin API. */
bool hydns_named_is_known(void)
{
	return true;
}

void hydns_unload(void)
{
}
