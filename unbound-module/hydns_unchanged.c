/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reload_keep_cache and fast_reload: whether Unbound answers after it as before, so that the rules may stay. They do when
 *
 *   the configuration has the same text, with all that it includes (the parser adds up what it reads),
 *   no command has altered since what the text says,
 *   what Unbound has read from other files is the same in memory: trust anchors, hints, auth-zones,
 *   and the caches were kept.
 *
 * Over reload_keep_cache the rules are suspended: only afterwards it is known. Whatever else there is that a new configuration begins
 * anew (zones that the kernel forwards or that are preloaded, logs, limits) has the reload go as any other.
 */
#include "config.h"
#include <string.h>
#include "hydns_daemon.h"
#include "hydns_digest.h"
#include "daemon/daemon.h"
#include "iterator/iter_delegpt.h"
#include "iterator/iter_hints.h"
#include "services/authzone.h"
#include "util/config_file.h"
#include "util/data/dname.h"
#include "util/data/packed_rrset.h"
#include "util/log.h"
#include "util/net_help.h"
#include "util/rbtree.h"
#include "validator/val_anchor.h"

/* --- what was read from other files, in memory ----------------------------------------------------------- */
static void add_octets(struct hydns_digest* to, const void* octets, size_t len)
{
	hydns_digest_number(to, len);
	hydns_digest_add(to, octets, len);
}

static void add_rrset(struct hydns_digest* to, const struct packed_rrset_data* data)
{
	size_t i;

	hydns_digest_number(to, data->count);
	hydns_digest_number(to, data->rrsig_count);
	for(i = 0; i < data->count + data->rrsig_count; i++) {
		hydns_digest_number(to, (uint64_t)data->rr_ttl[i]);
		add_octets(to, data->rr_data[i], data->rr_len[i]);
	}
}

/* In any order, and without TTLs: Unbound reads the file that it writes of keys (RFC 5011) in the reverse order. */
static void add_keys(struct hydns_digest* to, const struct ub_packed_rrset_key* keys)
{
	const struct packed_rrset_data* data = keys ? (const struct packed_rrset_data*)keys->entry.data : NULL;
	uint64_t sum = 0;
	size_t i;

	for(i = 0; data && i < data->count; i++) {
		struct hydns_digest one;

		memset(&one, 0, sizeof(one));
		hydns_digest_add(&one, data->rr_data[i], data->rr_len[i]);
		sum += hydns_digest_value(&one);
	}
	hydns_digest_number(to, data ? data->count : 0);
	hydns_digest_number(to, sum);
}

static void add_anchors(struct hydns_digest* to, struct val_anchors* anchors)
{
	struct trust_anchor* ta;

	if(!anchors)
		return;
	lock_basic_lock(&anchors->lock);
	RBTREE_FOR(ta, struct trust_anchor*, anchors->tree) {
		lock_basic_lock(&ta->lock);
		add_octets(to, ta->name, ta->namelen);
		hydns_digest_number(to, ta->dclass);
		add_keys(to, ta->ds_rrset);
		add_keys(to, ta->dnskey_rrset);
		lock_basic_unlock(&ta->lock);
	}
	lock_basic_unlock(&anchors->lock);
}

static void add_hints(struct hydns_digest* to, struct iter_hints* hints)
{
	struct iter_hints_stub* s;
	const struct delegpt_ns* ns;
	const struct delegpt_addr* a;

	lock_rw_rdlock(&hints->lock);
	RBTREE_FOR(s, struct iter_hints_stub*, &hints->tree) {
		add_octets(to, s->node.name, s->node.len);
		hydns_digest_number(to, s->node.dclass);
		for(ns = s->dp->nslist; ns; ns = ns->next)
			add_octets(to, ns->name, ns->namelen);
		for(a = s->dp->target_list; a; a = a->next_target)
			add_octets(to, &a->addr, a->addrlen);
	}
	lock_rw_unlock(&hints->lock);
}

static void add_zone(struct hydns_digest* to, struct auth_zone* z)
{
	const struct auth_rrset* r;
	struct auth_data* n;

	add_octets(to, z->name, z->namelen);
	hydns_digest_number(to, z->dclass);
	hydns_digest_number(to, (uint64_t)z->zone_expired);
	RBTREE_FOR(n, struct auth_data*, &z->data) {
		add_octets(to, n->name, n->namelen);
		for(r = n->rrsets; r; r = r->next) {
			hydns_digest_number(to, r->type);
			add_rrset(to, r->data);
		}
	}
}

static void add_zones(struct hydns_digest* to, struct auth_zones* az)
{
	struct auth_zone* z;

	lock_rw_rdlock(&az->lock);
	RBTREE_FOR(z, struct auth_zone*, &az->ztree) {
		lock_rw_rdlock(&z->lock);
		add_zone(to, z);
		lock_rw_unlock(&z->lock);
	}
	lock_rw_unlock(&az->lock);
}

/* Zones may be large: only while nobody is answered anyway. */
static uint64_t read_from_files(const struct daemon* daemon, int zones)
{
	struct hydns_digest sum;

	memset(&sum, 0, sizeof(sum));
	add_anchors(&sum, daemon->env->anchors);
	add_hints(&sum, daemon->env->hints);
	if(zones)
		add_zones(&sum, daemon->env->auth_zones);
	return hydns_digest_value(&sum);
}

static uint64_t text_of(const struct config_file* cfg)
{
	return hydns_digest_value(&cfg->hydns_text);
}

void hydns_unchanged_begin(struct hydns_daemon* d)
{
	d->text = text_of(d->daemon->cfg);
	d->files = read_from_files(d->daemon, 0);
}

/* --- reload_keep_cache ------------------------------------------------------------------------------------- */
/* Whether all that the kernel has of this configuration can wait and go on. */
static int can_wait(const struct hydns_daemon* d)
{
	return atomic_load(&d->open) && !d->closing && !d->altered && !d->mixed && !d->forwards && !d->preloaded && !d->log_wants &&
		!atomic_load(&d->limits);
}

void hydns_unchanged_suspend(struct hydns_daemon* d, void (*gone)(void* arg), void* arg)
{
	if((!d->suspended && !can_wait(d)) || !hydns_plugin_suspend(d->plugin, gone, arg)) {
		hydns_daemon_leave(d, gone, arg);
		return;
	}
	d->suspended = 1;
	d->closing = 1;
	atomic_store(&d->open, 0);
}

int hydns_unchanged_stopped(struct hydns_daemon* d)
{
	if(!d->suspended || d->altered || !d->daemon->reuse_cache)
		return 0;
	d->files = read_from_files(d->daemon, 1);
	hydns_plugin_nobody_waits(d->plugin);
	return 1;
}

void hydns_unchanged_read(struct hydns_daemon* d, const struct config_file* cfg, int cached)
{
	if(d && d->suspended && (!cached || text_of(cfg) != d->text))
		hydns_daemon_leave(d, NULL, NULL);
}

int hydns_unchanged_goes_on(struct hydns_daemon* d)
{
	if(!d || !d->suspended)
		return 0;
	if(d->daemon->num == d->threads && read_from_files(d->daemon, 1) == d->files)
		return 1;
	hydns_daemon_leave(d, NULL, NULL);
	return 0;
}

/* Unbound makes a cookie secret anew, unless it is set, and counts from 0. */
void hydns_unchanged_resume(struct hydns_daemon* d)
{
	hydns_config_cookies(d->daemon, d->plugin);
	hydns_stats_ask(d);
	hydns_stats_reset(d);
	d->shown = 0;
	d->files = read_from_files(d->daemon, 0);
	d->suspended = 0;
	d->closing = 0;
	atomic_store(&d->open, 1);
	hydns_plugin_resume(d->plugin);
	log_info("hydns: the configuration is the same, and so are its files and the cache: kernel answers go on");
}

/* --- fast_reload ------------------------------------------------------------------------------------------- */
void hydns_unchanged_fast_read(struct hydns_daemon* d, const struct config_file* cfg)
{
	if(d)
		d->read = text_of(cfg);
}

/* The second of two with the same text changes nothing, but a reload after them may. Not with auth-zones, whose content before is not
 * known any more. */
int hydns_unchanged_reloaded(struct hydns_daemon* d)
{
	const uint64_t files = read_from_files(d->daemon, 0);
	const int same = !d->altered && d->read == d->text && files == d->files && !hydns_zones_exist(d->daemon);

	d->mixed |= !same;
	d->altered = 0;
	d->text = d->read;
	d->files = files;
	return same;
}
