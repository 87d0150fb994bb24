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
static const char *state_of(const json_t *checks, const char *name)
{
	const json_t *c;
	size_t i;

	json_array_foreach(checks, i, c)
		if (!strcmp(ctl_str(c, "check"), name) && !strcmp(ctl_str(c, "subject"), "unbound"))
			return ctl_str(c, "state");
	return "";
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

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_services_of_who_registers) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
