/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The object: options, configuration, start and stop, and what any thread may call. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/un.h>
#include <unistd.h>
#include "hydns/hash.h"
#include "plugin/internal.h"

#define REFRESH_PERCENT_MAX 90
#define FLUSH_TIMEOUT_MAX_MS 60000
#define AUTH_FLAGS_KNOWN  (HYDNS_AUTH_IGNORES_COOKIE | HYDNS_AUTH_ROTATES | HYDNS_AUTH_KEEPS_CASE | \
			   HYDNS_AUTH_STRICT_EDNS | HYDNS_AUTH_OWN_PROOFS | HYDNS_AUTH_SHUFFLES)

static bool identity_ok(const char *text)
{
	size_t n = text ? strlen(text) : 0;

	for (size_t i = 0; i < n; i++)
		if (text[i] < ' ' || text[i] > '~')
			return false;
	return n > 0 && n < HYDNS_IDENTITY_LEN;
}

/* What is wrong with the options and how to mend it; NULL: nothing. */
static const char *options_error(const struct hydns_plugin_options *o)
{
	if (!o->socket || !o->socket[0])
		return "no socket path: name hydnsd's plugin socket";
	if (strlen(o->socket) >= sizeof(((struct sockaddr_un *)0)->sun_path))
		return "the socket's path is longer than a Unix socket's may be: choose a shorter one";
	if (!identity_ok(o->identity) || !identity_ok(o->version))
		return "identity and version must be 1 to 31 printable ASCII characters";
	if (o->threads < 1 || o->threads > HYDNS_THREADS_MAX)
		return "the number of threads must be 1 to 64";
	if (o->admission < 1 || o->window_ms < 1)
		return "admission and window must be at least 1";
	if (o->max_ttl && o->min_ttl > o->max_ttl)
		return "the minimum TTL is above the maximum TTL: lower it";
	if (o->refresh_percent > REFRESH_PERCENT_MAX)
		return "the refresh part must be 0 to 90 percent";
	if (o->flush_timeout_ms > FLUSH_TIMEOUT_MAX_MS)
		return "the flush timeout must be at most 60000 ms";
	if (o->flags & ~AUTH_FLAGS_KNOWN)
		return "unknown flags";
	return NULL;
}

static bool copy_strings(struct hydns_plugin_options *to)
{
	to->socket = strdup(to->socket);
	to->identity = strdup(to->identity);
	to->version = strdup(to->version);
	return to->socket && to->identity && to->version;
}

static void destroy(struct hydns_plugin *p)
{
	for (uint32_t i = 0; p->thread && i < p->o.threads; i++) {
		hydns_sketch_free(p->thread[i].hot.sketch);
		hydns_producer_close(&p->thread[i].ring);
	}
	free(p->thread);
	for (size_t i = 0; i < p->services; i++)
		close(p->service[i]);
	free(p->service);
	free(p->acl);
	hydns_notes_destroy(&p->notes);
	hydns_names_free(p->names);
	hydns_ends_free(p->ends);
	hydns_subtrees_free(p->subtrees);
	hydns_offered_free(p->offered);
	hydns_pages_free(p->pages);
	if (p->doorbell >= 0)
		close(p->doorbell);
	hydns_requests_destroy(&p->requests);
	hydns_leave_destroy(&p->leave);
	hydns_owed_destroy(&p->owed);
	hydns_secrets_destroy(&p->secrets);
	free((char *)(uintptr_t)p->o.socket);
	free((char *)(uintptr_t)p->o.identity);
	free((char *)(uintptr_t)p->o.version);
	free(p);
}

/*
 * What a former one knew of questions and names stays right for the next: counts of popularity, and tables that may say
 * too much, which costs a needless withdrawal or offer. To clear them, or the pages of new ones, would take tens of
 * milliseconds, in which a resolver that reloads answers nothing. Their keys depend on the seed, so it goes along; and as no
 * session may look like an earlier one to the table of offers, the count of sessions goes on.
 */
static void take_tables(struct hydns_plugin *p, struct hydns_plugin *former)
{
	p->seed[0] = former->seed[0];
	p->seed[1] = former->seed[1];
	atomic_store(&p->session, atomic_load(&former->session) + 1);
	if (former->o.capacity == p->o.capacity) {
		p->offered = former->offered;
		p->names = former->names;
		former->offered = NULL;
		former->names = NULL;
	}
	if (p->o.zones) {
		p->subtrees = former->subtrees;
		former->subtrees = NULL;
	}
	p->ends = former->ends;
	former->ends = NULL;
}

/* False: it has none that would do. */
static bool take_sketch(struct hydns_plugin *p, uint32_t i)
{
	struct hydns_plugin *former = p->former;

	if (!former || i >= former->o.threads || former->o.capacity != p->o.capacity ||
	    former->o.window_ms != p->o.window_ms)
		return false;
	p->thread[i].hot.sketch = former->thread[i].hot.sketch;
	former->thread[i].hot.sketch = NULL;
	return true;
}

static int make_threads(struct hydns_plugin *p)
{
	int error = 0;

	p->thread = hydns_table_new(p->o.threads * sizeof(*p->thread));
	if (!p->thread)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->o.threads && !error; i++) {
		struct hydns_thread *t = &p->thread[i];

		t->plugin = p;
		hydns_pick_start(&t->pick, (uint32_t)p->seed[0] + i);
		t->hot.offered = p->offered;
		if (!take_sketch(p, i))
			t->hot.sketch = hydns_sketch_new(hydns_hot_sketch_width(p->o.capacity), p->o.window_ms,
							 p->seed);
		error = t->hot.sketch ? hydns_producer_open(&t->ring) : -ENOMEM;
	}
	return error;
}

static int make_parts(struct hydns_plugin *p)
{
	if (getrandom(p->seed, sizeof(p->seed), 0) != (ssize_t)sizeof(p->seed))
		return -EIO;
	p->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->doorbell < 0)
		return -errno;
	if (p->former)
		take_tables(p, p->former);
	p->pages = hydns_pages_new();
	if (!p->offered)
		p->offered = hydns_offered_new(p->o.capacity);
	if (!p->names)
		p->names = hydns_names_new(p->o.capacity, p->seed);
	if (!p->ends)
		p->ends = hydns_ends_new(p->seed);
	if (!p->subtrees && p->o.zones)
		p->subtrees = hydns_subtrees_new(p->seed);
	if (!p->pages || !p->offered || !p->names || !p->ends || (p->o.zones && !p->subtrees))
		return -ENOMEM;
	if (p->o.admission == 1)
		hydns_names_watch(p->names);   /* the first answer of all is offered */
	return make_threads(p);
}

static int make_wakers(struct hydns_plugin *p)
{
	int error = hydns_requests_init(&p->requests);

	if (error)
		return error;
	error = hydns_leave_init(&p->leave);
	if (error)
		hydns_requests_destroy(&p->requests);
	return error;
}

struct hydns_plugin *hydns_plugin_new(const struct hydns_plugin_options *o)
{
	return hydns_plugin_succeed(o, NULL);
}

struct hydns_plugin *hydns_plugin_succeed(const struct hydns_plugin_options *o, struct hydns_plugin *former)
{
	const char *bad = options_error(o);
	struct hydns_plugin *p;
	int error;

	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->o = *o;
	p->doorbell = -1;
	p->told_in = UINT32_MAX;
	p->former = former;
	if (bad) {
		hydns_log(p, HYDNS_LOG_ERROR, "bad options: %s", bad);
		free(p);
		return NULL;
	}
	error = make_wakers(p);
	if (error) {
		hydns_log(p, HYDNS_LOG_ERROR, "cannot make an eventfd: %s", strerror(-error));
		free(p);
		return NULL;
	}
	hydns_secrets_init(&p->secrets);
	hydns_notes_init(&p->notes);
	hydns_owed_init(&p->owed);
	error = copy_strings(&p->o) ? make_parts(p) : -ENOMEM;
	if (error) {
		hydns_log(p, HYDNS_LOG_ERROR, "cannot set up rings and tables: %s", strerror(-error));
		destroy(p);
		return NULL;
	}
	return p;
}

int hydns_plugin_add_service(struct hydns_plugin *p, int fd)
{
	int *more = realloc(p->service, (p->services + 1) * sizeof(*more));
	int copy;

	if (!more)
		return -ENOMEM;
	p->service = more;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy < 0)
		return -errno;
	p->service[p->services++] = copy;
	return 0;
}

int hydns_plugin_add_acl(struct hydns_plugin *p, const struct hydns_acl_entry *e, size_t n)
{
	struct hydns_acl_entry *more;

	if (n > HYDNS_ACL_ENTRIES - p->acls)
		return -E2BIG;
	if (n == 0)
		return 0;
	more = realloc(p->acl, (p->acls + n) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	memcpy(more + p->acls, e, n * sizeof(*more));
	p->acl = more;
	p->acls += n;
	return 0;
}

int hydns_plugin_add_note(struct hydns_plugin *p, enum hydns_note_kind kind, const char *text)
{
	return hydns_notes_add(&p->notes, kind, text);
}

void hydns_plugin_set_notes(struct hydns_plugin *p, enum hydns_note_kind kind, const char *const *text, size_t n)
{
	struct hydns_request q = { .type = HYDNS_MSG_NOTE };

	if (hydns_notes_set(&p->notes, kind, text, n))
		hydns_log(p, HYDNS_LOG_WARNING, "out of memory: hydnsctl shows too few notes");
	if (p->started)
		(void)hydns_requests_ask(&p->requests, &q, p->o.flush_timeout_ms);
}

int hydns_plugin_start(struct hydns_plugin *p)
{
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);   /* inherited: signals are the resolver's to handle */
	error = pthread_create(&p->link, NULL, hydns_link_main, p);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error) {
		hydns_log(p, HYDNS_LOG_ERROR, "cannot start the link thread: %s", strerror(error));
		return -error;
	}
	p->started = true;
	return 0;
}

static bool absent(uint32_t interval)
{
	return interval % 2 == 0;
}

bool hydns_plugin_dead(struct hydns_plugin *p)
{
	uint32_t interval = atomic_load(&p->interval);

	return absent(interval) && atomic_load(&p->dead_in) == interval;
}

void hydns_plugin_suspend_rules(struct hydns_plugin *p)
{
	if (!hydns_plugin_dead(p) && hydns_pages_suspend(p->pages))
		hydns_requests_wake(&p->requests);     /* hydnsd may be back: the link thread must see it */
}

static uint32_t place_of(const struct hydns_plugin *p, const uint8_t *name, size_t len)
{
	const __u64 seed[2] = { p->seed[0], p->seed[1] };

	return HYDNS_TOUCHED_PLACE(hydns_owner_hash(name, (uint8_t)len, seed));
}

void hydns_plugin_touch(struct hydns_plugin *p, const uint8_t *name, size_t len)
{
	if (!hydns_plugin_dead(p) && hydns_pages_touch(p->pages, place_of(p, name, len)))
		hydns_requests_wake(&p->requests);     /* as above */
}

void hydns_plugin_kill_rules(struct hydns_plugin *p)
{
	uint32_t interval = atomic_load(&p->interval);

	/* Nothing can have been published since. Spares epochs: changes may come fast. */
	if (hydns_plugin_dead(p))
		return;
	hydns_pages_advance_epoch(p->pages);
	atomic_fetch_add(&p->session, 1);      /* what was offered may be offered again at once */
	if (absent(interval))
		atomic_store(&p->dead_in, interval);
}

static void grace(struct hydns_plugin *p)
{
	/* No page that a program reads: there can be no rule of ours. The generation has been advanced
	 * before, and it goes along to a page that comes now. */
	if (hydns_pages_fd(p->pages) < 0)
		return;
	if (!hydns_grace() && !atomic_exchange(&p->grace_told, true))
		hydns_log(p, HYDNS_LOG_INFO, "membarrier() does not wait for all CPUs here (nohz_full?): "
			  "withdrawals without hydnsd wait a fixed time instead");
}

/* No rule is alive or being sent, and none can come to be: for good, or without hydnsd. */
static bool settled(struct hydns_plugin *p, uint32_t interval)
{
	return atomic_load(&p->quiet) || (absent(interval) && atomic_load(&p->settled_in) == interval);
}

void hydns_plugin_settle(struct hydns_plugin *p)
{
	if (settled(p, atomic_load(&p->interval)))
		return;
	grace(p);
	atomic_store(&p->quiet, true);
}

/* Kills the rules and waits until no program uses one any more. */
static void kill_and_wait(struct hydns_plugin *p)
{
	uint32_t interval = atomic_load(&p->interval);

	if (settled(p, interval))
		return;
	hydns_plugin_kill_rules(p);
	grace(p);
	if (absent(interval))
		atomic_store(&p->settled_in, interval);
}

/* The link threads of both have done with their formers. */
void hydns_plugin_take_along(struct hydns_plugin *p, struct hydns_plugin *other)
{
	while (p->former)
		p = p->former;
	p->former = other;
}

void hydns_plugin_former_gone(struct hydns_plugin *p)
{
	if (p->former)
		hydns_plugin_gone(p->former);
}

void hydns_plugin_stop(struct hydns_plugin *p)
{
	if (!p)
		return;
	hydns_plugin_leave(p, NULL, NULL);
	if (p->started) {
		pthread_join(p->link, NULL);
		/* Again: the link thread may have been about to change pages. */
		hydns_pages_beat(p->pages, 0);
	}
	hydns_plugin_stop(p->former);         /* whose successor was never started, or that was taken along */
	destroy(p);
}

struct hydns_thread *hydns_plugin_thread(struct hydns_plugin *p, uint32_t i)
{
	return i < p->o.threads ? &p->thread[i] : NULL;
}

struct hydns_stamp hydns_plugin_stamp(const struct hydns_plugin *p)
{
	return (struct hydns_stamp){ .generation = hydns_pages_generation(p->pages),
				     .epoch = hydns_pages_epoch(p->pages),
				     .changes = hydns_names_changes(p->names) };
}

static void note_withdrawn(struct hydns_plugin *p, uint64_t generation)
{
	uint64_t old = atomic_load(&p->withdrawn);

	while (old < generation && !atomic_compare_exchange_weak(&p->withdrawn, &old, generation))
		;
}

/* Without hydnsd: its rules, those of a subtree with all others, wait until the next one has done this, too. False: that
 * can't be. */
static bool suspend_and_wait(struct hydns_plugin *p, const struct hydns_request *q)
{
	const struct hydns_withdraw *w = &q->withdraw;
	uint32_t place = w->scope == HYDNS_SCOPE_NAME ? place_of(p, w->name, w->name_len) : HYDNS_OWED_ALL;
	struct hydns_suspension in;

	if (q->state != HYDNS_REQUEST_FAILED || w->scope == HYDNS_SCOPE_ALL || hydns_plugin_dead(p) ||
	    hydns_pages_fd(p->pages) < 0 || !hydns_owed_add(&p->owed, p->pages, w, place, &in))
		return false;
	hydns_requests_wake(&p->requests);     /* hydnsd may be back: the link thread must see it */
	if (in.quiet)
		return true;
	grace(p);
	if (place == HYDNS_OWED_ALL)
		hydns_owed_quieten(&p->owed, in.number);
	return true;
}

void hydns_plugin_withdraw_all(struct hydns_plugin *p)
{
	note_withdrawn(p, hydns_pages_advance_generation(p->pages));
	kill_and_wait(p);
}

void hydns_plugin_withdraw(struct hydns_plugin *p, enum hydns_scope scope, const uint8_t *name,
			    size_t name_len)
{
	struct hydns_request q = { .type = HYDNS_MSG_WITHDRAW };
	bool known = scope == HYDNS_SCOPE_ALL;

	if (!known && (scope == HYDNS_SCOPE_NAME || scope == HYDNS_SCOPE_SUBTREE))
		known = name && name_len && hydns_name_length(name, name_len) == name_len;
	q.withdraw.generation = hydns_pages_advance_generation(p->pages);
	note_withdrawn(p, q.withdraw.generation);
	q.withdraw.scope = scope;
	if (known && scope != HYDNS_SCOPE_ALL) {
		q.withdraw.name_len = (uint32_t)name_len;
		hydns_name_lower(q.withdraw.name, name, name_len);
	}
	if (known && (hydns_requests_ask(&p->requests, &q, p->o.flush_timeout_ms) || suspend_and_wait(p, &q)))
		return;
	/* Not answered in time, too many while hydnsd is away, or a name that nobody could match: the epoch
	 * takes all rules along, whatever hydnsd still does with the request. */
	kill_and_wait(p);
}

static void settle_and_withdraw(struct hydns_plugin *p, const uint8_t *origin, size_t len)
{
	uint64_t offers = hydns_subtrees_offers(p->subtrees, origin, len);

	note_withdrawn(p, hydns_pages_advance_generation(p->pages));
	if (hydns_subtrees_settled(p->subtrees, origin, len))
		return;
	hydns_plugin_withdraw(p, HYDNS_SCOPE_SUBTREE, origin, len);
	hydns_subtrees_settle(p->subtrees, origin, len, offers);
}

void hydns_plugin_zone_changing(struct hydns_plugin *p, const uint8_t *origin, size_t len)
{
	uint8_t lower[HYDNS_NAME_MAX];

	if (!p->subtrees || len == 0 || hydns_name_length(origin, len) != len) {
		hydns_plugin_withdraw_all(p);   /* what nobody could match */
		return;
	}
	hydns_name_lower(lower, origin, len);
	settle_and_withdraw(p, lower, len);
}

void hydns_plugin_zone_changed(struct hydns_plugin *p)
{
	note_withdrawn(p, hydns_pages_advance_generation(p->pages));
}

void hydns_plugin_cookie_secrets(struct hydns_plugin *p, const uint8_t (*secret)[HYDNS_COOKIE_SECRET_LEN],
				  size_t n)
{
	struct hydns_request q = { .type = HYDNS_MSG_COOKIES };

	if (!hydns_secrets_change(&p->secrets, p->pages, secret, n) || !p->started)
		return;
	/* From here on the program has no secrets until hydnsd has been told, now or when it can be. */
	grace(p);
	(void)hydns_requests_ask(&p->requests, &q, p->o.flush_timeout_ms);
}

bool hydns_plugin_counts(struct hydns_plugin *p, struct hydns_counts *out, uint32_t timeout_ms)
{
	struct hydns_request q = { .type = HYDNS_MSG_STATS };
	bool fresh = hydns_requests_ask(&p->requests, &q, timeout_ms);

	hydns_requests_counts(&p->requests, out);
	return fresh;
}
