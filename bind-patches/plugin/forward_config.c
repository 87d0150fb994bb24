/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the configuration says of the zones that hydns-forward names. named forwards by a table that has no list of its zones, and does not
 * say which of them are beneath another, so the zones with forwarders of their own are read here.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <dns/fixedname.h>
#include <dns/name.h>
#include <isc/result.h>
#include <isc/util.h>
#include <isccfg/cfg.h>
#include <isccfg/grammar.h>
#include <ns/log.h>
#include "hydns/forwarding.h"
#include "plugin.h"

/* --- names --------------------------------------------------------------------------------------------------- */
static bool read_name(const char *text, struct hydns_forward_name *out)
{
	dns_fixedname_t fixed;
	dns_name_t *name = dns_fixedname_initname(&fixed);

	if (dns_name_fromstring(name, text, dns_rootname, DNS_NAME_DOWNCASE, NULL) != ISC_R_SUCCESS)
		return false;
	*out = (struct hydns_forward_name){ .name_len = (uint8_t)name->length };
	memcpy(out->name, name->ndata, name->length);
	return true;
}

static bool is_same(const struct hydns_forward_name *a, const struct hydns_forward_name *b)
{
	return a->name_len == b->name_len && memcmp(a->name, b->name, a->name_len) == 0;
}

bool hydns_names_add(struct hydns_names *list, const struct hydns_forward_name *name)
{
	struct hydns_forward_name *more = realloc(list->name, (list->count + 1) * sizeof(*more));

	if (more == NULL)
		return false;
	list->name = more;
	list->name[list->count++] = *name;
	return true;
}

const char *hydns_names_read(const cfg_obj_t *list, struct hydns_names *out, const cfg_obj_t **at)
{
	for (const cfg_listelt_t *e = cfg_list_first(list); e != NULL; e = cfg_list_next(e)) {
		struct hydns_forward_name name;

		*at = cfg_listelt_value(e);
		if (!read_name(cfg_obj_asstring(*at), &name))
			return "is no domain name";
		for (size_t i = 0; i < out->count; i++)
			if (is_same(&out->name[i], &name))
				return "is named twice";
		if (out->count == HYDNS_FORWARD_ZONES)
			return "is one too many: name 512 at most";
		if (!hydns_names_add(out, &name))
			return "finds no memory";
	}
	return NULL;
}

_Static_assert(HYDNS_FORWARD_ZONES == 512, "as the words above say");

/* --- the view ------------------------------------------------------------------------------------------------- */
/* Where the statement's view has its options and its zones. */
struct scope {
	const cfg_obj_t *view, *options, *zones;
};

static struct scope scope_of(const struct hydns_statement *s)
{
	struct scope scope = { .view = hydns_statement_view(s) };

	(void)cfg_map_get(s->config, "options", &scope.options);
	(void)cfg_map_get(scope.view != NULL ? scope.view : s->config, "zone", &scope.zones);
	return scope;
}

static const cfg_obj_t *option(const struct scope *scope, const char *name)
{
	const cfg_obj_t *obj = NULL;

	if (scope->view == NULL || cfg_map_get(scope->view, name, &obj) != ISC_R_SUCCESS)
		(void)(scope->options != NULL && cfg_map_get(scope->options, name, &obj) == ISC_R_SUCCESS);
	return obj;
}

static const cfg_obj_t *zone_option(const cfg_obj_t *zone, const char *name)
{
	const cfg_obj_t *obj = NULL;

	(void)cfg_map_get(cfg_tuple_get(zone, "options"), name, &obj);
	return obj;
}

static bool is_forward_zone(const cfg_obj_t *zone)
{
	const cfg_obj_t *type = zone_option(zone, "type");

	return type != NULL && strcasecmp(cfg_obj_asstring(type), "forward") == 0;
}

static bool name_of(const cfg_obj_t *zone, struct hydns_forward_name *out)
{
	return read_name(cfg_obj_asstring(cfg_tuple_get(zone, "name")), out);
}

/* --- a zone that is to be forwarded --------------------------------------------------------------------------- */
struct forwarding {
	const cfg_obj_t *forwarders, *policy;
};

static bool find_forwarding(const struct scope *scope, const struct hydns_forward_name *name, struct forwarding *out)
{
	struct hydns_forward_name other;

	for (const cfg_listelt_t *e = cfg_list_first(scope->zones); e != NULL; e = cfg_list_next(e)) {
		const cfg_obj_t *zone = cfg_listelt_value(e);

		if (!is_forward_zone(zone) || !name_of(zone, &other) || !is_same(&other, name))
			continue;
		*out = (struct forwarding){ zone_option(zone, "forwarders"), zone_option(zone, "forward") };
		return true;
	}
	*out = (struct forwarding){ option(scope, "forwarders"), option(scope, "forward") };
	return name->name_len == 1 && out->forwarders != NULL; /* those of the options are the root's */
}

static bool has_tls(const cfg_obj_t *forwarders)
{
	if (cfg_obj_isstring(cfg_tuple_get(forwarders, "tls")))
		return true;
	for (const cfg_listelt_t *e = cfg_list_first(cfg_tuple_get(forwarders, "addresses")); e != NULL; e = cfg_list_next(e))
		if (cfg_obj_getsockaddrtls(cfg_listelt_value(e)) != NULL)
			return true;
	return false;
}

/* NULL: named forwards it to its forwarders, and to nobody else. */
static const char *why_not_forwarded(const struct scope *scope, const struct hydns_forward_name *name)
{
	struct forwarding f;

	if (!find_forwarding(scope, name, &f))
		return "is no zone of type forward in this view: add it, with forward only and its forwarders";
	if (f.forwarders == NULL || cfg_list_first(cfg_tuple_get(f.forwarders, "addresses")) == NULL)
		return "has no forwarders: name some";
	if (f.policy == NULL || strcasecmp(cfg_obj_asstring(f.policy), "only") != 0)
		return "has forward first, so named may ask others: set forward only";
	return has_tls(f.forwarders) ? "has forwarders over TLS: remove tls" : NULL;
}

static isc_result_t refuse(const struct hydns_statement *s, const struct hydns_forward_name *name, const char *why)
{
	char text[DNS_NAME_FORMATSIZE];
	dns_name_t zone;
	isc_region_t r = { .base = UNCONST(name->name), .length = name->name_len };

	dns_name_init(&zone, NULL);
	dns_name_fromregion(&zone, &r);
	dns_name_format(&zone, text, sizeof(text));
	isc_log_write(s->lctx, NS_LOGCATEGORY_GENERAL, NS_LOGMODULE_HOOKS, ISC_LOG_ERROR, "%s:%lu: hydns-forward: %s %s", s->file, s->line,
		      text, why);
	return ISC_R_FAILURE;
}

isc_result_t hydns_forward_check(const struct hydns_options *o, const struct hydns_statement *s)
{
	const struct scope scope = scope_of(s);

	for (size_t i = 0; i < o->forward.count; i++) {
		const char *why = why_not_forwarded(&scope, &o->forward.name[i]);

		if (why != NULL)
			return refuse(s, &o->forward.name[i], why);
	}
	return ISC_R_SUCCESS;
}

/* --- what the rest says --------------------------------------------------------------------------------------- */
/* Zones that are forwarded elsewhere, or not at all (forwarders {}). */
static bool read_others(const struct scope *scope, struct hydns_names *others)
{
	struct hydns_forward_name name;

	for (const cfg_listelt_t *e = cfg_list_first(scope->zones); e != NULL; e = cfg_list_next(e)) {
		const cfg_obj_t *zone = cfg_listelt_value(e);

		if ((is_forward_zone(zone) || zone_option(zone, "forwarders") != NULL) && name_of(zone, &name) && !hydns_names_add(others, &name))
			return false;
	}
	return true;
}

/* Names that are never validated. named has checked them. */
static bool read_unvalidated(const struct scope *scope, struct hydns_names *unvalidated)
{
	struct hydns_forward_name name;

	for (const cfg_listelt_t *e = cfg_list_first(option(scope, "validate-except")); e != NULL; e = cfg_list_next(e))
		if (read_name(cfg_obj_asstring(cfg_listelt_value(e)), &name) && !hydns_names_add(unvalidated, &name))
			return false;
	return true;
}

struct hydns_forward_config *hydns_forward_configured(const struct hydns_statement *s)
{
	struct hydns_forward_config *c = calloc(1, sizeof(*c));
	const struct scope scope = scope_of(s);

	if (c == NULL)
		return NULL;
	c->orders = option(&scope, "rrset-order") != NULL;
	c->filters = option(&scope, "deny-answer-addresses") != NULL || option(&scope, "deny-answer-aliases") != NULL;
	if (read_others(&scope, &c->others) && read_unvalidated(&scope, &c->unvalidated))
		return c;
	hydns_forward_config_free(c);
	return NULL;
}

void hydns_forward_config_free(struct hydns_forward_config *c)
{
	if (c == NULL)
		return;
	free(c->others.name);
	free(c->unvalidated.name);
	free(c);
}
