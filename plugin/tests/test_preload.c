/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The preloading thread, between a counterpart of hydnsd (peer.c) and a resolver of this file, which records what it is asked, and
 * says that it has offered the answer.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "hydns/dns.h"
#include "hydns/names.h"
#include "plugin/tests/world.h"

#define NAMES 300                      /* more than one batch */
#define EDNS  1232
#define A     1
#define TXT   16

static const struct hydns_forward_name zone = { .name = "\7example\3org", .name_len = 13 };

/* -- the resolver --------------------------------------------------------------------------------------------- */
static struct {
	struct hydns_plugin *p;
	int fd, stop;
	pthread_t thread;
	_Atomic int asked[NAMES][2][4];    /* by number of the name, type, variant: how often */
	_Atomic int queries, strange;
	_Atomic int probes, types;         /* of these for templates that were missed, with DO: behind n0, and of n1; ... */
	_Atomic int hashed;                /* ... and below n0a, as long as a name that is made of a hash */
	_Atomic int drops;                 /* so many more queries get no reply */
	_Atomic bool silent, slow, unfit, refuses, ending;
} resolver;

/* "n123.example.org" */
static size_t name_of(unsigned n, uint8_t *out)
{
	char label[8];
	int len = snprintf(label, sizeof(label), "n%u", n);

	out[0] = (uint8_t)len;
	memcpy(out + 1, label, (size_t)len);
	memcpy(out + 1 + len, zone.name, zone.name_len);
	return 1 + (size_t)len + zone.name_len;
}

/* Records a query for data if it is right to the octet. */
static void record_preloaded(const uint8_t *q, size_t len)
{
	unsigned n = (unsigned)strtoul((const char *)q + 14, NULL, 10), variant;
	uint8_t name[HYDNS_NAME_MAX], rest[15] = { 0 };
	size_t name_len;

	if (n >= NAMES || len < 12 + 4 + 11) {
		atomic_fetch_add(&resolver.strange, 1);
		return;
	}
	name_len = name_of(n, name);
	variant = (q[2] & 1 ? 0 : HYDNS_VARIANT_NO_RD) | (q[len - 4] & 0x80 ? HYDNS_VARIANT_DO : 0);
	memcpy(rest, q + 12 + name_len, sizeof(rest));
	if (len != 12 + name_len + 15 || memcmp(q + 12, name, name_len) || (q[2] & ~1) || q[3] || memcmp(q + 4, "\0\1\0\0\0\0\0\1", 8) ||
	    rest[0] || (rest[1] != A && rest[1] != TXT) || memcmp(rest + 2, "\0\1\0\0\51", 5) || (rest[7] << 8 | rest[8]) != EDNS)
		atomic_fetch_add(&resolver.strange, 1);
	else
		atomic_fetch_add(&resolver.asked[n][rest[1] == TXT][variant], 1);
}

/* 61 octets, and the label that was missed. */
#define ZEROS "\0\0\0\0\0\0\0\0\0\0"
static const char below_n0a[] = ZEROS ZEROS ZEROS ZEROS ZEROS ZEROS "\0\3n0a";

/* Whether the question is that, of example.org, with DO and RD. The label's length is not looked at: there may be more than one. */
static bool asks(const uint8_t *q, size_t len, const char *label, size_t label_len, uint16_t qtype)
{
	const uint8_t *name = q + 12, *type = name + 1 + label_len + zone.name_len;

	return len == 12 + 1 + label_len + zone.name_len + 15 && !memcmp(name + 1, label, label_len) &&
	       !memcmp(name + 1 + label_len, zone.name, zone.name_len) && type[1] == qtype && (q[2] & 1) && (q[len - 4] & 0x80);
}

/* Records the query if it is right to the octet. */
static void record(const uint8_t *q, size_t len)
{
	if (asks(q, len, "n0", 3, HYDNS_BELOW_TYPE))
		atomic_fetch_add(&resolver.probes, 1);
	else if (asks(q, len, below_n0a, sizeof(below_n0a) - 1, HYDNS_BELOW_TYPE))
		atomic_fetch_add(&resolver.hashed, 1);
	else if (asks(q, len, "n1", 2, HYDNS_NODATA_TYPE))
		atomic_fetch_add(&resolver.types, 1);
	else
		record_preloaded(q, len);
}

static void answer(const struct sockaddr_in *to, uint8_t *q, size_t len)
{
	if (!atomic_load(&resolver.ending) && !hydns_plugin_is_preload(resolver.p, (const struct sockaddr *)to))
		atomic_fetch_add(&resolver.strange, 1);
	for (int i = 0; i < 2 && atomic_load(&resolver.slow); i++)
		peer_nap();
	record(q, len);
	atomic_fetch_add(&resolver.queries, 1);
	if (atomic_load(&resolver.silent) || (atomic_load(&resolver.drops) > 0 && atomic_fetch_sub(&resolver.drops, 1) > 0))
		return;
	if (atomic_load(&resolver.refuses))
		q[3] |= HYDNS_RCODE_REFUSED;
	else if (atomic_load(&resolver.unfit))
		hydns_plugin_preload_unfit(resolver.p);
	else
		atomic_fetch_add(&resolver.p->preload_told, 1);
	q[2] |= 0x80;
	sendto(resolver.fd, q, len, 0, (const struct sockaddr *)to, sizeof(*to));
}

static void *resolve(void *arg)
{
	struct pollfd f[] = { { .fd = resolver.fd, .events = POLLIN }, { .fd = resolver.stop, .events = POLLIN } };

	while (poll(f, 2, -1) > 0 && !f[1].revents) {
		struct sockaddr_in from;
		socklen_t from_len = sizeof(from);
		uint8_t q[512];
		ssize_t len = recvfrom(resolver.fd, q, sizeof(q), 0, (struct sockaddr *)&from, &from_len);

		if (len > 12)
			answer(&from, q, (size_t)len);
	}
	return arg;
}

static void start_resolver(struct world *w, struct sockaddr_storage *at)
{
	struct sockaddr_in own = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(own);

	memset(&resolver, 0, sizeof(resolver));
	resolver.p = w->p;
	resolver.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	resolver.stop = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(bind(resolver.fd, (struct sockaddr *)&own, sizeof(own)), 0);
	assert_int_equal(getsockname(resolver.fd, (struct sockaddr *)&own, &len), 0);
	memset(at, 0, sizeof(*at));
	memcpy(at, &own, sizeof(own));
	assert_int_equal(pthread_create(&resolver.thread, NULL, resolve, NULL), 0);
}

static void stop_resolver(void)
{
	assert_int_equal(eventfd_write(resolver.stop, 1), 0);
	pthread_join(resolver.thread, NULL);
	close(resolver.fd);
	close(resolver.stop);
}

/* -- the zone -------------------------------------------------------------------------------------------------- */
static struct {
	_Atomic unsigned names;            /* n0, n1, ... */
	_Atomic bool absent;
	_Atomic int whole, single, below, looks; /* calls */
	_Atomic bool held;                 /* a look waits */
	_Atomic unsigned unasked;          /* more names, which have no questions */
} data;

static int list(void *arg, const uint8_t *origin, size_t origin_len, const uint8_t *name, size_t len, bool below,
		struct hydns_preload_list *to)
{
	assert_ptr_equal(arg, &data);
	assert_memory_equal(origin, zone.name, origin_len);
	if (atomic_load(&data.absent))
		return -ENOENT;
	atomic_fetch_add(len == origin_len ? &data.whole : below ? &data.below : &data.single, 1);
	for (unsigned n = 0; n < atomic_load(&data.names); n++) {
		uint8_t own[HYDNS_NAME_MAX];
		size_t own_len = name_of(n, own);

		if (len != origin_len && (len != own_len || memcmp(name, own, len)))
			continue;
		if (!hydns_preload_add(to, own, own_len, A) || !hydns_preload_add(to, own, own_len, TXT))
			break;
	}
	return 0;
}

static _Atomic enum hydns_proofs signed_with; /* of the next zone */
static _Atomic unsigned iterations;        /* with NSEC3 */
#define ZERO_HASH "\40" "00000000000000000000000000000000"

static struct hydns_name_data what_of_zone(void)
{
	return (struct hydns_name_data){ .below = HYDNS_BELOW_NOTHING, .proofs = signed_with };
}

static int all_names(void *arg, const uint8_t *origin, size_t origin_len, struct hydns_preload_names *to)
{
	(void)arg;
	if (signed_with == HYDNS_PROOFS_NSEC3) {
		hydns_preload_hashes(to, HYDNS_NSEC3_SHA1, iterations, (const uint8_t *)"\1\2", 2);
		hydns_preload_add_hash(to, (const uint8_t *)ZERO_HASH);
		hydns_preload_add_hash(to, zone.name);         /* which is none */
	}
	if (atomic_load(&data.absent) || !hydns_preload_add_name(to, origin, origin_len, what_of_zone()))
		return -ENOENT;
	for (unsigned n = 0; n < atomic_load(&data.names) + atomic_load(&data.unasked); n++) {
		uint8_t own[HYDNS_NAME_MAX];

		if (!hydns_preload_add_name(to, own, name_of(n, own), what_of_zone()))
			break;
	}
	return 0;
}

static int look(void *arg, const uint8_t *origin, size_t origin_len, const uint8_t *name, size_t len, struct hydns_name_data *found)
{
	(void)arg;
	(void)origin;
	(void)name;
	atomic_fetch_add(&data.looks, 1);
	for (int i = 0; i < 5000 && atomic_load(&data.held); i++)
		usleep(1000);
	*found = what_of_zone();
	if (len != origin_len && signed_with == HYDNS_PROOFS_NONE)
		found->below = HYDNS_BELOW_ABSENT;
	return atomic_load(&data.absent) ? -ENOENT : 0;
}

/* What it says of its SOA. */
static pthread_mutex_t soa_lock = PTHREAD_MUTEX_INITIALIZER;
static struct hydns_zone_soa its_soa;      /* of is NULL: it says nothing */

static struct hydns_zone_soa soa_of_shape(uint8_t serial, const char *shape)
{
	struct hydns_zone_soa soa = { .of = &data, .numbers = { 0, 0, 0, serial }, .signature_len = 2, .signature = { serial, 1 } };

	hydns_zone_soa_shows(&soa, shape, strlen(shape));
	return soa;
}

static void its_soa_is(struct hydns_zone_soa soa)
{
	pthread_mutex_lock(&soa_lock);
	its_soa = soa;
	pthread_mutex_unlock(&soa_lock);
}

static int look_at_soa(void *arg, const uint8_t *origin, size_t origin_len, struct hydns_zone_soa *out)
{
	(void)arg;
	(void)origin;
	(void)origin_len;
	pthread_mutex_lock(&soa_lock);
	*out = its_soa;
	pthread_mutex_unlock(&soa_lock);
	return 0;
}

/* -- both ------------------------------------------------------------------------------------------------------ */
static void begin_with(struct world *w, unsigned names, bool absent)
{
	struct hydns_preload_options o = { .edns_size = EDNS, .zone = &zone, .zones = 1, .list = list, .names = all_names, .look = look,
					   .arg = &data };

	if (its_soa.of)
		o.soa = look_at_soa;
	memset(&data, 0, sizeof(data));
	data.names = names;
	data.absent = absent;
	start_resolver(w, &o.service);
	assert_int_equal(hydns_plugin_preload(w->p, &o), 0);
}

static void begin(struct world *w, unsigned names)
{
	begin_with(w, names, false);
}

static void end(struct world *w)
{
	atomic_store(&resolver.ending, true);
	signed_with = HYDNS_PROOFS_NONE;
	iterations = 0;
	hydns_plugin_end_preload(w->p);
	its_soa_is((struct hydns_zone_soa){ 0 });
	stop_resolver();
	assert_int_equal(resolver.strange, 0);
	peer_stop(&w->peer);
}

static void forget_questions(void)
{
	for (unsigned n = 0; n < NAMES; n++)
		for (unsigned k = 0; k < 8; k++)
			atomic_store(&resolver.asked[n][k / 4][k % 4], 0);
}

static bool noted(struct world *w, const char *text)
{
	return strstr(peer_note(&w->peer, HYDNS_NOTE_PRELOAD), text);
}

/* Starts both, and waits until all of a zone of so many names is preloaded. */
static void preload(struct world *w, unsigned names)
{
	start_both(w);
	begin(w, names);
	assert_true(BECOMES(noted(w, "to 0 of them not taken")));
}

static bool all_asked(unsigned names, int times)
{
	for (unsigned n = 0; n < names; n++)
		for (unsigned type = 0; type < 2; type++)
			for (unsigned variant = 0; variant < 4; variant++)
				if (resolver.asked[n][type][variant] < times)
					return false;
	return true;
}

static void all_is_asked_in_all_variants(void **state)
{
	struct world *w = *state;

	start_both(w);
	begin(w, NAMES);
	assert_true(BECOMES(noted(w, "example.org: 2400 questions asked, the answers to 0 of them not taken")));
	assert_true(all_asked(NAMES, 1));
	assert_int_equal(resolver.queries, NAMES * 2 * 4);     /* and none twice */
	end(w);
}

static void what_is_lost_is_asked_again(void **state)
{
	struct world *w = *state;

	start_both(w);
	memset(&resolver, 0, sizeof(resolver));
	begin(w, 10);
	atomic_store(&resolver.drops, 7);
	assert_true(BECOMES(noted(w, "80 questions asked, the answers to 0 of them not taken")));
	assert_true(all_asked(10, 1));
	end(w);
}

static void change(struct world *w, unsigned n, bool whole)
{
	struct hydns_zone_version v;
	uint8_t name[HYDNS_NAME_MAX];
	size_t len = name_of(n, name);

	hydns_zone_version_begin(&v, zone.name, zone.name_len);
	hydns_zone_version_changes(&v, name, len, HYDNS_ZONE_DATA, len);
	v.whole |= whole;
	hydns_plugin_zone_version(w->p, &v);
	hydns_zone_version_end(&v);
}

static void settle(struct world *w, const uint8_t *origin)
{
	struct hydns_zone_version v;

	hydns_zone_version_begin(&v, origin, zone.name_len);
	hydns_plugin_zone_settled(w->p, &v);
	hydns_zone_version_end(&v);
}

static void settled(struct world *w)
{
	settle(w, zone.name);
}

/* Also what is lost so often that the thread turns to other things: later. */
static void what_is_lost_for_long_is_asked_again(void **state)
{
	const int at_least = 8 * (4 + 1);          /* the questions of a name, in each attempt and one more */
	struct world *w = *state;

	preload(w, 1);
	atomic_store(&resolver.silent, true);
	resolver.queries = 0;
	change(w, 0, false);
	settled(w);
	assert_true(BECOMES(atomic_load(&resolver.queries) >= at_least));
	atomic_store(&resolver.silent, false);
	end(w);
}

/* hydnsd refuses offers that are older than a withdrawal. */
static void what_hydnsd_refuses_is_asked_again(void **state)
{
	struct world *w = *state;

	preload(w, 10);
	w->peer.preloaded = (struct hydns_preloaded){ .all = 1 };
	w->peer.lost_len = 0;
	atomic_store(&w->peer.preload_news, true);
	assert_true(BECOMES(!atomic_load(&w->peer.preload_news)));
	w->peer.preloaded = (struct hydns_preloaded){ .refused = 3 };
	atomic_store(&w->peer.preload_news, true);
	assert_true(BECOMES(atomic_load(&data.whole) == 2 && all_asked(10, 2)));
	assert_true(BECOMES(noted(w, "to 0 of them not taken")));
	end(w);
}

static void what_was_withdrawn_is_asked_again(void **state)
{
	struct world *w = *state;
	struct hydns_lost lost = { .qtype = htons(TXT), .variant = HYDNS_VARIANT_DO };
	uint8_t name[HYDNS_NAME_MAX];

	preload(w, 10);
	lost.name_len = (uint8_t)name_of(7, name);
	memcpy(w->peer.lost, &lost, sizeof(lost));
	memcpy(w->peer.lost + sizeof(lost), name, lost.name_len);
	w->peer.lost_len = sizeof(lost) + lost.name_len;
	w->peer.preloaded = (struct hydns_preloaded){ 0 };
	atomic_store(&w->peer.preload_news, true);
	assert_true(BECOMES(resolver.asked[7][1][HYDNS_VARIANT_DO] == 2));
	assert_true(BECOMES(!atomic_load(&w->peer.preload_news)));
	assert_int_equal(resolver.queries, 81);
	end(w);
}

static void load_anew(struct world *w)
{
	change(w, 0, true);
	settled(w);
}

/* Names that a version brings exist only when it is committed. */
static void what_a_version_brings_is_asked_after_it(void **state)
{
	struct world *w = *state;
	int looks;

	preload(w, 10);
	change(w, 10, false);
	looks = atomic_load(&w->peer.preloads);
	assert_true(BECOMES(atomic_load(&w->peer.preloads) > looks + 1));      /* it has looked for something to do */
	assert_int_equal(data.single, 0);
	atomic_store(&data.names, 11);
	settle(w, (const uint8_t *)"\7Example\3Org");
	assert_true(BECOMES(all_asked(11, 1)));
	assert_int_equal(data.single, 1);
	assert_int_equal(resolver.queries, 88);
	load_anew(w);
	assert_true(BECOMES(all_asked(11, 2)));
	assert_int_equal(data.whole, 2);
	end(w);
}

/* -- names ----------------------------------------------------------------------------------------------------- */
static const struct hydns_names_bucket *set_of(struct world *w)
{
	struct stat st;
	void *at;

	assert_true(BECOMES(atomic_load(&w->peer.sets)));
	assert_int_equal(fstat(w->peer.set, &st), 0);
	at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, w->peer.set, 0);
	assert_true(at != MAP_FAILED);
	return at;
}

static bool in_set(const struct hydns_names_bucket *set, unsigned n)
{
	const struct hydns_names_head *head = (const void *)set;
	uint8_t name[HYDNS_NAME_MAX];
	struct hydns_names_hash h = hydns_names_hash(name, (uint32_t)name_of(n, name), head->seed);

	for (int second = 0; second < 2; second++)
		for (unsigned i = 0; i < HYDNS_NAMES_ENTRIES; i++)
			if (set[hydns_names_bucket(h.tag, head->mask, second)].entry[i].tag == h.tag)
				return true;
	return false;
}

/* A version in which the first so many names come or go. */
static void names_change(struct world *w, unsigned names)
{
	struct hydns_zone_version v;
	uint8_t name[HYDNS_NAME_MAX];

	hydns_zone_version_begin(&v, zone.name, zone.name_len);
	for (unsigned n = 0; n < names; n++) {
		size_t len = name_of(n, name);

		hydns_zone_version_changes(&v, name, len, HYDNS_ZONE_DATA | HYDNS_ZONE_COMES_OR_GOES, len);
	}
	hydns_plugin_zone_version(w->p, &v);
	hydns_zone_version_end(&v);
}

/* What the zone does not have is out of the set once it has been looked for. But what a version will bring is not looked for in what is
 * there before: here the data of the first version are looked at when the second one is told and not served. */
static void a_version_that_is_told_and_not_served(void **state)
{
	struct world *w = *state;
	const struct hydns_names_bucket *set;

	preload(w, 2);
	set = set_of(w);
	assert_true(in_set(set, 0) && in_set(set, 1) && !in_set(set, 2));
	atomic_store(&data.held, true);
	names_change(w, 2);
	settled(w);
	assert_true(BECOMES(atomic_load(&data.looks) == 1));    /* for n0; n1 comes after it */
	names_change(w, 2);
	atomic_store(&data.held, false);
	assert_true(BECOMES(atomic_load(&data.looks) >= 4));    /* and for the origin, twice */
	assert_true(in_set(set, 0) && in_set(set, 1));
	settled(w);
	assert_true(BECOMES(!in_set(set, 0) && !in_set(set, 1)));
	end(w);
}

/* The thread has looked for something to do, and has done it. */
static void wait_for_turns(struct world *w)
{
	int turns = atomic_load(&w->peer.preloads);

	assert_true(BECOMES(atomic_load(&w->peer.preloads) > turns + 1));
}

/* As of zones of one name in two views: nothing that they bring is looked for before both are served. */
static void versions_of_one_zone_at_a_time(void **state)
{
	struct world *w = *state;
	const struct hydns_names_bucket *set;

	preload(w, 2);
	set = set_of(w);
	names_change(w, 2);
	names_change(w, 1);
	settled(w);
	wait_for_turns(w);
	assert_int_equal(data.looks, 0);
	assert_true(in_set(set, 0) && in_set(set, 1));
	settled(w);
	assert_true(BECOMES(!in_set(set, 0) && !in_set(set, 1)));
	end(w);
}

/* While names are found in which other data differ, a version of the former ones is served. What that brings is not looked for in these. */
static void a_version_of_data_that_are_exchanged(void **state)
{
	struct world *w = *state;
	const struct hydns_names_bucket *set;
	struct hydns_zone_version v;

	preload(w, 2);
	set = set_of(w);
	hydns_zone_version_begin(&v, zone.name, zone.name_len);
	v.exchanged = true;
	hydns_plugin_zone_exchanged(w->p, &v);
	names_change(w, 2);
	settled(w);
	wait_for_turns(w);
	assert_int_equal(data.looks, 0);
	assert_true(in_set(set, 0) && in_set(set, 1));
	hydns_plugin_zone_version(w->p, &v);
	hydns_plugin_zone_served(w->p, &v);
	hydns_plugin_zone_settled(w->p, &v);
	hydns_zone_version_end(&v);
	assert_true(BECOMES(!in_set(set, 0) && !in_set(set, 1)));
	assert_int_equal(data.whole, 1);
	end(w);
}

/* It has told its names to nobody: what it brings is found when it is served. */
static void a_version_that_began_before(void **state)
{
	struct world *w = *state;
	const struct hydns_names_bucket *set;
	struct hydns_zone_version v;

	start_both(w);
	hydns_zone_version_begin(&v, zone.name, zone.name_len);
	begin(w, 2);
	assert_true(BECOMES(noted(w, "to 0 of them not taken; names that it does not have are answered")));
	set = set_of(w);
	assert_false(in_set(set, 2));
	atomic_store(&data.names, 3);
	hydns_plugin_zone_served(w->p, &v);
	hydns_plugin_zone_settled(w->p, &v);
	hydns_zone_version_end(&v);
	assert_true(BECOMES(in_set(set, 2) && all_asked(3, 1)));
	assert_int_equal(data.whole, 2);
	end(w);
}

/* Their numbers would not fit the set. */
static void too_many_zones(void **state)
{
	struct world *w = *state;
	struct hydns_preload_options o = { .zone = &zone, .zones = HYDNS_PRELOAD_ZONES + 1, .service.ss_family = AF_INET };

	start_both(w);
	assert_int_equal(hydns_plugin_preload(w->p, &o), -E2BIG);
	peer_stop(&w->peer);
}

/* Before it is served nothing is said of its names, and all of the zone around it are gathered anew. */
static void another_zone_that_comes_below(void **state)
{
	struct world *w = *state;
	const struct hydns_names_bucket *set;
	struct hydns_zone_version v;
	uint8_t name[HYDNS_NAME_MAX];

	preload(w, 2);
	set = set_of(w);
	assert_false(in_set(set, 2));
	hydns_zone_version_begin(&v, name, name_of(2, name));
	v.whole = true;
	hydns_plugin_zone_version(w->p, &v);
	hydns_zone_version_end(&v);
	assert_true(in_set(set, 2));
	assert_true(BECOMES(atomic_load(&data.whole) == 2));
	end(w);
}

/* Of what comes below a preloaded zone, that one's denials go, too; of what comes around it, all goes. Its names are gathered anew. */
static void names_that_change_hands(struct world *w, const uint8_t *name, size_t len, bool back, int withdrawals)
{
	int before = atomic_load(&w->peer.withdrawals);

	hydns_plugin_names_change_hands(w->p, name, len, back);
	assert_int_equal(atomic_load(&w->peer.withdrawals) - before, withdrawals);
	assert_int_equal(w->peer.last_withdrawal.scope, name ? HYDNS_SCOPE_SUBTREE : HYDNS_SCOPE_ALL);
}

static void others_that_answer_below(void **state)
{
	struct world *w = *state;
	const struct hydns_names_bucket *set;
	uint8_t name[HYDNS_NAME_MAX];
	size_t len = name_of(2, name);

	preload(w, 2);
	set = set_of(w);
	names_that_change_hands(w, name, len, false, 2);
	assert_true(in_set(set, 2));
	assert_true(BECOMES(atomic_load(&data.whole) == 2));
	names_that_change_hands(w, zone.name, zone.name_len, false, 1);
	assert_true(BECOMES(atomic_load(&data.whole) == 3));
	names_that_change_hands(w, NULL, 0, false, 1);
	assert_true(BECOMES(atomic_load(&data.whole) == 4));
	end(w);
}

/* -- its present SOA --------------------------------------------------------------------------------------------- */
static const struct hydns_soa_now *now_of(struct world *w)
{
	struct stat st;
	const uint8_t *set = (const uint8_t *)set_of(w);

	assert_int_equal(fstat(w->peer.set, &st), 0);
	return (const void *)(set + (size_t)st.st_size / HYDNS_SOA_ELEMENT * HYDNS_SOA_ELEMENT - sizeof(struct hydns_soa_now));
}

static bool is_open(const struct hydns_soa_now *now)
{
	return !(__atomic_load_n(&now->number, __ATOMIC_SEQ_CST) & 1) && now->id;
}

static bool is_now(const struct hydns_soa_now *now, uint8_t serial)
{
	const uint32_t signature = serial + (1U << 8);

	return is_open(now) && now->numbers[3] == serial && now->numbers_sum == serial << 8 && now->signature_len == 2 &&
	       now->signature[0] == serial && now->signature_sum == signature;
}

/* Starts with the first SOA. Returns what the program sees. */
static const struct hydns_soa_now *begin_with_soa(struct world *w)
{
	const struct hydns_soa_now *now;

	its_soa_is(soa_of_shape(1, "any"));
	preload(w, 2);
	now = now_of(w);
	assert_true(BECOMES(is_now(now, 1)));
	return now;
}

/* A version with this SOA, that is to be served. */
static void tell(struct world *w, struct hydns_zone_version *v, struct hydns_zone_soa soa)
{
	hydns_zone_version_begin(v, zone.name, zone.name_len);
	hydns_zone_version_changes(v, zone.name, zone.name_len, HYDNS_ZONE_SOA, zone.name_len);
	v->soa = soa;
	hydns_zone_version_mark(v);
	hydns_plugin_zone_version(w->p, v);
}

static void serve(struct world *w, struct hydns_zone_version *v)
{
	hydns_plugin_zone_changed(w->p);
	hydns_plugin_zone_served(w->p, v);
	hydns_zone_version_unmark(v);
	hydns_plugin_zone_settled(w->p, v);
	hydns_zone_version_end(v);
}

/* Nobody relies on it from before a version until that is served; and a grace period passes, though no rule depends on any name. */
static void versions_change_the_soa(void **state)
{
	struct world *w = *state;
	const struct hydns_soa_now *now = begin_with_soa(w);
	const uint64_t id = now->id;
	struct hydns_zone_version v;

	for (uint8_t serial = 2; serial < 5; serial++) {
		int before = atomic_load(&w->peer.names_withdrawals);

		tell(w, &v, soa_of_shape(serial, "any"));
		assert_false(is_open(now));
		assert_int_equal(atomic_load(&w->peer.names_withdrawals), before + 1);
		serve(w, &v);
		assert_true(is_now(now, serial));
		assert_true(now->id == id);
	}
	assert_int_equal(atomic_load(&w->peer.withdrawals), 0);
	end(w);
}

/* The last one counts, when all are served. */
static void versions_that_overlap(void **state)
{
	struct world *w = *state;
	const struct hydns_soa_now *now = begin_with_soa(w);
	struct hydns_zone_version v, next;

	tell(w, &v, soa_of_shape(2, "any"));
	tell(w, &next, soa_of_shape(3, "any"));
	serve(w, &v);
	assert_false(is_open(now));
	serve(w, &next);
	assert_true(is_now(now, 3));
	end(w);
}

/* What was made for another shape is withdrawn, and has another id. */
static void another_shape(void **state)
{
	static const uint8_t expected[] = "\4+blk\7example\3org";
	struct world *w = *state;
	const struct hydns_soa_now *now = begin_with_soa(w);
	const uint64_t id = now->id;
	struct hydns_zone_version v;

	tell(w, &v, soa_of_shape(2, "other"));
	assert_int_equal(atomic_load(&w->peer.withdrawals), 1);
	assert_int_equal(w->peer.last_withdrawal.name_len, sizeof(expected));
	assert_memory_equal(w->peer.last_withdrawal.name, expected, sizeof(expected));
	serve(w, &v);
	assert_true(is_now(now, 2));
	assert_true(now->id != id);
	end(w);
}

/* Of data that are not served, as the unsigned ones of a zone that is signed apart: the present one is found. */
static void versions_of_other_data(void **state)
{
	struct world *w = *state;
	const struct hydns_soa_now *now = begin_with_soa(w);
	struct hydns_zone_soa other = soa_of_shape(9, "any");
	struct hydns_zone_version v;

	other.of = &other;
	tell(w, &v, other);
	assert_false(is_open(now));
	hydns_plugin_zone_served(w->p, &v);
	wait_for_turns(w);
	assert_false(is_open(now));                            /* not before the version is over */
	serve(w, &v);
	assert_true(BECOMES(is_now(now, 1)));
	end(w);
}

static void other_data(void **state)
{
	struct world *w = *state;
	const struct hydns_soa_now *now = begin_with_soa(w);
	struct hydns_zone_version v;

	hydns_zone_version_begin(&v, zone.name, zone.name_len);
	v.whole = true;
	v.soa = soa_of_shape(7, "any");
	hydns_zone_version_mark(&v);
	hydns_plugin_zone_version(w->p, &v);
	assert_false(is_open(now));
	its_soa_is(soa_of_shape(2, "any"));
	serve(w, &v);
	assert_true(BECOMES(is_now(now, 2)));
	end(w);
}

/* By names alone; and a version of the former data is served after these. */
static void exchanged_data(void **state)
{
	struct world *w = *state;
	const struct hydns_soa_now *now = begin_with_soa(w);
	struct hydns_zone_version v, late;

	hydns_zone_version_begin(&v, zone.name, zone.name_len);
	v.exchanged = true;
	hydns_zone_version_mark(&v);
	hydns_plugin_zone_exchanged(w->p, &v);
	hydns_zone_version_changes(&v, zone.name, zone.name_len, HYDNS_ZONE_SOA, zone.name_len);
	hydns_plugin_zone_version(w->p, &v);
	assert_false(is_open(now));
	tell(w, &late, soa_of_shape(8, "any"));
	its_soa_is(soa_of_shape(2, "any"));
	serve(w, &v);
	assert_false(is_open(now));
	serve(w, &late);
	assert_true(BECOMES(is_now(now, 2)));
	end(w);
}

/* It may be served at any moment. */
static void the_soa_of_a_version_that_began_before(void **state)
{
	struct world *w = *state;
	const struct hydns_soa_now *now;
	struct hydns_zone_version v;

	start_both(w);
	hydns_zone_version_begin(&v, zone.name, zone.name_len);
	hydns_zone_version_changes(&v, zone.name, zone.name_len, HYDNS_ZONE_SOA, zone.name_len);
	hydns_zone_version_mark(&v);
	its_soa_is(soa_of_shape(1, "any"));
	begin(w, 2);
	assert_true(BECOMES(noted(w, "to 0 of them not taken")));
	now = now_of(w);
	wait_for_turns(w);
	assert_false(is_open(now));
	its_soa_is(soa_of_shape(2, "any"));
	serve(w, &v);
	assert_true(BECOMES(is_now(now, 2)));
	end(w);
}

/* A new set has the names of the data that are there; and those of a version that was told to the former set, and is served later. */
static void a_set_that_replaces_another(void **state)
{
	struct world *w = *state;
	const struct hydns_names_bucket *set;

	preload(w, 2);
	names_change(w, 3);
	w->peer.preloaded = (struct hydns_preloaded){ .all = 1 };
	w->peer.lost_len = 0;
	atomic_store(&w->peer.has_set, false);
	atomic_store(&w->peer.preload_news, true);
	assert_true(BECOMES(atomic_load(&w->peer.sets) == 2 && atomic_load(&data.whole) == 2));
	set = set_of(w);
	assert_true(in_set(set, 0) && in_set(set, 1) && in_set(set, 2));
	settled(w);
	assert_true(BECOMES(!in_set(set, 2)));
	end(w);
}

/* A zone that outgrows its set gets a larger one, and all rules go: templates may be shown by names that the new one does not know. */
static void a_set_that_is_outgrown(void **state)
{
	struct world *w = *state;
	const struct hydns_names_bucket *set;
	uint32_t epoch;

	preload(w, 2);
	epoch = hydns_pages_epoch(w->p->pages);
	load_anew(w);
	assert_true(BECOMES(atomic_load(&data.whole) == 2));
	assert_int_equal(hydns_pages_epoch(w->p->pages), epoch);
	atomic_store(&data.unasked, HYDNS_NAMES_BUCKETS_LEAST * HYDNS_NAMES_ENTRIES);
	load_anew(w);                          /* for as many as there were, it fits */
	load_anew(w);
	assert_true(BECOMES(atomic_load(&w->peer.sets) == 2 && atomic_load(&data.whole) >= 5));
	assert_int_not_equal(hydns_pages_epoch(w->p->pages), epoch);
	set = set_of(w);
	assert_true(in_set(set, 0) && in_set(set, HYDNS_NAMES_BUCKETS_LEAST * HYDNS_NAMES_ENTRIES));
	assert_true(((const struct hydns_names_head *)set)->open);
	end(w);
}

/* -- templates that are missed --------------------------------------------------------------------------------- */
static void miss_counted(struct world *w, const char *label, uint16_t qtype, uint8_t variant, uint64_t account)
{
	uint8_t name[HYDNS_NAME_MAX] = { (uint8_t)strlen(label) };
	struct hydns_question q = { .name = name, .qtype = qtype, .variant = variant, .account = account,
				    .name_len = (uint16_t)(1 + name[0] + zone.name_len) };

	memcpy(name + 1, label, name[0]);
	memcpy(name + 1 + name[0], zone.name, zone.name_len);
	hydns_plugin_demand(w->p, &q);
}

static void miss(struct world *w, const char *label, uint16_t qtype, uint8_t variant)
{
	miss_counted(w, label, qtype, variant, 0);
}

/* With three names. */
static void begin_signed(struct world *w, enum hydns_proofs proofs)
{
	start_both(w);
	signed_with = proofs;
	begin(w, 3);
	assert_true(BECOMES(noted(w, "to 0 of them not taken")));
}

/* Once in each version of the zone, however often it is missed. */
static void what_is_missed_is_asked(void **state)
{
	struct world *w = *state;

	begin_signed(w, HYDNS_PROOFS_NSEC);
	miss(w, "n0a", A, 0);
	miss(w, "N0a", A, HYDNS_VARIANT_DO);
	miss(w, "n0b", TXT, HYDNS_VARIANT_DO);
	assert_true(BECOMES(atomic_load(&resolver.probes) == 1));
	miss(w, "n0a", A, HYDNS_VARIANT_DO);
	miss(w, "n1", TXT, HYDNS_VARIANT_DO);
	assert_true(BECOMES(atomic_load(&resolver.types) == 1));
	assert_int_equal(resolver.probes, 1);
	change(w, 0, false);
	settled(w);
	assert_true(BECOMES(all_asked(1, 2)));
	miss(w, "n0a", A, HYDNS_VARIANT_DO);
	assert_true(BECOMES(atomic_load(&resolver.probes) == 2));
	end(w);
}

/* Nor is anything asked of names whose hashes the program does not compute, or of types that rate-limiting counts by their names. */
static void what_no_template_answers_is_not_asked(void **state)
{
	struct world *w = *state;

	iterations = HYDNS_NSEC3_ITERATIONS_MOST + 1;
	begin_signed(w, HYDNS_PROOFS_NSEC3);
	miss(w, "n0a", A, HYDNS_VARIANT_DO);
	miss_counted(w, "n2", TXT, HYDNS_VARIANT_DO, 1);
	miss(w, "n1", TXT, HYDNS_VARIANT_DO);
	assert_true(BECOMES(atomic_load(&resolver.types) == 1));
	assert_int_equal(resolver.queries, 3 * 2 * 4 + 1);
	end(w);
}

/* Once for all names behind one hash, by the name that was missed first. */
static void what_is_missed_by_its_hash_is_asked(void **state)
{
	struct world *w = *state;

	begin_signed(w, HYDNS_PROOFS_NSEC3);
	miss(w, "N0A", A, HYDNS_VARIANT_DO);
	assert_true(BECOMES(atomic_load(&resolver.hashed) == 1));
	miss(w, "n0b", A, HYDNS_VARIANT_DO);
	miss(w, "n0a", TXT, HYDNS_VARIANT_DO);
	miss(w, "n1", TXT, HYDNS_VARIANT_DO);
	assert_true(BECOMES(atomic_load(&resolver.types) == 1));
	assert_int_equal(resolver.hashed, 1);
	assert_int_equal(resolver.queries, 3 * 2 * 4 + 2);
	change(w, 0, false);
	settled(w);
	assert_true(BECOMES(all_asked(1, 2)));
	miss(w, "n0a", A, HYDNS_VARIANT_DO);
	assert_true(BECOMES(atomic_load(&resolver.hashed) == 2));
	end(w);
}

/* A version that changes the NSEC3 record of this hash. */
static void proof_changes(struct world *w, const char *hash)
{
	struct hydns_zone_version v;
	uint8_t name[HYDNS_NAME_MAX];

	memcpy(name, hash, 1 + HYDNS_HASHED_LABEL);
	memcpy(name + 1 + HYDNS_HASHED_LABEL, zone.name, zone.name_len);
	hydns_zone_version_begin(&v, zone.name, zone.name_len);
	hydns_zone_version_changes(&v, name, 1 + HYDNS_HASHED_LABEL + zone.name_len, HYDNS_ZONE_PROOF, 1 + HYDNS_HASHED_LABEL + zone.name_len);
	hydns_plugin_zone_version(w->p, &v);
	hydns_zone_version_end(&v);
}

/* Before a version is served with a hash that the table lacks, this has been closed; it is opened with it. */
static void hashes_that_versions_bring(void **state)
{
	struct world *w = *state;
	const struct hydns_names_head *head;
	uint32_t former;

	begin_signed(w, HYDNS_PROOFS_NSEC3);
	head = (const void *)set_of(w);
	assert_true(BECOMES(!(*(const volatile uint32_t *)&head->table & 1)));
	former = head->table;
	proof_changes(w, ZERO_HASH);
	assert_int_equal(head->table, former);
	settled(w);
	proof_changes(w, "\40" "1123456789abcdefghijklmnopqrstuv");
	assert_int_not_equal(*(const volatile uint32_t *)&head->table, former);
	settled(w);
	assert_true(BECOMES(*(const volatile uint32_t *)&head->table == former + 2));
	proof_changes(w, "\40" "1123456789abcdefghijklmnopqrstuv");
	assert_int_equal(head->table, former + 2);
	settled(w);
	end(w);
}

/* The set has no more than some ways of hashing, and a zone that changes its own needs one. */
static void other_ways_of_hashing(void **state)
{
	struct world *w = *state;
	const struct hydns_names_head *head;

	begin_signed(w, HYDNS_PROOFS_NSEC3);
	head = (const void *)set_of(w);
	for (unsigned n = 1; n <= HYDNS_NAMES_NSEC3 + 1; n++) {
		int asked = atomic_load(&resolver.hashed);

		iterations = n;
		change(w, 0, true);
		settled(w);
		assert_true(BECOMES(all_asked(3, (int)n + 1)));
		assert_true(BECOMES((miss(w, "n0a", A, HYDNS_VARIANT_DO), atomic_load(&resolver.hashed) > asked)));
	}
	assert_int_equal(head->nsec3[HYDNS_NAMES_NSEC3 - 1].iterations, HYDNS_NAMES_NSEC3 + 1);
	assert_int_equal(head->nsec3[0].iterations, 0);
	end(w);
}

/* What hydnsd refuses waits, longer each time; what is another question, or of another version, does not. */
static void how_often_it_is_asked(void **state)
{
	static struct hydns_demand d;
	const uint64_t key = 5ULL << 32 | 7, other = 9ULL << 32 | 8;
	uint32_t now = UINT32_MAX - 500;         /* which wraps around */

	(void)state;
	assert_true(hydns_demand_is_due(&d, key, 1, now));
	assert_false(hydns_demand_is_due(&d, key, 1, now + 999));
	assert_true(hydns_demand_is_due(&d, other, 1, now + 999));
	assert_true(hydns_demand_is_due(&d, key, 1, now + 1000));
	assert_false(hydns_demand_is_due(&d, key, 1, now + 2999));
	assert_true(hydns_demand_is_due(&d, key, 2, now + 2999));
	for (uint32_t wait = 1000; wait < 60000; wait *= 2) {
		now += 2999 + wait;
		assert_true(hydns_demand_is_due(&d, key, 2, now));
		now -= 2999;
	}
	now += 2999;
	assert_false(hydns_demand_is_due(&d, key, 2, now + 59999));
	d.count = HYDNS_DEMAND_MOST;
	assert_false(hydns_demand_is_due(&d, key, 3, now));
	d.count = 0;
	assert_true(hydns_demand_is_due(&d, key, 3, now));
}

/* -- what goes wrong ------------------------------------------------------------------------------------------- */
static void a_zone_that_does_not_fit(void **state)
{
	struct world *w = *state;

	start_both(w);
	atomic_store(&w->peer.preload_full, true);
	begin(w, NAMES);
	assert_true(BECOMES(noted(w, "example.org: does not fit: 1024 of 2400 questions asked; raise hydnsd's capacity")));
	assert_int_equal(resolver.queries, 1024);
	atomic_store(&w->peer.preload_full, false);
	load_anew(w);
	assert_true(BECOMES(noted(w, "2400 questions asked, the answers to 0 of them not taken")));
	end(w);
}

static void a_resolver_that_refuses_itself(void **state)
{
	struct world *w = *state;

	start_both(w);
	begin(w, 0);
	atomic_store(&resolver.refuses, true);
	atomic_store(&data.names, NAMES);
	load_anew(w);
	assert_true(BECOMES(noted(w, "the resolver refuses queries from its own address")));
	assert_int_equal(resolver.queries, 1024);              /* one batch */
	end(w);
}

static void what_is_not_fit_is_asked_once(void **state)
{
	struct world *w = *state;

	start_both(w);
	begin(w, 0);
	atomic_store(&resolver.unfit, true);
	atomic_store(&data.names, 10);
	load_anew(w);
	assert_true(BECOMES(noted(w, "80 questions asked, the answers to 0 of them not taken")));
	assert_int_equal(resolver.queries, 80);
	end(w);
}

static void a_zone_that_is_not_there(void **state)
{
	struct world *w = *state;

	start_both(w);
	begin(w, 10);
	atomic_store(&data.absent, true);
	load_anew(w);
	assert_true(BECOMES(noted(w, "example.org: this resolver serves no such zone")));
	atomic_store(&data.absent, false);
	load_anew(w);
	assert_true(BECOMES(noted(w, "80 questions asked")));
	end(w);
}

/* One that comes later, as named's do at the start, needs a larger set, but no answer shows names of the former one. */
static void a_zone_that_comes_later_is_loaded_once(void **state)
{
	struct world *w = *state;

	start_both(w);
	begin_with(w, 10, true);
	assert_true(BECOMES(noted(w, "example.org: this resolver serves no such zone")));
	atomic_store(&data.unasked, HYDNS_NAMES_BUCKETS_LEAST * HYDNS_NAMES_ENTRIES);
	atomic_store(&data.absent, false);
	data.whole = 0;
	load_anew(w);
	assert_true(BECOMES(noted(w, "to 0 of them not taken")));
	for (int times = 2; times <= 3; times++) {     /* another load would be between the two */
		change(w, 0, false);
		settled(w);
		assert_true(BECOMES(all_asked(1, times)));
	}
	assert_int_equal(data.whole, 1);
	end(w);
}

/* What changes during a load is asked for between its batches. */
static void a_load_does_not_hold_up_changes(void **state)
{
	struct world *w = *state;
	int whole;

	start_both(w);
	begin(w, NAMES);
	assert_true(BECOMES(noted(w, "to 0 of them not taken")));
	atomic_store(&resolver.slow, true);
	forget_questions();
	whole = atomic_load(&data.whole);
	load_anew(w);
	assert_true(BECOMES(atomic_load(&data.whole) == whole + 1));
	change(w, 0, false);
	settled(w);
	assert_true(BECOMES(atomic_load(&resolver.asked[0][0][0]) > 1));
	assert_int_equal(atomic_load(&resolver.asked[NAMES - 1][0][0]), 0);
	atomic_store(&resolver.slow, false);
	end(w);
}

/* Neither a resolver nor hydnsd that says nothing holds up the end. */
static void it_ends_while_nobody_answers(void **state)
{
	struct world *w = *state;

	start_both(w);
	begin(w, 10);
	atomic_store(&resolver.silent, true);
	load_anew(w);
	assert_true(BECOMES(atomic_load(&resolver.queries) > 0));
	end(w);
}

/* Whoever ends the object need not end it before. */
static void it_ends_with_its_plugin(void **state)
{
	struct world *w = *state;

	start_both(w);
	begin(w, NAMES);
	atomic_store(&resolver.ending, true);
	hydns_plugin_leave(w->p, NULL, NULL);
	assert_null(atomic_load(&w->p->preload));
	end(w);
}

static void only_its_own_queries_are_its(void **state)
{
	struct world *w = *state;
	struct sockaddr_in other = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };

	start_both(w);
	assert_false(hydns_plugin_is_preload(w->p, (struct sockaddr *)&other));
	begin(w, 1);
	other.sin_port = ((struct sockaddr_in *)&w->p->preload_from)->sin_port;
	assert_true(hydns_plugin_is_preload(w->p, (struct sockaddr *)&other));
	six.sin6_port = other.sin_port;
	assert_false(hydns_plugin_is_preload(w->p, (struct sockaddr *)&six));
	other.sin_port ^= htons(1);
	assert_false(hydns_plugin_is_preload(w->p, (struct sockaddr *)&other));
	other.sin_port ^= htons(1);
	other.sin_addr.s_addr ^= htonl(1);
	assert_false(hydns_plugin_is_preload(w->p, (struct sockaddr *)&other));
	end(w);
	other.sin_addr.s_addr ^= htonl(1);
	assert_false(hydns_plugin_is_preload(w->p, (struct sockaddr *)&other));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest test[] = {
		TEST(all_is_asked_in_all_variants), TEST(what_is_lost_is_asked_again), TEST(what_is_lost_for_long_is_asked_again),
		TEST(what_hydnsd_refuses_is_asked_again),
		TEST(what_was_withdrawn_is_asked_again), TEST(what_a_version_brings_is_asked_after_it),
		TEST(a_version_that_is_told_and_not_served), TEST(versions_of_one_zone_at_a_time),
		TEST(a_version_of_data_that_are_exchanged), TEST(a_version_that_began_before),
		TEST(too_many_zones), TEST(another_zone_that_comes_below), TEST(others_that_answer_below),
		TEST(versions_change_the_soa), TEST(versions_that_overlap), TEST(another_shape), TEST(versions_of_other_data),
		TEST(other_data), TEST(exchanged_data),
		TEST(the_soa_of_a_version_that_began_before),
		TEST(a_set_that_replaces_another),
		TEST(a_set_that_is_outgrown),
		TEST(what_is_missed_is_asked), TEST(what_no_template_answers_is_not_asked), TEST(what_is_missed_by_its_hash_is_asked), TEST(hashes_that_versions_bring),
		TEST(other_ways_of_hashing), cmocka_unit_test(how_often_it_is_asked),
		TEST(a_zone_that_does_not_fit),
		TEST(a_resolver_that_refuses_itself), TEST(what_is_not_fit_is_asked_once), TEST(a_zone_that_is_not_there),
		TEST(a_zone_that_comes_later_is_loaded_once), TEST(a_load_does_not_hold_up_changes),
		TEST(it_ends_while_nobody_answers), TEST(it_ends_with_its_plugin), TEST(only_its_own_queries_are_its),
	};

	return cmocka_run_group_tests(test, NULL, NULL);
}
