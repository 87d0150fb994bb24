/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Clocks read together while the thread is held up in between: this program's clock_gettime() takes the place of
 * libc's, and time passes as it says. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <time.h>
#include <cmocka.h>
#include "plugin/clock.h"

#define BOOT_NS (1700000000ULL * HYDNS_NS_PER_S)  /* by the wall clock */
#define UP_NS   (5000ULL * HYDNS_NS_PER_S)

static uint64_t passed_ns;
static unsigned reading, held_up_before;

int clock_gettime(clockid_t clock, struct timespec *t)
{
	uint64_t at;

	passed_ns += ++reading == held_up_before ? 3 * HYDNS_NS_PER_S : 30;
	at = UP_NS + passed_ns + (clock == CLOCK_REALTIME ? BOOT_NS : 0);
	t->tv_sec = (time_t)(at / HYDNS_NS_PER_S);
	t->tv_nsec = (long)(at % HYDNS_NS_PER_S);
	return 0;
}

/* Wherever the pause is: the two belong together, and an error would make TTLs end earlier. */
static void test_moment_is_one(void **state)
{
	(void)state;
	for (held_up_before = 0; held_up_before < 6; held_up_before++) {
		struct hydns_moment m;
		uint64_t apart;

		reading = 0;
		m = hydns_moment();
		apart = m.real_ns - m.mono_ns;
		assert_in_range(apart, BOOT_NS, BOOT_NS + HYDNS_NS_PER_MS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_moment_is_one) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
