/* SPDX-License-Identifier: GPL-2.0-only */
/* Captures of single packets. Exits 77 (skipped) where BPF programs can't be loaded. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <cmocka.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <sys/wait.h>
#include <bpf/bpf.h>
#include "hydns/switch.h"
#include "expect.h"
#include "hydns-kern/capture/capture.h"

#define SEEN 16

static struct {
	unsigned n;
	struct hydns_captured said[SEEN];
	__u8 octets[SEEN][2 * HYDNS_CAPTURE_MOST];
} seen;

static void on_captured(const struct hydns_captured *c, const __u8 *octets, void *arg)
{
	(void)arg;
	assert_true(seen.n < SEEN);
	seen.said[seen.n] = *c;
	memcpy(seen.octets[seen.n++], octets, c->octets[HYDNS_CAPTURE_IN] + c->octets[HYDNS_CAPTURE_OUT]);
}

static const struct hydns_capture_filter everything = { .reasons = ~0ULL, .most = HYDNS_CAPTURE_MOST };

static int open_map(const char *name, void *k)
{
	return dup(kernel_map(k, name));
}

static struct hydns_capture *capture(const struct hydns_capture_filter *filter)
{
	const struct hydns_capture_options o = { .filter = *filter, .fn = on_captured, .open_map = open_map, .map_arg = kern };
	char why[HYDNS_CAPTURE_WHY] = "";
	struct hydns_capture *c;

	seen.n = 0;
	if (hydns_capture_open(&o, &c, why) || hydns_capture_follow(c, why) != 1 || hydns_capture_read(c, 0))
		fail_msg("no capture: %s", why);
	return c;
}

static void finish(struct hydns_capture *c)
{
	hydns_capture_stop(c);
	assert_int_equal(hydns_capture_read(c, 0), 0);
	assert_int_equal(hydns_capture_lost(c, 0), 0);
	hydns_capture_close(c);
}

/* The program's map whose name, which the kernel cuts, begins like this; its descriptor, or -1. */
static int map_of(int program, const char *name)
{
	__u32 maps[64], len = sizeof(struct bpf_prog_info);
	struct bpf_prog_info info = { .nr_map_ids = 64, .map_ids = (__u64)(unsigned long)maps };
	int found = -1;

	assert_int_equal(bpf_obj_get_info_by_fd(program, &info, &len), 0);
	for (__u32 i = 0; i < info.nr_map_ids && found < 0; i++) {
		struct bpf_map_info map = { 0 };
		int fd = bpf_map_get_fd_by_id(maps[i]);

		len = sizeof(map);
		assert_int_equal(bpf_obj_get_info_by_fd(fd, &map, &len), 0);
		if (!strncmp(map.name, name, BPF_OBJ_NAME_LEN - 1))
			found = fd;
		else
			close(fd);
	}
	return found;
}

/* The program that captures, which ours would call: its id, or 0. */
static __u32 called(void)
{
	__u32 zero = 0, program = 0;
	int fd = map_of(kernel_prog_fd(kern), "hydns_capture");

	if (bpf_map_lookup_elem(fd, &zero, &program))
		program = 0;
	close(fd);
	return program;
}

/* -- one capture for many tests: its program takes long to verify ------------------------------------------------ */
static struct hydns_capture *common;

static int set_up(void **state)
{
	(void)state;
	common = capture(&everything);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	hydns_capture_close(common);
	return 0;
}

/* value NULL: zeros. */
static void write_map(int program, const char *name, const void *value)
{
	struct bpf_map_info info = { 0 };
	__u32 zero = 0, len = sizeof(info);
	int fd = map_of(program, name);
	void *zeros;

	assert_int_equal(bpf_obj_get_info_by_fd(fd, &info, &len), 0);
	zeros = calloc(kernel_cpus(kern), (info.value_size + 7) / 8 * 8);
	assert_non_null(zeros);
	assert_int_equal(bpf_map_update_elem(fd, &zero, value ? value : zeros, BPF_ANY), 0);
	free(zeros);
	close(fd);
}

/* The common capture has this filter from now on, and knows of no packet. */
static void begin(const struct hydns_capture_filter *filter)
{
	int program = bpf_prog_get_fd_by_id(called());

	seen.n = 0;
	write_map(program, "hydns_watched", NULL);
	write_map(program, "hydns_capture_filter", filter);
	close(program);
}

static void end(void)
{
	assert_int_equal(hydns_capture_read(common, 0), 0);
	assert_int_equal(hydns_capture_lost(common, 0), 0);
}

/* The frame of a query, run; what the program made of it is in f. */
static void run(const struct query *q, struct frame *query, struct frame *f)
{
	frame_query(f, q);
	*query = *f;
	assert_true(kernel_shoot(kern, f) >= 0);
}

static void expect_octets(unsigned i, enum hydns_capture_way way, const struct frame *f)
{
	const struct hydns_captured *s = &seen.said[i];

	assert_int_equal(s->whole[way], f->len);
	assert_int_equal(s->octets[way], f->len);
	assert_memory_equal(seen.octets[i] + (way == HYDNS_CAPTURE_OUT ? s->octets[HYDNS_CAPTURE_IN] : 0), f->data, f->len);
}

static const struct query six = { .name = "www.example.com", .qtype = 28, .ipv6 = true, .edns = true };

/* Query and reply, octet by octet, with the reason; a query that passes has no second frame. */
static void test_frames(void **state)
{
	struct frame query[3], out[3];
	struct answer a = { 0 };
	__u32 handle = publish_address(kern, &plain, &a), handle6;
	struct answer b = { 0 };

	(void)state;
	begin(&everything);
	handle6 = publish_address(kern, &six, &b);
	run(&plain, &query[0], &out[0]);
	run(&six, &query[1], &out[1]);
	kernel_remove(kern, handle);
	kernel_remove(kern, handle6);
	run(&six, &query[2], &out[2]);
	end();
	assert_int_equal(seen.n, 3);
	for (unsigned i = 0; i < 3; i++) {
		expect_octets(i, HYDNS_CAPTURE_IN, &query[i]);
		assert_int_equal(seen.said[i].ifindex[HYDNS_CAPTURE_IN], if_nametoindex("lo"));
		assert_false(seen.said[i].replayed);
	}
	for (unsigned i = 0; i < 2; i++) {
		expect_octets(i, HYDNS_CAPTURE_OUT, &out[i]);
		assert_int_equal(seen.said[i].reason, HYDNS_R_ANSWERED);
		assert_true(seen.said[i].at_ns[HYDNS_CAPTURE_OUT] >= seen.said[i].at_ns[HYDNS_CAPTURE_IN]);
	}
	assert_int_equal(seen.said[2].octets[HYDNS_CAPTURE_OUT], 0);
	assert_int_not_equal(seen.said[2].reason, HYDNS_R_ANSWERED);
}

/* The reason is the packet's own, also behind packets that the filter leaves out. */
static void test_reasons(void **state)
{
	static const struct query other = { .name = "other.example", .qtype = 1 };
	struct hydns_capture_filter f = everything;
	struct answer a = { 0 };
	struct frame query, out;
	__u32 handle;

	(void)state;
	f.name_len = (__u16)name_wire(other.name, f.name);
	begin(&f);
	handle = publish_address(kern, &plain, &a);
	for (unsigned i = 0; i < 3; i++) {
		run(&other, &query, &out);
		run(&plain, &query, &out);
		run(&plain, &query, &out);
	}
	kernel_pause(kern, true);
	run(&other, &query, &out);
	kernel_pause(kern, false);
	kernel_remove(kern, handle);
	end();
	assert_int_equal(seen.n, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(seen.said[i].reason, i < 3 ? HYDNS_R_MISS : HYDNS_R_PAUSED);
}

struct name_case {
	const char *filter;
	bool below;
	const char *asked;
	bool wanted;
};

/* Letters count for nothing; a name below ends with the whole labels of the filter's. */
static void test_names(void **state)
{
	static const struct name_case cases[] = {
		{ "www.example.com", false, "www.example.com", true }, { "www.example.com", false, "WwW.ExamplE.COM", true },
		{ "example.com", false, "www.example.com", false }, { "www.example.com", false, "www.example.net", false },
		{ "www.example.com", false, "example.com", false }, { "example.com", true, "example.com", true },
		{ "example.com", true, "a.b.EXAMPLE.com", true }, { "example.com", true, "anexample.com", false },
		{ "example.com", true, "com", false }, { "example.com", true, "a\aexample.com", false },
		{ ".", true, "www.example.com", true }, { ".", false, "com", false },
		{ ".", false, ".", true },
	};

	(void)state;
	for (const struct name_case *n = cases; n < cases + sizeof(cases) / sizeof(*cases); n++) {
		struct query four = { .name = n->asked, .qtype = 1 }, tagged = { .name = n->asked, .qtype = 1, .ipv6 = true, .vlan_tags = 2 };
		struct hydns_capture_filter f = everything;
		struct frame query, out;

		f.name_len = (__u16)name_wire(n->filter, f.name);
		f.below = n->below;
		begin(&f);
		run(&four, &query, &out);
		run(&tagged, &query, &out);
		end();
		if (seen.n != (n->wanted ? 2U : 0U))
			fail_msg("%s%s for %s: %u", n->filter, n->below ? " and below" : "", n->asked, seen.n);
	}
}

static unsigned of_client(const char *address, unsigned len, bool ipv6)
{
	struct query q = { .name = "www.example.com", .qtype = 1, .ipv6 = ipv6 };
	struct hydns_capture_filter f = everything;
	__u8 *mask = (__u8 *)f.mask, *client = (__u8 *)f.client;
	struct frame query, out;

	if (inet_pton(AF_INET6, address, client) != 1)
		fail_msg("%s", address);
	for (unsigned i = 0; i < 128; i++)
		mask[i / 8] |= i < len ? 0x80 >> i % 8 : 0;
	for (unsigned i = 0; i < 16; i++)
		client[i] &= mask[i];
	begin(&f);
	run(&q, &query, &out);
	end();
	return seen.n;
}

static void test_clients(void **state)
{
	char four[INET6_ADDRSTRLEN + 8] = "::ffff:", six_text[INET6_ADDRSTRLEN];

	(void)state;
	inet_ntop(AF_INET, client4, four + 7, INET_ADDRSTRLEN);
	inet_ntop(AF_INET6, client6, six_text, sizeof(six_text));
	assert_int_equal(of_client(four, 128, false), 1);
	assert_int_equal(of_client(four, 128, true), 0);
	assert_int_equal(of_client(four, 112, false), 1);
	assert_int_equal(of_client("::ffff:203.0.113.99", 128, false), 0);
	assert_int_equal(of_client(six_text, 128, true), 1);
	assert_int_equal(of_client(six_text, 64, true), 1);
	assert_int_equal(of_client(six_text, 64, false), 0);
	assert_int_equal(of_client("2001:db8:ffff::1", 128, true), 0);
}

/* Reasons, interfaces and the length that is kept. */
static void test_other_filters(void **state)
{
	struct hydns_capture_filter f = everything;
	struct frame query, out;

	(void)state;
	f.reasons = ~(1ULL << HYDNS_R_MISS | 1ULL << HYDNS_R_EMPTY);
	begin(&f);
	run(&plain, &query, &out);
	end();
	assert_int_equal(seen.n, 0);
	f = everything;
	f.ifindex = if_nametoindex("lo") + 1;
	begin(&f);
	run(&plain, &query, &out);
	end();
	assert_int_equal(seen.n, 0);
	f.ifindex = if_nametoindex("lo");
	f.most = 20;
	begin(&f);
	run(&plain, &query, &out);
	end();
	assert_int_equal(seen.n, 1);
	assert_int_equal(seen.said[0].octets[HYDNS_CAPTURE_IN], 20);
	assert_int_equal(seen.said[0].whole[HYDNS_CAPTURE_IN], query.len);
	assert_memory_equal(seen.octets[0], query.data, 20);
}

/* What finds no room in the ring is counted, and the ring's rest is whole. The last of the common capture, which it ends. */
static void test_lost(void **state)
{
	const unsigned shots = 2 * HYDNS_CAPTURE_RING / 150;
	struct frame query, out;
	__u64 lost;

	(void)state;
	begin(&everything);
	for (unsigned i = 0; i < shots; i++)
		run(&plain, &query, &out);
	hydns_capture_stop(common);
	lost = hydns_capture_lost(common, 0);
	assert_true(lost > 0 && lost < shots);
}

static bool flagged(void)
{
	struct hydns_switch s;
	__u32 zero = 0;

	assert_int_equal(bpf_map_lookup_elem(kernel_map(kern, "hydns_switch"), &zero, &s), 0);
	return s.capturing;
}

/* Whoever captures ends without a word: the kernel calls nobody any more, and the first packet clears the flag. */
static void test_killed(void **state)
{
	struct frame query, out;
	int ready[2], status;
	char byte;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		capture(&everything);
		if (write(ready[1], "", 1) != 1)
			_exit(1);
		pause();
	}
	close(ready[1]);   /* so that a child which fails is seen */
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_true(called() && flagged());
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	for (unsigned i = 0; called() && i < 1000; i++)
		usleep(10000);
	assert_false(called());
	assert_true(flagged());
	run(&plain, &query, &out);
	assert_false(flagged());
	assert_memory_equal(query.data, out.data, query.len);
}

/* One at a time; when it has ended, the next may. */
static void test_one_at_a_time(void **state)
{
	const struct hydns_capture_options o = { .filter = everything, .fn = on_captured, .open_map = open_map, .map_arg = kern };
	struct hydns_capture *c = capture(&everything), *other;
	char why[HYDNS_CAPTURE_WHY] = "";

	(void)state;
	assert_int_equal(hydns_capture_open(&o, &other, why), 0);
	assert_int_equal(hydns_capture_follow(other, why), -EBUSY);
	assert_true(called());
	finish(c);
	assert_false(called() || flagged());
	assert_int_equal(hydns_capture_follow(other, why), 1);
	finish(other);
}

int main(void)
{
	const struct CMUnitTest of_one[] = {
		cmocka_unit_test(test_frames), cmocka_unit_test(test_reasons), cmocka_unit_test(test_names),
		cmocka_unit_test(test_clients), cmocka_unit_test(test_other_filters), cmocka_unit_test(test_lost),
	};
	const struct CMUnitTest ends[] = { cmocka_unit_test(test_killed), cmocka_unit_test(test_one_at_a_time) };

	if (!expect_open(&expect_usual))
		return SKIPPED;
	return expect_close(cmocka_run_group_tests(of_one, set_up, tear_down) + cmocka_run_group_tests(ends, NULL, NULL));
}
