/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether named logs each response that rate-limit drops: category query-errors at severity info. */
#include <string.h>
#include <isc/result.h>
#include <isccfg/cfg.h>
#include "plugin.h"

static const cfg_obj_t *category(const cfg_obj_t *logging, const char *name)
{
	const cfg_obj_t *all = NULL;

	(void)cfg_map_get(logging, "category", &all);
	for (const cfg_listelt_t *e = cfg_list_first(all); e != NULL; e = cfg_list_next(e)) {
		const cfg_obj_t *c = cfg_listelt_value(e);

		if (strcasecmp(cfg_obj_asstring(cfg_tuple_get(c, "name")), name) == 0)
			return cfg_tuple_get(c, "destinations");
	}
	return NULL;
}

/* Of a channel that is configured. Without a severity, and with debug or dynamic, it takes what is of severity info. */
static bool takes_info(const cfg_obj_t *channel)
{
	static const char *const above[] = { "critical", "error", "warning", "notice" };
	const cfg_obj_t *null = NULL, *severity = NULL;

	if (cfg_map_get(channel, "null", &null) == ISC_R_SUCCESS)
		return false;
	if (cfg_map_get(channel, "severity", &severity) != ISC_R_SUCCESS || !cfg_obj_isstring(severity))
		return true;
	for (size_t i = 0; i < sizeof(above) / sizeof(above[0]); i++)
		if (strcasecmp(cfg_obj_asstring(severity), above[i]) == 0)
			return false;
	return true;
}

/* named's own channel default_debug takes nothing at debug level 0. */
static bool channel_takes_info(const cfg_obj_t *logging, const char *name)
{
	const cfg_obj_t *all = NULL;

	(void)cfg_map_get(logging, "channel", &all);
	for (const cfg_listelt_t *e = cfg_list_first(all); e != NULL; e = cfg_list_next(e)) {
		const cfg_obj_t *c = cfg_listelt_value(e);

		if (strcmp(cfg_obj_asstring(cfg_map_getname(c)), name) == 0)
			return takes_info(c);
	}
	return strcmp(name, "null") != 0 && strcmp(name, "default_debug") != 0;
}

bool hydns_drops_are_logged(const cfg_obj_t *config)
{
	const cfg_obj_t *logging = NULL, *to;

	if (cfg_map_get(config, "logging", &logging) != ISC_R_SUCCESS)
		return true;
	to = category(logging, "query-errors");
	if (to == NULL)
		to = category(logging, "default");
	if (to == NULL)
		return true;
	for (const cfg_listelt_t *e = cfg_list_first(to); e != NULL; e = cfg_list_next(e))
		if (channel_takes_info(logging, cfg_obj_asstring(cfg_listelt_value(e))))
			return true;
	return false;
}
