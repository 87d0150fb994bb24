/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Withdrawals that were asked for while hydnsd was away. Their rules are suspended, so they return at once; hydnsd does
 * them before these rules count again. The lock keeps a withdrawal from coming between the last look at the list and the end
 * of the suspension.
 */
#include <string.h>
#include "plugin/changes/changes.h"

void hydns_pending_init(struct hydns_pending *o)
{
	memset(o, 0, sizeof(*o));
	pthread_mutex_init(&o->lock, NULL);
}

void hydns_pending_destroy(struct hydns_pending *o)
{
	pthread_mutex_destroy(&o->lock);
}

static struct hydns_withdraw *find(struct hydns_pending *o, const struct hydns_withdraw *w)
{
	for (unsigned i = 0; i < o->count; i++)
		if (o->of[i].scope == w->scope && o->of[i].name_len == w->name_len &&
		    !memcmp(o->of[i].name, w->name, w->name_len))
			return &o->of[i];
	return NULL;
}

bool hydns_pending_add(struct hydns_pending *o, struct hydns_pages *g, const struct hydns_withdraw *w, uint32_t place,
		    struct hydns_suspension *in)
{
	struct hydns_withdraw *same;
	bool room;

	pthread_mutex_lock(&o->lock);
	same = find(o, w);
	room = same || o->count < HYDNS_PENDING_MAX;
	if (room) {
		if (!same)
			same = &o->of[o->count++];
		*same = *w;
		if (place == HYDNS_PENDING_ALL)
			hydns_pages_suspend(g);
		else
			hydns_pages_mark(g, place);
		in->number = o->resumed + 1;
		in->grace_over = o->grace_in == in->number;
	}
	pthread_mutex_unlock(&o->lock);
	return room;
}

/* The suspension may have ended, and a later one be in grace_in already. */
void hydns_pending_grace_over(struct hydns_pending *o, uint32_t suspension)
{
	pthread_mutex_lock(&o->lock);
	if ((int32_t)(suspension - o->grace_in) > 0)
		o->grace_in = suspension;
	pthread_mutex_unlock(&o->lock);
}

void hydns_pending_hold(struct hydns_pending *o, struct hydns_pages *g)
{
	pthread_mutex_lock(&o->lock);
	o->held = true;
	hydns_pages_suspend(g);
	pthread_mutex_unlock(&o->lock);
}

void hydns_pending_release(struct hydns_pending *o)
{
	pthread_mutex_lock(&o->lock);
	o->held = false;
	pthread_mutex_unlock(&o->lock);
}

bool hydns_pending_held(struct hydns_pending *o)
{
	bool held;

	pthread_mutex_lock(&o->lock);
	held = o->held;
	pthread_mutex_unlock(&o->lock);
	return held;
}

/* Offers from before these withdrawals have epochs that the new page never had, so they become no rules. */
void hydns_pending_forget(struct hydns_pending *o, struct hydns_pages *g)
{
	pthread_mutex_lock(&o->lock);
	o->count = 0;
	o->resumed++;
	if (o->held)
		hydns_pages_suspend(g);
	pthread_mutex_unlock(&o->lock);
}

bool hydns_pending_first(struct hydns_pending *o, struct hydns_withdraw *out)
{
	bool any;

	pthread_mutex_lock(&o->lock);
	any = o->count;
	if (any)
		*out = o->of[0];
	pthread_mutex_unlock(&o->lock);
	return any;
}

void hydns_pending_done(struct hydns_pending *o, const struct hydns_withdraw *w)
{
	pthread_mutex_lock(&o->lock);
	/* asked for again meanwhile, it stays pending: rules of offers from between would stay */
	if (o->count && o->of[0].generation == w->generation)
		memmove(&o->of[0], &o->of[1], --o->count * sizeof(o->of[0]));
	pthread_mutex_unlock(&o->lock);
}

bool hydns_pending_resume(struct hydns_pending *o, struct hydns_pages *g)
{
	bool none;

	pthread_mutex_lock(&o->lock);
	none = !o->count && !o->held;
	if (none) {
		o->resumed++;
		hydns_pages_resume(g);
	}
	pthread_mutex_unlock(&o->lock);
	return none;
}
