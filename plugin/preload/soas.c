/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The present SOAs through the versions of zones:
 *
 *   told      it is closed; what the program has read of it, it has sent when the grace period is over that follows
 *   served    it becomes that of the version. Of several that are under way: that of the last that was told, for they are committed in this
 *             order
 *
 * The preloading thread finds the first one, and each that no version tells: where the zone has got other data (or has kept the former
 * ones, which named may do in the last moment), or where other data of this
 * name have changed, as the unsigned ones of a zone that named signs itself, or a zone of another view. A version that began before the
 * object did may be served at any moment, so nothing is found while one has marked the SOA.
 */
#include "plugin/preload/state.h"

static void want(struct hydns_preload *l, struct hydns_preload_zone *z)
{
	z->soa_wanted = l->o.soa;
	if (l->o.soa)
		atomic_store(&l->soas_wanted, true);
}

void hydns_preload_soa_changes(struct hydns_preload *l, struct hydns_preload_zone *z, const struct hydns_zone_version *v,
			       struct hydns_preload_effect *out)
{
	const uint16_t zone = hydns_preload_number(l, z);

	z->told++;
	/* another thread that has closed it may not be through with its grace period */
	out->waits = hydns_name_set_soa_closes(l->set, zone) || z->uncommitted || z->soa_wanted;
	if (v->number < l->from)
		want(l, z);
	if (v->whole || v->exchanged)
		z->soa_of = NULL;
	z->soa = (struct hydns_zone_soa){ 0 };
	if (!v->whole && z->soa_of && v->soa.of == z->soa_of)
		z->soa = v->soa;
	out->templates = z->soa.of && hydns_name_set_soa_differs(l->set, zone, &z->soa);
}

void hydns_preload_soa_served(struct hydns_preload *l, struct hydns_preload_zone *z)
{
	if (z->uncommitted)
		return;
	if (z->soa.of && !z->comes_whole)
		hydns_name_set_soa_is(l->set, hydns_preload_number(l, z), &z->soa);
	else
		want(l, z);
}

/* Before all versions are told that begin from now on, nothing is found: they could be served unseen. */
static bool may_find(struct hydns_preload *l, const struct hydns_preload_zone *z)
{
	return l->o.soa && atomic_load(&l->p->preload) == l && !hydns_zone_soa_is_changing(z->name, z->len);
}

static bool has_changed(const struct hydns_preload_zone *z, unsigned told)
{
	return z->told != told || z->uncommitted || hydns_zone_soa_is_changing(z->name, z->len);
}

/* False: to be found later. *differs: the templates that show the former one are to go. */
static bool find(struct hydns_preload *l, struct hydns_preload_zone *z, bool *differs)
{
	const uint16_t zone = hydns_preload_number(l, z);
	struct hydns_zone_soa soa = { 0 };
	unsigned told;
	bool found;

	pthread_mutex_lock(&l->lock);
	told = z->told;
	pthread_mutex_unlock(&l->lock);
	if (!may_find(l, z) || l->o.soa(l->o.arg, z->name, z->len, &soa))
		return false;
	pthread_mutex_lock(&l->lock);
	found = soa.of && !has_changed(z, told);
	if (found) {
		*differs = hydns_name_set_soa_differs(l->set, zone, &soa);
		z->soa_of = soa.of;
		z->soa_wanted = false;
		hydns_name_set_soa_is(l->set, zone, &soa);
	}
	pthread_mutex_unlock(&l->lock);
	return found;
}

void hydns_preload_want_soa(struct hydns_preload *l, struct hydns_preload_zone *z)
{
	pthread_mutex_lock(&l->lock);
	want(l, z);
	pthread_mutex_unlock(&l->lock);
}

void hydns_preload_find_soa(struct hydns_preload *l, struct hydns_preload_zone *z)
{
	bool differs = false;

	if (!l->o.soa)
		return;
	if (!find(l, z, &differs))
		hydns_preload_want_soa(l, z);
	if (differs)
		hydns_plugin_withdraw_present(l->p, z->name, z->len);
}

static bool is_wanted(struct hydns_preload *l, const struct hydns_preload_zone *z)
{
	bool wanted;

	pthread_mutex_lock(&l->lock);
	wanted = z->soa_wanted;
	pthread_mutex_unlock(&l->lock);
	return wanted && z->state != HYDNS_PRELOAD_WANTED && z->state != HYDNS_PRELOAD_ABSENT;
}

void hydns_preload_find_soas(struct hydns_preload *l)
{
	if (!atomic_exchange(&l->soas_wanted, false))
		return;
	for (size_t i = 0; i < l->o.zones; i++)
		if (is_wanted(l, &l->zone[i]))
			hydns_preload_find_soa(l, &l->zone[i]);
}
