/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* preload --estimate: what preloading a zone would take, from its file. Nothing is preloaded. */
#include "config.h"

#include <ldns/ldns.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "hydnsd/ctl/common.h"
#include "hydnsd/ctl/estimate/estimate.h"
#include "hydnsd/ctl/estimate/zone_file.h"
#include "hydnsd/daemon/options.h"

#define PROGRESS_EVERY 2               /* seconds */

/* -- progress ---------------------------------------------------------------------------------------------------------- */
static void progress(const char *path, uint64_t records, double share)
{
	static time_t told;
	time_t now = time(NULL);
	char count[CTL_TEXT];

	if (!told)
		told = now;
	if (now - told < PROGRESS_EVERY)
		return;
	told = now;
	ctl_error("%s: %s records read, %.0f %%", path, ctl_count((json_int_t)records, count), 100 * share);
}

/* -- the reply --------------------------------------------------------------------------------------------------------- */
static const char *const unkept[CTL_UNKEPT_REASONS][2] = {   /* field, words */
	[CTL_UNKEPT_NEGATIVE] = {"negative", "have no data"},
	[CTL_UNKEPT_ORDER] = {"order", "have answers in an order that changes"},
	[CTL_UNKEPT_SIZE] = {"size", "have answers that are too large"},
};

static json_t *number(uint64_t n)
{
	return json_integer((json_int_t)n);
}

static char *zone_text(const struct ctl_zone *z)
{
	ldns_rdf *name = ldns_rdf_new_frm_data(LDNS_RDF_TYPE_DNAME, z->origin_len, z->origin);
	char *text = name ? ldns_rdf2str(name) : NULL;

	ldns_rdf_deep_free(name);
	return text;
}

static json_t *unkept_object(const struct ctl_estimate *e)
{
	json_t *o = json_object();

	for (unsigned i = CTL_KEPT + 1; i < CTL_UNKEPT_REASONS; i++)
		json_object_set_new(o, unkept[i][0], number(e->unkept[i]));
	return o;
}

static json_t *slots_list(const struct ctl_estimate *e)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < HYDNS_SIZE_CLASSES; i++)
		if (e->rules_of[i])
			json_array_append_new(list, json_pack("{s:i, s:o}", "octets", (int)hydns_class_size(i), "rules", number(e->rules_of[i])));
	return list;
}

/* The memory of the rules, and of the maps of a hydnsd of that capacity. Capacity 0: no store has so much room. */
static void add_memory(json_t *o, const struct ctl_estimate *e, uint32_t capacity)
{
	struct hydns_geometry g;

	json_object_set_new(o, "slot_bytes", number(e->slot_octets));
	json_object_set_new(o, "slots", slots_list(e));
	json_object_set_new(o, "names_bytes", number(e->set_octets));
	json_object_set_new(o, "capacity", number(capacity));
	json_object_set_new(o, "capacity_most", number(HYDNSD_CAPACITY_MAX));
	if (!capacity)
		return;
	ctl_geometry(capacity, &g);
	json_object_set_new(o, "index_bytes", number((uint64_t)g.buckets * sizeof(struct hydns_bucket)));
	json_object_set_new(o, "words_bytes", number(hydns_geometry_bytes(&g) - (uint64_t)g.spans * HYDNS_SPAN -
						     (uint64_t)g.buckets * sizeof(struct hydns_bucket)));
	json_object_set_new(o, "memory_bytes", number(hydns_geometry_bytes(&g)));
}

static json_t *estimate_object(const char *file, const struct ctl_zone *z, const struct ctl_estimate *e)
{
	char *zone = zone_text(z);
	json_t *o = json_pack("{s:s, s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "file", file, "zone", zone ? zone : "?",
			      "signed", (int)ctl_zone_is_signed(z), "records", number(z->records), "outside", number(z->outside),
			      "names", number(e->names), "questions", number(e->questions), "rules", number(e->rules),
			      "unkept", unkept_object(e), "glue", number(e->glue));

	free(zone);
	add_memory(o, e, ctl_estimate_capacity(e));
	return o;
}

/* What the hydnsd that runs has room for: null if none does. */
static bool add_hydnsd(const struct ctl *c, json_t *o, const struct ctl_estimate *e)
{
	json_t *reply = NULL;
	char why[CTL_WHY];
	const json_t *r;
	json_int_t preloaded = 0;
	size_t i;

	switch (ctl_call(c, json_pack("{s:s}", "cmd", "status"), &reply, why)) {
	case CTL_ANSWERED:
		break;
	case CTL_NO_DAEMON:
		json_object_set_new(o, "hydnsd", json_null());
		return true;
	default:
		ctl_error("%s", why);
		return false;
	}
	json_array_foreach(json_object_get(reply, FIELD(status, resolvers)), i, r)
		preloaded += ctl_int(r, FIELD(resolver, preloaded));
	json_object_set_new(o, "hydnsd", json_pack("{s:I, s:I, s:b}", FIELD(status, capacity), ctl_int(reply, FIELD(status, capacity)),
		FIELD(resolver, preloaded), preloaded, "fits", (int)ctl_estimate_fits(e, (uint32_t)ctl_int(reply, FIELD(status, capacity)))));
	json_decref(reply);
	return true;
}

/* -- for people -------------------------------------------------------------------------------------------------------- */
static void print_unkept(const json_t *o)
{
	char text[CTL_TEXT];

	for (unsigned i = CTL_KEPT + 1; i < CTL_UNKEPT_REASONS; i++) {
		json_int_t n = ctl_int(json_object_get(o, "unkept"), unkept[i][0]);

		if (n)
			printf("             %s questions %s: no rules\n", ctl_count(n, text), unkept[i][1]);
	}
	if (ctl_int(o, "glue"))
		printf("             %s of the rules only with BIND's preferred-glue\n", ctl_count(ctl_int(o, "glue"), text));
}

static void print_capacity(const json_t *o)
{
	json_int_t capacity = ctl_int(o, "capacity"), most = ctl_int(o, "capacity_most");
	char a[CTL_TEXT];

	if (!capacity || capacity > most) {
		printf("capacity     %s", capacity ? ctl_count(capacity, a) : "more than any hydnsd has");
		printf(" needed, and hydnsd's most is %s: the zone can't be preloaded whole\n", ctl_count(most, a));
		return;
	}
	printf("capacity     %s needed: preloaded answers may take three quarters\n", ctl_count(capacity, a));
	printf("             hydnsd's maps then take %s:", ctl_bytes(ctl_real(o, "memory_bytes"), a));
	printf(" index %s,", ctl_bytes(ctl_real(o, "index_bytes"), a));
	printf(" words %s, the rest slots\n", ctl_bytes(ctl_real(o, "words_bytes"), a));
}

static void print_hydnsd(const json_t *hydnsd)
{
	char a[CTL_TEXT], b[CTL_TEXT];

	if (json_is_null(hydnsd)) {
		puts("hydnsd       is not running");
		return;
	}
	printf("hydnsd       has capacity %s: %s\n", ctl_count(ctl_int(hydnsd, FIELD(status, capacity)), a),
	       json_is_true(json_object_get(hydnsd, "fits")) ? "the zone fits" : "the zone does not fit");
	if (ctl_int(hydnsd, FIELD(resolver, preloaded)))
		printf("             %s rules are preloaded now: those of other zones need room besides\n",
		       ctl_count(ctl_int(hydnsd, FIELD(resolver, preloaded)), b));
}

static void print_estimate(const json_t *o)
{
	json_int_t rules = ctl_int(o, "rules");
	char a[CTL_TEXT];

	printf("zone         %s, %s", ctl_str(o, "zone"), json_is_true(json_object_get(o, "signed")) ? "signed" : "not signed");
	printf(", %s records\n", ctl_count(ctl_int(o, "records"), a));
	if (ctl_int(o, "outside"))
		printf("             %s more are of other zones, and ignored\n", ctl_count(ctl_int(o, "outside"), a));
	printf("names        %s\n", ctl_count(ctl_int(o, "names"), a));
	printf("questions    %s\n", ctl_count(ctl_int(o, "questions"), a));
	printf("rules        %s\n", ctl_count(rules, a));
	print_unkept(o);
	printf("memory       %s of slots", ctl_bytes(ctl_real(o, "slot_bytes"), a));
	printf(", %s for each rule on average\n", ctl_bytes(rules ? ctl_real(o, "slot_bytes") / (double)rules : 0, a));
	printf("             %s more for the set of its names\n", ctl_bytes(ctl_real(o, "names_bytes"), a));
	print_capacity(o);
	print_hydnsd(json_object_get(o, "hydnsd"));
}

/* -- the command --------------------------------------------------------------------------------------------------------- */
static int show(const struct ctl *c, const char *path, const struct ctl_zone *z)
{
	struct ctl_estimate e;
	json_t *o;

	ctl_estimate(z, &e);
	o = estimate_object(path, z, &e);
	if (!add_hydnsd(c, o, &e)) {
		json_decref(o);
		return CTL_ERROR;
	}
	return ctl_show_object(c, o, print_estimate);
}

int ctl_cmd_preload(const struct ctl *c, int argc, char **argv)
{
	struct ctl_zone_file file = {.path = argv[0], .progress = isatty(STDERR_FILENO) ? progress : NULL};
	char why[CTL_WHY], *origin = NULL;
	struct ctl_zone z;
	int rc = CTL_ERROR;

	(void)argc;
	if (!c->estimate) {
		ctl_error("preload: give --estimate: what preloads a zone is hydns-preload in its statement in named.conf");
		return CTL_USAGE;
	}
	if (c->origin) {
		file.origin = origin = ctl_name(c->origin, why);
		if (!origin) {
			ctl_error("--origin: %s", why);
			return CTL_USAGE;
		}
	}
	if (ctl_zone_read(&file, &z, why)) {
		rc = show(c, file.path, &z);
		ctl_zone_close(&z);
	} else {
		ctl_error("%s", why);
	}
	free(origin);
	return rc;
}
