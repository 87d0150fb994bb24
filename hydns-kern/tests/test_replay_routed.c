/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Live replays with routed replies: the answers of a call leave by one link, so that it is known which of them that link has
 * refused; what leaves by another comes in again.
 *
 *     hka (the program is attached)  <-- veth -->  hkb (takes replies)       one client's network
 *     hkc (the program is attached)  <-- veth -->  hkd (takes none)          another's
 *
 * Exits 77 (skipped) where BPF can't be loaded.
 */
#include <linux/if_link.h>
#include <net/if.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <linux/bpf.h>
#include <bpf/bpf.h>
#include "parking.h"
#include "hydns-kern/loader/kern.h"

#define FRAMES 40

static struct kernel *attached;
static struct parking parking;

/* Writes a query of 192.0.2.client into the n-th place. */
static void place(const struct query *ask, unsigned n, __u8 client)
{
	struct query q = *ask;
	struct frame f;

	q.id = n;
	frame_query(&f, &q);
	f.data[f.l3 + 15] = client;
	frame_seal(&f);
	parking.replays->frame[n].len = f.len;
	memcpy(parking.replays->frame[n].octets, f.data, f.len);
}

static void run(unsigned n)
{
	__u32 passed;

	kernel_beat(attached);
	assert_int_equal(hydns_replay_run(kernel_prog_fd(attached), parking.replays, true, if_nametoindex("hka"), 0, n, &passed), (int)n);
	assert_int_equal(passed, 0);
}

static unsigned count(unsigned n, int passed, bool refused)
{
	unsigned found = 0;

	for (unsigned i = 0; i < n; i++)
		found += parking.replays->frame[i].passed == passed && parking.replays->frame[i].refused == refused;
	return found;
}

static void each_call_takes_one_link(void **state)
{
	struct answer a = { 0 };

	(void)state;
	publish_address(attached, &plain, &a);
	for (unsigned i = 0; i < FRAMES; i++)
		place(&plain, i, i % 4 ? 7 : 8);
	run(FRAMES);
	/* the first one's link has refused all; the others have to come again */
	assert_int_equal(count(FRAMES, 0, true), FRAMES / 4);
	assert_int_equal(count(FRAMES, HYDNS_REPLAY_LATER, false), FRAMES - FRAMES / 4);
	for (unsigned i = 0; i < FRAMES; i++)
		place(&plain, i, i ? 7 : 9);
	run(FRAMES);
	assert_int_equal(count(FRAMES, 0, false), FRAMES);
}

static int set_up(void **state)
{
	(void)state;
	command("f=/proc/sys/net/ipv6/conf/default/disable_ipv6; [ ! -e $f ] || echo 1 >$f");
	command("ip link set lo up && ip link add hka type veth peer name hkb && ip link add hkc type veth peer name hkd");
	command("for l in hka hkb hkc hkd; do ip link set $l up; done");
	command("ip addr add 192.0.2.1/24 dev hka && ip addr add 10.9.0.1/24 dev hkc && ip route add 192.0.2.8/32 via 10.9.0.2");
	for (int client = 7; client < 10; client += 2) {
		char text[96];

		snprintf(text, sizeof(text), "ip neigh add 192.0.2.%d dev hka lladdr 02:00:00:00:01:%02x", client, client);
		command(text);
	}
	command("ip neigh add 10.9.0.2 dev hkc lladdr 02:00:00:00:01:02 && echo 1 >/proc/sys/net/ipv4/conf/lo/forwarding");
	parking_open(&parking, attached);
	kernel_allow_egress(attached, if_nametoindex("hka"), true);
	kernel_allow_egress(attached, if_nametoindex("hkc"), true);
	return kernel_attach(attached, "hka") >= 0 && kernel_attach(attached, "hkb") >= 0 && kernel_attach(attached, "hkc") >= 0 &&
	       kernel_watch_sent(attached) ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(each_call_takes_one_link) };
	const char *why = "a network namespace can't be made: run as root";
	int failed;

	if (!unshare(CLONE_NEWNET))
		attached = kernel_open(&(struct kernel_options){ .real_clock = true, .miss_stage = true, .fib = true, .verbose = true },
				       &why);
	if (!attached) {
		printf("skipped: %s\n", why);
		return SKIPPED;
	}
	failed = cmocka_run_group_tests(tests, set_up, NULL);
	kernel_close(attached);
	return failed;
}
