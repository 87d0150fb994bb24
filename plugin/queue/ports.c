/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "plugin/queue/ports.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "hydns/hash.h"

#define WORDS_LEN (HYDNS_PORTS * sizeof(uint64_t))

/* The words of a map that hydnsd has given. They stay mapped to the end, because ports of former maps may be in use. */
struct words {
	struct words *former;
	_Atomic uint64_t *of;                  /* by port */
	struct hydns_port_range range;
};

/* What a port is used for. */
struct use {
	void *owner;                           /* NULL: the thread has not claimed it */
	struct words *words;
	uint64_t word;
	uint8_t remote[16], local[16];
	uint16_t remote_port;
	uint8_t device;
	uint8_t id[2];
	bool ipv6, answered;
};

struct hydns_port_thread {
	struct hydns_ports *all;
	uint32_t index;
	uint32_t claimed;
	struct use *use;                       /* by port; only pages of the range are ever touched */
} __attribute__((aligned(64)));

struct hydns_ports {
	uint32_t threads;
	_Atomic(struct words *) words;         /* NULL: none is claimed */
	struct words *all_words;
	uint64_t avoid[HYDNS_PORTS / 64];      /* a bit for each port */
	struct hydns_port_thread *thread;
};

struct hydns_port_run hydns_ports_reserved(void)
{
	struct hydns_port_run reserved = { 0, 0 };
	FILE *f = fopen(HYDNS_RESERVED_PORTS, "re");
	char *text = NULL;
	size_t len = 0;

	if (!f)
		return reserved;
	if (getline(&text, &len, f) < 0 || !hydns_longest_run(text, &reserved))
		reserved.count = 0;
	free(text);
	fclose(f);
	return reserved;
}

struct hydns_ports *hydns_ports_new(uint32_t threads)
{
	struct hydns_ports *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->thread = aligned_alloc(_Alignof(struct hydns_port_thread), threads * sizeof(*p->thread));
	for (uint32_t i = 0; p->thread && i < threads; i++) {
		void *use = mmap(NULL, HYDNS_PORTS * sizeof(struct use), PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (use == MAP_FAILED)
			break;
		p->thread[i] = (struct hydns_port_thread){ .all = p, .index = i, .use = use };
		p->threads++;
	}
	if (p->threads == threads)
		return p;
	hydns_ports_free(p);
	return NULL;
}

void hydns_ports_free(struct hydns_ports *p)
{
	if (!p)
		return;
	for (uint32_t i = 0; i < p->threads; i++) {
		hydns_port_release_all(&p->thread[i]);
		munmap(p->thread[i].use, HYDNS_PORTS * sizeof(struct use));
	}
	while (p->all_words) {
		struct words *w = p->all_words;

		p->all_words = w->former;
		munmap((void *)w->of, WORDS_LEN);
		free(w);
	}
	free(p->thread);
	free(p);
}

struct hydns_port_thread *hydns_ports_thread(struct hydns_ports *p, uint32_t i)
{
	return i < p->threads ? &p->thread[i] : NULL;
}

int hydns_ports_use(struct hydns_ports *p, int fd, const struct hydns_port_range *range)
{
	struct words *w = p->all_words;
	void *of;

	/* The seed is the map's own: with the same one it is the same map. */
	while (w && memcmp(&w->range, range, sizeof(*range)) != 0)
		w = w->former;
	if (w) {
		atomic_store(&p->words, w);
		return 0;
	}
	if (range->count == 0 || range->first == 0 || (uint32_t)range->first + range->count > HYDNS_PORTS)
		return -EINVAL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	of = mmap(NULL, WORDS_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (of == MAP_FAILED) {
		free(w);
		return -errno;
	}
	*w = (struct words){ .former = p->all_words, .of = of, .range = *range };
	p->all_words = w;
	atomic_store(&p->words, w);
	return 0;
}

void hydns_ports_pause(struct hydns_ports *p)
{
	atomic_store(&p->words, NULL);
}

void hydns_ports_avoid(struct hydns_ports *p, bool (*avoid)(void *arg, uint16_t port), void *arg)
{
	memset(p->avoid, 0, sizeof(p->avoid));
	for (uint32_t port = 0; port < HYDNS_PORTS; port++)
		if (avoid(arg, (uint16_t)port))
			p->avoid[port / 64] |= 1ULL << port % 64;
}

/* --- one port ------------------------------------------------------------------------------------------- */
/* As the program has addresses: IPv4 as ::ffff:a.b.c.d. */
static uint64_t tag_of(const struct hydns_path *path, const uint64_t seed[2])
{
	static const uint8_t v4[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };
	const __u16 port = (__u16)__builtin_bswap16(path->remote_port);
	const __u64 key[2] = { seed[0], seed[1] };
	__u64 addr[2];

	if (path->ipv6)
		memcpy(addr, path->remote, 16);
	else {
		memcpy(addr, v4, 12);
		memcpy((uint8_t *)addr + 12, path->remote, 4);
	}
	return hydns_remote_tag(addr, port, key);
}

static bool claim(struct words *w, uint16_t port, uint64_t word)
{
	uint64_t nobody = 0;

	return atomic_compare_exchange_strong_explicit(&w->of[port], &nobody, word, memory_order_acq_rel,
						       memory_order_relaxed);
}

static void record(struct hydns_port_thread *t, uint16_t port, struct words *w, uint64_t word, const struct hydns_path *path,
		   uint8_t device, void *owner)
{
	struct use *u = &t->use[port];

	*u = (struct use){ .owner = owner, .words = w, .word = word, .remote_port = path->remote_port, .device = device,
			   .ipv6 = path->ipv6 };
	memcpy(u->remote, path->remote, sizeof(u->remote));
	memcpy(u->local, path->local, sizeof(u->local));
	t->claimed++;
}

bool hydns_ports_any(const struct hydns_port_thread *t)
{
	return atomic_load_explicit(&t->all->words, memory_order_relaxed);
}

uint16_t hydns_port_claim(struct hydns_port_thread *t, const struct hydns_path *path, uint8_t device, void *owner,
			  hydns_random_below *random, void *arg)
{
	struct words *w = atomic_load_explicit(&t->all->words, memory_order_acquire);
	uint64_t word;

	if (!w)
		return 0;
	word = HYDNS_PORT_WORD(t->index, w->range.resolver, device, tag_of(path, w->range.seed));
	for (unsigned tries = 0; tries < HYDNS_PORT_TRIES; tries++) {
		const uint16_t port = (uint16_t)(w->range.first + random(arg, w->range.count));

		if (t->all->avoid[port / 64] >> port % 64 & 1)
			continue;
		/* A word of a former map may have the port of a query that is still under way. */
		if (!t->use[port].owner && claim(w, port, word)) {
			record(t, port, w, word, path, device, owner);
			return port;
		}
	}
	return 0;
}

void hydns_port_set_id(struct hydns_port_thread *t, uint16_t port, const uint8_t id[2])
{
	memcpy(t->use[port].id, id, sizeof(t->use[port].id));
}

void hydns_port_set_answered(struct hydns_port_thread *t, uint16_t port)
{
	t->use[port].answered = true;
}

bool hydns_port_is_answered(const struct hydns_port_thread *t, uint16_t port)
{
	return t->use[port].answered;
}

void hydns_port_release(struct hydns_port_thread *t, uint16_t port)
{
	struct use *u = &t->use[port];

	if (!u->owner)
		return;
	u->owner = NULL;
	t->claimed--;
	/* Not a word that hydnsd has cleared, taking this resolver for ended, and that is another's now. */
	atomic_compare_exchange_strong_explicit(&u->words->of[port], &u->word, 0, memory_order_release, memory_order_relaxed);
}

/* Whether a datagram with this path, by this interface, is from where the query went to, and for where it came from. */
static bool answers(const struct use *u, const struct hydns_path *path, uint8_t device)
{
	return (u->device == device || device == HYDNS_ANY_DEVICE) && u->ipv6 == path->ipv6 && u->remote_port == path->remote_port &&
	       memcmp(u->remote, path->remote, sizeof(u->remote)) == 0 && memcmp(u->local, path->local, sizeof(u->local)) == 0;
}

void *hydns_port_owner(const struct hydns_port_thread *t, const struct hydns_path *path, uint8_t device)
{
	const struct use *u = &t->use[path->local_port];

	return u->owner && answers(u, path, device) ? u->owner : NULL;
}

bool hydns_port_is(const struct hydns_port_thread *t, uint16_t port, const void *owner)
{
	return owner && t->use[port].owner == owner;
}

bool hydns_port_find(const struct hydns_port_thread *t, struct hydns_path *path, const uint8_t id[2])
{
	const struct words *w = atomic_load_explicit(&t->all->words, memory_order_acquire);
	uint32_t seen = 0;

	for (uint32_t i = 0; w && i < w->range.count && seen < t->claimed; i++) {
		const struct use *u = &t->use[w->range.first + i];

		if (!u->owner)
			continue;
		seen++;
		if (memcmp(u->id, id, sizeof(u->id)) != 0 || u->remote_port != path->remote_port || u->ipv6 != path->ipv6 ||
		    memcmp(u->remote, path->remote, sizeof(u->remote)) != 0)
			continue;
		memcpy(path->local, u->local, sizeof(path->local));
		path->local_port = (uint16_t)(w->range.first + i);
		return true;
	}
	return false;
}

void hydns_port_release_all(struct hydns_port_thread *t)
{
	for (uint32_t port = 0; port < HYDNS_PORTS && t->claimed; port++)
		hydns_port_release(t, (uint16_t)port);
}

uint32_t hydns_ports_claimed(const struct hydns_port_thread *t)
{
	return t->claimed;
}
