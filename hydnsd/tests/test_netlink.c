/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Dumps of addresses and links when rtnetlink fails: interruptions, errors, messages of others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <arpa/inet.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "hydnsd/netdev/addresses.h"
#include "hydnsd/netdev/netdev.h"
#include "hydnsd/tests/netlink_script.h"

/* -- addresses ------------------------------------------------------------------------------------------------- */
static struct hydnsd d;
static unsigned synced;

static bool has(const char *text)
{
	uint8_t addr[16] = { [10] = 0xff, [11] = 0xff };
	bool v6 = strchr(text, ':');

	assert_int_equal(inet_pton(v6 ? AF_INET6 : AF_INET, text, addr + (v6 ? 0 : 12)), 1);
	return hydnsd_addresses_have(&d, addr);
}

static void sync_services(struct hydnsd *d)
{
	(void)d;
	synced++;
}

static int learn(void)
{
	char why[256];

	return hydnsd_addresses_start(&d, sync_services, why, sizeof(why));
}

static int forget(void **state)
{
	(void)state;
	hydnsd_addresses_stop(&d);
	return 0;
}

static void addresses_are_read(void **state)
{
	(void)state;
	datagram_from(KERNEL);
	local("192.0.2.1");
	local("192.0.2.2");
	datagram_from(KERNEL);
	local("192.0.2.3");
	done();
	datagram_from(KERNEL);
	local("2001:db8::1");
	done();
	assert_int_equal(learn(), 0);
	assert_true(has("192.0.2.1") && has("192.0.2.2") && has("192.0.2.3") && has("2001:db8::1"));
	assert_false(has("192.0.2.4"));
	assert_int_equal(requests, 2);
}

/* An address may be missing, or have gone: only the last, complete dump counts. The dump of the other family stays. */
static void an_interrupted_answer_is_asked_for_again(void **state)
{
	(void)state;
	datagram_from(KERNEL);
	local("192.0.2.1");
	done();
	datagram_from(KERNEL);
	local("2001:db8::1");
	route("2001:db8::2", 128, RTN_LOCAL, RT_TABLE_LOCAL, 1, NLM_F_DUMP_INTR, AS_ASKED);
	done();
	datagram_from(KERNEL);
	local("2001:db8::3");
	done();
	assert_int_equal(learn(), 0);
	assert_int_equal(requests, 3);
	assert_true(has("192.0.2.1") && has("2001:db8::3"));
	assert_false(has("2001:db8::1") || has("2001:db8::2"));
}

/* The last message has the flag when none follows the change. */
static void an_end_may_say_that_it_was_interrupted(void **state)
{
	int none = 0;

	(void)state;
	datagram_from(KERNEL);
	local("192.0.2.1");
	message(NLMSG_DONE, NLM_F_DUMP_INTR, AS_ASKED, &none, sizeof(none));
	datagram_from(KERNEL);
	local("192.0.2.2");
	done();
	nothing();
	assert_int_equal(learn(), 0);
	assert_int_equal(requests, 3);
	assert_true(has("192.0.2.2") && !has("192.0.2.1"));
}

static void trying_has_an_end(void **state)
{
	(void)state;
	for (unsigned i = 0; i < SCRIPT; i++) {
		datagram_from(KERNEL);
		route("192.0.2.1", 32, RTN_LOCAL, RT_TABLE_LOCAL, 1, NLM_F_DUMP_INTR, AS_ASKED);
		done();
	}
	assert_int_equal(learn(), -EAGAIN);
	assert_in_range(requests, 2, SCRIPT / 2);
}

static void an_error_is_no_end(void **state)
{
	(void)state;
	refusal(EPERM);
	assert_int_equal(learn(), -EPERM);
}

static void an_error_after_some_messages(void **state)
{
	(void)state;
	datagram_from(KERNEL);
	local("192.0.2.1");
	refusal(ENOBUFS);
	assert_int_equal(learn(), -ENOBUFS);
}

static void an_end_may_be_an_error(void **state)
{
	(void)state;
	datagram_from(KERNEL);
	local("192.0.2.1");
	done_as(-EINVAL, AS_ASKED);
	assert_int_equal(learn(), -EINVAL);
}

static void silence_is_an_error(void **state)
{
	(void)state;
	datagram_from(KERNEL);
	local("192.0.2.1");
	assert_int_equal(learn(), -EAGAIN);
	assert_int_equal(requests, 1);
}

/* Neither their objects nor their end count. */
static void answers_to_others(void **state)
{
	(void)state;
	datagram_from(KERNEL);
	route("192.0.2.9", 32, RTN_LOCAL, RT_TABLE_LOCAL, 1, NLM_F_DUMP_INTR, 77);
	done_as(-EPERM, 77);
	datagram_from(KERNEL);
	local("192.0.2.1");
	done();
	nothing();
	assert_int_equal(learn(), 0);
	assert_int_equal(requests, 2);
	assert_true(has("192.0.2.1") && !has("192.0.2.9"));
}

static void messages_of_other_processes(void **state)
{
	(void)state;
	datagram_from(STRANGER);
	local("192.0.2.9");
	done();
	datagram_from(KERNEL);
	local("192.0.2.1");
	done();
	datagram_from(KERNEL);
	local("2001:db8::1");
	done();
	assert_int_equal(learn(), 0);
	assert_true(has("192.0.2.1") && has("2001:db8::1") && !has("192.0.2.9"));
}

static void a_host_without_ipv6(void **state)
{
	(void)state;
	datagram_from(KERNEL);
	local("192.0.2.1");
	done();
	refusal(EAFNOSUPPORT);
	assert_int_equal(learn(), 0);
	assert_true(has("192.0.2.1"));
}

/* On an error the former addresses stay, and each tick tries again. */
static void a_failed_look_is_made_again(void **state)
{
	(void)state;
	datagram_from(KERNEL);
	local("192.0.2.1");
	done();
	nothing();
	assert_int_equal(learn(), 0);
	synced = 0;
	failure(ENOBUFS);
	heard(heard_arg, 0);
	refusal(ENOMEM);
	hydnsd_addresses_tick(&d);
	assert_true(has("192.0.2.1") && !synced);
	datagram_from(KERNEL);
	local("192.0.2.2");
	done();
	nothing();
	hydnsd_addresses_tick(&d);
	assert_true(has("192.0.2.2") && !has("192.0.2.1"));
	assert_int_equal(synced, 1);
}

/* -- links ----------------------------------------------------------------------------------------------------- */
static void links_that_cannot_be_read(void **state)
{
	struct netdev_link *all;
	size_t n;

	(void)state;
	datagram_from(KERNEL);
	link_of(11, "card1", "", 0, 0);
	refusal(ENOMEM);
	assert_int_equal(netdev_links(&all, &n), -ENOMEM);
}

static void interrupted_links_are_asked_for_again(void **state)
{
	struct netdev_link *all;
	size_t n;

	(void)state;
	datagram_from(KERNEL);
	link_of(11, "card1", "", 0, 0);
	message(NLMSG_NOOP, NLM_F_DUMP_INTR, AS_ASKED, "", 0);
	done();
	datagram_from(KERNEL);
	link_of(12, "card2", "", 0, 0);
	done();
	assert_int_equal(netdev_links(&all, &n), 0);
	assert_int_equal(n, 1);
	assert_string_equal(all[0].name, "card2");
	free(all);
}

#define OF_ADDRESSES(test) cmocka_unit_test_setup_teardown(test, begin_script, forget)
#define ALONE(test)        cmocka_unit_test_setup(test, begin_script)

int main(void)
{
	const struct CMUnitTest tests[] = {
		OF_ADDRESSES(addresses_are_read),
		OF_ADDRESSES(an_interrupted_answer_is_asked_for_again),
		OF_ADDRESSES(an_end_may_say_that_it_was_interrupted),
		OF_ADDRESSES(trying_has_an_end),
		OF_ADDRESSES(an_error_is_no_end),
		OF_ADDRESSES(an_error_after_some_messages),
		OF_ADDRESSES(an_end_may_be_an_error),
		OF_ADDRESSES(silence_is_an_error),
		OF_ADDRESSES(answers_to_others),
		OF_ADDRESSES(messages_of_other_processes),
		OF_ADDRESSES(a_host_without_ipv6),
		OF_ADDRESSES(a_failed_look_is_made_again),
		ALONE(links_that_cannot_be_read),
		ALONE(interrupted_links_are_asked_for_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
