/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The object: options, configuration, what it is made of, and its end. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/un.h>
#include <unistd.h>
#include "plugin/internal.h"
#include "plugin/log.h"

#define REFRESH_PERCENT_MAX 90
#define FLUSH_TIMEOUT_MAX_MS 60000
#define QUEUE_FRAMES         1024

static bool identity_ok(const char *text)
{
	size_t n = text ? strlen(text) : 0;

	for (size_t i = 0; i < n; i++)
		if (text[i] < ' ' || text[i] > '~')
			return false;
	return n > 0 && n < HYDNS_IDENTITY_LEN;
}

/* What is wrong with the options, and what to do; NULL: nothing. */
static const char *options_error(const struct hydns_plugin_options *o)
{
	if (!o->socket || !o->socket[0])
		return "no socket path: name hydnsd's plugin socket";
	if (strlen(o->socket) >= sizeof(((struct sockaddr_un *)0)->sun_path))
		return "the socket's path is longer than a Unix socket's may be: choose a shorter one";
	if (!identity_ok(o->identity) || !identity_ok(o->version))
		return "identity and version must be 1 to 31 printable ASCII characters";
	if (o->threads < 1)
		return "no thread: a resolver needs one at least";
	_Static_assert(HYDNS_THREADS_MAX == 64, "as the words say");
	if (o->threads > HYDNS_THREADS_MAX)
		return "more than 64 threads: start the resolver with 64 at most (named -n 64)";
	if (o->admission < 1 || o->window_ms < 1)
		return "admission and window must be at least 1";
	if (o->max_ttl && o->min_ttl > o->max_ttl)
		return "the minimum TTL is above the maximum TTL: lower it";
	if (o->refresh_percent > REFRESH_PERCENT_MAX)
		return "the refresh part must be 0 to 90 percent";
	if (o->flush_timeout_ms > FLUSH_TIMEOUT_MAX_MS)
		return "the flush timeout must be at most 60000 ms";
	if (o->flags & ~HYDNS_RESOLVER_HELLO_FLAGS)
		return "unknown flags";
	if (o->stale.ttl > HYDNS_TTL_MAX || (o->stale.error && strlen(o->stale.error) >= HYDNS_STALE_TEXT_LEN))
		return "the stale TTL must be below 2^31, and the text of its error 47 characters at most";
	if (o->queue_frames && (o->queue_frames < HYDNS_LANE_FRAMES_MIN || o->queue_frames > HYDNS_LANE_FRAMES_MAX ||
				(o->queue_frames & (o->queue_frames - 1))))
		return "the frames of a packet ring must be a power of 2 from 256 to 4096";
	return NULL;
}

static bool copy_text(const char **text)
{
	bool there_is = *text;

	*text = there_is ? strdup(*text) : NULL;
	return *text || !there_is;
}

static void tap_says(void *plugin, bool bad, const char *text)
{
	hydns_log(plugin, bad ? HYDNS_LOG_WARNING : HYDNS_LOG_INFO, "%s", text);
}

static bool copy_tls(struct hydns_dnstap_options *o)
{
	if (!o->tls)
		return true;
	o->tls_context = o->tls->context(o->tls_context);
	return o->tls_context;
}

/* The flags tell hydnsd and the program. */
static bool copy_dnstap(struct hydns_plugin *p)
{
	if (!p->o.dnstap)
		return true;
	p->dnstap = *p->o.dnstap;
	p->o.dnstap = &p->dnstap;
	p->dnstap.log = tap_says;
	p->dnstap.log_arg = p;
	p->dnstap.thread_begins = p->o.thread_begins;
	p->dnstap.thread_ends = p->o.thread_ends;
	p->o.flags |= HYDNS_RESOLVER_LOGS | (p->o.log_all ? HYDNS_RESOLVER_LOGS_ALL : 0);
	p->dnstap.zones = p->dnstap.auth_responses ? hydns_tap_zones_new() : NULL;
	if (!p->o.log_octets)
		p->o.log_octets = HYDNS_LOG_RING;
	return copy_text(&p->dnstap.path) & copy_text(&p->dnstap.beside) & copy_text(&p->dnstap.identity) &
	       copy_text(&p->dnstap.version) & copy_text(&p->dnstap.view) & copy_tls(&p->dnstap);
}

static bool copy_strings(struct hydns_plugin_options *to)
{
	to->socket = strdup(to->socket);
	to->identity = strdup(to->identity);
	to->version = strdup(to->version);
	return to->socket && to->identity && to->version;
}

/* First the gate: with it the program's redirections end. What lies in the rings then is read before they end. */
static void end_rings(struct hydns_plugin *p)
{
	if (p->gate >= 0)
		close(p->gate);
	if (p->rings_taken)
		return;
	if (p->lanes && p->o.rings_end)
		p->o.rings_end(hydns_lanes_thread(p->lanes, 0));
	hydns_upstream_free(p->upstream);
	hydns_lanes_free(p->lanes);
	hydns_ways_free(p->ways);
}

static void destroy(struct hydns_plugin *p)
{
	hydns_tap_stop(atomic_load(&p->tap)); /* it counts in the rings to hydnsd, too */
	end_rings(p);          /* before the rings to hydnsd, in which threads count them */
	for (uint32_t i = 0; p->thread && i < p->o.threads; i++) {
		hydns_sketch_free(p->thread[i].hot.sketch);
		hydns_producer_close(&p->thread[i].ring);
	}
	free(p->thread);
	for (size_t i = 0; i < p->services; i++)
		close(p->service[i]);
	free(p->service);
	free(p->acl);
	pthread_mutex_destroy(&p->configuring);
	hydns_notes_destroy(&p->notes);
	hydns_names_free(p->names);
	hydns_rrset_ends_free(p->ends);
	hydns_subtrees_free(p->subtrees);
	hydns_offered_free(p->offered);
	hydns_pages_free(p->pages);
	hydns_budgets_close(&p->budgets);
	if (p->doorbell >= 0)
		close(p->doorbell);
	hydns_requests_destroy(&p->requests);
	hydns_leave_destroy(&p->leave);
	hydns_pending_destroy(&p->pending);
	hydns_secrets_destroy(&p->secrets);
	hydns_forward_list_destroy(&p->forwards);
	pthread_mutex_destroy(&p->guard.lock);
	pthread_rwlock_destroy(&p->preload_lock);
	free((char *)(uintptr_t)p->o.socket);
	free((char *)(uintptr_t)p->o.identity);
	free((char *)(uintptr_t)p->o.version);
	hydns_tap_zones_free(p->dnstap.zones);
	if (p->dnstap.tls_context)
		p->dnstap.tls->context_free(p->dnstap.tls_context);
	free((char *)(uintptr_t)p->dnstap.path);
	free((char *)(uintptr_t)p->dnstap.beside);
	free((char *)(uintptr_t)p->dnstap.identity);
	free((char *)(uintptr_t)p->dnstap.version);
	free((char *)(uintptr_t)p->dnstap.view);
	free(p);
}

/*
 * What the former object knew of questions and names stays right: counts of popularity, and tables that may say too much,
 * which costs a needless withdrawal or offer. Clearing them, or new ones, would take tens of milliseconds, in which a
 * resolver that reloads answers nothing. Their keys depend on the seed, so it is taken over too. The store serial goes on,
 * because the table of offers must not take a new store for a former one.
 */
static void take_tables(struct hydns_plugin *p, struct hydns_plugin *former)
{
	p->seed[0] = former->seed[0];
	p->seed[1] = former->seed[1];
	atomic_store(&p->store_serial, atomic_load(&former->store_serial) + 1);
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

/* What waits in the rings is answered after a reload. The former's link thread may be using them until it has ended. */
static void take_rings(struct hydns_plugin *p, struct hydns_plugin *former)
{
	if (former->o.threads != p->o.threads || former->o.queue_frames != p->o.queue_frames || former->o.queue != p->o.queue ||
	    former->rings_taken)
		return;
	p->lanes = former->lanes;
	p->ways = former->ways;
	p->upstream = former->upstream;
	former->rings_taken = true;
}

static void give_rings_back(struct hydns_plugin *p, struct hydns_plugin *former)
{
	if (!former || !p->lanes || p->lanes != former->lanes)
		return;
	for (uint32_t i = 0; i < p->o.threads; i++)
		hydns_lanes_count_in(hydns_lanes_thread(p->lanes, i), &former->thread[i].ring.ring->packet_rings);
	p->rings_taken = true;
	former->rings_taken = false;
}

/* False: the former has none, or one of another size or window. */
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
		hydns_sample_start(&t->sample, (uint32_t)p->seed[0] + i);
		t->hot.offered = p->offered;
		if (!take_sketch(p, i))
			t->hot.sketch = hydns_sketch_new(hydns_hot_sketch_width(p->o.capacity), p->o.window_ms,
							 p->seed);
		error = t->hot.sketch ? hydns_producer_open(&t->ring) : -ENOMEM;
		if (!error && p->lanes)
			hydns_lanes_count_in(hydns_lanes_thread(p->lanes, i), &t->ring.ring->packet_rings);
	}
	return error;
}

/* Unless the former's were taken over. */
static bool make_rings(struct hydns_plugin *p)
{
	if (!p->lanes)
		p->lanes = hydns_lanes_new(p->o.threads, p->o.queue_frames);
	if (!p->ways)
		p->ways = hydns_ways_new(p->o.threads, p->seed);
	if (p->lanes && p->ways && !p->upstream && p->o.queue & HYDNS_QUEUE_UPSTREAM)
		p->upstream = hydns_upstream_new(p->lanes, p->ways, p->o.threads);
	return p->lanes && p->ways && (p->upstream || !(p->o.queue & HYDNS_QUEUE_UPSTREAM));
}

static int make_parts(struct hydns_plugin *p)
{
	if (getrandom(p->seed, sizeof(p->seed), 0) != (ssize_t)sizeof(p->seed) ||
	    getrandom(p->budget_seed, sizeof(p->budget_seed), 0) != (ssize_t)sizeof(p->budget_seed))
		return -EIO;
	p->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->doorbell < 0)
		return -errno;
	if (p->former) {
		take_tables(p, p->former);
		take_rings(p, p->former);
	}
	p->pages = hydns_pages_new();
	if (!p->offered)
		p->offered = hydns_offered_new(p->o.capacity);
	if (!p->names)
		p->names = hydns_names_new(p->o.capacity, p->seed);
	if (!p->ends)
		p->ends = hydns_rrset_ends_new(p->seed);
	if (!p->subtrees && p->o.zones)
		p->subtrees = hydns_subtrees_new(p->seed);
	if (p->o.queue && !make_rings(p))
		return -ENOMEM;
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
	return hydns_plugin_take_over(o, NULL);
}

struct hydns_plugin *hydns_plugin_take_over(const struct hydns_plugin_options *o, struct hydns_plugin *former)
{
	const char *bad = options_error(o);
	struct hydns_plugin *p;
	int error;

	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->o = *o;
	if (p->o.queue_frames == 0)
		p->o.queue_frames = QUEUE_FRAMES;
	p->doorbell = p->gate = -1;
	p->offered_in = UINT32_MAX;
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
	pthread_mutex_init(&p->guard.lock, NULL);
	pthread_rwlock_init(&p->preload_lock, NULL);
	pthread_mutex_init(&p->configuring, NULL);
	hydns_secrets_init(&p->secrets);
	hydns_forward_list_init(&p->forwards);
	hydns_notes_init(&p->notes);
	hydns_pending_init(&p->pending);
	error = copy_strings(&p->o) && copy_dnstap(p) ? make_parts(p) : -ENOMEM;
	if (error) {
		hydns_log(p, HYDNS_LOG_ERROR, "cannot set up rings and tables: %s", strerror(-error));
		give_rings_back(p, p->former);
		destroy(p);
		return NULL;
	}
	return p;
}

void hydns_plugin_answers_from(struct hydns_plugin *p, const uint8_t *zone, size_t len)
{
	if (p->dnstap.zones)
		hydns_tap_zones_add(p->dnstap.zones, zone, len);
}

void hydns_plugin_zone_gone(struct hydns_plugin *p)
{
	if (p->dnstap.zones)
		hydns_tap_zones_forget(p->dnstap.zones);
}

bool hydns_plugin_logs_own(struct hydns_plugin *p, const struct hydns_tap_message *m)
{
	struct hydns_tap *tap = atomic_load_explicit(&p->tap, memory_order_acquire);

	return tap && hydns_tap_own(tap, m);
}

const char hydns_services_note[] = "there are more than 16384 UDP sockets for clients: at the addresses of the others the kernel does not "
	"answer: listen at fewer addresses, or start named with fewer threads (-n)";
_Static_assert(HYDNS_SERVICES == 16384, "as the words say");

int hydns_plugin_add_service(struct hydns_plugin *p, int fd)
{
	int *more, copy;

	if (p->services == HYDNS_SERVICES)
		return -E2BIG;
	more = realloc(p->service, (p->services + 1) * sizeof(*more));
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

/* The link threads of both have stopped their former objects. */
void hydns_plugin_take_along(struct hydns_plugin *p, struct hydns_plugin *other)
{
	while (p->former)
		p = p->former;
	p->former = other;
}

void hydns_plugin_wait_former(struct hydns_plugin *p)
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
	hydns_plugin_stop(p->former);         /* p was never started, or the former was taken along */
	destroy(p);
}

struct hydns_thread *hydns_plugin_thread(struct hydns_plugin *p, uint32_t i)
{
	return i < p->o.threads ? &p->thread[i] : NULL;
}

struct hydns_lane_thread *hydns_plugin_lanes(struct hydns_thread *t)
{
	struct hydns_plugin *p = t->plugin;

	return p->lanes ? hydns_lanes_thread(p->lanes, (uint32_t)(t - p->thread)) : NULL;
}

void hydns_plugin_avoid_ports(struct hydns_plugin *p, bool (*avoid)(void *arg, uint16_t port), void *arg)
{
	if (p->upstream)
		hydns_ports_avoid(hydns_upstream_ports(p->upstream), avoid, arg);
}

uint32_t hydns_plugin_rings(const struct hydns_plugin *p)
{
	return (atomic_load(&p->clients_open) ? HYDNS_QUEUE_CLIENTS : 0) |
	       (atomic_load(&p->upstream_open) ? HYDNS_QUEUE_UPSTREAM : 0);
}

struct hydns_upstream_thread *hydns_plugin_upstream(struct hydns_thread *t)
{
	struct hydns_plugin *p = t->plugin;

	return p->upstream ? hydns_upstream_thread(p->upstream, (uint32_t)(t - p->thread)) : NULL;
}

struct hydns_stamp hydns_plugin_stamp(const struct hydns_plugin *p)
{
	return (struct hydns_stamp){ .generation = hydns_pages_generation(p->pages),
				     .epoch = hydns_pages_epoch(p->pages),
				     .changes = hydns_names_changes(p->names) };
}

/* -- limits ------------------------------------------------------------------------------------------------ */
void hydns_plugin_limit(struct hydns_plugin *p, const struct hydns_limits *l)
{
	hydns_pages_set_limits(p->pages, l, p->budget_seed);
}

enum hydns_charge hydns_plugin_charge(struct hydns_plugin *p, const uint8_t addr[16], uint32_t second, struct hydns_spent *spent)
{
	return hydns_budgets_charge(&p->budgets, p->pages, addr, second, spent);
}

void hydns_plugin_rates(struct hydns_plugin *p, const struct hydns_rates *r)
{
	hydns_pages_set_rates(p->pages, r, p->budget_seed);
}

bool hydns_plugin_rate_debit(struct hydns_plugin *p, const struct hydns_rate_key *k, uint32_t second, struct hydns_rate_own *own,
			     enum hydns_rate_verdict *verdict)
{
	return hydns_rates_debit(&p->budgets, p->pages, k, second, own, verdict);
}

bool hydns_plugin_rate_look(struct hydns_plugin *p, const struct hydns_rate_key *k, struct hydns_rate_own *own)
{
	return hydns_rates_look(&p->budgets, p->pages, k, own);
}

void hydns_plugin_rate_logged(struct hydns_plugin *p, const struct hydns_rate_key *k, uint32_t second, bool any)
{
	hydns_rates_logged(&p->budgets, p->pages, k, second, any);
}

bool hydns_plugin_spent(struct hydns_plugin *p, const uint8_t addr[16], uint32_t second, uint32_t *spent)
{
	return hydns_budgets_spent(&p->budgets, p->pages, addr, second, spent);
}
