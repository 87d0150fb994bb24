/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packet rings that the configuration demands. Other instances start with their first response, which may come late; these
 * start when named has configured itself, so that named can say that it does not start. So do those that forward zones, or preload
 * some: then the kernel may answer the first query.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <dns/rdataclass.h>
#include <dns/view.h>
#include <isc/util.h>
#include <isccfg/cfg.h>
#include <isccfg/grammar.h>
#include <ns/interfacemgr.h>
#include <ns/log.h>
#include "compat.h"
#include "plugin.h"

#define DEMANDED_MS 10000                 /* hydnsd may be starting */
#define POLL_MS     10

/* HYDNS_QUEUE_*: what is to have rings, or named does not start. */
static uint32_t demanded(const struct hydns_options *o)
{
	if (!o->enable)
		return 0;
	return (o->queue == HYDNS_YES ? HYDNS_QUEUE_CLIENTS : 0) | (o->queue_upstream == HYDNS_YES ? HYDNS_QUEUE_UPSTREAM : 0);
}

/* The option that demands them: the first of several. */
static const char *option_of(uint32_t parts)
{
	return (parts & HYDNS_QUEUE_CLIENTS) != 0 ? "hydns-queue" : "hydns-queue-upstream";
}

/* --- at the start ---------------------------------------------------------------------------------------------- */
static uint32_t in_use(const struct hydns_instance *inst)
{
	const struct hydns_plugin *p = atomic_load(&inst->plugin);

	return p != NULL ? hydns_plugin_rings(p) : 0;
}

static bool has(const struct hydns_instance *inst, uint32_t parts)
{
	return (in_use(inst) & parts) == parts;
}

/* Waits for them unless there will be none. */
static bool gets(const struct hydns_instance *inst, uint32_t parts)
{
	if (atomic_load(&inst->plugin) == NULL || (hydns_queue_parts(inst) & parts) != parts)
		return false;
	for (int ms = 0; ms < DEMANDED_MS && !has(inst, parts); ms += POLL_MS)
		nanosleep(&(struct timespec){ .tv_nsec = POLL_MS * 1000000L }, NULL);
	return has(inst, parts);
}

ns_hookresult_t hydns_on_configured(void *arg, void *data, isc_result_t *result)
{
	ns_configured_t *configured = arg;
	struct hydns_instance *inst = data;
	const uint32_t parts = demanded(&inst->o);
	char text[256];

	UNUSED(result);
	hydns_keep_configured(inst);
	if (!inst->o.enable || (parts == 0 && inst->o.forward.count == 0 && !hydns_preload_is_wanted(inst, configured->view)))
		return NS_HOOK_CONTINUE;
	if (!atomic_load(&inst->started))
		hydns_start(inst, &(struct hydns_start){
			.view = configured->view, .server = ns_interfacemgr_getserver(configured->interfaces),
			.env = ns_interfacemgr_getaclenv(configured->interfaces),
			.port = ns_interfacemgr_getport(configured->interfaces) });
	if (parts == 0 || !configured->starts || gets(inst, parts))
		return NS_HOOK_CONTINUE;
	snprintf(text, sizeof(text), "%s is yes, and there are no packet rings: the lines above and hydnsctl status say why; "
		 "mend that, or set auto", option_of(parts & ~in_use(inst)));
	hydns_named_log(HYDNS_LOG_ERROR, text);
	configured->result = ISC_R_FAILURE;
	return NS_HOOK_CONTINUE;
}

/* --- in the configuration -------------------------------------------------------------------------------------- */
static const char *word_of(const cfg_obj_t *statement, const char *field)
{
	const cfg_obj_t *obj = cfg_tuple_get(statement, field);

	return obj != NULL && cfg_obj_isstring(obj) ? cfg_obj_asstring(obj) : "";
}

static const cfg_obj_t *statements(const cfg_obj_t *view)
{
	const cfg_obj_t *list = NULL;

	(void)cfg_map_get(cfg_tuple_get(view, "options"), "plugin", &list);
	return list;
}

/* The statement with this very text, and its view; NULL: it is in none. */
static const cfg_obj_t *find(const cfg_obj_t *views, const char *text, const cfg_obj_t **view)
{
	for (const cfg_listelt_t *v = cfg_list_first(views); v != NULL; v = cfg_list_next(v)) {
		*view = cfg_listelt_value(v);
		for (const cfg_listelt_t *e = cfg_list_first(statements(*view)); e != NULL; e = cfg_list_next(e))
			if (word_of(cfg_listelt_value(e), "parameters") == text)
				return cfg_listelt_value(e);
	}
	return NULL;
}

const cfg_obj_t *hydns_statement_view(const struct hydns_statement *s)
{
	const cfg_obj_t *views = NULL, *view = NULL;

	(void)cfg_map_get(s->config, "view", &views);
	return find(views, s->text, &view) != NULL ? cfg_tuple_get(view, "options") : NULL;
}

/* Whether the view is of class IN, which alone has rings. BIND has checked that the class is known. */
static bool is_internet(const cfg_obj_t *view)
{
	const cfg_obj_t *class = cfg_tuple_get(view, "class");
	dns_rdataclass_t rdclass = dns_rdataclass_in;

	if (class != NULL && cfg_obj_isstring(class)) {
		const char *text = cfg_obj_asstring(class);

		(void)dns_rdataclass_fromtext(&rdclass, &(isc_textregion_t){ .base = UNCONST(text), .length = strlen(text) });
	}
	return rdclass == dns_rdataclass_in;
}

/* Whether the view has this plugin, and lets it have the rings. */
static bool takes_rings(const cfg_obj_t *view, const char *library, const struct hydns_statement *s)
{
	bool takes = false;

	for (const cfg_listelt_t *e = cfg_list_first(statements(view)); is_internet(view) && e != NULL; e = cfg_list_next(e)) {
		const cfg_obj_t *statement = cfg_listelt_value(e), *at = cfg_tuple_get(statement, "parameters");
		struct hydns_options o = { 0 };

		if (strcmp(word_of(statement, "library"), library) != 0 ||
		    hydns_options_parse(word_of(statement, "parameters"), cfg_obj_file(at), cfg_obj_line(at),
					s->mctx, s->lctx, &o) != ISC_R_SUCCESS)
			continue;
		takes = takes || (o.enable && hydns_options_want_rings(&o));
		hydns_options_free(&o, s->mctx);
	}
	return takes;
}

static isc_result_t refuse(const struct hydns_options *o, const struct hydns_statement *s, const cfg_obj_t *view, const char *why)
{
	isc_log_write(s->lctx, NS_LOGCATEGORY_GENERAL, NS_LOGMODULE_HOOKS, ISC_LOG_ERROR, "%s:%lu: %s yes: view %s %s", s->file,
		      s->line, option_of(demanded(o)), cfg_obj_asstring(cfg_tuple_get(view, "name")), why);
	return ISC_R_FAILURE;
}

isc_result_t hydns_demand_check(const struct hydns_options *o, const struct hydns_statement *s)
{
	const cfg_obj_t *views = NULL, *own = NULL, *mine;

	(void)cfg_map_get(s->config, "view", &views);
	mine = demanded(o) != 0 ? find(views, s->text, &own) : NULL;
	if (mine == NULL)
		return ISC_R_SUCCESS;
	if (!is_internet(own))
		return refuse(o, s, own, "is not of class IN, which alone has packet rings: remove the plugin there");
	for (const cfg_listelt_t *v = cfg_list_first(views); cfg_listelt_value(v) != own; v = cfg_list_next(v))
		if (takes_rings(cfg_listelt_value(v), word_of(mine, "library"), s))
			return refuse(o, s, cfg_listelt_value(v), "has the packet rings: set hydns-queue and "
				      "hydns-queue-upstream no there");
	return ISC_R_SUCCESS;
}
