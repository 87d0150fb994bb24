/* SPDX-License-Identifier: BSD-3-Clause */
/* The parameters between the braces of the plugin statement, parsed by BIND's own configuration grammar. */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <isc/buffer.h>
#include <isc/result.h>
#include <isc/util.h>
#include <isccfg/cfg.h>
#include <isccfg/grammar.h>
#include <isccfg/log.h>
#include "hydns/parking.h"
#include "compat.h"
#include "plugin.h"

static const char *const choice_words[] = { [HYDNS_AUTO] = "auto", [HYDNS_YES] = "yes", [HYDNS_NO] = "no", NULL };
static const char *const dnstap_words[] = { [HYDNS_COMPLETE] = "complete", [HYDNS_SAMPLE] = "sample", [HYDNS_UNLOGGED] = "no", NULL };
static cfg_type_t cfg_type_dnstap = { "hydns-dnstap", cfg_parse_enum, cfg_print_ustring, cfg_doc_enum, &cfg_rep_string,
				      dnstap_words };
static cfg_type_t cfg_type_choice = { "hydns-choice", cfg_parse_enum, cfg_print_ustring, cfg_doc_enum, &cfg_rep_string,
				      choice_words };
static const char *const bound_words[] = { "auto", NULL };

static isc_result_t parse_bound(cfg_parser_t *parser, const cfg_type_t *type, cfg_obj_t **out)
{
	return cfg_parse_enum_or_other(parser, type, &cfg_type_uint32, out);
}

static void document_bound(cfg_printer_t *printer, const cfg_type_t *type)
{
	cfg_doc_enum_or_other(printer, type, &cfg_type_uint32);
}

static cfg_type_t cfg_type_bound = { "hydns-bound", parse_bound, cfg_print_ustring, document_bound, &cfg_rep_string,
				     bound_words };
static cfg_type_t cfg_type_zones = { "hydns-zones", cfg_parse_bracketed_list, cfg_print_bracketed_list, cfg_doc_bracketed_list,
				     &cfg_rep_list, &cfg_type_astring };
static cfg_clausedef_t clauses[] = {
	{ "hydns-enable", &cfg_type_boolean, 0 },
	{ "hydns-socket", &cfg_type_qstring, 0 },
	{ "hydns-capacity", &cfg_type_uint32, 0 },
	{ "hydns-admission", &cfg_type_uint32, 0 },
	{ "hydns-window", &cfg_type_uint32, 0 },
	{ "hydns-min-ttl", &cfg_type_uint32, 0 },
	{ "hydns-max-ttl", &cfg_type_uint32, 0 },
	{ "hydns-refresh", &cfg_type_uint32, 0 },
	{ "hydns-flush-timeout", &cfg_type_uint32, 0 },
	{ "hydns-allow-unlogged", &cfg_type_boolean, 0 },
	{ "hydns-allow-unlimited", &cfg_type_boolean, 0 },
	{ "hydns-dnstap", &cfg_type_dnstap, 0 },
	{ "hydns-dnstap-one-in", &cfg_type_uint32, 0 },
	{ "hydns-log-buffer", &cfg_type_uint32, 0 },
	{ "hydns-query-log", &cfg_type_boolean, 0 },
	{ "hydns-stale-after-crash", &cfg_type_boolean, 0 },
	{ "hydns-queue", &cfg_type_choice, 0 },
	{ "hydns-queue-upstream", &cfg_type_choice, 0 },
	{ "hydns-queue-frames", &cfg_type_uint32, 0 },
	{ "hydns-pending-max", &cfg_type_bound, 0 },
	{ "hydns-pending-per-question", &cfg_type_bound, 0 },
	{ "hydns-forward", &cfg_type_zones, 0 },
	{ "hydns-preload", &cfg_type_zones, 0 },
	{ NULL, NULL, 0 },
};
static cfg_clausedef_t *clausesets[] = { clauses, NULL };
static cfg_type_t parameters = { "hydns-params", cfg_parse_mapbody, cfg_print_mapbody,
				 cfg_doc_mapbody, &cfg_rep_map, clausesets };

static const struct number {
	const char *name;
	size_t offset;
	uint32_t least, most, standard;
} numbers[] = {
#define NUMBER(field) offsetof(struct hydns_options, field)
	{ "hydns-capacity", NUMBER(capacity), 0, 1U << 24, 0 },
	{ "hydns-admission", NUMBER(admission), 1, 1000000, 1 },
	{ "hydns-window", NUMBER(window), 1, 3600, 600 },
	{ "hydns-min-ttl", NUMBER(min_ttl), 1, 86400, 2 },
#if HYDNS_STOCK
	/* no notice of a flush comes: this is how long a rule may outlive one */
	{ .name = "hydns-max-ttl", .offset = NUMBER(max_ttl), .least = 1, .most = 60, .standard = 5 },
#else
	{ "hydns-max-ttl", NUMBER(max_ttl), 0, 604800, 86400 },
#endif
	{ "hydns-refresh", NUMBER(refresh), 0, 50, 10 },
	{ "hydns-flush-timeout", NUMBER(flush_timeout), 1, 10000, 500 },
	{ "hydns-queue-frames", NUMBER(queue_frames), 256, 4096, 1024 },
	{ "hydns-dnstap-one-in", NUMBER(dnstap_one_in), 1, 1000000000, 1 },
	{ "hydns-log-buffer", NUMBER(log_buffer), 1, 1024, 16 },
#undef NUMBER
};
static const struct truth {
	const char *name;
	size_t offset;
	bool standard;
} truths[] = {
#define TRUTH(field) offsetof(struct hydns_options, field)
	{ "hydns-enable", TRUTH(enable), true },
	{ "hydns-allow-unlogged", TRUTH(allow_unlogged), false },
	{ "hydns-allow-unlimited", TRUTH(allow_unlimited), false },
	{ "hydns-query-log", TRUTH(query_log), false },
	{ "hydns-stale-after-crash", TRUTH(stale_after_crash), false },
#undef TRUTH
};
#define STANDARD_SOCKET "/run/hydns/plugin.sock"

struct source {
	isc_log_t *lctx;
	const char *file;
	unsigned long first, last;        /* lines of the statement */
};

/* obj: the option, for its line. */
static void __attribute__((format(printf, 3, 4))) complain(const struct source *from, const cfg_obj_t *obj,
							   const char *format, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	isc_log_write(from->lctx, CFG_LOGCATEGORY_CONFIG, CFG_LOGMODULE_PARSER, ISC_LOG_ERROR, "%s:%u: %s", from->file,
		      cfg_obj_line(obj), text);
}

static isc_result_t read_number(const cfg_obj_t *map, const struct number *n,
				const struct source *from, struct hydns_options *o)
{
	const cfg_obj_t *obj = NULL;
	uint32_t value = n->standard;

	if (cfg_map_get(map, n->name, &obj) == ISC_R_SUCCESS)
		value = cfg_obj_asuint32(obj);
	if (value < n->least || value > n->most) {
		complain(from, obj, "%s: expected a number from %u to %u, got %u", n->name, n->least, n->most, value);
		return ISC_R_RANGE;
	}
	memcpy((char *)o + n->offset, &value, sizeof(value));
	return ISC_R_SUCCESS;
}

static void read_truth(const cfg_obj_t *map, const struct truth *t, struct hydns_options *o)
{
	const cfg_obj_t *obj = NULL;
	bool value = t->standard;

	if (cfg_map_get(map, t->name, &obj) == ISC_R_SUCCESS)
		value = cfg_obj_asboolean(obj);
	memcpy((char *)o + t->offset, &value, sizeof(value));
}

static isc_result_t read_socket(const cfg_obj_t *map, isc_mem_t *mctx, const struct source *from,
				struct hydns_options *o)
{
	const cfg_obj_t *obj = NULL;
	const char *path = STANDARD_SOCKET;

	if (cfg_map_get(map, "hydns-socket", &obj) == ISC_R_SUCCESS)
		path = cfg_obj_asstring(obj);
	if (path[0] != '/' || strlen(path) >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
		complain(from, obj, "hydns-socket: expected an absolute path shorter than %zu octets, got '%s'",
			 sizeof(((struct sockaddr_un *)0)->sun_path), path);
		return ISC_R_RANGE;
	}
	o->socket = isc_mem_strdup(mctx, path);
	return ISC_R_SUCCESS;
}

static bool read_choice(const cfg_obj_t *map, const char *name, const struct source *from, enum hydns_choice *choice)
{
	const cfg_obj_t *obj = NULL;

	(void)cfg_map_get(map, name, &obj);
	for (size_t i = 0; obj != NULL && choice_words[i] != NULL; i++)
		if (strcmp(cfg_obj_asstring(obj), choice_words[i]) == 0)
			*choice = (enum hydns_choice)i;
	if (!HYDNS_STOCK || *choice != HYDNS_YES)
		return true;
	complain(from, obj, "%s: an unpatched named has no packet rings: set it to no", name);
	return false;
}

static isc_result_t read_queue(const cfg_obj_t *map, const struct source *from, struct hydns_options *o)
{
	const cfg_obj_t *frames = NULL;

	if (!read_choice(map, "hydns-queue", from, &o->queue) ||
	    !read_choice(map, "hydns-queue-upstream", from, &o->queue_upstream))
		return ISC_R_RANGE;
	if ((o->queue_frames & (o->queue_frames - 1)) == 0)
		return ISC_R_SUCCESS;
	(void)cfg_map_get(map, "hydns-queue-frames", &frames);
	complain(from, frames, "hydns-queue-frames: expected a power of 2, got %u", o->queue_frames);
	return ISC_R_RANGE;
}

static isc_result_t read_dnstap(const cfg_obj_t *map, const struct source *from, struct hydns_options *o)
{
	const cfg_obj_t *obj = NULL;

	(void)cfg_map_get(map, "hydns-dnstap", &obj);
	for (size_t i = 0; obj != NULL && dnstap_words[i] != NULL; i++)
		if (strcmp(cfg_obj_asstring(obj), dnstap_words[i]) == 0)
			o->dnstap = (enum hydns_dnstap_mode)i;
	if ((o->log_buffer & (o->log_buffer - 1)) == 0)
		return ISC_R_SUCCESS;
	obj = NULL;
	(void)cfg_map_get(map, "hydns-log-buffer", &obj);
	complain(from, obj, "hydns-log-buffer: expected a power of 2, got %u", o->log_buffer);
	return ISC_R_RANGE;
}

/* auto or a number of parked queries. */
static bool read_bound(const cfg_obj_t *map, const char *name, const struct source *from, uint32_t *bound)
{
	const cfg_obj_t *obj = NULL;

	*bound = HYDNS_PENDING_AUTO;
	if (cfg_map_get(map, name, &obj) != ISC_R_SUCCESS || !cfg_obj_isuint32(obj))
		return true;
	*bound = cfg_obj_asuint32(obj);
	if (*bound <= HYDNS_PENDING_MOST)
		return true;
	complain(from, obj, "%s: expected auto or a number from 0 to %u, got %u", name, HYDNS_PENDING_MOST, *bound);
	return false;
}

static isc_result_t read_pending(const cfg_obj_t *map, const struct source *from, struct hydns_options *o)
{
	return read_bound(map, "hydns-pending-max", from, &o->pending_max) &&
	       read_bound(map, "hydns-pending-per-question", from, &o->pending_per_question) ? ISC_R_SUCCESS : ISC_R_RANGE;
}

static isc_result_t read_zones(const cfg_obj_t *map, const char *option, const struct source *from, struct hydns_names *out)
{
	const cfg_obj_t *list = NULL, *at = NULL;
	const char *why;

	if (cfg_map_get(map, option, &list) != ISC_R_SUCCESS)
		return ISC_R_SUCCESS;
	why = hydns_names_read(list, out, &at);
	if (why == NULL)
		return ISC_R_SUCCESS;
	complain(from, list, "%s: %s%s%s", option, at != NULL ? cfg_obj_asstring(at) : "", at != NULL ? " " : "", why);
	return ISC_R_RANGE;
}

static isc_result_t read_all(const cfg_obj_t *map, isc_mem_t *mctx, const struct source *from,
			     struct hydns_options *out)
{
	struct hydns_options o = { 0 };
	const cfg_obj_t *obj = NULL;
	isc_result_t result;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		result = read_number(map, &numbers[i], from, &o);
		if (result != ISC_R_SUCCESS)
			return result;
	}
	if (o.max_ttl != 0 && o.min_ttl > o.max_ttl) {
		(void)(cfg_map_get(map, "hydns-min-ttl", &obj) == ISC_R_SUCCESS ||
		       cfg_map_get(map, "hydns-max-ttl", &obj) == ISC_R_SUCCESS);
		complain(from, obj, "hydns-min-ttl %u is above hydns-max-ttl %u: lower it", o.min_ttl, o.max_ttl);
		return ISC_R_RANGE;
	}
	for (size_t i = 0; i < sizeof(truths) / sizeof(truths[0]); i++)
		read_truth(map, &truths[i], &o);
	result = read_queue(map, from, &o);
	if (result == ISC_R_SUCCESS)
		result = read_dnstap(map, from, &o);
	if (result == ISC_R_SUCCESS)
		result = read_pending(map, from, &o);
	if (result == ISC_R_SUCCESS)
		result = read_socket(map, mctx, from, &o);
	if (result == ISC_R_SUCCESS)
		result = read_zones(map, "hydns-forward", from, &o.forward);
	if (result == ISC_R_SUCCESS)
		result = read_zones(map, "hydns-preload", from, &o.preload);
	if (result == ISC_R_SUCCESS)
		*out = o;
	else
		hydns_options_free(&o, mctx);
	return result;
}

/* line: where the statement ends. Its text still has its line ends. */
static struct source source_of(const char *text, const char *file, unsigned long line, isc_log_t *lctx)
{
	struct source from = { .lctx = lctx, .file = file, .first = line, .last = line };

	for (; *text != '\0'; text++)
		if (*text == '\n' && from.first > 1)
			from.first--;
	return from;
}

bool hydns_options_want_rings(const struct hydns_options *o)
{
	return o->queue != HYDNS_NO || o->queue_upstream != HYDNS_NO;
}

isc_result_t hydns_options_parse(const char *text, const char *file, unsigned long line, isc_mem_t *mctx,
				 isc_log_t *lctx, struct hydns_options *out)
{
	const char *parsed = text != NULL ? text : "";
	const struct source from = source_of(parsed, file, line, lctx);
	cfg_parser_t *parser = NULL;
	cfg_obj_t *map = NULL;
	char where[512];                  /* the parser does not say in which line of a buffer it is */
	isc_buffer_t b;
	isc_result_t result = cfg_parser_create(mctx, lctx, &parser);

	if (result != ISC_R_SUCCESS)
		return result;
	snprintf(where, sizeof(where), "%s:%lu-%lu", file, from.first, from.last);
	isc_buffer_constinit(&b, parsed, strlen(parsed));
	isc_buffer_add(&b, strlen(parsed));
	result = cfg_parse_buffer(parser, &b, where, (unsigned int)from.first, &parameters, 0, &map);
	if (result == ISC_R_SUCCESS) {
		result = read_all(map, mctx, &from, out);
		cfg_obj_destroy(parser, &map);
	}
	cfg_parser_destroy(&parser);
	return result;
}

void hydns_options_free(struct hydns_options *o, isc_mem_t *mctx)
{
	if (o->socket != NULL)
		isc_mem_free(mctx, o->socket);
	free(o->forward.name);
	free(o->preload.name);
}
