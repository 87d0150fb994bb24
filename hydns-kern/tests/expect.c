/* SPDX-License-Identifier: GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <linux/bpf.h>
#include "expect.h"

struct kernel *kern;
const struct query plain = { .name = "www.example.com", .qtype = 1, .id = 0x4711 };

static void expect_reason(const char *what, int got, int want)
{
	if (got != want)
		fail_msg("%s: counted as %s, expected %s", what,
			 got < 0 ? "none or several" : hydns_reason_name((enum hydns_reason)got),
			 hydns_reason_name((enum hydns_reason)want));
}

static void expect_dry_run(const char *what, struct kernel *k, const struct frame *f, int want)
{
	struct hydns_outcome dry = kernel_dry(k, f);

	if (dry.reason != (enum hydns_reason)want)
		fail_msg("%s: a dry run gives %s, expected %s", what, hydns_reason_name(dry.reason),
			 hydns_reason_name((enum hydns_reason)want));
}

void expect_pass(const char *what, struct kernel *k, const struct frame *f, int want)
{
	struct frame g = *f;
	int reason, action;

	expect_dry_run(what, k, f, want);
	action = kernel_run(k, &g, &reason);
	expect_reason(what, reason, want);
	if (action != XDP_PASS)
		fail_msg("%s: action %d", what, action);
	if (g.len != f->len || memcmp(g.data, f->data, f->len))
		fail_msg("%s: a passed packet was changed", what);
}

static void expect_swapped(const char *what, const struct frame *asked, const struct frame *reply)
{
	const __u8 *a = asked->data, *r = reply->data;
	size_t n = asked->ipv6 ? 16 : 4, src = asked->l3 + (asked->ipv6 ? 8 : 12);

	if (memcmp(a, r + 6, 6) || memcmp(a + 6, r, 6) || memcmp(a + 12, r + 12, asked->l3 - 12))
		fail_msg("%s: Ethernet header", what);
	if (memcmp(a + src, r + src + n, n) || memcmp(a + src + n, r + src, n))
		fail_msg("%s: IP addresses", what);
	if (memcmp(a + asked->udp, r + asked->udp + 2, 2) || memcmp(a + asked->udp + 2, r + asked->udp, 2))
		fail_msg("%s: UDP ports", what);
}

static void expect_ip(const char *what, const struct frame *reply)
{
	static const __u8 v6[4] = { 0x60, 0, 0, 0 };
	const __u8 *ip = reply->data + reply->l3;
	__u8 fragment[4] = { 0, 0, 0x40, 0 }; /* id 0 and DF up to 576 octets; above, the query's id */

	if (reply->len - reply->l3 > 576) {
		memcpy(fragment, reply->data + reply->dns, 2);
		fragment[2] = 0;
	}
	if (reply->ipv6 ? memcmp(ip, v6, 4) || ip[6] != 17 || ip[7] != 64 :
			  ip[0] != 0x45 || ip[1] || memcmp(ip + 4, fragment, 4) || ip[8] != 64)
		fail_msg("%s: IP header", what);
}

static void expect_message(const char *what, const struct frame *reply, const __u8 *want, size_t len)
{
	const __u8 *got = reply->data + reply->dns;

	if (reply->len - reply->dns != len)
		fail_msg("%s: DNS message of %zu octets, expected %zu", what, reply->len - reply->dns, len);
	for (size_t i = 0; i < len; i++)
		if (got[i] != want[i])
			fail_msg("%s: octet %zu of the message is %02x, expected %02x", what, i, got[i], want[i]);
}

void expect_frame(const char *what, struct kernel *k, const struct frame *f, const struct query *q,
		  const struct answer *a, __u32 seconds, __u32 rotation)
{
	struct frame g = *f;
	__u8 want[FRAME_MAX];
	size_t len = answer_message(a, q, seconds, rotation, EDNS_SIZE, want);
	int reason, action;
	const char *wrong;

	expect_dry_run(what, k, f, HYDNS_R_ANSWERED);
	action = kernel_run(k, &g, &reason);
	expect_reason(what, reason, HYDNS_R_ANSWERED);
	assert_int_equal(action, XDP_TX);
	expect_message(what, &g, want, len);
	wrong = frame_wrong(&g);
	if (wrong)
		fail_msg("%s: wrong %s", what, wrong);
	expect_swapped(what, f, &g);
	expect_ip(what, &g);
}

void expect_answer(const char *what, const struct query *q, const struct answer *a, __u32 seconds)
{
	struct frame f;

	frame_query(&f, q);
	expect_frame(what, kern, &f, q, a, seconds, 0);
}

void expect_query_passes(const char *what, const struct query *q, int reason)
{
	struct frame f;

	frame_query(&f, q);
	expect_pass(what, kern, &f, reason);
}

void command(const char *text)
{
	if (system(text))
		fail_msg("%s", text);
}

__u32 publish_address(struct kernel *k, const struct query *q, struct answer *a)
{
	__u32 handle;

	answer_addresses(a, 1, 300);
	handle = kernel_publish(k, q, a, 0, NULL);
	assert_true(handle);
	return handle;
}

struct kernel *open_with(const struct kernel_options *o)
{
	const char *why;
	struct kernel *k = kernel_open(o, &why);

	if (!k)
		fail_msg("%s", why);
	return k;
}

const struct kernel_options expect_usual = { .verbose = true };

bool expect_open(const struct kernel_options *o)
{
	const char *why;

	kern = kernel_open(o, &why);
	if (!kern)
		printf("skipped: %s\n", why);
	return kern;
}

int expect_close(int failed)
{
	kernel_close(kern);
	return failed;
}

void expect_short(struct kernel *k, const struct query *q, int reason, uint16_t flags)
{
	const struct answer none = { .flags = flags };
	uint8_t want[FRAME_MAX];
	size_t len = answer_message(&none, q, 0, 0, EDNS_SIZE, want);
	struct frame f;
	int got;

	frame_query(&f, q);
	assert_int_equal(kernel_run(k, &f, &got), XDP_TX);
	expect_reason(q->name, got, reason);
	assert_int_equal(f.len - f.dns, len);
	assert_memory_equal(f.data + f.dns, want, len);
	assert_null(frame_wrong(&f));
	assert_memory_equal(f.data, client_mac, 6);
	assert_memory_equal(f.data + f.l3 + (q->ipv6 ? 24 : 16), q->ipv6 ? client6 : client4, q->ipv6 ? 16 : 4);
}
