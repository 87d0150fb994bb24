/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Offers against changes (plugin/changes/names.c) and against a zone's withdrawal (plugin/changes/subtrees.c): at least one of
 * two threads must see the other. The resolver's cache is one object here, locked where the resolver locks it.
 */
#include "plugin/changes/changes.h"
#include "test-harness/model/model.h"

#include <stdlib.h>

#define OLD 1
#define NEW 2

static const uint8_t name[] = "\3www\7example";

static int data;                       /* in the cache */
static bool offered, sent;
static int offered_data;

static void put_data(int is)
{
	__atomic_store_n(&data, is, __ATOMIC_RELEASE);
}

static int get_data(void)
{
	return __atomic_load_n(&data, __ATOMIC_ACQUIRE);
}

/* -- names ------------------------------------------------------------------------------------------------------------ */
static struct hydns_names *names;
static uint64_t now_ms = 1000;         /* advances, so that the names of former runs have expired */

#define LIFE_MS 5

static void begin_watched(void)
{
	static const uint64_t seed[2] = { 1, 2 };

	if (!names)
		names = hydns_names_new(1, seed);
	if (!names)
		abort();
	hydns_names_watch(names);
	now_ms += 2 * LIFE_MS;
	put_data(OLD);
	offered = sent = false;
}

/* Another answer with the name was offered with the same end: then a change must be sent in any case. */
static void begin_raised(void)
{
	begin_watched();
	if (!hydns_names_offer(names, name, sizeof(name), HYDNS_NAMES_ALL, now_ms + LIFE_MS, hydns_names_changes(names)))
		abort();
}

static void begin_unwatched(void)
{
	static const uint64_t seed[2] = { 1, 2 };

	hydns_names_free(names);
	names = hydns_names_new(1, seed);
	if (!names)
		abort();
	put_data(OLD);
	offered = sent = false;
}

static void offer(void)
{
	uint64_t changes = hydns_names_changes(names);

	offered_data = get_data();
	offered = hydns_names_offer(names, name, sizeof(name), HYDNS_NAMES_ALL, now_ms + LIFE_MS, changes);
}

static void offer_twice(void)
{
	offer();
	if (!offered)
		offer();
}

static void change(void)
{
	put_data(NEW);
	sent = hydns_names_change(names, name, sizeof(name), HYDNS_NAMES_ALL, now_ms);
}

static void nothing_is_missed(bool half)
{
	model_require(half || !offered || offered_data == NEW || sent, "former data are offered, and the change is not sent");
}

static void change_is_sent(bool half)
{
	nothing_is_missed(half);
	model_require(half || sent, "the change is not sent though a rule has the name");
}

static const struct model watched = { "an offer and a change", begin_watched, { offer, change }, nothing_is_missed };
static const struct model raised = { "of a name that stands in a rule already", begin_raised, { offer, change },
				     change_is_sent };
static const struct model unwatched = { "of a name when nobody has offered yet", begin_unwatched, { offer_twice, change },
					nothing_is_missed };

/* -- subtrees ------------------------------------------------------------------------------------------------------------ */
static struct hydns_subtrees *subtrees;
static uint64_t generation, withdrawn; /* as publish.c has them */
static uint64_t offered_generation, withdrawn_generation;
static bool withdraws;

static void begin_settled(void)
{
	static const uint64_t seed[2] = { 1, 2 };

	if (!subtrees)
		subtrees = hydns_subtrees_new(seed);
	if (!subtrees)
		abort();
	hydns_subtrees_withdrawn(subtrees, HYDNS_SCOPE_SUBTREE, name, sizeof(name), hydns_subtrees_offers(subtrees, name, sizeof(name)));
	generation = withdrawn = 0;
	offered = withdraws = false;
}

static void offer_in_zone(void)
{
	uint64_t stamp = __atomic_load_n(&generation, __ATOMIC_SEQ_CST);

	hydns_subtrees_offer(subtrees, name, sizeof(name));
	offered = stamp >= __atomic_load_n(&withdrawn, __ATOMIC_SEQ_CST);
	offered_generation = stamp;
}

static void withdraw_zone(void)
{
	hydns_subtrees_offers(subtrees, name, sizeof(name));
	withdrawn_generation = __atomic_add_fetch(&generation, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&withdrawn, withdrawn_generation, __ATOMIC_SEQ_CST);
	withdraws = hydns_subtrees_left(subtrees, HYDNS_SCOPE_SUBTREE, name, sizeof(name)) != HYDNS_SCOPE_NONE;
}

static void no_offer_is_left_out(bool half)
{
	model_require(half || !offered || offered_generation >= withdrawn_generation || withdraws,
		      "an offer from before a withdrawal that is left out");
}

static const struct model zone = { "an offer and a zone's withdrawal", begin_settled, { offer_in_zone, withdraw_zone },
				   no_offer_is_left_out };

int main(void)
{
	static const struct model_case cases[] = {
		{ &watched, { MODEL_NEITHER } }, { &raised, { MODEL_SOUND } },
		{ &unwatched, { MODEL_NO_FENCE, MODEL_NO_ORDER } }, { &zone, { MODEL_NO_ORDER } },
	};

	return model_main(cases, sizeof(cases) / sizeof(cases[0]));
}
