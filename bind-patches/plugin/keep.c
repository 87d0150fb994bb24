/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rules that outlive rndc reload and reconfig: where a configuration says what the former one did, and named goes on with the same cache
 * and zones, each rule is what the new view would answer. named exchanges its views with all loops paused, so this is decided before
 * anybody is answered by the new ones:
 *
 *   a new view gets its plugin      the text is compared with the former one's. The rules go on: nobody is answered meanwhile
 *   named has exchanged its views   what named has beside the text is compared; then the former instance's plugin object, with its
 *                                   page and its connection to hydnsd, becomes the new one's; or its rules end
 *   the loops go on
 *   named has configured itself     queries with cookies are answered again: mostly by another secret
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <isc/md.h>
#include <isc/util.h>
#include <dns/db.h>
#include <dns/view.h>
#include <dns/zone.h>
#include <isccfg/cfg.h>
#include <isccfg/grammar.h>
#include <ns/interfacemgr.h>
#include <ns/server.h>
#include "compat.h"
#include "plugin.h"

/* --- what a configuration says -------------------------------------------------------------------------------- */
struct reading {
	isc_md_t *md;
	bool failed;
};

static void add_octets(void *arg, const char *text, int len)
{
	struct reading *r = arg;

	r->failed |= isc_md_update(r->md, (const unsigned char *)text, (size_t)len) != ISC_R_SUCCESS;
}

/* Trust anchors that named reads from a file of their own; the text has only its name. */
static void add_bind_keys(struct reading *r, const cfg_obj_t *config)
{
	const cfg_obj_t *options = NULL, *name = NULL;
	char octets[4096];
	FILE *file;
	size_t n;

	if (cfg_map_get(config, "options", &options) != ISC_R_SUCCESS ||
	    cfg_map_get(options, "bindkeys-file", &name) != ISC_R_SUCCESS)
		return;
	file = fopen(cfg_obj_asstring(name), "re");
	if (file == NULL)
		return;
	while ((n = fread(octets, 1, sizeof(octets), file)) > 0)
		add_octets(r, octets, (int)n);
	r->failed |= ferror(file) != 0;
	fclose(file);
}

static bool has_outside(const cfg_obj_t *map)
{
	const cfg_obj_t *obj = NULL;

	return cfg_map_get(map, "dyndb", &obj) == ISC_R_SUCCESS || cfg_map_get(map, "dlz", &obj) == ISC_R_SUCCESS;
}

static bool any_outside(const cfg_obj_t *config)
{
	const cfg_obj_t *views = NULL;

	(void)cfg_map_get(config, "view", &views);
	for (const cfg_listelt_t *e = cfg_list_first(views); e != NULL; e = cfg_list_next(e))
		if (has_outside(cfg_tuple_get(cfg_listelt_value(e), "options")))
			return true;
	return has_outside(config);
}

/* As named-checkconf -p shows it: with all files that it includes, and without comments. */
void hydns_keep_read(const cfg_obj_t *config, struct hydns_written *out)
{
	struct reading r = { .md = isc_md_new() };
	unsigned int len = sizeof(out->digest);

	*out = (struct hydns_written){ .outside = any_outside(config) };
	if (r.md == NULL)
		return;
	if (isc_md_init(r.md, ISC_MD_SHA256) == ISC_R_SUCCESS) {
		cfg_print(config, add_octets, &r);
		add_bind_keys(&r, config);
		out->known = !r.failed && isc_md_final(r.md, out->digest, &len) == ISC_R_SUCCESS && len == sizeof(out->digest);
	}
	isc_md_free(r.md);
}

static bool says_the_same(const struct hydns_written *a, const struct hydns_written *b)
{
	return a->known && b->known && memcmp(a->digest, b->digest, sizeof(a->digest)) == 0;
}

/* --- what named has beside that --------------------------------------------------------------------------------- */
/* Zones that rndc adds are configured in a file of named's own. */
static bool has_added_zones(const dns_view_t *view)
{
	return (view->new_zone_file != NULL && access(view->new_zone_file, F_OK) == 0) ||
	       (view->new_zone_db != NULL && access(view->new_zone_db, F_OK) == 0);
}

const char *hydns_keep_obstacle(const struct hydns_instance *former, const struct hydns_instance *inst)
{
	const struct { bool met; const char *reason; } all[] = {
		{ !inst->o.enable, "hydns-enable is no" },
		{ !says_the_same(&former->written, &inst->written), "named.conf says something else" },
		{ former->touched, "rndc had changed it" },
		{ inst->written.outside, "dyndb or dlz may answer otherwise" },
		{ hydns_rrl_limits(former->view), "rate-limit begins to count anew" },
		{ has_added_zones(former->view), "rndc addzone keeps zones in a file of its own" },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].met)
			return all[i].reason;
	return NULL;
}

struct zones {
	dns_zone_t **zone;                /* not attached */
	size_t n, room;
	bool failed;
};

static isc_result_t add_zone(dns_zone_t *zone, void *arg)
{
	struct zones *z = arg;

	if (z->n == z->room) {
		const size_t room = z->room == 0 ? 256 : 2 * z->room;
		dns_zone_t **more = realloc(z->zone, room * sizeof(dns_zone_t *));

		if (more == NULL) {
			z->failed = true;
			return ISC_R_NOMEMORY;
		}
		z->zone = more;
		z->room = room;
	}
	z->zone[z->n++] = zone;
	return ISC_R_SUCCESS;
}

static int compare_zones(const void *a, const void *b)
{
	const dns_zone_t *x = *(dns_zone_t *const *)a, *y = *(dns_zone_t *const *)b;

	return (x > y) - (x < y);
}

static struct zones zones_of(const dns_view_t *view)
{
	struct zones z = { .n = 0 };

	z.failed = dns_view_apply(UNCONST(view), true, NULL, add_zone, &z) != ISC_R_SUCCESS || z.failed;
	if (z.n > 0)
		qsort(z.zone, z.n, sizeof(*z.zone), compare_zones);
	return z;
}

/* named goes on with a zone's object, and its data, where its statement allows that. What it loads later it notifies of. */
static bool zones_are_same(const dns_view_t *a, const dns_view_t *b)
{
	struct zones x = zones_of(a), y = zones_of(b);
	bool same = !x.failed && !y.failed && x.n == y.n && (x.n == 0 || memcmp(x.zone, y.zone, x.n * sizeof(*x.zone)) == 0);

	free(x.zone);
	free(y.zone);
	return same;
}

static bool stale_is_same(const struct hydns_stale *a, const struct hydns_stale *b)
{
	return a->ttl == b->ttl && a->longest == b->longest && (a->error == NULL) == (b->error == NULL) &&
	       (a->error == NULL || strcmp(a->error, b->error) == 0);
}

/* inst has its view. */
static const char *difference(const struct hydns_instance *former, const struct hydns_instance *inst)
{
	const struct hydns_stale stale = hydns_stale_wanted(inst, inst->view);
	const char *reasons[HYDNS_OBSTACLES_MAX];
	const struct { bool met; const char *reason; } all[] = {
		{ former->view->cachedb != inst->view->cachedb, "the cache is another" },
		{ !zones_are_same(former->view, inst->view), "named has made a zone anew" },
		{ hydns_obstacles(inst, reasons) != 0, "something forbids offers" },
		{ !stale_is_same(&former->stale, &stale) || hydns_lines_wanted(inst) != former->lines, "a setting of rndc's has ended" },
		{ !hydns_own_queries_agree(former->own, inst->own), "the host reserves other ports" },
		{ hydns_export_is_old(former, inst), "other clients may ask, or named listens elsewhere" },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].met)
			return all[i].reason;
	return NULL;
}

/* --- from one instance to the next ------------------------------------------------------------------------------ */
static void take_place(struct hydns_instance *inst, const struct hydns_instance *former, const struct hydns_start *by)
{
	inst->view = by->view;
	inst->port = former->port;
	if (inst->server == NULL) {
		ns_server_attach(by->server, &inst->server);
		dns_aclenv_attach(by->env, &inst->env);
	}
}

/* What describes the plugin object, which hydnsd and the loops go on using. */
static void move(struct hydns_instance *former, struct hydns_instance *inst)
{
	struct hydns_own_queries *own = inst->own;

	inst->own = former->own;          /* the object reads it */
	former->own = own;
	inst->socket = former->socket;
	inst->sockets = former->sockets;
	inst->acl = former->acl;
	inst->acls = former->acls;
	inst->forward_notes = former->forward_notes;
	inst->stale = former->stale;
	inst->lines = former->lines;
	inst->counted = former->counted;
	former->socket = NULL;
	former->acl = NULL;
	former->sockets = former->acls = 0;
	former->counted = (struct hydns_counts){ 0 };
	inst->exported = true;
	former->exported = false;
}

/* Changes are notified of without a gap: of an instance that has the object when it is found. */
static struct hydns_plugin *move_object(struct hydns_instance *former, struct hydns_instance *inst)
{
	struct hydns_plugin *p = atomic_load(&former->plugin);

	atomic_store(&inst->plugin, p);
	atomic_store(&inst->open, true);
	atomic_store(&inst->started, true);
	hydns_listen_instead(former, inst);
	atomic_store(&former->open, false);
	atomic_store(&former->plugin, NULL);
	return p;
}

/* What a new view has of its own: a memory of failures, clients that wait, and mostly a secret for cookies. Those that wait in the former
 * one end there, and tell the object nothing of it. */
static void renew(struct hydns_instance *former, struct hydns_instance *inst, struct hydns_plugin *p)
{
	static const uint8_t none[1][HYDNS_COOKIE_SECRET_LEN];

	if (atomic_load(&former->has_failures))
		hydns_failures_withdraw(p);
	hydns_plugin_nobody_waits(p);
	hydns_plugin_cookie_secrets(p, none, 0);
	hydns_forward_refresh(inst, p);
}

const char *hydns_keep(struct hydns_instance *former, struct hydns_instance *inst, const struct hydns_start *by)
{
	const char *why;

	take_place(inst, former, by);
	why = difference(former, inst);
	if (why == NULL)
		why = hydns_preload_hand_over(former, inst);
	if (why != NULL)
		return why;
	move(former, inst);
	renew(former, inst, move_object(former, inst));
	inst->kept = true;
	return NULL;
}

void hydns_keep_configured(struct hydns_instance *inst)
{
	struct hydns_plugin *p = atomic_load(&inst->plugin);

	if (inst->kept && p != NULL)
		(void)hydns_export_cookies(inst, p);
	inst->kept = false;
}

ns_hookresult_t hydns_on_exchanged(void *arg, void *data, isc_result_t *result)
{
	const ns_configured_t *configured = arg;

	UNUSED(result);
	hydns_instance_exchanged(data, &(struct hydns_start){ .view = configured->view,
							      .server = ns_interfacemgr_getserver(configured->interfaces),
							      .env = ns_interfacemgr_getaclenv(configured->interfaces) });
	return NS_HOOK_CONTINUE;
}
