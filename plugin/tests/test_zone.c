/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* A version of a zone: what is withdrawn for the names that it changes. Names are dotted here, and the root is "". */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "plugin/tests/world.h"

#define ORIGIN "example.org"
#define SOA_NAME "+soa." ORIGIN
#define NS_NAME "+ns-." ORIGIN
#define NSEC_NAME "+nsc." ORIGIN
#define ANY_NAME "+any." ORIGIN
#define WHOLE  "all of " ORIGIN

static size_t wire(const char *dotted, uint8_t *out)
{
	size_t len = 0;

	for (size_t n; *dotted; dotted += n + (dotted[n] == '.')) {
		n = strcspn(dotted, ".");
		out[len++] = (uint8_t)n;
		memcpy(out + len, dotted, n);
		len += n;
	}
	out[len] = 0;
	return len + 1;
}

static const uint8_t *dotted(const uint8_t *name, char *out)
{
	for (; *name; name += 1 + *name)
		out += sprintf(out, "%.*s%s", *name, (const char *)name + 1, name[1 + *name] ? "." : "");
	*out = '\0';
	return name + 1;
}

static void begin(struct hydns_zone_version *v, const char *origin)
{
	uint8_t name[HYDNS_NAME_MAX];
	size_t len = wire(origin, name);

	hydns_zone_version_begin(v, name, len);
}

/* top: the topmost name that comes or goes with it. */
static void changes_up_to(struct hydns_zone_version *v, const char *name, unsigned what, const char *top)
{
	uint8_t at[HYDNS_NAME_MAX + 1], above[HYDNS_NAME_MAX + 1];
	size_t len = wire(name, at);

	hydns_zone_version_changes(v, at, len, what, wire(top, above));
}

static void changes(struct hydns_zone_version *v, const char *name, unsigned what)
{
	changes_up_to(v, name, what, name);
}

/* Something was offered that depends on this name. */
static void was_offered(struct world *w, const char *name)
{
	uint8_t at[HYDNS_NAME_MAX];
	size_t len = wire(name, at);

	hydns_subtrees_offer(w->p->subtrees, at, len);
}

/* "name", "below name", in the message's order; of a withdrawal of the whole zone WHOLE; "" without any. */
static const char *withdrawn(struct world *w, const struct hydns_zone_version *v)
{
	static char text[4096];
	const struct hydns_withdraw_names *m = (const struct hydns_withdraw_names *)w->peer.last_names;
	int names = atomic_load(&w->peer.names_withdrawals), whole = atomic_load(&w->peer.withdrawals);
	const uint8_t *at = m->entry;
	char name[HYDNS_NAME_MAX];

	hydns_plugin_zone_version(w->p, v);
	text[0] = '\0';
	if (atomic_load(&w->peer.withdrawals) != whole) {
		dotted(w->peer.last_withdrawal.name, name);
		assert_int_equal(w->peer.last_withdrawal.scope, HYDNS_SCOPE_SUBTREE);
		snprintf(text, sizeof(text), "all of %s", name);
		return text;
	}
	if (atomic_load(&w->peer.names_withdrawals) == names)
		return text;
	assert_int_equal(m->generation, page_generation(w));
	for (uint32_t i = 0; i < m->count; i++) {
		const char *scope = *at == HYDNS_SCOPE_SUBTREE ? "below " : "";

		at = dotted(at + 1, name);
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s%s", i ? ", " : "", scope, name);
	}
	assert_ptr_equal(at, w->peer.last_names + w->peer.last_names_len);
	return text;
}

static void what_a_name_takes_with_it(void **state)
{
	static const struct {
		const char *name;
		unsigned what;
		const char *withdrawn;
		const char *top;               /* NULL: itself */
	} of[] = {
		{ ORIGIN, HYDNS_ZONE_SOA, SOA_NAME, NULL },
		{ ORIGIN, HYDNS_ZONE_NS, NS_NAME, NULL },
		{ ORIGIN, HYDNS_ZONE_NSEC, NSEC_NAME, NULL },
		{ ORIGIN, HYDNS_ZONE_DATA, ANY_NAME, NULL },
		{ ORIGIN, HYDNS_ZONE_SOA | HYDNS_ZONE_DATA, SOA_NAME ", " ANY_NAME, NULL },
		{ ORIGIN, HYDNS_ZONE_DATA | HYDNS_ZONE_SECURITY, WHOLE, NULL },
		{ ORIGIN, HYDNS_ZONE_DATA | HYDNS_ZONE_CUT, WHOLE, NULL },
		{ ORIGIN, HYDNS_ZONE_DATA | HYDNS_ZONE_COMES_OR_GOES, WHOLE, NULL },
		{ "www." ORIGIN, HYDNS_ZONE_DATA, "www." ORIGIN, NULL },
		{ "WWW.Example.Org", HYDNS_ZONE_DATA, "www." ORIGIN, NULL },
		{ "www." ORIGIN, HYDNS_ZONE_DATA | HYDNS_ZONE_SECURITY, "www." ORIGIN, NULL },
		{ "www." ORIGIN, HYDNS_ZONE_DATA | HYDNS_ZONE_CUT, SOA_NAME ", below www." ORIGIN, NULL },
		{ "www." ORIGIN, HYDNS_ZONE_DATA | HYDNS_ZONE_COMES_OR_GOES, SOA_NAME ", below www." ORIGIN, NULL },
		{ "a.b.c." ORIGIN, HYDNS_ZONE_DATA, "a.b.c." ORIGIN, NULL },
		{ "a.b.c." ORIGIN, HYDNS_ZONE_DATA | HYDNS_ZONE_CUT, SOA_NAME ", below a.b.c." ORIGIN, NULL },
		{ "a.b.c." ORIGIN, HYDNS_ZONE_DATA | HYDNS_ZONE_COMES_OR_GOES, SOA_NAME ", below c." ORIGIN, "c." ORIGIN },
		{ "a.b.c." ORIGIN, HYDNS_ZONE_DATA | HYDNS_ZONE_COMES_OR_GOES, SOA_NAME ", below b.c." ORIGIN, "b.c." ORIGIN },
		{ "a.b.c." ORIGIN, HYDNS_ZONE_DATA | HYDNS_ZONE_COMES_OR_GOES, SOA_NAME ", below a.b.c." ORIGIN, NULL },
		{ "a.b.c." ORIGIN, HYDNS_ZONE_DATA | HYDNS_ZONE_COMES_OR_GOES, WHOLE, "xy." ORIGIN },    /* of no name's length */
		{ "*.w." ORIGIN, HYDNS_ZONE_DATA, "below w." ORIGIN ", *.w." ORIGIN, NULL },
		{ "*." ORIGIN, HYDNS_ZONE_DATA, WHOLE, NULL },
		{ "x.*.w." ORIGIN, HYDNS_ZONE_DATA, "x.*.w." ORIGIN, NULL },
		{ "x.*.w." ORIGIN, HYDNS_ZONE_DATA | HYDNS_ZONE_COMES_OR_GOES, WHOLE, "w." ORIGIN },
		{ "x.*.w." ORIGIN, HYDNS_ZONE_DATA | HYDNS_ZONE_COMES_OR_GOES, WHOLE, "*.w." ORIGIN },
		{ "x.*.w." ORIGIN, HYDNS_ZONE_DATA | HYDNS_ZONE_COMES_OR_GOES, SOA_NAME ", below x.*.w." ORIGIN, NULL },
		{ "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom." ORIGIN, HYDNS_ZONE_PROOF, "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom." ORIGIN, NULL },
		{ "www.example.net", HYDNS_ZONE_DATA, WHOLE, NULL },
		{ "wwwexample.org", HYDNS_ZONE_DATA, WHOLE, NULL },
		{ "org", HYDNS_ZONE_DATA, WHOLE, NULL },
		{ "www." ORIGIN, 0, "", NULL },
	};
	static const char *const stand_ins[] = { SOA_NAME, NS_NAME, NSEC_NAME, ANY_NAME };
	struct world *w = *state;

	start_both(w);
	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		char below[HYDNS_NAME_MAX], lower[HYDNS_NAME_MAX] = "";
		struct hydns_zone_version v;

		for (size_t c = 0; of[i].name[c]; c++)
			lower[c] = of[i].name[c] >= 'A' && of[i].name[c] <= 'Z' ? of[i].name[c] + 32 : of[i].name[c];
		snprintf(below, sizeof(below), "x.%s", lower);
		was_offered(w, lower);
		was_offered(w, below);
		for (size_t n = 0; n < sizeof(stand_ins) / sizeof(stand_ins[0]); n++)
			was_offered(w, stand_ins[n]);
		begin(&v, ORIGIN);
		changes_up_to(&v, of[i].name, of[i].what, of[i].top ? of[i].top : of[i].name);
		assert_string_equal(withdrawn(w, &v), of[i].withdrawn);
		hydns_zone_version_end(&v);
	}
	peer_stop(&w->peer);
}

/* A name that comes concerns those below it only where something below it was offered. */
static void what_was_not_offered_needs_no_withdrawal(void **state)
{
	const unsigned comes = HYDNS_ZONE_DATA | HYDNS_ZONE_COMES_OR_GOES;
	struct world *w = *state;
	struct hydns_zone_version v;

	start_both(w);
	begin(&v, ORIGIN);
	changes(&v, "www." ORIGIN, comes);
	assert_string_equal(withdrawn(w, &v), "");
	was_offered(w, "www." ORIGIN);
	assert_string_equal(withdrawn(w, &v), "www." ORIGIN);
	assert_string_equal(withdrawn(w, &v), "");         /* it has been */
	was_offered(w, "x.www." ORIGIN);
	assert_string_equal(withdrawn(w, &v), "below www." ORIGIN);
	assert_string_equal(withdrawn(w, &v), "");
	hydns_zone_version_end(&v);
	peer_stop(&w->peer);
}

/* Whether anything is withdrawn or not. */
static void what_was_looked_up_before_is_not_offered(void **state)
{
	struct world *w = *state;
	struct hydns_zone_version v;
	struct hydns_stamp before, between;

	start_both(w);
	before = hydns_plugin_stamp(w->p);
	begin(&v, ORIGIN);
	changes(&v, "other." ORIGIN, HYDNS_ZONE_DATA);
	assert_string_equal(withdrawn(w, &v), "");
	assert_int_equal(offer(w, before), -ESTALE);
	between = hydns_plugin_stamp(w->p);
	hydns_plugin_zone_changed(w->p);
	assert_int_equal(offer(w, between), -ESTALE);
	assert_offered(w);
	hydns_zone_version_end(&v);
	peer_stop(&w->peer);
}

/* While a version is under way, what it changes is not offered, whatever its stamp; all else is. */
static void what_is_changing_is_not_offered(void **state)
{
	static const struct {
		const char *name;              /* of example.org, whose www is offered */
		unsigned what;
		bool refused;
	} of[] = {
		{ "www." ORIGIN, HYDNS_ZONE_DATA, true },
		{ "other." ORIGIN, HYDNS_ZONE_DATA, false },
		{ "x.www." ORIGIN, HYDNS_ZONE_DATA, false },
		{ "other." ORIGIN, HYDNS_ZONE_CUT, false },
		{ "www." ORIGIN, HYDNS_ZONE_CUT, true },
		{ "*." ORIGIN, HYDNS_ZONE_DATA, true },        /* the whole zone */
	};
	struct world *w = *state;

	start_both(w);
	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		struct hydns_zone_version v;

		begin(&v, ORIGIN);
		changes(&v, of[i].name, of[i].what);
		hydns_zone_version_mark(&v);
		hydns_plugin_zone_version(w->p, &v);
		assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), of[i].refused ? -ESTALE : 0);
		hydns_plugin_zone_changed(w->p);
		hydns_zone_version_unmark(&v);
		assert_offered(w);
		hydns_zone_version_end(&v);
	}
	peer_stop(&w->peer);
}

/* Where the zone gets other data, rules go by the names in which these differ. But nothing of the zone is offered meanwhile, for other
 * versions may be served before; nor where it turns out that it must go whole. */
static void exchanged_data(void **state)
{
	struct world *w = *state;
	struct hydns_zone_version v;

	start_both(w);
	for (int whole = 0; whole < 2; whole++) {
		begin(&v, ORIGIN);
		v.exchanged = true;
		hydns_zone_version_mark(&v);
		assert_true(hydns_plugin_zone_exchanged(w->p, &v) == (whole == 1));
		was_offered(w, "a." ORIGIN);
		assert_true(hydns_plugin_zone_exchanged(w->p, &v));
		changes(&v, "a." ORIGIN, HYDNS_ZONE_DATA);
		changes(&v, "b." ORIGIN, HYDNS_ZONE_DATA);
		v.whole = whole;
		assert_string_equal(withdrawn(w, &v), whole ? WHOLE : "a." ORIGIN);
		assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), -ESTALE);
		hydns_plugin_zone_changed(w->p);
		hydns_zone_version_unmark(&v);
		assert_offered(w);
		hydns_zone_version_end(&v);
	}
	peer_stop(&w->peer);
}

/* A name below what comes or goes is changing, too; marks add up, and those of a change whose end nobody hears are forgotten. */
static void marks_add_up(void **state)
{
	struct hydns_zone_version v, other, elsewhere;
	uint8_t name[HYDNS_NAME_MAX];
	size_t len = wire("a.b.c." ORIGIN, name);

	(void)state;
	begin(&v, ORIGIN);
	changes_up_to(&v, "x.b.c." ORIGIN, HYDNS_ZONE_DATA | HYDNS_ZONE_COMES_OR_GOES, "b.c." ORIGIN);
	begin(&other, ORIGIN);
	changes(&other, "a.b.c." ORIGIN, HYDNS_ZONE_DATA);
	assert_false(hydns_name_is_changing(name, len));
	hydns_zone_version_mark(&v);
	assert_true(hydns_name_is_changing(name, len));
	hydns_zone_version_mark(&other);
	hydns_zone_version_unmark(&v);
	assert_true(hydns_name_is_changing(name, len));
	hydns_zone_version_unmark(&other);
	assert_false(hydns_name_is_changing(name, len));
	hydns_zone_version_mark(&v);
	v.whole = true;
	hydns_zone_version_mark(&v);
	hydns_zone_marks_forget();
	begin(&elsewhere, ORIGIN);
	changes(&elsewhere, "d." ORIGIN, HYDNS_ZONE_DATA);
	hydns_zone_version_mark(&elsewhere);
	assert_false(hydns_name_is_changing(name, len));
	hydns_zone_version_unmark(&elsewhere);
	hydns_zone_version_end(&elsewhere);
	hydns_zone_version_end(&v);
	hydns_zone_version_end(&other);
}

static void each_name_once(void **state)
{
	struct world *w = *state;
	struct hydns_zone_version v;

	start_both(w);
	was_offered(w, "x.a." ORIGIN);
	was_offered(w, "a." ORIGIN);
	was_offered(w, "b." ORIGIN);
	begin(&v, ORIGIN);
	for (int i = 0; i < 3; i++) {
		changes(&v, "a." ORIGIN, i == 1 ? HYDNS_ZONE_CUT : HYDNS_ZONE_DATA);
		changes(&v, "b." ORIGIN, HYDNS_ZONE_DATA);
	}
	assert_string_equal(withdrawn(w, &v), "below a." ORIGIN ", b." ORIGIN);
	hydns_zone_version_end(&v);
	peer_stop(&w->peer);
}

#define MANY 1000
#define SHORT 10                       /* octets of "n0000" and its entry: more would not be listed */

/* More names than a message has room for, in as many messages; and more than are worth it. */
static void many_names(void **state)
{
	struct world *w = *state;
	struct hydns_zone_version v;
	char name[32];

	start_both(w);
	begin(&v, ORIGIN);
	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "n%04d." ORIGIN, i);
		was_offered(w, name);
		changes(&v, name, HYDNS_ZONE_DATA);
	}
	hydns_plugin_zone_version(w->p, &v);
	assert_int_equal(atomic_load(&w->peer.names_withdrawals), (MANY + HYDNS_WITHDRAW_NAMES_MOST - 1) / HYDNS_WITHDRAW_NAMES_MOST);
	assert_int_equal(atomic_load(&w->peer.names_withdrawn), MANY);
	assert_int_equal(atomic_load(&w->peer.withdrawals), 0);
	assert_false(v.whole);
	for (int i = 0; i < 65536 / SHORT && !v.whole; i++) {
		snprintf(name, sizeof(name), "m%04d." ORIGIN, i);
		changes(&v, name, HYDNS_ZONE_DATA);
	}
	assert_true(v.whole);
	assert_string_equal(withdrawn(w, &v), WHOLE);
	hydns_zone_version_end(&v);
	peer_stop(&w->peer);
}

/* Names of the greatest length: fewer of them fill a message. */
static void long_names(void **state)
{
	struct world *w = *state;
	struct hydns_zone_version v;
	char name[HYDNS_NAME_MAX];

	start_both(w);
	begin(&v, ORIGIN);
	for (int i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "n%02d%060d.%063d.%063d.%049d." ORIGIN, i, 0, 0, 0, 0);
		was_offered(w, name);
		changes(&v, name, HYDNS_ZONE_DATA);
	}
	hydns_plugin_zone_version(w->p, &v);
	assert_int_equal(atomic_load(&w->peer.names_withdrawn), 40);
	assert_int_equal(atomic_load(&w->peer.names_withdrawals), 3);  /* 15 entries of 256 octets each */
	hydns_zone_version_end(&v);
	peer_stop(&w->peer);
}

/* The names that stand for such an origin's RRsets would be longer than a name can be. */
static void zone_with_a_long_name(void **state)
{
	struct world *w = *state;
	struct hydns_zone_version v;
	char origin[HYDNS_NAME_MAX], all[HYDNS_NAME_MAX + 8];
	uint8_t name[HYDNS_NAME_MAX];
	size_t len;

	start_both(w);
	snprintf(origin, sizeof(origin), "%063d.%063d.%063d.%058d", 0, 0, 0, 0);
	snprintf(all, sizeof(all), "all of %s", origin);
	len = wire(origin, name);
	hydns_plugin_depends_on_origin(w->t, name, len, HYDNS_ZONE_SOA);
	assert_int_equal(w->t->left_out.name_len[0], len);
	assert_memory_equal(w->t->left_out.block + 1, name, len);
	was_offered(w, origin);
	begin(&v, origin);
	changes(&v, origin, HYDNS_ZONE_SOA);
	assert_string_equal(withdrawn(w, &v), all);
	hydns_zone_version_end(&v);
	peer_stop(&w->peer);
}

/* Each RRset of an origin by a name of its own. */
static void parts_of_the_origin_are_dependencies(void **state)
{
	static const char *const names[] = { SOA_NAME, NSEC_NAME };
	struct world *w = *state;
	uint8_t origin[HYDNS_NAME_MAX], expected[HYDNS_NAME_MAX];
	size_t len = wire("Example.org", origin);

	hydns_plugin_depends_on_origin(w->t, origin, len, HYDNS_ZONE_SOA | HYDNS_ZONE_NSEC);
	assert_int_equal(w->t->left_out.block[0], 2);
	HYDNS_FOR_LEFT_OUT(&w->t->left_out, i, at) {
		assert_int_equal(w->t->left_out.name_len[i], wire(names[i], expected));
		assert_memory_equal(w->t->left_out.block + at, expected, w->t->left_out.name_len[i]);
	}
}

/* In place of the SOA's name stands that of its shape, which versions do not change; and while one changes the SOA, that is known. */
static void the_present_soa_is_another_dependency(void **state)
{
	struct world *w = *state;
	struct hydns_zone_version v;
	uint8_t origin[HYDNS_NAME_MAX], expected[HYDNS_NAME_MAX];
	size_t len = wire(ORIGIN, origin), name_len = wire("+blk." ORIGIN, expected);

	hydns_plugin_depends_on_origin(w->t, origin, len, HYDNS_ZONE_NSEC);
	assert_false(hydns_zone_depends_on_present(&w->t->left_out, origin, len));
	hydns_plugin_depends_on_origin(w->t, origin, len, HYDNS_ZONE_SOA);
	assert_true(hydns_zone_depends_on_present(&w->t->left_out, origin, len));
	assert_int_equal(w->t->left_out.block[0], 2);
	assert_int_equal(w->t->left_out.name_len[1], name_len);
	assert_memory_equal(w->t->left_out.block + w->t->left_out.len - name_len, expected, name_len);
	begin(&v, ORIGIN);
	changes(&v, ORIGIN, HYDNS_ZONE_SOA);
	assert_false(hydns_zone_soa_is_changing(origin, len));
	hydns_zone_version_mark(&v);
	assert_true(hydns_zone_soa_is_changing(origin, len));
	assert_false(hydns_name_is_changing(expected, name_len));
	hydns_zone_version_unmark(&v);
	hydns_zone_version_end(&v);
}

/* hydnsd does not do it in time: all rules are suspended until it has withdrawn the zone. */
static void without_an_answer_the_zone_goes_whole(void **state)
{
	struct world *w = *state;
	struct hydns_zone_version v;
	uint32_t epoch;

	start_both(w);
	epoch = page_epoch(w);
	was_offered(w, "www." ORIGIN);
	atomic_store(&w->peer.behaviour, PEER_DYING);
	begin(&v, ORIGIN);
	changes(&v, "www." ORIGIN, HYDNS_ZONE_DATA);
	hydns_plugin_zone_version(w->p, &v);
	assert_true(suspended(w) || page_epoch(w) != epoch);
	hydns_zone_version_end(&v);
	peer_stop(&w->peer);
}

static void malformed_names_take_all(void **state)
{
	static const uint8_t bad[] = { 3, 'w', 'w' };
	struct world *w = *state;
	struct hydns_zone_version v;
	uint32_t epoch;

	start_both(w);
	begin(&v, ORIGIN);
	hydns_zone_version_changes(&v, bad, sizeof(bad), HYDNS_ZONE_DATA, sizeof(bad));
	assert_true(v.whole);
	hydns_zone_version_end(&v);
	hydns_zone_version_begin(&v, bad, sizeof(bad));
	epoch = page_epoch(w);
	hydns_plugin_zone_version(w->p, &v);
	assert_int_equal(page_epoch(w), epoch + 1);
	hydns_zone_version_end(&v);
	peer_stop(&w->peer);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest test[] = {
		TEST(what_a_name_takes_with_it), TEST(what_was_not_offered_needs_no_withdrawal),
		TEST(what_was_looked_up_before_is_not_offered), TEST(what_is_changing_is_not_offered), TEST(exchanged_data), TEST(marks_add_up),
		TEST(each_name_once), TEST(many_names), TEST(long_names),
		TEST(zone_with_a_long_name), TEST(parts_of_the_origin_are_dependencies), TEST(the_present_soa_is_another_dependency),
		TEST(without_an_answer_the_zone_goes_whole),
		TEST(malformed_names_take_all),
	};

	return cmocka_run_group_tests(test, NULL, NULL);
}
