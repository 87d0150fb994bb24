/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What doctor finds in hydnsd's own words. Whole machines have test_mistakes.py and test_doctor_*.py. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "hydnsd/doctor/doctor.h"

/* The state of this check of the resolver; "": it has none. */
static const char *said_of(const json_t *checks, const char *name, const char *subject, const char *what)
{
	const json_t *c;
	size_t i;

	json_array_foreach(checks, i, c)
		if (!strcmp(ctl_str(c, "check"), name) && !strcmp(ctl_str(c, "subject"), subject))
			return ctl_str(c, what);
	return "";
}

static const char *state_of(const json_t *checks, const char *name)
{
	return said_of(checks, name, "unbound", "state");
}

static const char *mend_of(const json_t *checks, const char *name, const char *subject)
{
	return said_of(checks, name, subject, "mend");
}

static json_t *without_services(const char *state)
{
	return json_pack("{s:s, s:s, s:i, s:[], s:i, s:[], s:[]}", FIELD(resolver, identity), "unbound", FIELD(resolver, state), state,
			 FIELD(resolver, heartbeat_age_ms), 10, FIELD(resolver, services), FIELD(resolver, clients_allowed), 0,
			 FIELD(resolver, obstacles), FIELD(resolver, notes));
}

/* One that is about to register has not said yet what it lacks. */
static void test_services_of_who_registers(void **state)
{
	static const struct { const char *state, *resolver, *services; } rows[] = {
		{ "configuring", "warn", "" }, { "ready", "ok", "fail" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *status = json_pack("{s:[o]}", FIELD(status, resolvers), without_services(rows[i].state));
		json_t *checks = doctor_reported(status, NULL, "");

		assert_string_equal(state_of(checks, "resolver"), rows[i].resolver);
		assert_string_equal(state_of(checks, "services"), rows[i].services);
		assert_string_equal(state_of(checks, "access"), rows[i].services);
		json_decref(checks);
		json_decref(status);
	}
}

/* hydnsctl comes with the installed release, so who speaks another ABI than hydnsctl is to be restarted. */
static void test_which_side_is_outdated(void **state)
{
	const int own = HYDNS_ABI_VERSION;
	const struct { const char *process; int hydnsd, plugin; const char *mend; } rows[] = {
		{ "unbound", own, own - 1, "systemctl restart hydns-unbound" },
		{ "named", own, own - 1, "systemctl restart hydns-named" },
		{ "unbound", own - 1, own, "systemctl restart hydnsd" },
		{ "named", own - 1, own, "systemctl restart hydnsd" },
		{ "unbound", own - 2, own - 1, "systemctl restart hydnsd; systemctl restart hydns-unbound" },
		{ "named", own - 2, own - 1, "systemctl restart hydnsd; systemctl restart hydns-named" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *status = json_pack("{s:i, s:[{s:i, s:s, s:i}]}", FIELD(status, abi), rows[i].hydnsd, FIELD(status, other_versions),
					   FIELD(other_version, pid), 1, FIELD(other_version, process), rows[i].process,
					   FIELD(other_version, abi), rows[i].plugin);
		json_t *checks = doctor_reported(status, NULL, "");

		assert_string_equal(mend_of(checks, "version", rows[i].process), rows[i].mend);
		json_decref(checks);
		json_decref(status);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_services_of_who_registers), cmocka_unit_test(test_which_side_is_outdated) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
