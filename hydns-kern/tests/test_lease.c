/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A resolver that has crashed: its rules answer while hydnsd's lease runs and no process listens where the query goes. Exits 77
 * (skipped) where BPF programs can't be loaded.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <linux/bpf.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include "expect.h"

static const struct query plain6 = { .name = "www.example.com", .qtype = 1, .id = 0x4711, .ipv6 = true };

/* The process has ended: its page stays as it was. until: of the lease. */
static void crash(__u16 flags, __u64 until)
{
	const struct hydns_resolver_config c = {
		.flags = HYDNS_RESOLVER_IGNORES_COOKIE | flags, .edns_size = EDNS_SIZE, .max_udp = 4096, .acl_half = 1,
		.stale_until_ns = until,
	};

	kernel_page(kern)->heartbeat_ns = NOW_NS - 60 * SECOND_NS;
	kernel_config(kern, &c);
}

static void restart(void)
{
	kernel_page(kern)->heartbeat_ns = NOW_NS;
	kernel_config(kern, NULL);
}

static __u64 lease(void)
{
	struct hydns_resolver_config c;
	__u32 key = RESOLVER;

	assert_int_equal(bpf_map_lookup_elem(kernel_map(kern, "hydns_resolver"), &key, &c), 0);
	return c.stale_until_ns;
}

/* A socket at the service's address, which the host need not have; NULL: at all of the family's. */
static int listen_at(bool ipv6, const void *addr, __u16 port)
{
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	int fd = socket(ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), on = 1;

	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, ipv6 ? SOL_IPV6 : SOL_IP, ipv6 ? IPV6_FREEBIND : IP_FREEBIND, &on, sizeof(on)), 0);
	if (addr && ipv6)
		memcpy(&six.sin6_addr, addr, 16);
	else if (addr)
		memcpy(&four.sin_addr, addr, 4);
	assert_int_equal(ipv6 ? bind(fd, (void *)&six, sizeof(six)) : bind(fd, (void *)&four, sizeof(four)), 0);
	return fd;
}

static void test_lease(void **state)
{
	struct answer a = { 0 };
	__u32 handle;

	(void)state;
	handle = publish_address(kern, &plain, &a);
	crash(0, NOW_NS + 1);
	expect_answer("the last nanosecond", &plain, &a, 0);
	expect_answer("over IPv6", &plain6, &a, 0);
	crash(0, NOW_NS);
	expect_query_passes("the lease is over", &plain, HYDNS_R_RESOLVER_GONE);
	crash(0, 0);
	expect_query_passes("there is none", &plain, HYDNS_R_RESOLVER_GONE);
	crash(HYDNS_RESOLVER_READY, NOW_NS + 1);
	expect_answer("ready, and the heartbeat is old", &plain, &a, 0);
	restart();
	kernel_remove(kern, handle);
}

static void old_epoch(struct hydns_rule *r)
{
	r->epoch = EPOCH - 1;
}

static void life_of_5s(struct hydns_rule *r)
{
	r->expire_ms = 5000;
}

/* All that ends a rule of a living resolver ends one of a dead one. */
static void test_what_ends_rules(void **state)
{
	struct answer a = { 0 };
	__u32 handle;

	(void)state;
	answer_addresses(&a, 1, 300);
	crash(0, NOW_NS + SECOND_NS);
	expect_query_passes("no rule", &plain, HYDNS_R_MISS);
	handle = kernel_publish(kern, &plain, &a, 0, old_epoch);
	expect_query_passes("a rule of an older epoch", &plain, HYDNS_R_EPOCH);
	kernel_remove(kern, handle);
	handle = kernel_publish(kern, &plain, &a, 5 * SECOND_NS, life_of_5s);
	expect_query_passes("at its end", &plain, HYDNS_R_EXPIRED);
	kernel_remove(kern, handle);
	handle = kernel_publish(kern, &plain, &a, 0, NULL);
	kernel_page(kern)->epoch = EPOCH | HYDNS_EPOCH_SUSPENDED;
	expect_query_passes("suspended", &plain, HYDNS_R_EPOCH);
	kernel_page(kern)->epoch = EPOCH;
	kernel_acl(kern, client6, 128, HYDNS_ACL_PASS);
	expect_query_passes("a client that it refused", &plain6, HYDNS_R_ACL);
	kernel_acl(kern, client6, 128, -1);
	expect_answer("none of these", &plain, &a, 0);
	restart();
	kernel_remove(kern, handle);
}

/* Nobody writes the log, and nobody keeps the clients' budgets. */
static void test_accounts(void **state)
{
	static const __u16 flag[] = { HYDNS_RESOLVER_LOGS, HYDNS_RESOLVER_LIMITS, HYDNS_RESOLVER_RATES };
	struct answer a = { 0 };
	__u32 handle;

	(void)state;
	handle = publish_address(kern, &plain, &a);
	for (size_t i = 0; i < sizeof(flag) / sizeof(*flag); i++) {
		crash(flag[i], NOW_NS + SECOND_NS);
		expect_query_passes("logs or limits", &plain, HYDNS_R_RESOLVER_GONE);
	}
	restart();
	kernel_remove(kern, handle);
}

static void expect_listener_ends(const char *what, const struct query *q, bool ipv6, const void *addr)
{
	int fd;

	crash(0, NOW_NS + SECOND_NS);
	fd = listen_at(ipv6, addr, SERVICE_PORT);
	expect_query_passes(what, q, HYDNS_R_RESOLVER_GONE);
	close(fd);
	assert_int_equal(lease(), 0);
	expect_query_passes("the lease has ended, too", &plain, HYDNS_R_RESOLVER_GONE);
}

/* From its first query on the new process answers alone, whether it has the plugin or not. */
static void test_listener(void **state)
{
	struct answer a = { 0 };
	__u32 handle;
	int fd[2];

	(void)state;
	handle = publish_address(kern, &plain, &a);
	expect_listener_ends("a socket at the address", &plain, false, service4);
	expect_listener_ends("at any address", &plain, false, NULL);
	expect_listener_ends("at the IPv6 address", &plain6, true, service6);
	expect_listener_ends("at any address of both families", &plain, true, NULL);
	crash(0, NOW_NS + SECOND_NS);
	fd[0] = listen_at(false, service4, SERVICE_PORT + 1);
	fd[1] = listen_at(false, client4, SERVICE_PORT);
	expect_answer("sockets at another port, and at another address", &plain, &a, 0);
	close(fd[0]);
	close(fd[1]);
	assert_int_equal(lease(), NOW_NS + SECOND_NS);
	restart();
	kernel_remove(kern, handle);
}

/* A dry run says so too, but leaves the lease to packets. */
static void test_dry(void **state)
{
	struct answer a = { 0 };
	struct frame f;
	__u32 handle;
	int fd;

	(void)state;
	handle = publish_address(kern, &plain, &a);
	frame_query(&f, &plain);
	crash(0, NOW_NS + SECOND_NS);
	fd = listen_at(false, service4, SERVICE_PORT);
	assert_int_equal(kernel_dry(kern, &f).reason, HYDNS_R_RESOLVER_GONE);
	assert_int_equal(lease(), NOW_NS + SECOND_NS);
	close(fd);
	restart();
	kernel_remove(kern, handle);
}

/* As such a rule is: with the flag by which its TTL stands. */
static void stale(struct hydns_rule *r)
{
	r->flags |= HYDNS_RULE_STATIC_TTL;
}

static void test_ttl_stands(void **state)
{
	struct answer a = { 0 };
	__u32 handle;

	(void)state;
	answer_addresses(&a, 2, 30);
	crash(0, NOW_NS + SECOND_NS);
	handle = kernel_publish(kern, &plain, &a, 100 * SECOND_NS, stale);
	expect_answer("100 s later", &plain, &a, 0);
	restart();
	kernel_remove(kern, handle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lease), cmocka_unit_test(test_what_ends_rules), cmocka_unit_test(test_accounts),
		cmocka_unit_test(test_listener), cmocka_unit_test(test_dry), cmocka_unit_test(test_ttl_stands),
	};

	if (unshare(CLONE_NEWNET)) {
		fprintf(stderr, "cannot make a network namespace\n");
		return SKIPPED;
	}
	return expect_run(tests);
}
