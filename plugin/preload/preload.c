/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The thread. It asks in batches, and after each asks hydnsd what became of the offers. A batch of which anything is missing is
 * asked again: a reply was lost, the zone or another was changing, the ring was full, or something was withdrawn meanwhile. hydnsd
 * also tells which preloaded rules were withdrawn; these are asked for, too, with what versions bring.
 */
#include "plugin/preload/state.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "plugin/log.h"
#include "plugin/start_thread.h"

#define BATCH        256               /* entries */
#define TRIES        4                 /* of a batch */
#define PUT_OFF_MS   50                /* what is missing after these is asked again so much later, */
#define PUT_OFF_MOST_MS 60000          /* and in the end so much */
#define PAUSE_MS     20                /* before the second; twice that before each other */
#define SOON_MS      2                 /* until what was lost is asked for again */
#define IDLE_MS      500               /* from one look for withdrawn rules to the next */
#define PROGRESS_MS  1000              /* from one note of it to the next */
#define RELOAD_S     (20U * 24 * 3600) /* rules end after 49 days: their TTL is in milliseconds */
#define LINES        15                /* of zones, in notes */
#define TEXT_MAX     (HYDNS_NAME_MAX * 4 + 128)

/* -- words -------------------------------------------------------------------------------------------------- */
static void to_text(const uint8_t *name, char *out)
{
	if (!*name)
		*out++ = '.';          /* the root */
	for (; *name; name += 1 + *name)
		for (unsigned i = 1; i <= *name; i++)
			out += sprintf(out, name[i] > ' ' && name[i] <= '~' && name[i] != '.' && name[i] != '\\' ? "%c%s" : "\\%03u%s",
				       name[i], i == *name && name[1 + *name] ? "." : "");
	*out = '\0';
}

static void describe(struct hydns_preload *l, const struct hydns_preload_zone *z, uint64_t now_ms, char *out, size_t room)
{
	uint64_t took = now_ms - z->began_ms;
	char name[HYDNS_NAME_MAX * 4];

	to_text(z->name, name);
	switch (z->state) {
	case HYDNS_PRELOAD_WANTED:
		snprintf(out, room, "%s: waits to be preloaded", name);
		break;
	case HYDNS_PRELOAD_LOADING:
		snprintf(out, room, "%s: %zu of %zu questions asked, %llu s left", name, z->asked, z->questions,
			 (unsigned long long)(z->asked ? took * (z->questions - z->asked) / z->asked / 1000 : 0));
		break;
	case HYDNS_PRELOAD_LOADED:
		snprintf(out, room, "%s: %zu questions asked, the answers to %llu of them not taken; names that it does not have are %s",
			 name, z->questions, (unsigned long long)z->failed,
			 hydns_preload_is_complete(l, z) && hydns_name_set_state(l->set).open ? "answered" : "the resolver's");
		break;
	case HYDNS_PRELOAD_ABSENT:
		snprintf(out, room, "%s: this resolver serves no such zone", name);
		break;
	case HYDNS_PRELOAD_REFUSED:
		snprintf(out, room, "%s: does not fit: %zu of %zu questions asked; raise hydnsd's capacity", name, z->asked, z->questions);
		break;
	case HYDNS_PRELOAD_DENIED:
		snprintf(out, room, "%s: the resolver refuses queries from its own address: admit that in its access list", name);
		break;
	}
}

/* Adds a line of each zone that is loaded, or of each that is not, while there is room. Returns how many lines there are now. */
static size_t describe_all(struct hydns_preload *l, bool loaded, char (*text)[TEXT_MAX], size_t lines)
{
	for (size_t i = 0; i < l->o.zones && lines < LINES; i++)
		if ((l->zone[i].state == HYDNS_PRELOAD_LOADED) == loaded)
			describe(l, &l->zone[i], l->noted_ms, text[lines++], TEXT_MAX);
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

static void log_state(struct hydns_preload *l, const struct hydns_preload_zone *z)
{
	char text[TEXT_MAX];

	describe(l, z, hydns_mono_coarse_ms(), text, sizeof(text));
	hydns_log(l->p, z->state == HYDNS_PRELOAD_REFUSED || z->state == HYDNS_PRELOAD_DENIED ? HYDNS_LOG_WARNING : HYDNS_LOG_INFO,
		  "preload: %s", text);
}

static void set_state(struct hydns_preload *l, struct hydns_preload_zone *z, enum hydns_preload_state state)
{
	if (z->state == state)
		return;
	z->state = state;
	if (state != HYDNS_PRELOAD_WANTED)
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
		l->unanswered = true;
		return true;
	}
	l->unanswered = asked.asked > told;
	/* a query that was lost, or whose offer was not made; and an offer that became no rule */
	*missing = (asked.asked > told ? asked.asked - told : 0) + reply.refused;
	return true;
}

/*
 * Asks the questions from octet at to octet end until nothing is missing; once anything is, fewer at once: of queries that are under
 * way at the same time a resolver may lose sight of some, and with the same queries of the same. False: the thread is to end.
 */
static bool ask_batch(struct hydns_preload *l, const struct hydns_preload_list *list, size_t at, size_t end, uint64_t *missing)
{
	static const unsigned at_once[TRIES] = { 0, 8, 4, 2 };

	for (int tries = 0, pause = PAUSE_MS; tries < TRIES; tries++, pause *= 2) {
		l->asker.at_once = at_once[tries];
		if (!ask_once(l, list, at, end, missing))
			return false;
		if (!*missing || l->full || l->denied)
			return true;
		if (!sleep_for(l, pause))
			return false;
	}
	return true;
}

/* Asks again later: to try on would keep the thread from all else, and to give up would leave the names away for good. */
static void put_off(struct hydns_preload *l, const struct hydns_preload_list *list, size_t at, size_t end)
{
	const struct hydns_preload_entry *e;

	while (at < end && (e = hydns_preload_list_next(list, &at)))
		if (!hydns_preload_list_append(&l->put_off, e->name, e->name_len, e->qtype, e->variants))
			return;
	if (!l->put_off_for_ms)
		l->put_off_for_ms = PUT_OFF_MS;
	l->put_off_until_ms = hydns_mono_coarse_ms() + l->put_off_for_ms;
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

static bool ask_due(struct hydns_preload *l);

/* zone: whose load this is, which changes meanwhile need not wait for; NULL: of none. False: the thread is to end. */
static bool ask_all(struct hydns_preload *l, const struct hydns_preload_list *list, struct hydns_preload_zone *zone)
{
	for (size_t at = 0; at < list->len && !l->full && !l->denied; ) {
		uint64_t missing = 0;
		size_t questions, end = batch_end(list, at, &questions);

		if (!ask_batch(l, list, at, end, &missing))
			return false;
		if (missing && l->unanswered && !l->full && !l->denied)
			put_off(l, list, at, end);
		at = end;
		if (!zone)
			continue;
		zone->asked += questions;
		zone->failed += missing;
		if (hydns_mono_coarse_ms() - l->noted_ms >= PROGRESS_MS)
			note(l);
		if (!ask_due(l))
			return false;
	}
	return true;
}

/* -- zones --------------------------------------------------------------------------------------------------- */
static bool load_zone(struct hydns_preload *l, struct hydns_preload_zone *z)
{
	struct hydns_preload_list list = { .stopping = &l->stopping };
	bool more = true;
	int error;

	l->full = l->denied = false;
	atomic_store(&z->changed, false);
	hydns_preload_load_names(l, z);
	error = l->o.list(l->o.arg, z->name, z->len, z->name, z->len, true, &list);
	if (!error) {
		z->questions = list.questions;
		z->asked = z->failed = 0;
		z->began_ms = hydns_mono_coarse_ms();
		set_state(l, z, HYDNS_PRELOAD_LOADING);
		more = ask_all(l, &list, z);
	}
	hydns_preload_list_free(&list);
	if (!more || atomic_load(&l->stopping))
		return false;
	z->loaded_ms = hydns_mono_coarse_ms();
	set_state(l, z, error ? HYDNS_PRELOAD_ABSENT : l->denied ? HYDNS_PRELOAD_DENIED : l->full ? HYDNS_PRELOAD_REFUSED : HYDNS_PRELOAD_LOADED);
	return true;
}

struct key {
	const uint8_t *name;
	size_t len;
};

static int compare_key(const void *key, const void *at)
{
	const struct hydns_preload_zone *z = *(struct hydns_preload_zone *const *)at;
	const struct key *k = key;

	return k->len != z->len ? (k->len > z->len) - (k->len < z->len) : memcmp(k->name, z->name, z->len);
}

static int compare_zones(const void *a, const void *b)
{
	const struct hydns_preload_zone *z = *(struct hydns_preload_zone *const *)a;

	return compare_key(&(const struct key){ z->name, z->len }, b);
}

struct hydns_preload_zone *hydns_preload_zone_at(const struct hydns_preload *l, const uint8_t *origin, size_t len)
{
	const struct key key = { origin, len };
	struct hydns_preload_zone **found = bsearch(&key, l->by_name, l->o.zones, sizeof(*l->by_name), compare_key);

	return found ? *found : NULL;
}

/* The zone that the name is in. */
struct hydns_preload_zone *hydns_preload_zone_of(const struct hydns_preload *l, const uint8_t *name, size_t len)
{
	struct hydns_preload_zone *z = NULL;

	for (size_t at = 0; at < len && !z; at += 1U + name[at])
		z = hydns_preload_zone_at(l, name + at, len - at);
	return z;
}

struct hydns_preload_octets hydns_preload_take(struct hydns_preload *l, struct hydns_preload_octets *from)
{
	struct hydns_preload_octets taken;

	pthread_mutex_lock(&l->lock);
	taken = *from;
	*from = (struct hydns_preload_octets){ 0 };
	pthread_mutex_unlock(&l->lock);
	return taken;
}

/* Asks for what versions have brought. */
static bool ask_changed(struct hydns_preload *l)
{
	struct hydns_preload_list list = { .stopping = &l->stopping };
	struct hydns_preload_octets changed;
	bool more;

	hydns_preload_look_again(l);
	changed = hydns_preload_take(l, &l->changed);
	for (size_t at = 0; at < changed.len; ) {
		const uint8_t *name = changed.octets + at + 1;
		size_t name_len = hydns_name_length(name, HYDNS_NAME_MAX);
		const struct hydns_preload_zone *z = hydns_preload_zone_of(l, name, name_len);

		if (z && (z->state == HYDNS_PRELOAD_LOADED || z->state == HYDNS_PRELOAD_LOADING))
			(void)l->o.list(l->o.arg, z->name, z->len, name, name_len, changed.octets[at] == HYDNS_SCOPE_SUBTREE, &list);
		at += 1 + name_len;
	}
	free(changed.octets);
	more = ask_all(l, &list, NULL);
	hydns_preload_list_free(&list);
	return more;
}

void hydns_preload_again(struct hydns_preload *l, const uint8_t *name, size_t len, uint16_t qtype, uint8_t variant)
{
	pthread_mutex_lock(&l->lock);
	hydns_preload_list_append(&l->stale, name, len, qtype, (uint8_t)(1U << variant));
	pthread_mutex_unlock(&l->lock);
}

static struct hydns_preload_list take_stale(struct hydns_preload *l)
{
	struct hydns_preload_list taken;

	pthread_mutex_lock(&l->lock);
	taken = l->stale;
	l->stale = (struct hydns_preload_list){ 0 };
	pthread_mutex_unlock(&l->lock);
	return taken;
}

/* What was withdrawn, and what changes have overtaken. */
static bool ask_lost(struct hydns_preload *l)
{
	struct hydns_preload_list lost = l->lost, stale = take_stale(l);
	bool more;

	l->lost = (struct hydns_preload_list){ 0 };
	more = ask_all(l, &lost, NULL) && ask_all(l, &stale, NULL);
	hydns_preload_list_free(&lost);
	hydns_preload_list_free(&stale);
	return more;
}

/* How long the thread may wait. What was overtaken by one change is asked again a little later, for changes come in crowds. */
static int wait_ms(struct hydns_preload *l)
{
	bool stale;

	pthread_mutex_lock(&l->lock);
	stale = l->stale.len;
	pthread_mutex_unlock(&l->lock);
	if (stale || l->lost.len)
		return SOON_MS;
	if (atomic_load(&l->soas_wanted))
		return PUT_OFF_MS;
	return l->put_off.len && l->put_off_for_ms < IDLE_MS ? (int)l->put_off_for_ms : IDLE_MS;
}

static bool ask_put_off(struct hydns_preload *l)
{
	struct hydns_preload_list list = l->put_off;
	bool more;

	if (!list.len || hydns_mono_coarse_ms() < l->put_off_until_ms)
		return true;
	l->put_off = (struct hydns_preload_list){ .stopping = &l->stopping };
	l->put_off_for_ms = l->put_off_for_ms < PUT_OFF_MOST_MS / 2 ? l->put_off_for_ms * 2 : PUT_OFF_MOST_MS;
	more = ask_all(l, &list, NULL);
	hydns_preload_list_free(&list);
	if (!l->put_off.len)
		l->put_off_for_ms = 0;
	return more;
}

/* What changes and withdrawals have made due. */
static bool ask_due(struct hydns_preload *l)
{
	bool more;

	hydns_preload_find_soas(l);
	more = ask_changed(l) && ask_lost(l) && ask_put_off(l);

	hydns_preload_merge(l);
	return more && hydns_preload_ask_demanded(l);
}

static void want_again(struct hydns_preload *l)
{
	const struct hydns_name_set_state names = hydns_name_set_state(l->set);
	bool names_gone = (names.full || names.table_full) && !l->set_refused;
	uint64_t now_ms = hydns_mono_coarse_ms();

	for (size_t i = 0; i < l->o.zones; i++) {
		struct hydns_preload_zone *z = &l->zone[i];
		bool old = z->state == HYDNS_PRELOAD_LOADED && now_ms - z->loaded_ms > RELOAD_S * 1000ULL;

		if (l->all || names_gone || atomic_load(&z->changed) || old)
			set_state(l, z, HYDNS_PRELOAD_WANTED);
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
	if (!ask_due(l))
		return false;
	want_again(l);
	for (size_t i = 0; i < l->o.zones; i++)
		if (l->zone[i].state == HYDNS_PRELOAD_WANTED && !load_zone(l, &l->zone[i]))
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
		if (poll(f, 2, wait_ms(l)) > 0 && f[0].revents)
			break;
		if (f[1].revents && eventfd_read(l->wake_fd, &ignored) && errno != EAGAIN)
			break;
	}
	if (l->p->o.thread_ends)
		l->p->o.thread_ends();
	return NULL;
}

/* -- begin and end ----------------------------------------------------------------------------------------------- */
static void free_preload(struct hydns_preload *l)
{
	hydns_preload_asker_close(&l->asker);
	hydns_preload_list_free(&l->lost);
	hydns_preload_list_free(&l->put_off);
	hydns_preload_list_free(&l->stale);
	hydns_preload_list_free(&l->demand.wanted);
	if (l->stop_fd >= 0)
		close(l->stop_fd);
	if (l->wake_fd >= 0)
		close(l->wake_fd);
	pthread_mutex_destroy(&l->lock);
	hydns_name_set_free(l->set);
	hydns_preload_forget(&l->changed);
	hydns_preload_forget(&l->retyped);
	for (size_t i = 0; l->zone && i < l->o.zones; i++) {
		hydns_preload_forget(&l->zone[i].coming);
		hydns_preload_forget(&l->zone[i].retyping);
		hydns_preload_forget(&l->zone[i].hashes);
	}
	free(l->by_name);
	free(l->zone);
	free(l);
}

static int open_parts(struct hydns_preload *l)
{
	l->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	l->zone = calloc(l->o.zones, sizeof(*l->zone));
	l->by_name = calloc(l->o.zones, sizeof(*l->by_name));
	l->set = hydns_name_set_new();
	if (l->stop_fd < 0 || l->wake_fd < 0 || !l->zone || !l->by_name || !l->set)
		return -ENOMEM;
	for (size_t i = 0; i < l->o.zones; i++) {
		struct hydns_preload_zone *z = &l->zone[i];

		z->len = l->o.zone[i].name_len;
		hydns_name_lower(z->name, l->o.zone[i].name, z->len);
		l->by_name[i] = z;
	}
	qsort(l->by_name, l->o.zones, sizeof(*l->by_name), compare_zones);
	l->asker.stop_fd = l->stop_fd;
	l->asker.edns_size = l->o.edns_size;
	return hydns_preload_asker_open(&l->asker, (const struct sockaddr *)&l->o.service,
					l->o.service.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in),
					&l->p->preload_from);
}

static bool is_loopback(const struct sockaddr_storage *a)
{
	if (a->ss_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)a)->sin6_addr);
	return (ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr) >> 24) == IN_LOOPBACKNET;
}

void hydns_preload_consider_service(struct hydns_preload_options *o, int fd)
{
	struct sockaddr_storage at = { 0 };
	socklen_t len = sizeof(at);

	if (!getsockname(fd, (struct sockaddr *)&at, &len) && (o->service.ss_family == AF_UNSPEC || is_loopback(&at)))
		o->service = at;
}

int hydns_plugin_preload(struct hydns_plugin *p, const struct hydns_preload_options *o)
{
	struct hydns_preload *l;
	int error;

	if (o->service.ss_family == AF_UNSPEC)
		return -EADDRNOTAVAIL;
	if (o->zones > HYDNS_PRELOAD_ZONES)
		return -E2BIG;
	l = calloc(1, sizeof(*l));
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
	pthread_rwlock_wrlock(&p->preload_lock);       /* a version that begins from now on is told to l */
	l->from = hydns_zone_versions_begun();
	atomic_store(&p->preload, l);
	pthread_rwlock_unlock(&p->preload_lock);
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

	pthread_rwlock_wrlock(&p->preload_lock);       /* versions are told to nobody from now on: so nothing is denied */
	l = atomic_exchange(&p->preload, NULL);
	if (l) {
		hydns_name_set_close(l->set);
		hydns_plugin_grace(p);         /* also where the set has just been closed, by who may not be through with its own */
	}
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
