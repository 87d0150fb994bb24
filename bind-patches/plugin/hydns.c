/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Entry points of the plugin and the life of its instances. Listening sockets and the view's ACLs are complete
 * only after the plugin was registered, so an instance starts with its first response (start.c), or, if it demands packet
 * rings, when named has configured itself (demand.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <isc/mem.h>
#include <isc/result.h>
#include <isc/util.h>
#include <dns/acl.h>
#include <dns/view.h>
#include <isccfg/cfg.h>
#include <isccfg/grammar.h>
#include <ns/client.h>
#include <ns/log.h>
#include <ns/server.h>
#include "plugin.h"

/* All instances, the newest first: those of the current configuration, of a former one until its views have gone, and of
 * one that is being loaded. Threads that are no loops hold the lock while they use a plugin object, and so does a thread
 * that stops one. */
static struct hydns_instance *instances;
static const cfg_aclconfctx_t *current;  /* the configuration whose instances may offer; main loop */
static pthread_mutex_t instances_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

/* Plugin objects that have left: the next instances that start go on with their tables. */
static struct hydns_plugin *spare[HYDNS_RESOLVERS];
static size_t spares;                    /* in use */
static size_t awaited;                   /* instances that have not started yet: each takes one */
static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER;   /* its holder takes no other lock */

static void keep(struct hydns_plugin *p)
{
	pthread_mutex_lock(&spare_lock);
	if (spares == HYDNS_RESOLVERS)
		hydns_plugin_stop(spare[--spares]);
	spare[spares++] = p;
	pthread_mutex_unlock(&spare_lock);
}

static void await_start(struct hydns_instance *inst, bool awaits)
{
	pthread_mutex_lock(&spare_lock);
	if (inst->awaited != awaits)
		awaited += awaits ? 1 : (size_t)-1;
	inst->awaited = awaits;
	pthread_mutex_unlock(&spare_lock);
}

/* The caller has the lock. */
static struct hydns_plugin *take_spare(bool rings)
{
	struct hydns_plugin *p;
	size_t at = spares - 1;

	for (size_t i = 0; i < spares; i++)
		if (hydns_queue_has_rings(spare[i]) == rings)
			at = i;
	p = spare[at];
	spare[at] = spare[--spares];
	return p;
}

/* When there are more than will start, as when a view no longer has the plugin, the taken one ends the rest. */
struct hydns_plugin *hydns_take_former(struct hydns_instance *inst, bool rings)
{
	struct hydns_plugin *p = NULL;

	await_start(inst, false);
	pthread_mutex_lock(&spare_lock);
	if (spares > 0)
		p = take_spare(rings);
	while (spares > awaited)
		hydns_plugin_take_along(p, spare[--spares]);
	pthread_mutex_unlock(&spare_lock);
	return p;
}

/* Unless an instance will start, which takes them along. */
static void free_spares(void)
{
	pthread_mutex_lock(&spare_lock);
	while (awaited == 0 && spares > 0)
		hydns_plugin_stop(spare[--spares]);
	pthread_mutex_unlock(&spare_lock);
}

struct hydns_plugin *hydns_start_without(struct hydns_instance *inst)
{
	await_start(inst, false);
	free_spares();
	return NULL;
}

void hydns_named_log(enum hydns_log_level level, const char *text)
{
	static const int levels[] = { ISC_LOG_ERROR, ISC_LOG_WARNING, ISC_LOG_INFO, ISC_LOG_DEBUG(3) };

	isc_log_write(ns_lctx, NS_LOGCATEGORY_GENERAL, NS_LOGMODULE_HOOKS, levels[level], "hydns: %s", text);
}

void hydns_each_plugin(void (*use)(struct hydns_plugin *p, void *arg), void *arg)
{
	pthread_mutex_lock(&instances_lock);
	for (struct hydns_instance *inst = instances; inst != NULL; inst = inst->next) {
		struct hydns_plugin *p = atomic_load(&inst->plugin);

		if (p != NULL)
			use(p, arg);
	}
	pthread_mutex_unlock(&instances_lock);
}

/* When it returns, the kernel sends no answer of the instance any more. No hook of it may be running. All loops wait for
 * this when named reloads, so other threads talk to hydnsd and free the memory. */
static void stop(struct hydns_instance *inst)
{
	struct hydns_plugin *p;

	await_start(inst, false);
	hydns_unlisten(inst);     /* without the lock: a change may wait for it while named ends */
	pthread_mutex_lock(&instances_lock);
	inst->heir = NULL;
	atomic_store(&inst->started, true);
	atomic_store(&inst->open, false);
	p = atomic_exchange(&inst->plugin, NULL);
	hydns_rates_unshare(inst);
	if (p != NULL) {
		hydns_plugin_leave(p, NULL, NULL);
		hydns_plugin_gone(p);
		hydns_queue_forget(p);
		keep(p);
	}
	pthread_mutex_unlock(&instances_lock);
}

/* From here on its next response starts it. */
static void make_ready(struct hydns_instance *inst)
{
	if (!inst->o.enable)
		return;
	if (hydns_listen(inst)) {
		await_start(inst, true);
		atomic_store(&inst->started, false);
	} else {
		hydns_named_log(HYDNS_LOG_ERROR, "more views have the plugin than hydnsd takes resolvers: remove it from some; "
			  "this one offers nothing to the kernel");
	}
}

void hydns_restart(struct hydns_instance *inst)
{
	stop(inst);
	make_ready(inst);
}

void hydns_restart_all(void)
{
	pthread_mutex_lock(&instances_lock);
	for (struct hydns_instance *inst = instances; inst != NULL; inst = inst->next)
		if (atomic_load(&inst->plugin) != NULL)
			hydns_restart(inst);
	pthread_mutex_unlock(&instances_lock);
}

static void log_why_not_kept(const char *why)
{
	char text[256];

	snprintf(text, sizeof(text), "the former configuration's answers are withdrawn: %s", why);
	hydns_named_log(HYDNS_LOG_INFO, text);
}

/* Whether the former instance's rules may stay. Then they go on until named has exchanged its views, for all loops are paused until then,
 * and if that fails. */
static bool may_stay(struct hydns_instance *former, const struct hydns_instance *inst)
{
	const char *why;

	if (former->heir == inst->load)
		return true;
	if (former->heir != NULL || atomic_load(&former->plugin) == NULL || !atomic_load(&former->open))
		return false;
	why = hydns_keep_obstacle(former, inst);
	if (why == NULL)
		former->heir = inst->load;
	else
		log_why_not_kept(why);
	return why == NULL;
}

/* What the configuration says, as another instance of it has read, or anew. */
static void read_configuration(struct hydns_instance *inst, const cfg_obj_t *config)
{
	for (const struct hydns_instance *other = instances; other != NULL; other = other->next)
		if (other->load == inst->load) {
			inst->written = other->written;
			return;
		}
	hydns_keep_read(config, &inst->written);
}

/* The configuration changes: the kernel must not give the former instances' answers any more, unless they are this one's, too. */
static void add_instance(struct hydns_instance *inst, const cfg_obj_t *config)
{
	pthread_mutex_lock(&instances_lock);
	read_configuration(inst, config);
	for (struct hydns_instance *other = instances; other != NULL; other = other->next)
		if (other->load == inst->load)
			continue;
		else if (may_stay(other, inst))
			inst->waits = true;
		else
			stop(other);
	inst->next = instances;
	instances = inst;
	current = inst->load;
	pthread_mutex_unlock(&instances_lock);
	if (!inst->o.enable)
		hydns_named_log(HYDNS_LOG_INFO, "hydns-enable is no: no answer is offered to the kernel");
	else if (hydns_warning != NULL)
		hydns_named_log(HYDNS_LOG_WARNING, hydns_warning);
	if (!inst->waits)
		make_ready(inst);
}

static struct hydns_instance *former_of(const struct hydns_instance *inst, const dns_view_t *view)
{
	for (struct hydns_instance *other = instances; other != NULL; other = other->next)
		if (other->heir == inst->load && other->view->rdclass == view->rdclass && strcmp(other->view->name, view->name) == 0)
			return other;
	return NULL;
}

void hydns_instance_exchanged(struct hydns_instance *inst, const struct hydns_start *by)
{
	const char *why = "the view had no plugin";
	struct hydns_instance *former;

	if (!inst->waits)
		return;
	inst->waits = false;
	pthread_mutex_lock(&instances_lock);
	former = former_of(inst, by->view);
	if (former != NULL) {
		why = hydns_keep(former, inst, by);
		former->heir = NULL;
	}
	if (former != NULL && why != NULL) {
		log_why_not_kept(why);
		stop(former);
	}
	if (why != NULL)
		make_ready(inst);
	else
		hydns_named_log(HYDNS_LOG_INFO, "the configuration says what the former one did: its answers stay in the kernel");
	pthread_mutex_unlock(&instances_lock);
}

void hydns_instance_resume(struct hydns_instance *inst)
{
	if (inst->load == current)
		return;
	pthread_mutex_lock(&instances_lock);
	for (struct hydns_instance *other = instances; other != NULL; other = other->next)
		if (other->load == current)
			stop(other);
		else if (other->load == inst->load && other->heir != NULL)
			other->heir = NULL;        /* it has gone on */
		else if (other->load == inst->load)
			make_ready(other);
	current = inst->load;
	pthread_mutex_unlock(&instances_lock);
}

static void remove_instance(struct hydns_instance *gone)
{
	bool last, replaced;

	pthread_mutex_lock(&instances_lock);
	for (struct hydns_instance **at = &instances; *at != NULL; at = &(*at)->next)
		if (*at == gone) {
			*at = gone->next;
			break;
		}
	last = instances == NULL;
	replaced = gone->load != current;      /* else the load of its configuration has failed, or named ends */
	pthread_mutex_unlock(&instances_lock);
	if (last || replaced)
		free_spares();
	if (last)
		hydns_unload();
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

static void add_hooks(struct hydns_instance *inst, ns_hooktable_t *hooktable, const struct hydns_hook *hooks)
{
	for (; hooks->action != NULL; hooks++) {
		ns_hook_t hook = { .action = hooks->action, .action_data = inst };

		ns_hook_add(hooktable, inst->mctx, hooks->point, &hook);
	}
}

/* Logs why named's own queries can't take packet rings, where that is demanded. own: to be freed, also on failure. */
static isc_result_t check_own(const struct hydns_options *o, const cfg_obj_t *config, const char *file, unsigned long line,
			      isc_log_t *lctx, struct hydns_own_queries **own)
{
	const char *why = NULL;

	*own = hydns_own_queries_read(config);
	if (o->queue_upstream == HYDNS_YES && hydns_own_queries_ports(*own).count == 0)
		why = "the host reserves no 4096 ports in a row: set net.ipv4.ip_local_reserved_ports, to " HYDNS_PORTS_ADVICE
		      " for instance";
	else if (o->queue_upstream == HYDNS_YES)
		why = hydns_own_queries_obstacle(*own);
	if (why == NULL)
		return ISC_R_SUCCESS;
	isc_log_write(lctx, NS_LOGCATEGORY_GENERAL, NS_LOGMODULE_HOOKS, ISC_LOG_ERROR,
		      "%s:%lu: hydns-queue-upstream yes: %s", file, line, why);
	return ISC_R_FAILURE;
}

static isc_result_t read_forwards(struct hydns_instance *inst, const struct hydns_statement *s)
{
	isc_result_t result;

	if (inst->o.forward.count == 0)
		return ISC_R_SUCCESS;
	result = hydns_forward_check(&inst->o, s);
	if (result != ISC_R_SUCCESS)
		return result;
	inst->forwards = hydns_forward_configured(s);
	return inst->forwards != NULL ? ISC_R_SUCCESS : ISC_R_NOMEMORY;
}

isc_result_t plugin_register(const char *text, const void *cfg, const char *file, unsigned long line,
			     isc_mem_t *mctx, isc_log_t *lctx, void *actx, ns_hooktable_t *hooktable,
			     void **instp)
{
	struct hydns_instance *inst = isc_mem_get(mctx, sizeof(*inst));
	const struct hydns_statement statement = { .config = cfg, .text = text, .file = file, .line = line, .mctx = mctx, .lctx = lctx };
	isc_result_t result;

	*inst = (struct hydns_instance){ .started = true };
	isc_mem_attach(mctx, &inst->mctx);
	cfg_aclconfctx_attach(actx, &inst->load);
	pthread_mutex_init(&inst->starting, NULL);
	result = hydns_named_is_known() ? hydns_options_parse(text, file, line, mctx, lctx, &inst->o) : ISC_R_FAILURE;
	if (result == ISC_R_SUCCESS)
		result = check_own(&inst->o, cfg, file, line, lctx, &inst->own);
	if (result == ISC_R_SUCCESS)
		result = read_forwards(inst, &statement);
	if (result != ISC_R_SUCCESS) {
		plugin_destroy((void **)&inst);
		return result;
	}
	inst->peer_sizes = has_peer_sizes(cfg);
	hydns_dnstap_read(cfg, inst->mctx, &inst->dnstap);
	inst->logs_drops = hydns_drops_are_logged(cfg);
	add_instance(inst, cfg);
	add_hooks(inst, hooktable, hydns_hooks);
	*instp = inst;
	return ISC_R_SUCCESS;
}

isc_result_t plugin_check(const char *text, const void *cfg, const char *file, unsigned long line,
			  isc_mem_t *mctx, isc_log_t *lctx, void *actx)
{
	struct hydns_options o = { 0 };
	struct hydns_own_queries *own = NULL;
	const struct hydns_statement statement = { .config = cfg, .text = text, .file = file, .line = line, .mctx = mctx, .lctx = lctx };
	isc_result_t result = hydns_options_parse(text, file, line, mctx, lctx, &o);

	UNUSED(actx);
	if (result == ISC_R_SUCCESS)
		result = check_own(&o, cfg, file, line, lctx, &own);
	if (result == ISC_R_SUCCESS)
		result = hydns_demand_check(&o, &statement);
	if (result == ISC_R_SUCCESS)
		result = hydns_forward_check(&o, &statement);
	free(own);
	hydns_options_free(&o, mctx);
	return result;
}

void plugin_destroy(void **instp)
{
	struct hydns_instance *inst = *instp;

	stop(inst);
	remove_instance(inst);
	if (inst->env != NULL)
		dns_aclenv_detach(&inst->env);
	if (inst->server != NULL)
		ns_server_detach(&inst->server);
	cfg_aclconfctx_detach(&inst->load);
	free(inst->own);
	hydns_forward_config_free(inst->forwards);
	free(inst->acl);
	free(inst->socket);
	free(inst->preloaded.name);
	hydns_preload_end(inst);
	hydns_zones_forget_acl(inst);
	hydns_options_free(&inst->o, inst->mctx);
	hydns_dnstap_free(&inst->dnstap, inst->mctx);
	pthread_mutex_destroy(&inst->starting);
	isc_mem_putanddetach(&inst->mctx, inst, sizeof(*inst));
	*instp = NULL;
}

int plugin_version(void)
{
	return NS_PLUGIN_VERSION;
}
