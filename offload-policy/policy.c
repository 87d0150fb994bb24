/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Which answers the kernel should hold.
 *
 * Score. A slot is worth the hits that it serves per second. A rule near its end is worth no less, because its slot will be
 * free for another one. So rules compare by their rates, and the TTL counts only for whether a rule pays at all (min_hits
 * expected in its life).
 *
 * Rate. For a Poisson process with a hits in a time b, (a + PRIOR) / (b + B): the posterior mean with a Gamma prior. B is
 * PRIOR_HITS / (the rate of the least rule), 0 while there is room, because of very many names that are watched for a
 * short time, some seem hotter than they are.
 * a and b fade together with memory M (backward Euler form of the exponential: x := (x + new) M / (M + dt); no
 * exp(), no special case at dt = 0). M is MEMORY_HITS / (the rate of the least rule): long enough to tell rules near
 * the edge apart, and as short as that allows. A query that the plugin has seen counts like a hit: a newcomer starts with
 * the plugin's sightings, and the kernel's hits add to them. One sighting of a newcomer is not counted, because it is the
 * reason why the newcomer is considered: given that one, the others of a Poisson process have their usual mean (Palm).
 *
 * Ghosts. While a rule answers, the plugin sees nothing of its question. So what is known of a removed rule is kept in the
 * table of ghosts (by key, two places each, of which the less promising one is overwritten), and a newcomer gets the
 * higher of the rates by the plugin and by its ghost.
 *
 * Evictions are bounded, so they have a price: below PLENTY of a second's evictions, the fewer are left, the more clearly a
 * newcomer must beat the least rule. Without that the first newcomers got them all, and at high rates of queries those were
 * names that are asked for once.
 *
 * Order. Doubly linked lists of rules of nearly equal rate (eight lists an octave, so within 12.5 %), with a bitmap
 * of the lists in use: hits() moves a rule in O(1), the victim is the first of the lowest list. Expiry: an indexed
 * binary heap, which only insert and remove change.
 *
 * Memory: HYDNS_POLICY_BYTES octets an id, allocated once.
 */
#include "policy.h"

#include <stdlib.h>
#include <string.h>

#define NONE             UINT32_MAX
#define PRIOR            0.5f           /* hits */
#define PRIOR_HITS       1.0f           /* hits that the least rule has in the prior's time B */
#define MEMORY_HITS      8.0f           /* hits that the least rule has in a memory M */
#define MEMORY_MIN_S     3.0f
#define MEMORY_MAX_S     3600.0f
#define QUIET_HITS       4.0f           /* a rule without a hit for a time t has less than this / t, save 2 % */
#define SIGHTED_MIN_S    0.1f           /* the least time that sightings are taken to have lasted */
#define REFRESH_QUERIES  3.0f           /* queries to expect between the beginning of a refresh and the end */
#define REFRESH_SPREAD   4              /* it begins at most this many times as early as necessary */
#define LOOKUP_S         0.05f          /* about what a resolver needs to look an answer up */
#define PER_SECOND       1e6f           /* the interface's unit of rates */
#define VICTIM_SCAN      4096           /* most calls of accept(), so that no call stalls */
#define PLENTY           0.5f           /* of a second's evictions: below this they are rationed */
#define LIFE_MAX         (1ULL << 30)   /* furthest end that differs from a later one, ms from now: 12 days */

#define LISTS_OCTAVE_BITS 3             /* eight lists an octave: the mantissa's first three bits */
#define LISTS_SHIFT      (23 - LISTS_OCTAVE_BITS)
#define LISTS_LOWEST     ((127 - 16) << LISTS_OCTAVE_BITS)      /* 2^-16 and less: list 0 */
#define LISTS            (48 << LISTS_OCTAVE_BITS)              /* up to 2^32 */
#define LISTS_WORDS      (LISTS / 64)
_Static_assert(LISTS % 64 == 0, "the bitmap has whole words");
_Static_assert(LISTS <= UINT16_MAX, "a list's number fits");

/* What is known of a question. */
struct seen {
	float hits, time;      /* a and b above, seconds, at last_ms */
	float quiet;           /* seconds since its last known query */
	uint32_t last_ms;      /* low 32 bits of the caller's clock */
};

struct entry {
	struct seen seen;
	uint32_t next, prev;   /* in its list */
	uint32_t heap_at;
	uint32_t expire_ms;    /* low 32 bits of the caller's clock */
	uint32_t key;          /* low half */
	uint16_t list;
	bool live;
};

/* Numbers as the upper 16 of a positive float's 31 bits: within 0.2 %, which is less than the error of sightings. */
struct ghost {
	uint32_t last_ms;
	uint16_t tag;
	uint16_t hits, time, quiet; /* as in struct seen; time 0: empty */
};
_Static_assert(sizeof(struct entry) + sizeof(uint32_t) + sizeof(struct ghost) == HYDNS_POLICY_BYTES, "as stated");

struct hydns_policy {
	struct hydns_policy_options options;
	uint32_t ids;
	uint32_t count;
	struct entry *entry;
	uint32_t *heap;
	struct ghost *ghost;
	uint32_t ghosts;       /* even */
	float memory_s;        /* M */
	float prior_s;         /* B */
	float evictions;       /* that may be made now */
	uint64_t filled_ms;    /* when evictions was last filled up */
	uint32_t first[LISTS], last[LISTS];
	uint64_t in_use[LISTS_WORDS];
};

struct hydns_policy *hydns_policy_new(const struct hydns_policy_options *o, uint32_t ids)
{
	struct hydns_policy *p;

	if (!ids || ids == NONE)
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->options = *o;
	p->ids = ids;
	p->memory_s = MEMORY_MAX_S;
	p->evictions = HYDNS_EVICTIONS_S(o->capacity);
	p->ghosts = ids + (ids & 1);
	p->entry = calloc(ids, sizeof(*p->entry));
	p->heap = calloc(ids, sizeof(*p->heap));
	p->ghost = calloc(p->ghosts, sizeof(*p->ghost));
	if (!p->entry || !p->heap || !p->ghost) {
		hydns_policy_free(p);
		return NULL;
	}
	memset(p->first, 0xff, sizeof(p->first));
	memset(p->last, 0xff, sizeof(p->last));
	return p;
}

void hydns_policy_free(struct hydns_policy *p)
{
	if (!p)
		return;
	free(p->entry);
	free(p->heap);
	free(p->ghost);
	free(p);
}

void hydns_policy_set_min_hits(struct hydns_policy *p, uint32_t min_hits)
{
	p->options.min_hits = min_hits;
}

void hydns_policy_set_capacity(struct hydns_policy *p, uint32_t capacity)
{
	p->options.capacity = capacity;
}

uint32_t hydns_policy_excess(const struct hydns_policy *p)
{
	return p->count > p->options.capacity ? p->count - p->options.capacity : 0;
}

size_t hydns_policy_bytes(const struct hydns_policy *p)
{
	return sizeof(*p) + (size_t)p->ids * (sizeof(*p->entry) + sizeof(*p->heap)) +
	       p->ghosts * sizeof(*p->ghost);
}

static bool is_live(const struct hydns_policy *p, uint32_t id)
{
	return id < p->ids && p->entry[id].live;
}

/* -- rates ------------------------------------------------------------------------------------------ */
/* A clock that stepped back counts as one that stood still. */
static float elapsed_s(const struct seen *k, uint64_t now_ms)
{
	uint32_t gone = (uint32_t)now_ms - k->last_ms;

	return gone > INT32_MAX ? 0 : (float)gone / 1000.0f;
}

static struct seen seen_after(const struct hydns_policy *p, const struct seen *k, uint32_t hits, uint64_t now_ms)
{
	float gone = elapsed_s(k, now_ms), keep = p->memory_s / (p->memory_s + gone);

	return (struct seen){ (k->hits + (float)hits) * keep, (k->time + gone) * keep,
			      hits ? 0 : k->quiet + gone, (uint32_t)now_ms };
}

/* prior_s: the prior's time, B above. */
static float rate_of(const struct seen *k, float prior_s)
{
	float time = k->time + prior_s, rate = (k->hits + PRIOR) / (time > SIGHTED_MIN_S ? time : SIGHTED_MIN_S);

	return rate * k->quiet > QUIET_HITS ? QUIET_HITS / k->quiet : rate;
}

static float rate_now(const struct hydns_policy *p, const struct seen *k, uint64_t now_ms)
{
	struct seen now = seen_after(p, k, 0, now_ms);

	return rate_of(&now, p->prior_s);
}

static uint64_t in_units(float rate)
{
	return (uint64_t)(rate * PER_SECOND + 0.5f);
}

static struct seen sighted(uint32_t count, uint32_t window_ms, uint64_t now_ms)
{
	return (struct seen){ count ? (float)(count - 1) : 0, (float)window_ms / 1000.0f, 0, (uint32_t)now_ms };
}

/* -- ghosts ------------------------------------------------------------------------------------------- */
static uint16_t shortened(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return (uint16_t)((bits + (1U << 14)) >> 15);
}

static float lengthened(uint16_t upper)
{
	uint32_t bits = (uint32_t)upper << 15;
	float x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

static struct seen ghost_seen(const struct ghost *g)
{
	return (struct seen){ lengthened(g->hits), lengthened(g->time), lengthened(g->quiet), g->last_ms };
}

/* The upper bits of the key give two places, the lower ones identify it there. */
static struct ghost *ghost_pair(const struct hydns_policy *p, uint32_t key)
{
	return &p->ghost[(uint32_t)((uint64_t)key * (p->ghosts / 2) >> 32) * 2];
}

static const struct ghost *ghost_find(const struct hydns_policy *p, uint32_t key)
{
	const struct ghost *g = ghost_pair(p, key);

	for (int i = 0; i < 2; i++)
		if (g[i].time && g[i].tag == (uint16_t)key)
			return &g[i];
	return NULL;
}

void hydns_policy_prefetch(const struct hydns_policy *p, uint64_t key)
{
	__builtin_prefetch(ghost_pair(p, (uint32_t)key));
}

static float ghost_rate(const struct hydns_policy *p, const struct ghost *g, uint64_t now_ms)
{
	struct seen seen = ghost_seen(g);

	return rate_now(p, &seen, now_ms);
}

static void ghost_keep(struct hydns_policy *p, const struct entry *e)
{
	struct ghost *g = ghost_pair(p, e->key), *into = g;
	uint16_t tag = (uint16_t)e->key;
	uint64_t now = e->seen.last_ms;

	if (!g[1].time || g[1].tag == tag ||
	    (g[0].tag != tag && g[0].time && ghost_rate(p, &g[1], now) < ghost_rate(p, &g[0], now)))
		into = g + 1;
	*into = (struct ghost){ e->seen.last_ms, tag, shortened(e->seen.hits), shortened(e->seen.time),
				shortened(e->seen.quiet) };
}

/* The best that is known of a question: from the rule that is replaced, from its ghost, from the plugin. */
static struct seen known(const struct hydns_policy *p, const struct hydns_sighted *s, uint32_t from_id,
			 uint64_t now_ms)
{
	struct seen best = sighted(s->count, s->window_ms, now_ms), other;
	const struct ghost *g = ghost_find(p, (uint32_t)s->key);

	if (is_live(p, from_id)) {
		other = seen_after(p, &p->entry[from_id].seen, 0, now_ms);
		if (rate_of(&other, p->prior_s) > rate_of(&best, p->prior_s))
			best = other;
	} else if (g) {
		other = ghost_seen(g);
		other = seen_after(p, &other, 0, now_ms);
		if (rate_of(&other, p->prior_s) > rate_of(&best, p->prior_s))
			best = other;
	}
	return best;
}

/* -- lists by rate ------------------------------------------------------------------------------------- */
/* The float's own exponent and first mantissa bits are its logarithm in eighths of an octave. */
static uint32_t list_for(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	bits >>= LISTS_SHIFT;
	if (bits <= LISTS_LOWEST)
		return 0;
	bits -= LISTS_LOWEST;
	return bits < LISTS ? bits : LISTS - 1;
}

static void list_append(struct hydns_policy *p, uint32_t id, uint32_t list)
{
	struct entry *e = &p->entry[id];

	e->list = (uint16_t)list;
	e->next = NONE;
	e->prev = p->last[list];
	if (e->prev == NONE)
		p->first[list] = id;
	else
		p->entry[e->prev].next = id;
	p->last[list] = id;
	p->in_use[list / 64] |= 1ULL << list % 64;
}

static void list_unlink(struct hydns_policy *p, uint32_t id)
{
	struct entry *e = &p->entry[id];
	uint32_t list = e->list;

	if (e->prev == NONE)
		p->first[list] = e->next;
	else
		p->entry[e->prev].next = e->next;
	if (e->next == NONE)
		p->last[list] = e->prev;
	else
		p->entry[e->next].prev = e->prev;
	if (p->first[list] == NONE)
		p->in_use[list / 64] &= ~(1ULL << list % 64);
}

/* The lowest list in use at or above this one, or LISTS. */
static uint32_t list_from(const struct hydns_policy *p, uint32_t list)
{
	for (uint32_t word = list / 64; word < LISTS_WORDS; word++) {
		uint64_t bits = p->in_use[word];

		if (word == list / 64)
			bits &= ~0ULL << list % 64;
		if (bits)
			return word * 64 + (uint32_t)__builtin_ctzll(bits);
	}
	return LISTS;
}

/* -- heap by expiry --------------------------------------------------------------------------------------- */
static void heap_put(struct hydns_policy *p, uint32_t at, uint32_t id)
{
	p->heap[at] = id;
	p->entry[id].heap_at = at;
}

/* As serial numbers (RFC 1982): ends lie within LIFE_MAX of now, or have just passed. */
static bool before(uint32_t one_ms, uint32_t other_ms)
{
	return (int32_t)(one_ms - other_ms) < 0;
}

static uint32_t heap_key(const struct hydns_policy *p, uint32_t at)
{
	return p->entry[p->heap[at]].expire_ms;
}

static bool has_expired(const struct entry *e, uint64_t now_ms)
{
	return !before((uint32_t)now_ms, e->expire_ms);
}

static void heap_up(struct hydns_policy *p, uint32_t at, uint32_t id)
{
	while (at) {
		uint32_t parent = (at - 1) / 2;

		if (!before(p->entry[id].expire_ms, heap_key(p, parent)))
			break;
		heap_put(p, at, p->heap[parent]);
		at = parent;
	}
	heap_put(p, at, id);
}

static void heap_down(struct hydns_policy *p, uint32_t at, uint32_t id)
{
	for (;;) {
		uint64_t child = 2 * (uint64_t)at + 1;

		if (child >= p->count)
			break;
		if (child + 1 < p->count && before(heap_key(p, (uint32_t)child + 1), heap_key(p, (uint32_t)child)))
			child++;
		if (!before(heap_key(p, (uint32_t)child), p->entry[id].expire_ms))
			break;
		heap_put(p, at, p->heap[child]);
		at = (uint32_t)child;
	}
	heap_put(p, at, id);
}

/* p->count is lower already: the last rule fills the gap. */
static void heap_delete(struct hydns_policy *p, uint32_t at)
{
	uint32_t moved = p->heap[p->count];

	if (at == p->count)
		return;
	if (at && before(p->entry[moved].expire_ms, heap_key(p, (at - 1) / 2)))
		heap_up(p, at, moved);
	else
		heap_down(p, at, moved);
}

/* -- the interface ------------------------------------------------------------------------------------------ */
void hydns_policy_remove(struct hydns_policy *p, uint32_t id)
{
	if (!is_live(p, id))
		return;
	ghost_keep(p, &p->entry[id]);
	list_unlink(p, id);
	p->entry[id].live = false;
	p->count--;
	heap_delete(p, p->entry[id].heap_at);
}

void hydns_policy_insert(struct hydns_policy *p, uint32_t id, uint32_t from_id, const struct hydns_sighted *s,
			 uint64_t expire_ms, uint64_t now_ms)
{
	struct seen seen;
	struct entry *e;

	if (id >= p->ids)
		return;
	seen = known(p, s, from_id, now_ms);
	hydns_policy_remove(p, id);
	e = &p->entry[id];
	e->expire_ms = (uint32_t)(expire_ms > now_ms + LIFE_MAX ? now_ms + LIFE_MAX : expire_ms);
	e->live = true;
	e->key = (uint32_t)s->key;
	e->seen = seen;
	list_append(p, id, list_for(rate_of(&seen, p->prior_s)));
	heap_up(p, p->count++, id);
}

void hydns_policy_hits(struct hydns_policy *p, uint32_t id, uint32_t hits, uint64_t now_ms)
{
	struct entry *e;
	uint32_t list;

	if (!is_live(p, id))
		return;
	e = &p->entry[id];
	e->seen = seen_after(p, &e->seen, hits, now_ms);
	list = list_for(rate_of(&e->seen, p->prior_s));
	if (list == e->list)
		return;
	list_unlink(p, id);
	list_append(p, id, list);
}

uint32_t hydns_policy_expired(struct hydns_policy *p, uint64_t now_ms)
{
	return p->count && has_expired(&p->entry[p->heap[0]], now_ms) ? p->heap[0] : NONE;
}

struct choice {
	bool (*accept)(uint32_t id, void *arg);
	void *arg;
	uint32_t left;         /* ids for which accept() may still be called */
};

static bool accepted(struct choice *c, uint32_t id)
{
	if (!c->left)
		return false;
	c->left--;
	return !c->accept || c->accept(id, c->arg);
}

/* Expired ids are a top part of the heap; its depth, and so the recursion's, is at most 32. */
static uint32_t expired_below(struct hydns_policy *p, uint64_t at, uint64_t now_ms, struct choice *c)
{
	uint32_t id;

	if (at >= p->count || !has_expired(&p->entry[p->heap[at]], now_ms) || !c->left)
		return NONE;
	if (accepted(c, p->heap[at]))
		return p->heap[at];
	id = expired_below(p, 2 * at + 1, now_ms, c);
	return id != NONE ? id : expired_below(p, 2 * at + 2, now_ms, c);
}

uint32_t hydns_policy_victim(struct hydns_policy *p, uint64_t now_ms,
			     bool (*accept)(uint32_t id, void *arg), void *arg)
{
	struct choice c = { accept, arg, VICTIM_SCAN };
	uint32_t id = expired_below(p, 0, now_ms, &c);

	if (id != NONE)
		return id;
	for (uint32_t list = list_from(p, 0); list < LISTS && c.left; list = list_from(p, list + 1))
		for (id = p->first[list]; id != NONE && c.left; id = p->entry[id].next)
			if (accepted(&c, id))
				return id;
	return NONE;
}

static void refill(struct hydns_policy *p, uint64_t now_ms)
{
	float most = HYDNS_EVICTIONS_S(p->options.capacity);

	if (now_ms > p->filled_ms)
		p->evictions += most * (float)(now_ms - p->filled_ms) / 1000.0f;
	p->filled_ms = now_ms;
	if (p->evictions > most)
		p->evictions = most;
}

/* By how much a newcomer must beat its victim: 1 while evictions are plenty, more the fewer are left. */
static float price(const struct hydns_policy *p)
{
	float plenty = HYDNS_EVICTIONS_S(p->options.capacity) * PLENTY;

	return p->evictions >= plenty ? 1.0f : plenty / (p->evictions > 1.0f ? p->evictions : 1.0f);
}

static float threshold_over(const struct hydns_policy *p, uint32_t victim, uint64_t now_ms)
{
	return rate_now(p, &p->entry[victim].seen, now_ms) * (1.0f + (float)p->options.hysteresis / 100.0f) *
	       price(p);
}

enum hydns_verdict hydns_policy_offer(struct hydns_policy *p, const struct hydns_sighted *s,
				      uint32_t life_ms, uint64_t now_ms, uint32_t *victim)
{
	struct seen seen = known(p, s, NONE, now_ms);
	float rate = rate_of(&seen, p->prior_s);
	uint32_t id;

	if (!life_ms || rate * (float)life_ms / 1000.0f < (float)p->options.min_hits)
		return HYDNS_REJECT_COLD;
	if (p->count < p->options.capacity && p->count < p->ids)
		return HYDNS_ADMIT;
	if (!p->options.capacity)
		return HYDNS_REJECT_FULL;
	id = hydns_policy_victim(p, now_ms, NULL, NULL);
	if (!has_expired(&p->entry[id], now_ms)) {
		refill(p, now_ms);
		if (p->evictions < 1 || rate <= threshold_over(p, id, now_ms))
			return HYDNS_REJECT_FULL;
		p->evictions -= 1;
	}
	*victim = id;
	return HYDNS_ADMIT_EVICT;
}

uint64_t hydns_policy_expect(const struct hydns_policy *p, const struct hydns_sighted *s, uint32_t from_id,
			     uint64_t now_ms)
{
	struct seen seen = known(p, s, from_id, now_ms);

	return in_units(rate_of(&seen, p->prior_s));
}

uint64_t hydns_policy_rate(const struct hydns_policy *p, uint32_t id)
{
	return is_live(p, id) ? in_units(rate_of(&p->entry[id].seen, p->prior_s)) : 0;
}

static float within(float x, float least, float most)
{
	return x < least ? least : x > most ? most : x;
}

uint32_t hydns_policy_threshold(struct hydns_policy *p, uint64_t now_ms)
{
	float least;
	uint64_t threshold;
	uint32_t id;

	p->memory_s = MEMORY_MAX_S;
	p->prior_s = 0;
	if (p->count < p->options.capacity || !p->count)
		return 0;
	id = hydns_policy_victim(p, now_ms, NULL, NULL);
	refill(p, now_ms);
	least = rate_now(p, &p->entry[id].seen, now_ms);
	p->memory_s = within(MEMORY_HITS / least, MEMORY_MIN_S, MEMORY_MAX_S);
	p->prior_s = PRIOR_HITS / least;
	threshold = in_units(threshold_over(p, id, now_ms));
	return threshold > UINT32_MAX ? UINT32_MAX : (uint32_t)threshold;
}

bool hydns_policy_promises(uint32_t count, uint32_t window_ms, uint32_t threshold)
{
	struct seen seen = sighted(count, window_ms, 0);

	return !threshold || in_units(rate_of(&seen, PRIOR_HITS * PER_SECOND / (float)threshold)) > threshold;
}

uint32_t hydns_policy_refresh_at(uint32_t life_ms, uint32_t percent, uint32_t min_window_ms, uint64_t rate,
				 uint64_t salt)
{
	uint64_t half = life_ms / 2, most, least = min_window_ms;
	float per_s = (float)rate / PER_SECOND, life_s = (float)life_ms / 1000.0f;

	most = (uint64_t)life_ms * percent / 100;
	if (most < min_window_ms)
		most = min_window_ms;
	if (most > half)
		most = half;
	if (!percent || per_s * (float)most / 1000.0f < REFRESH_QUERIES)
		return life_ms;
	if (least < REFRESH_QUERIES * 1000.0f / per_s)
		least = (uint64_t)(REFRESH_QUERIES * 1000.0f / per_s);
	if (least > most)
		least = most;
	if (most > REFRESH_SPREAD * least)
		most = REFRESH_SPREAD * least;
	/* Each life costs one query that the kernel lets through, and refreshed lives are shorter: by the time that
	 * they end early, and by the time that a name waits for its next query. It saves the queries that come
	 * during a lookup. */
	if (per_s * LOOKUP_S * life_s < (float)(least + most) / 2000.0f + 1.0f / per_s)
		return life_ms;
	salt = (salt ^ salt >> 32) * 0x9e3779b97f4a7c15ULL >> 32;
	return life_ms - (uint32_t)(least + salt % (most - least + 1));
}
