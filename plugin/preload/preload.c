/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The thread. It asks in batches, and after each asks hydnsd what became of the offers. A batch of which anything is missing is
 * asked again: a reply was lost, the zone or another was changing, the ring was full, or something was withdrawn meanwhile. hydnsd
 * also tells which preloaded rules were withdrawn; these are asked for, too, with what versions bring.
 */
#include "plugin/preload/preload.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "hydns/names.h"
#include "plugin/internal.h"
#include "plugin/log.h"
#include "plugin/start_thread.h"

#define BATCH        256               /* entries */
#define TRIES        4                 /* of a batch */
#define PAUSE_MS     20                /* before the second; twice that before each other */
#define IDLE_MS      500               /* from one look for withdrawn rules to the next */
#define PROGRESS_MS  1000              /* from one note of it to the next */
#define RELOAD_S     (20U * 24 * 3600) /* rules end after 49 days: their TTL is in milliseconds */
#define LINES        15                /* of zones, in notes */
#define TEXT_MAX     (HYDNS_NAME_MAX * 4 + 128)
#define CHANGED_MOST (1U << 18)        /* octets of names that versions change, until they are asked for */

enum state {
	WANTED,                        /* it is to be loaded */
	LOADING,
	LOADED,
	ABSENT,                        /* the resolver does not have it, or not yet */
	REFUSED,                       /* hydnsd has no more room */
	DENIED,                        /* the resolver's access list does not admit its own address */
};

struct names {
	uint8_t *octets;
	size_t len;
};

struct zone {
	uint8_t name[HYDNS_NAME_MAX];
	size_t len;
	char text[HYDNS_NAME_MAX * 4];
	enum state state;
	_Atomic bool changed;          /* as a whole */
	/* under the lock of struct hydns_preload: of a change that is not over */
	struct names coming;           /* entries as in struct hydns_withdraw_names */
	struct names existing;         /* names that come or go */
	bool comes_whole;
	bool complete;                 /* all of its names are in the set */
	size_t questions, asked;       /* of this load */
	uint64_t failed;               /* questions of this load whose answers are not in the kernel, though they could be */
	uint64_t began_ms, loaded_ms;
	size_t names;                  /* when they were last gathered */
	uint8_t loads;                 /* how often they were, into this set */
};

struct hydns_preload {
	struct hydns_plugin *p;
	struct hydns_preload_options o;
	struct zone *zone;             /* o.zones of them */
	struct hydns_preload_asker asker;
	pthread_t thread;
	_Atomic bool stopping;
	int stop_fd, wake_fd;          /* eventfds */
	bool full;                     /* hydnsd refused an answer because there may be no more */
	bool denied;                   /* the resolver refused a whole batch */
	bool all;                      /* any rule may have gone */
	struct hydns_preload_list lost; /* what hydnsd says was withdrawn */
	struct hydns_name_set *set;
	bool set_refused;              /* hydnsd makes none: no name is said not to exist */
	uint64_t noted_ms;
	pthread_mutex_t lock;
	/* under the lock, of all zones: */
	struct names changed;          /* entries as above, to be asked for */
	struct names existence;        /* names that have come or gone, to be looked for */
};

/* -- words -------------------------------------------------------------------------------------------------- */
static void to_text(const uint8_t *name, char *out)
{
	for (; *name; name += 1 + *name)
		for (unsigned i = 1; i <= *name; i++)
			out += sprintf(out, name[i] > ' ' && name[i] <= '~' && name[i] != '.' && name[i] != '\\' ? "%c%s" : "\\%03u%s",
				       name[i], i == *name && name[1 + *name] ? "." : "");
	*out = '\0';
}

static void describe(const struct zone *z, uint64_t now_ms, char *out, size_t room)
{
	uint64_t took = now_ms - z->began_ms;

	switch (z->state) {
	case WANTED:
		snprintf(out, room, "%s: waits to be preloaded", z->text);
		break;
	case LOADING:
		snprintf(out, room, "%s: %zu of %zu questions asked, %llu s left", z->text, z->asked, z->questions,
			 (unsigned long long)(z->asked ? took * (z->questions - z->asked) / z->asked / 1000 : 0));
		break;
	case LOADED:
		snprintf(out, room, "%s: %zu questions asked, the answers to %llu of them not taken", z->text, z->questions,
			 (unsigned long long)z->failed);
		break;
	case ABSENT:
		snprintf(out, room, "%s: this resolver serves no such zone", z->text);
		break;
	case REFUSED:
		snprintf(out, room, "%s: does not fit: %zu of %zu questions asked; raise hydnsd's capacity", z->text, z->asked, z->questions);
		break;
	case DENIED:
		snprintf(out, room, "%s: the resolver refuses queries from its own address: admit that in its access list", z->text);
		break;
	}
}

/* Adds a line of each zone that is loaded, or of each that is not, while there is room. Returns how many lines there are now. */
static size_t describe_all(const struct hydns_preload *l, bool loaded, char (*text)[TEXT_MAX], size_t lines)
{
	for (size_t i = 0; i < l->o.zones && lines < LINES; i++)
		if ((l->zone[i].state == LOADED) == loaded)
			describe(&l->zone[i], l->noted_ms, text[lines++], TEXT_MAX);
	return lines;
}

/* Those that are not loaded come first. */
static void note(struct hydns_preload *l)
{
	char text[LINES + 1][TEXT_MAX];
	const char *each[LINES + 1];
	size_t lines;

	l->noted_ms = hydns_mono_coarse_ms();
	lines = describe_all(l, false, text, 0);
	lines = describe_all(l, true, text, lines);
	if (lines < l->o.zones)
		snprintf(text[LINES], TEXT_MAX, "and %zu more preloaded zones", l->o.zones - lines);
	for (size_t i = 0; i <= LINES; i++)
		each[i] = text[i];
	hydns_plugin_set_notes(l->p, HYDNS_NOTE_PRELOAD, each, lines + (lines < l->o.zones));
}

static void log_state(const struct hydns_preload *l, const struct zone *z)
{
	char text[TEXT_MAX];

	describe(z, hydns_mono_coarse_ms(), text, sizeof(text));
	hydns_log(l->p, z->state == REFUSED || z->state == DENIED ? HYDNS_LOG_WARNING : HYDNS_LOG_INFO, "preload: %s", text);
}

static void set_state(struct hydns_preload *l, struct zone *z, enum state state)
{
	if (z->state == state)
		return;
	z->state = state;
	if (state != WANTED)
		log_state(l, z);
	note(l);
}

/* -- hydnsd -------------------------------------------------------------------------------------------------- */
static void take_lost(struct hydns_preload *l, const uint8_t *at, const uint8_t *end)
{
	while (end - at >= (ptrdiff_t)sizeof(struct hydns_lost)) {
		const struct hydns_lost *lost = (const struct hydns_lost *)at;

		at += sizeof(*lost) + lost->name_len;
		if (at > end || lost->variant > HYDNS_VARIANTS || hydns_name_length(lost->name, lost->name_len) != lost->name_len)
			return;
		hydns_preload_list_append(&l->lost, lost->name, lost->name_len, ntohs(lost->qtype), (uint8_t)(1U << lost->variant));
	}
}

/* What became of the offers until now. False: hydnsd does not say. */
static bool ask_hydnsd(struct hydns_preload *l, struct hydns_preloaded *out)
{
	struct hydns_request q = { .type = HYDNS_MSG_PRELOAD };

	if (!hydns_requests_ask(&l->p->requests, &q, l->p->o.flush_timeout_ms) || q.len < sizeof(*out))
		return false;
	memcpy(out, q.octets, sizeof(*out));
	l->full |= out->full;
	l->all |= out->all;
	if (!out->names)
		hydns_name_set_drop(l->set); /* the program does not read it any more */
	take_lost(l, q.octets + sizeof(*out), q.octets + q.len);
	return true;
}

/* Asks for a set of so many buckets, in place of the former one. */
static int get_set(struct hydns_preload *l, uint32_t buckets)
{
	struct hydns_request q = { .type = HYDNS_MSG_NAMES, .len = sizeof(struct hydns_names_request), .fd = -1 };
	const struct hydns_names_request wanted = { .buckets = buckets };

	memcpy(q.octets, &wanted, sizeof(wanted));
	if (!hydns_requests_ask(&l->p->requests, &q, l->p->o.flush_timeout_ms) || q.fd < 0)
		return -ENOTCONN;
	return hydns_name_set_take(l->set, q.fd, buckets);
}

/* -- asking -------------------------------------------------------------------------------------------------- */
static bool sleep_for(struct hydns_preload *l, int ms)
{
	struct pollfd f = { .fd = l->stop_fd, .events = POLLIN };

	return poll(&f, 1, ms) == 0;
}

/* Asks once. *missing: answers that are not in the kernel, though they could be. False: the thread is to end. */
static bool ask_once(struct hydns_preload *l, const struct hydns_preload_list *list, size_t at, size_t end, uint64_t *missing)
{
	struct hydns_preload_asked asked;
	struct hydns_preloaded reply;
	uint64_t told;

	atomic_store(&l->p->preload_told, 0);
	if (!hydns_preload_ask(&l->asker, list, at, end, &asked))
		return false;
	l->denied = asked.refused && asked.refused == asked.replied;
	told = atomic_load(&l->p->preload_told);
	if (!ask_hydnsd(l, &reply)) {
		*missing = asked.asked;
		return true;
	}
	/* a query that was lost, or whose offer was not made; and an offer that became no rule */
	*missing = (asked.asked > told ? asked.asked - told : 0) + reply.refused;
	return true;
}

/*
 * Asks the questions from octet at to octet end until nothing is missing; once anything is, one after the other: of queries that are
 * under way at once a resolver may lose sight of some, and with the same queries of the same. False: the thread is to end.
 */
static bool ask_batch(struct hydns_preload *l, const struct hydns_preload_list *list, size_t at, size_t end, uint64_t *missing)
{
	l->asker.at_once = 0;
	for (int tries = 0, pause = PAUSE_MS; tries < TRIES; tries++, pause *= 2) {
		if (!ask_once(l, list, at, end, missing))
			return false;
		if (!*missing || l->full || l->denied)
			return true;
		if (!sleep_for(l, pause))
			return false;
		l->asker.at_once = 1;
	}
	return true;
}

/* Where the batch that begins at ends. *questions: how many it has. */
static size_t batch_end(const struct hydns_preload_list *list, size_t at, size_t *questions)
{
	const struct hydns_preload_entry *e;

	*questions = 0;
	for (unsigned n = 0; n < BATCH && (e = hydns_preload_list_next(list, &at)); n++)
		*questions += (size_t)__builtin_popcount(e->variants);
	return at;
}

/* zone: whose load this is; NULL: of none. False: the thread is to end. */
static bool ask_all(struct hydns_preload *l, const struct hydns_preload_list *list, struct zone *zone)
{
	for (size_t at = 0; at < list->len && !l->full && !l->denied; ) {
		uint64_t missing = 0;
		size_t questions, end = batch_end(list, at, &questions);

		if (!ask_batch(l, list, at, end, &missing))
			return false;
		at = end;
		if (!zone)
			continue;
		zone->asked += questions;
		zone->failed += missing;
		if (hydns_mono_coarse_ms() - l->noted_ms >= PROGRESS_MS)
			note(l);
	}
	return true;
}

/* -- the set of names ------------------------------------------------------------------------------------------ */
struct hydns_preload_names {
	struct hydns_preload *of;
	struct hydns_name_load load;
	size_t count;
	bool fills;                    /* else it only counts */
};

bool hydns_preload_add_name(struct hydns_preload_names *to, const uint8_t *name, size_t len, enum hydns_below below)
{
	uint8_t lower[HYDNS_NAME_MAX];

	to->count++;
	if (atomic_load(&to->of->stopping) || len > sizeof(lower))
		return false;
	if (!to->fills)
		return true;
	hydns_name_lower(lower, name, len);
	hydns_name_set_found(to->of->set, &to->load, lower, len, below);
	return true;
}

static void set_complete(struct hydns_preload *l, struct zone *z, bool complete)
{
	pthread_mutex_lock(&l->lock);
	z->complete = complete && !z->comes_whole && !atomic_load(&z->changed);
	pthread_mutex_unlock(&l->lock);
}

static bool is_complete(struct hydns_preload *l, const struct zone *z)
{
	bool complete;

	pthread_mutex_lock(&l->lock);
	complete = z->complete;
	pthread_mutex_unlock(&l->lock);
	return complete;
}

/* How many names the zone has, or had when they were gathered. */
static size_t names_of(struct hydns_preload *l, struct zone *z)
{
	struct hydns_preload_names to = { .of = l };

	if (!z->names && !l->o.names(l->o.arg, z->name, z->len, &to))
		z->names = to.count;
	return z->names;
}

/* A set that has room for all zones. All of them lose their names if it is a new one. False: there is none. */
static bool have_room(struct hydns_preload *l)
{
	struct hydns_name_set_state now = hydns_name_set_state(l->set);
	size_t names = 0;

	for (size_t i = 0; i < l->o.zones; i++)
		names += names_of(l, &l->zone[i]);
	if (now.exists && !now.full && names < now.room / 4 * 3)
		return true;
	for (size_t i = 0; i < l->o.zones; i++) {
		set_complete(l, &l->zone[i], false);
		l->zone[i].loads = 0;
	}
	l->set_refused = get_set(l, hydns_names_buckets(names)) != 0;
	return !l->set_refused;
}

/* Gathers the zone's names. The set is closed meanwhile, for parts of what it says are of former data. */
static bool gather_names(struct hydns_preload *l, struct zone *z)
{
	struct hydns_preload_names to = { .of = l, .fills = true };
	int error;

	hydns_name_set_open(l->set, false);
	to.load = (struct hydns_name_load){ .zone = (uint16_t)(z - l->zone), .number = ++z->loads, .origin_len = z->len,
					    .since = hydns_name_set_now(l->set) };
	error = l->o.names(l->o.arg, z->name, z->len, &to);
	z->names = to.count;
	if (!error && z->loads != 1)   /* it may have lost some */
		hydns_name_set_loaded(l->set, &to.load);
	return !error && !atomic_load(&l->stopping) && !hydns_name_set_state(l->set).full;
}

/* Of a zone that is about to be asked for. The names of others that a new set has lost come with it. */
static void load_names(struct hydns_preload *l, struct zone *z)
{
	set_complete(l, z, false);
	if (!have_room(l))
		return;
	for (size_t i = 0; i < l->o.zones; i++) {
		struct zone *each = &l->zone[i];

		if (each == z || (each->state == LOADED && !is_complete(l, each)))
			set_complete(l, each, gather_names(l, each));
	}
	hydns_name_set_open(l->set, true);
}

/* What the zone's data say now of the name and those above it. */
static void look_again(struct hydns_preload *l, const struct zone *z, const uint8_t *name, size_t len)
{
	const uint32_t since = hydns_name_set_now(l->set);
	enum hydns_below below;

	for (size_t at = 0; len - at > z->len; at += 1U + name[at])
		if (!l->o.look(l->o.arg, z->name, z->len, name + at, len - at, &below))
			hydns_name_set_settle(l->set, name + at, len - at, z->len, below, since);
	if (!l->o.look(l->o.arg, z->name, z->len, z->name, z->len, &below))
		hydns_name_set_settle(l->set, z->name, z->len, z->len, below, since);
}

/* -- zones --------------------------------------------------------------------------------------------------- */
static bool load_zone(struct hydns_preload *l, struct zone *z)
{
	struct hydns_preload_list list = { .stopping = &l->stopping };
	bool more = true;
	int error;

	l->full = l->denied = false;
	atomic_store(&z->changed, false);
	load_names(l, z);
	error = l->o.list(l->o.arg, z->name, z->len, z->name, z->len, true, &list);
	if (!error) {
		z->questions = list.questions;
		z->asked = z->failed = 0;
		z->began_ms = hydns_mono_coarse_ms();
		set_state(l, z, LOADING);
		more = ask_all(l, &list, z);
	}
	hydns_preload_list_free(&list);
	if (!more || atomic_load(&l->stopping))
		return false;
	z->loaded_ms = hydns_mono_coarse_ms();
	set_state(l, z, error ? ABSENT : l->denied ? DENIED : l->full ? REFUSED : LOADED);
	return true;
}

static struct zone *zone_at(const struct hydns_preload *l, const uint8_t *origin, size_t len)
{
	for (size_t i = 0; i < l->o.zones; i++)
		if (l->zone[i].len == len && !memcmp(l->zone[i].name, origin, len))
			return &l->zone[i];
	return NULL;
}

/* The zone that the name is in. */
static const struct zone *zone_of(const struct hydns_preload *l, const uint8_t *name, size_t len)
{
	const struct zone *z = NULL;

	for (size_t at = 0; at < len && !z; at += 1U + name[at])
		z = zone_at(l, name + at, len - at);
	return z;
}

/* Takes what there is, and leaves nothing. The caller frees it. */
static struct names take(struct hydns_preload *l, struct names *from)
{
	struct names taken;

	pthread_mutex_lock(&l->lock);
	taken = *from;
	*from = (struct names){ 0 };
	pthread_mutex_unlock(&l->lock);
	return taken;
}

/* The names are looked for before anything is asked: what is offered then may stay. */
static void settle_existence(struct hydns_preload *l)
{
	struct names existence = take(l, &l->existence);

	for (size_t at = 0; at < existence.len; ) {
		const uint8_t *name = existence.octets + at;
		size_t len = hydns_name_length(name, HYDNS_NAME_MAX);
		const struct zone *z = zone_of(l, name, len);

		if (z)
			look_again(l, z, name, len);
		at += len;
	}
	free(existence.octets);
}

/* Asks for what versions have brought. */
static bool ask_changed(struct hydns_preload *l)
{
	struct hydns_preload_list list = { .stopping = &l->stopping };
	struct names changed;
	bool more;

	settle_existence(l);
	changed = take(l, &l->changed);
	for (size_t at = 0; at < changed.len; ) {
		const uint8_t *name = changed.octets + at + 1;
		size_t name_len = hydns_name_length(name, HYDNS_NAME_MAX);
		const struct zone *z = zone_of(l, name, name_len);

		if (z && z->state == LOADED)
			(void)l->o.list(l->o.arg, z->name, z->len, name, name_len, changed.octets[at] == HYDNS_SCOPE_SUBTREE, &list);
		at += 1 + name_len;
	}
	free(changed.octets);
	more = ask_all(l, &list, NULL);
	hydns_preload_list_free(&list);
	return more;
}

static bool ask_lost(struct hydns_preload *l)
{
	struct hydns_preload_list lost = l->lost;
	bool more;

	l->lost = (struct hydns_preload_list){ 0 };
	more = ask_all(l, &lost, NULL);
	hydns_preload_list_free(&lost);
	return more;
}

static void want_again(struct hydns_preload *l)
{
	bool names_gone = hydns_name_set_state(l->set).full && !l->set_refused;
	uint64_t now_ms = hydns_mono_coarse_ms();

	for (size_t i = 0; i < l->o.zones; i++) {
		struct zone *z = &l->zone[i];
		bool old = z->state == LOADED && now_ms - z->loaded_ms > RELOAD_S * 1000ULL;

		if (l->all || names_gone || atomic_load(&z->changed) || old)
			set_state(l, z, WANTED);
	}
	l->all = false;
}

/* Everything that there is to do now. False: the thread is to end. */
static bool work(struct hydns_preload *l)
{
	struct hydns_preloaded reply;

	if (!atomic_load(&l->p->ready) || !ask_hydnsd(l, &reply))
		return !atomic_load(&l->stopping);
	l->full = l->denied = false;
	if (!ask_changed(l) || !ask_lost(l))
		return false;
	want_again(l);
	for (size_t i = 0; i < l->o.zones; i++)
		if (l->zone[i].state == WANTED && !load_zone(l, &l->zone[i]))
			return false;
	return true;
}

static void *run(void *arg)
{
	struct hydns_preload *l = arg;
	struct pollfd f[] = { { .fd = l->stop_fd, .events = POLLIN }, { .fd = l->wake_fd, .events = POLLIN } };
	eventfd_t ignored;

	if (l->p->o.thread_begins)
		l->p->o.thread_begins();
	note(l);
	while (work(l)) {
		int wait = l->lost.len ? 0 : IDLE_MS;

		if (poll(f, 2, wait) > 0 && f[0].revents)
			break;
		if (f[1].revents && eventfd_read(l->wake_fd, &ignored) && errno != EAGAIN)
			break;
	}
	if (l->p->o.thread_ends)
		l->p->o.thread_ends();
	return NULL;
}

/* -- from other threads ---------------------------------------------------------------------------------------- */
/* False: there are too many, or there is no memory. */
static bool append(struct names *to, const uint8_t *more, size_t len)
{
	uint8_t *octets = to->len + len <= CHANGED_MOST ? realloc(to->octets, to->len + len) : NULL;

	if (!octets)
		return false;
	memcpy(octets + to->len, more, len);
	to->octets = octets;
	to->len += len;
	return true;
}

static void forget(struct names *n)
{
	free(n->octets);
	*n = (struct names){ 0 };
}

/* The preloaded zone that a zone begins in. */
static struct zone *zone_around(const struct hydns_preload *l, const uint8_t *origin, size_t len)
{
	struct zone *z = NULL;

	for (size_t at = 1U + origin[0]; at < len && !z; at += 1U + origin[at])
		z = zone_at(l, origin + at, len - at);
	return z;
}

/* Another zone comes below a preloaded one, which was not there when that was loaded: the answers for names that do not exist in this
 * one would be wrong there. The return as of hydns_preload_names_change(). */
static size_t zone_below_changes(struct hydns_preload *l, const struct hydns_zone_version *v, uint8_t *name)
{
	struct zone *z = v->origin_len > 1 ? zone_around(l, v->origin, v->origin_len) : NULL;

	if (!z || hydns_name_set_is_foreign(l->set, v->origin, v->origin_len))
		return 0;
	hydns_name_set_change(l->set, v->origin, v->origin_len, z->len);
	pthread_mutex_lock(&l->lock);
	z->complete = false;
	atomic_store(&z->changed, true);
	pthread_mutex_unlock(&l->lock);
	return hydns_preload_below_name(z->name, z->len, name);
}

size_t hydns_preload_names_change(struct hydns_preload *l, const struct hydns_zone_version *v, uint8_t *name)
{
	struct zone *z = zone_at(l, v->origin, v->origin_len);
	size_t len, template = v->whole ? zone_below_changes(l, v, name) : 0;
	const uint8_t *names = hydns_zone_version_existence(v, &len);

	if (!z)
		return template;
	pthread_mutex_lock(&l->lock);
	if (v->whole || (len && !append(&z->existing, names, len)))
		z->comes_whole = true;
	z->complete &= !z->comes_whole;
	pthread_mutex_unlock(&l->lock);
	for (size_t at = 0; at < len && !v->whole; at += hydns_name_length(names + at, HYDNS_NAME_MAX))
		hydns_name_set_change(l->set, names + at, hydns_name_length(names + at, HYDNS_NAME_MAX), z->len);
	return template;
}

void hydns_preload_version(struct hydns_preload *l, const struct hydns_zone_version *v)
{
	struct zone *z = zone_at(l, v->origin, v->origin_len);
	size_t len;
	const uint8_t *entries = hydns_zone_version_entries(v, &len);

	if (!z)
		return;
	pthread_mutex_lock(&l->lock);
	if (v->whole || (len && !append(&z->coming, entries, len)))
		z->comes_whole = true;
	z->complete &= !z->comes_whole;
	pthread_mutex_unlock(&l->lock);
}

void hydns_preload_settled(struct hydns_preload *l, const uint8_t *origin, size_t len)
{
	uint8_t lower[HYDNS_NAME_MAX];
	struct zone *z;

	if (len > sizeof(lower))
		return;
	hydns_name_lower(lower, origin, len);
	z = zone_at(l, lower, len);
	if (!z)
		return;
	pthread_mutex_lock(&l->lock);
	if (z->comes_whole || (z->existing.len && !append(&l->existence, z->existing.octets, z->existing.len)) ||
	    (z->coming.len && !append(&l->changed, z->coming.octets, z->coming.len))) {
		atomic_store(&z->changed, true);
		z->complete = false;
	}
	forget(&z->coming);
	forget(&z->existing);
	z->comes_whole = false;
	pthread_mutex_unlock(&l->lock);
	if (eventfd_write(l->wake_fd, 1))
		return;                /* it is awake */
}

/* -- templates --------------------------------------------------------------------------------------------------- */
struct showing {
	struct hydns_name_set *set;
	const uint8_t *parent;         /* of the template's name */
	size_t parent_len;
};

static void show_name(void *arg, const uint8_t *name, size_t len)
{
	const struct showing *s = arg;

	if (len > s->parent_len && !memcmp(name + len - s->parent_len, s->parent, s->parent_len))
		hydns_name_set_show(s->set, name, len, s->parent_len);
}

bool hydns_preload_is_template(struct hydns_preload *l, const uint8_t *name, size_t name_len, uint16_t qtype, const uint8_t *wire, size_t len)
{
	struct showing s = { .set = l->set, .parent = name + HYDNS_BELOW_LABEL_LEN, .parent_len = name_len - HYDNS_BELOW_LABEL_LEN };
	const struct zone *z = zone_of(l, s.parent, s.parent_len);

	if (qtype != HYDNS_BELOW_TYPE || !z || !is_complete(l, z) || !hydns_wire_names(wire, len, show_name, &s))
		return false;
	return hydns_name_set_state(l->set).open && is_complete(l, z);
}

/* -- begin and end ----------------------------------------------------------------------------------------------- */
static void free_preload(struct hydns_preload *l)
{
	hydns_preload_asker_close(&l->asker);
	hydns_preload_list_free(&l->lost);
	if (l->stop_fd >= 0)
		close(l->stop_fd);
	if (l->wake_fd >= 0)
		close(l->wake_fd);
	pthread_mutex_destroy(&l->lock);
	hydns_name_set_free(l->set);
	forget(&l->changed);
	forget(&l->existence);
	for (size_t i = 0; l->zone && i < l->o.zones; i++) {
		forget(&l->zone[i].coming);
		forget(&l->zone[i].existing);
	}
	free(l->zone);
	free(l);
}

static int open_parts(struct hydns_preload *l)
{
	l->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	l->zone = calloc(l->o.zones, sizeof(*l->zone));
	l->set = hydns_name_set_new();
	if (l->stop_fd < 0 || l->wake_fd < 0 || !l->zone || !l->set)
		return -ENOMEM;
	for (size_t i = 0; i < l->o.zones; i++) {
		struct zone *z = &l->zone[i];

		z->len = l->o.zone[i].name_len;
		hydns_name_lower(z->name, l->o.zone[i].name, z->len);
		to_text(z->name, z->text);
	}
	l->asker.stop_fd = l->stop_fd;
	l->asker.edns_size = l->o.edns_size;
	return hydns_preload_asker_open(&l->asker, (const struct sockaddr *)&l->o.service,
					l->o.service.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in),
					&l->p->preload_from);
}

int hydns_plugin_preload(struct hydns_plugin *p, const struct hydns_preload_options *o)
{
	struct hydns_preload *l = calloc(1, sizeof(*l));
	int error;

	if (!l)
		return -ENOMEM;
	*l = (struct hydns_preload){ .p = p, .o = *o, .asker.fd = -1, .stop_fd = -1, .wake_fd = -1 };
	pthread_mutex_init(&l->lock, NULL);
	error = open_parts(l);
	if (!error)
		error = -hydns_start_thread(&l->thread, run, l);
	if (error) {
		free_preload(l);
		return error;
	}
	atomic_store(&p->preload, l);
	return 0;
}

void hydns_preload_stop(struct hydns_preload *l)
{
	if (!l)
		return;
	atomic_store(&l->stopping, true);
	if (eventfd_write(l->stop_fd, 1))
		hydns_log(l->p, HYDNS_LOG_ERROR, "cannot end the preloading thread: %s", strerror(errno));
	pthread_join(l->thread, NULL);
	free_preload(l);
}

void hydns_plugin_end_preload(struct hydns_plugin *p)
{
	struct hydns_preload *l;

	pthread_rwlock_wrlock(&p->preload_lock);
	l = atomic_exchange(&p->preload, NULL);
	pthread_rwlock_unlock(&p->preload_lock);
	hydns_preload_stop(l);
}

bool hydns_plugin_is_preload(const struct hydns_plugin *p, const struct sockaddr *from)
{
	const struct sockaddr *own = (const struct sockaddr *)&p->preload_from;

	if (!atomic_load_explicit(&p->preload, memory_order_acquire) || own->sa_family != from->sa_family)
		return false;
	if (from->sa_family == AF_INET) {
		const struct sockaddr_in *a = (const struct sockaddr_in *)own, *b = (const struct sockaddr_in *)from;

		return a->sin_port == b->sin_port && a->sin_addr.s_addr == b->sin_addr.s_addr;
	}
	if (from->sa_family == AF_INET6) {
		const struct sockaddr_in6 *a = (const struct sockaddr_in6 *)own, *b = (const struct sockaddr_in6 *)from;

		return a->sin6_port == b->sin6_port && !memcmp(&a->sin6_addr, &b->sin6_addr, sizeof(a->sin6_addr));
	}
	return false;
}

void hydns_plugin_preload_unfit(struct hydns_plugin *p)
{
	atomic_fetch_add(&p->preload_told, 1);
}
