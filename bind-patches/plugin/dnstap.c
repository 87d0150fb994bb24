/* SPDX-License-Identifier: BSD-3-Clause */
/* How kernel answers are logged: dnstap messages, to the socket that named writes to, or a file beside its own. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include <isc/mem.h>
#include <isccfg/cfg.h>
#include <dns/dnstap.h>
#include <dns/view.h>
#include "compat.h"
#include "plugin.h"

#define HOSTNAME_MOST 255

static char *copy(isc_mem_t *mctx, const char *text)
{
	return isc_mem_strdup(mctx, text);
}

/* As named does: none, a text, or the host's name (boolean true). */
static const char *identity(const cfg_obj_t *options, isc_mem_t *mctx)
{
	const cfg_obj_t *obj = NULL;
	char host[HOSTNAME_MOST + 1] = "";

	if (cfg_map_get(options, "dnstap-identity", &obj) == ISC_R_SUCCESS && !cfg_obj_isboolean(obj))
		return cfg_obj_isvoid(obj) ? NULL : copy(mctx, cfg_obj_asstring(obj));
	return gethostname(host, HOSTNAME_MOST) == 0 ? copy(mctx, host) : NULL;
}

static const char *version(const cfg_obj_t *options, isc_mem_t *mctx)
{
	const cfg_obj_t *obj = NULL;

	if (cfg_map_get(options, "dnstap-version", &obj) != ISC_R_SUCCESS)
		return copy(mctx, "BIND " PACKAGE_VERSION);
	return cfg_obj_isvoid(obj) ? NULL : copy(mctx, cfg_obj_asstring(obj));
}

void hydns_dnstap_read(const cfg_obj_t *config, isc_mem_t *mctx, struct hydns_dnstap_options *out)
{
	const cfg_obj_t *options = NULL, *output = NULL;

	*out = (struct hydns_dnstap_options){ .to = HYDNS_DNSTAP_NOWHERE };
	if (cfg_map_get(config, "options", &options) != ISC_R_SUCCESS ||
	    cfg_map_get(options, "dnstap-output", &output) != ISC_R_SUCCESS)
		return;
	out->to = strcasecmp(cfg_obj_asstring(cfg_tuple_get(output, "mode")), "file") == 0 ? HYDNS_DNSTAP_FILE : HYDNS_DNSTAP_UNIX;
	out->path = copy(mctx, cfg_obj_asstring(cfg_tuple_get(output, "path")));
	out->identity = identity(options, mctx);
	out->version = version(options, mctx);
	out->query_time = out->by_flags = true;
}

static void free_text(const char **text, isc_mem_t *mctx)
{
	char *owned = (char *)(uintptr_t)*text;

	if (owned != NULL)
		isc_mem_free(mctx, owned);
	*text = NULL;
}

void hydns_dnstap_free(struct hydns_dnstap_options *o, isc_mem_t *mctx)
{
	free_text(&o->path, mctx);
	free_text(&o->identity, mctx);
	free_text(&o->version, mctx);
}

bool hydns_dnstap_sees_answers(const dns_view_t *view)
{
	return view->dtenv != NULL &&
	       (view->dttypes & (DNS_DTTYPE_CQ | DNS_DTTYPE_CR | DNS_DTTYPE_AQ | DNS_DTTYPE_AR)) != 0;
}

/* A Frame Streams file has one writer, so each view has one of its own. */
void hydns_dnstap_options(const struct hydns_instance *inst, const dns_view_t *view, struct hydns_dnstap_options *out,
			  char path[PATH_MAX])
{
	bool named_view = strcmp(view->name, "_default") != 0;

	*out = (struct hydns_dnstap_options){ .to = HYDNS_DNSTAP_NOWHERE };
	if (!hydns_dnstap_sees_answers(view) || inst->o.dnstap == HYDNS_UNLOGGED || inst->dnstap.path == NULL)
		return;
	*out = inst->dnstap;
	out->queries = (view->dttypes & DNS_DTTYPE_CQ) != 0;
	out->responses = (view->dttypes & DNS_DTTYPE_CR) != 0;
	out->auth_queries = (view->dttypes & DNS_DTTYPE_AQ) != 0;
	out->auth_responses = (view->dttypes & DNS_DTTYPE_AR) != 0;
	if (out->to == HYDNS_DNSTAP_FILE) {
		snprintf(path, PATH_MAX, "%s.hydns%s%s", out->path, named_view ? "-" : "", named_view ? view->name : "");
		out->beside = inst->dnstap.path;
		out->path = path;
	}
}
