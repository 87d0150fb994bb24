/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Entry points of the plugin and the life of an instance. Listening sockets and the view's ACLs are complete
 * only after the plugin was registered, so publishing starts with the first response.
 */
#include <string.h>
#include <strings.h>
#include <isc/loop.h>
#include <isc/mem.h>
#include <isc/result.h>
#include <isc/tid.h>
#include <isc/util.h>
#include <isc/work.h>
#include <dns/cache.h>
#include <dns/name.h>
#include <isccfg/cfg.h>
#include <isccfg/grammar.h>
#include <ns/client.h>
#include <ns/interfacemgr.h>
#include <ns/log.h>
#include <ns/server.h>
#include "plugin.h"

/* The instance that publishes; a reload registers its successor while all loops are paused. Threads that are
 * no loops hold the lock while they use it, and so does whoever stops it. */
static struct hydns_instance *active;
static pthread_mutex_t active_lock = PTHREAD_MUTEX_INITIALIZER;

void hydns_say(enum hydns_log_level level, const char *text)
{
	static const int levels[] = { ISC_LOG_ERROR, ISC_LOG_WARNING, ISC_LOG_INFO, ISC_LOG_DEBUG(3) };

	isc_log_write(ns_lctx, NS_LOGCATEGORY_GENERAL, NS_LOGMODULE_HOOKS, levels[level], "hydns: %s", text);
}

/* A flush, on the main loop. Whatever the name, data are out of the cache already. */
static ns_hookresult_t on_flushed(void *arg, void *data, isc_result_t *result)
{
	const ns_flushed_t *flushed = arg;
	struct hydns_instance *inst = data;
	struct hydns_publish *p = atomic_load(&inst->publish);
	isc_region_t r;

	UNUSED(result);
	if (p == NULL)
		return NS_HOOK_CONTINUE;
	if (flushed->name == NULL) {
		hydns_publish_withdraw(p, HYDNS_SCOPE_ALL, NULL, 0);
	} else {
		dns_name_toregion(flushed->name, &r);
		hydns_publish_withdraw(p, flushed->tree ? HYDNS_SCOPE_SUBTREE : HYDNS_SCOPE_NAME, r.base, r.length);
	}
	return NS_HOOK_CONTINUE;
}

/* Commands that change no answer, or have told what they flush, or which zone they change; reload and reconfig have
 * made a new instance, unless a single zone was meant. */
static bool command_is_harmless(const char *command)
{
	static const char *const harmless[] = {
		"null", "status", "stats", "reset-stats", "recursing", "dumpdb", "secroots", "zonestatus", "showzone",
		"notify", "trace", "notrace", "testgen", "tcp-timeouts", "fetchlimit", "memprof", "dnstap-reopen",
		"sync", "stop", "halt", "flush", "flushname", "flushtree", "scan", "reload", "reconfig", "freeze", "thaw",
		"refresh", "retransfer", "sign", "signing", "loadkeys", "dnssec",
	};

	for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
		if (strcasecmp(command, harmless[i]) == 0)
			return true;
	return false;
}

/* Better once too often than an old answer once. */
static ns_hookresult_t on_command(void *arg, void *data, isc_result_t *result)
{
	struct hydns_instance *inst = data;
	struct hydns_publish *p = atomic_load(&inst->publish);

	UNUSED(result);
	if (p == NULL || command_is_harmless(arg))
		return NS_HOOK_CONTINUE;
	hydns_publish_withdraw(p, HYDNS_SCOPE_ALL, NULL, 0);
	hydns_reconsider(inst, p);
	return NS_HOOK_CONTINUE;
}

/* --- what changes in the cache without a flush -------------------------------------------------------------- */
struct below {
	isc_mem_t *mctx;
	size_t len;
	uint8_t name[HYDNS_NAME_MAX];
};

/* Waits for hydnsd, so it runs on no loop. */
static void withdraw_below(void *arg)
{
	const struct below *b = arg;
	struct hydns_publish *p;

	pthread_mutex_lock(&active_lock);
	p = active != NULL ? atomic_load(&active->publish) : NULL;
	if (p != NULL)
		hydns_publish_withdraw(p, HYDNS_SCOPE_SUBTREE, b->name, b->len);
	pthread_mutex_unlock(&active_lock);
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

/* On the thread that changes the cache, which holds a lock there. */
static void on_changed(dns_cachelistener_t *listener, const dns_name_t *name, dns_rdatatype_t type,
		       dns_cachechange_t how, isc_stdtime_t was, isc_stdtime_t is)
{
	struct hydns_instance *inst = caa_container_of(listener, struct hydns_instance, listener);
	struct hydns_publish *p = atomic_load(&inst->publish);
	isc_loop_t *loop = isc_loop();
	struct hydns_thread *t;
	isc_region_t r;

	if (p == NULL)
		return;
	/* On no loop, which has no ring, and while named ends, when no worker takes a task: withdraws everything, with
	 * one store. */
	if (loop == NULL || isc_tid() >= isc_tid_count() || isc_loop_shuttingdown(loop)) {
		hydns_publish_changed(hydns_publish_thread(p, 0), NULL, 0);
		return;
	}
	t = hydns_publish_thread(p, isc_tid());
	dns_name_toregion(name, &r);
	switch (how) {
	case dns_cachechange_data:
		hydns_publish_changed(t, r.base, r.length);
		break;
	case dns_cachechange_renewed:
		hydns_publish_renewed(t, r.base, r.length, type, (time_t)was, (time_t)is);
		break;
	case dns_cachechange_below:
		below_changed(inst, &r);
		break;
	}
}

/* No kernel answer of the instance is left when it returns. No hook of it may be running. */
static void stop(struct hydns_instance *inst)
{
	if (active == inst) {
		ns_interfacemgr_listen(NULL, NULL);
		dns_db_listen(NULL);
		dns_cache_listen(NULL);  /* without the lock, which a change may wait for while named ends */
	}
	pthread_mutex_lock(&active_lock);
	atomic_store(&inst->started, true);
	atomic_store(&inst->open, false);
	if (active == inst)
		active = NULL;
	hydns_stats_end(inst);
	hydns_publish_stop(atomic_exchange(&inst->publish, NULL));
	pthread_mutex_unlock(&active_lock);
}

static void make_active(struct hydns_instance *inst);

/* named listens elsewhere, all loops are paused: the next response starts anew, with other sockets. */
static void on_listening(void *arg)
{
	struct hydns_instance *inst = arg;

	if (atomic_load(&inst->publish) == NULL)
		return;
	stop(inst);
	make_active(inst);
	atomic_store(&inst->started, false);
}

static void make_active(struct hydns_instance *inst)
{
	active = inst;
	inst->listener.changed = on_changed;
	dns_cache_listen(&inst->listener);
	hydns_zones_listen(inst);
	ns_interfacemgr_listen(on_listening, inst);
}

static bool list_has_sizes(const cfg_obj_t *map)
{
	const cfg_obj_t *servers = NULL, *size = NULL;

	(void)cfg_map_get(map, "server", &servers);
	for (const cfg_listelt_t *e = cfg_list_first(servers); e != NULL; e = cfg_list_next(e))
		if (cfg_map_get(cfg_listelt_value(e), "max-udp-size", &size) == ISC_R_SUCCESS)
			return true;
	return false;
}

static bool has_peer_sizes(const cfg_obj_t *config)
{
	const cfg_obj_t *views = NULL;

	if (list_has_sizes(config))
		return true;
	(void)cfg_map_get(config, "view", &views);
	for (const cfg_listelt_t *e = cfg_list_first(views); e != NULL; e = cfg_list_next(e))
		if (list_has_sizes(cfg_tuple_get(cfg_listelt_value(e), "options")))
			return true;
	return false;
}

isc_result_t plugin_register(const char *text, const void *cfg, const char *file, unsigned long line,
			     isc_mem_t *mctx, isc_log_t *lctx, void *actx, ns_hooktable_t *hooktable,
			     void **instp)
{
	const struct { ns_hookpoint_t point; ns_hook_action_t action; } hooks[] = {
		{ NS_QUERY_SETUP, hydns_on_setup },
		{ NS_QUERY_RESUME_BEGIN, hydns_on_resume },
		{ NS_QUERY_LOOKUP_BEGIN, hydns_on_lookup },
		{ NS_QUERY_DONE_SEND, hydns_on_send },
		{ NS_CLIENT_RENDERED, hydns_on_rendered },
		{ NS_CACHE_FLUSHED, on_flushed },
		{ NS_CONTROL_DONE, on_command },
		{ NS_STATS_WANTED, hydns_on_stats },
	};
	struct hydns_instance *inst = isc_mem_get(mctx, sizeof(*inst));
	isc_result_t result;

	UNUSED(actx);
	*inst = (struct hydns_instance){ 0 };
	isc_mem_attach(mctx, &inst->mctx);
	pthread_mutex_init(&inst->starting, NULL);
	result = hydns_options_parse(text, file, line, mctx, lctx, &inst->o);
	if (result != ISC_R_SUCCESS) {
		plugin_destroy((void **)&inst);
		return result;
	}
	/* The configuration changes: what the former instance has offered may no longer be answered. */
	if (active != NULL)
		stop(active);
	if (!inst->o.enable) {
		hydns_say(HYDNS_LOG_INFO, "hydns-enable is no: no answer is offered to the kernel");
		atomic_store(&inst->started, true);
	}
	inst->peer_sizes = has_peer_sizes(cfg);
	make_active(inst);
	for (size_t i = 0; i < sizeof(hooks) / sizeof(hooks[0]); i++) {
		ns_hook_t hook = { .action = hooks[i].action, .action_data = inst };

		ns_hook_add(hooktable, mctx, hooks[i].point, &hook);
	}
	*instp = inst;
	return ISC_R_SUCCESS;
}

isc_result_t plugin_check(const char *text, const void *cfg, const char *file, unsigned long line,
			  isc_mem_t *mctx, isc_log_t *lctx, void *actx)
{
	struct hydns_options o = { 0 };
	isc_result_t result = hydns_options_parse(text, file, line, mctx, lctx, &o);

	UNUSED(cfg);
	UNUSED(actx);
	hydns_options_free(&o, mctx);
	return result;
}

void plugin_destroy(void **instp)
{
	struct hydns_instance *inst = *instp;

	stop(inst);
	if (inst->server != NULL)
		ns_server_detach(&inst->server);
	hydns_zones_forget_acl(inst);
	hydns_options_free(&inst->o, inst->mctx);
	pthread_mutex_destroy(&inst->starting);
	isc_mem_putanddetach(&inst->mctx, inst, sizeof(*inst));
	*instp = NULL;
}

int plugin_version(void)
{
	return NS_PLUGIN_VERSION;
}
