/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The loader against the running kernel: load, pin, adopt, attach, detach, clean. Exits 77 (skipped)
 * without root.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include <sys/syscall.h>
#include <sys/wait.h>
#include <linux/capability.h>
#include "hydns-kern/tests/sandbox.h"
#include "hydns-kern/store/store.h"

static struct hydns_store *open_store(struct hydns_kern *k)
{
	struct hydns_store_memory m = {
		.geometry = hydns_kern_geometry(k), .index = hydns_kern_index(k),
		.hits = hydns_kern_hits(k), .claims = hydns_kern_claims(k), .slots = hydns_kern_slots(k),
	};
	struct hydns_store *s;

	s = hydns_store_open(&m);
	CHECK(s);
	return s;
}

static const __u8 example[] = "\7example\3org";

static __u32 publish_example(struct hydns_store *s)
{
	__u8 answer[16] = { 0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1 };
	__u16 ttl[] = { 6 };
	struct hydns_rule_parts p = {
		.head = { .name_len = sizeof(example), .qtype = 0x0100, .answer_len = sizeof(answer),
			  .ttl_count = 1 },
		.name = example, .answer = answer, .ttl = ttl,
	};
	__u32 handle = 0, replaced;

	CHECK(hydns_store_publish(s, &p, &handle, &replaced) == 0);
	return handle;
}

/* A trivial program that is not ours. */
static int foreign_program(void)
{
	struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = XDP_PASS },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "foreign", "GPL", insns, 2, NULL);

	CHECK(fd >= 0);
	return fd;
}

/* -- maps ----------------------------------------------------------------------------------------------- */
static void rules_survive_a_restart(void)
{
	struct hydns_kern *k = open_kern(CAPACITY, false);
	struct hydns_store *s = open_store(k);
	__u32 handle = publish_example(s), serial = hydns_kern_next_page_serial(k);
	__u64 seed = hydns_kern_geometry(k)->seed[0], bytes = 0;

	CHECK(seed);
	CHECK(hydns_kern_memory(k, &bytes) == 0 && bytes > CAPACITY * 200);
	hydns_store_close(s);
	hydns_kern_close(k);

	k = open_kern(CAPACITY, true);
	s = open_store(k);
	CHECK(hydns_kern_geometry(k)->seed[0] == seed);
	CHECK(hydns_kern_next_page_serial(k) == serial + 1);
	CHECK(hydns_store_count(s) == 1);
	CHECK(hydns_store_find(s, example, sizeof(example), 0x0100, 0, 0) == handle);
	hydns_store_close(s);
	hydns_kern_close(k);
}

static void one_writer_only(void)
{
	struct hydns_kern *k = open_kern(CAPACITY, true), *second = NULL;
	struct hydns_loader_options o = { .pin_dir = pin_dir, .capacity = CAPACITY };
	bool adopted;

	CHECK(hydns_kern_open(&o, &second, &adopted, why) == -EBUSY);
	CHECK(!second && strstr(why, "another hydnsd"));
	hydns_kern_close(k);
}

static void other_sizes_make_new_maps(void)
{
	struct hydns_kern *k = open_kern(CAPACITY, true);
	__u64 seed = hydns_kern_geometry(k)->seed[0];
	struct hydns_store *s;
	__u32 old;

	CHECK(hydns_kern_attach(k, "hka", HYDNS_ATTACH_GENERIC, why) == 0);
	old = attached("hka", NULL);
	hydns_kern_close(k);
	k = open_kern(CAPACITY * 2, false);
	CHECK(hydns_kern_geometry(k)->seed[0] != seed);
	CHECK(attached("hka", NULL) == old);       /* the former program answers until the new one is attached */
	CHECK(hydns_kern_attach(k, "hka", HYDNS_ATTACH_GENERIC, why) == 0);
	CHECK(attached("hka", NULL) == prog_id(k));
	s = open_store(k);
	CHECK(hydns_store_count(s) == 0);
	hydns_store_close(s);
	CHECK(hydns_kern_detach(k, "hka", why) == 0);
	hydns_kern_close(k);
}

/* Until the new program is attached and the new maps are pinned, the former ones are there for whoever starts next. */
static void former_maps_stay_until_new_ones_are_published(void)
{
	struct hydns_loader_options o = { .pin_dir = pin_dir, .capacity = CAPACITY,
					  .with = usual };
	struct hydns_kern *k = open_kern(CAPACITY * 2, true);
	int fd = -1;
	bool adopted;

	CHECK(hydns_kern_page_new(k, 3, 1, &fd, why) == 0);
	close(fd);
	hydns_kern_close(k);
	CHECK(hydns_kern_open(&o, &k, &adopted, why) == 0 && !adopted);
	CHECK(hydns_kern_attach(k, "hka", HYDNS_ATTACH_GENERIC, why) == 0);
	hydns_kern_close(k);
	k = open_kern(CAPACITY * 2, true);
	CHECK(hydns_kern_page(k, 3));
	CHECK(hydns_kern_detach(k, "hka", why) == 0);
	hydns_kern_close(k);
}

static void pin_map(const char *name, __u32 value_size, const __u32 *value)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "other", 4, value_size, 1, NULL);
	__u32 key = 0;
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", pin_dir, name);
	CHECK(fd >= 0 && (!unlink(path) || errno == ENOENT) && !bpf_obj_pin(fd, path));
	CHECK(!value || !bpf_map_update_elem(fd, &key, value, BPF_ANY));
	close(fd);
}

/* Older or newer: of a former set the version alone is known, whatever it consists of. Its program answers until ours takes its place,
 * then nothing of it is left. */
static void pins_of_another_version_are_replaced(void)
{
	static const char *const others[] = { "hydns_of_other", "page_15", "acl_99", "new_hydns_rest" };
	struct hydns_loader_options o = { .pin_dir = pin_dir, .capacity = CAPACITY * 2,
					  .with = usual };
	struct hydns_kern *k = open_kern(CAPACITY * 2, true);
	__u32 seal[64] = { HYDNS_ABI_VERSION + 1 }, old, abi;
	bool adopted;

	CHECK(hydns_kern_attach(k, "hka", HYDNS_ATTACH_GENERIC, why) == 0);
	old = attached("hka", NULL);
	hydns_kern_close(k);
	for (unsigned i = 0; i < sizeof(others) / sizeof(*others); i++)
		pin_map(others[i], 8, NULL);
	pin_map("hydns_meta", sizeof(seal), seal);
	CHECK(hydns_kern_pinned(pin_dir));
	CHECK(hydns_kern_open(&o, &k, &adopted, why) == 0 && !adopted);
	CHECK(!hydns_kern_former(k, &abi) && abi == HYDNS_ABI_VERSION + 1);
	CHECK(attached("hka", NULL) == old && pinned("hydns_of_other") && pinned("page_15"));
	CHECK(hydns_kern_attach(k, "hka", HYDNS_ATTACH_GENERIC, why) == 0 && attached("hka", NULL) == prog_id(k));
	CHECK(pinned("hydns_of_other"));
	CHECK(hydns_kern_publish(k, why) == 0);
	for (unsigned i = 0; i < sizeof(others) / sizeof(*others); i++)
		CHECK(!pinned(others[i]));
	CHECK(pinned("link_hka") && pinned("acl_31"));
	hydns_kern_close(k);
	k = open_kern(CAPACITY * 2, true);
	CHECK(hydns_kern_detach(k, "hka", why) == 0);
	hydns_kern_close(k);
}

/* With a map missing or foreign the loader adopts no map and pins a whole new set. */
static void damaged_pins_are_replaced(void)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/hydns_index", pin_dir);
	CHECK(!unlink(path));
	hydns_kern_close(open_kern(CAPACITY * 2, false));
	hydns_kern_close(open_kern(CAPACITY * 2, true));

	CHECK(!unlink(path));
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "foreign", 4, 64, 1, NULL);
	CHECK(fd >= 0 && !bpf_obj_pin(fd, path));
	close(fd);
	hydns_kern_close(open_kern(CAPACITY, false));
	hydns_kern_close(open_kern(CAPACITY, true));
}

/* -- tables --------------------------------------------------------------------------------------------- */
static int delete_service(const struct hydns_service_key *key, __u32 resolver, void *arg)
{
	struct hydns_kern *k = ((void **)arg)[0];
	unsigned *seen = ((void **)arg)[1];

	CHECK(resolver == key->addr[15] % HYDNS_RESOLVERS);
	CHECK(hydns_kern_service_delete(k, key) == 0);
	(*seen)++;
	return 0;
}

static __u64 service_serial(void)
{
	char path[256];
	__u32 zero = 0;
	__u64 serial = 0;
	int fd;

	snprintf(path, sizeof(path), "%s/hydns_svcserial", pin_dir);
	fd = bpf_obj_get(path);
	CHECK(fd >= 0 && !bpf_map_lookup_elem(fd, &zero, &serial));
	close(fd);
	return serial;
}

static void tables_hold_what_was_put(void)
{
	struct hydns_kern *k = open_kern(CAPACITY, true);
	struct hydns_resolver_config c = { .flags = HYDNS_RESOLVER_READY, .edns_size = 1232 }, back;
	struct hydns_service_key key = { .port = 0x3500 };
	struct hydns_resolver_count count;
	struct hydns_cookies secrets = { 0 };
	__u64 reasons[256];
	unsigned seen = 0;
	void *arg[] = { k, &seen };
	bool on = false;

	CHECK(hydns_kern_pause(k, true) == 0 && hydns_kern_paused(k, &on) == 0 && on);
	CHECK(hydns_kern_pause(k, false) == 0 && hydns_kern_paused(k, &on) == 0 && !on);
	CHECK(hydns_kern_stats(k, reasons) == 0);
	CHECK(hydns_kern_resolver_counts(k, 3, &count) == 0 && count.answered == 0);
	for (unsigned i = 0; i < 200; i++) {
		key.addr[15] = (__u8)i;
		CHECK(hydns_kern_service_set(k, &key, i % HYDNS_RESOLVERS) == 0);
	}
	CHECK(service_serial() == 200);
	CHECK(hydns_kern_service_each(k, delete_service, arg) == 0 && seen == 200);
	CHECK(hydns_kern_service_each(k, delete_service, arg) == 0 && seen == 200);
	CHECK(hydns_kern_service_delete(k, &key) == -ENOENT);
	CHECK(service_serial() == 400);
	CHECK(hydns_kern_resolver_config(k, 5, &c) == 0);
	CHECK(hydns_kern_resolver_config_get(k, 5, &back) == 0 && !memcmp(&c, &back, sizeof(c)));
	for (__u32 i = 0; i < 4; i++) {
		secrets.set = 10 + i;
		CHECK(hydns_kern_cookies(k, 3 + i / 2, i, &secrets) == 0);
	}
	for (__u32 i = 0; i < 4; i++)
		CHECK(hydns_kern_cookies_get(k, 3 + i / 2, i, &secrets) == 0 && secrets.set == 10 + i);
	hydns_kern_close(k);
}

/* -- questions that are forwarded ------------------------------------------------------------------------- */
/* One that the program or a former hydnsd has removed meanwhile does not keep those after it from being removed. */
static void questions_may_be_asked_again(void)
{
	const struct hydns_forward_question q[] = { { .key = 1 }, { .key = 2 }, { .key = 3 }, { .key = 4, .resolver = 1 } };
	const struct hydns_forward_open open = { 0 };
	struct hydns_kern *k = open_kern_with(CAPACITY, &(struct hydns_composition){ .parking = true, .forwarding = true }, true);
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/hydns_fwd_open", pin_dir);
	fd = bpf_obj_get(path);
	CHECK(fd >= 0);
	for (int i = 0; i < 4; i++)
		CHECK(i == 1 || bpf_map_update_elem(fd, &q[i], &open, BPF_NOEXIST) == 0);
	hydns_kern_forward_may_ask(k, q, 3);
	CHECK(hydns_kern_forward_close_all(k) == 1);   /* the other resolver's */
	hydns_kern_forward_may_ask(k, q, 4);           /* none is there */
	hydns_kern_forward_may_ask(k, q, 0);
	close(fd);
	hydns_kern_close(k);
}

/* -- access lists ------------------------------------------------------------------------------------------- */
static __u32 acl_size(unsigned n)
{
	struct hydns_acl_key key;
	char path[256];
	__u32 count = 0;
	void *last = NULL;
	int fd;

	snprintf(path, sizeof(path), "%s/acl_%u", pin_dir, n);
	fd = bpf_obj_get(path);
	CHECK(fd >= 0);
	while (!bpf_map_get_next_key(fd, last, &key)) {
		last = &key;
		count++;
	}
	close(fd);
	return count;
}

#define ROOT6(act)  { .prefixlen = 0, .action = HYDNS_ACL_##act }
#define ROOT4(act)  { .addr = { [10] = 0xff, [11] = 0xff }, .prefixlen = 96, .action = HYDNS_ACL_##act }
#define NET4(act)   { .addr = { [10] = 0xff, [11] = 0xff, 10 }, .prefixlen = 104, .action = HYDNS_ACL_##act }
#define NET6(act)   { .addr = { 0x20, 0x01, 0x0d, 0xb8 }, .prefixlen = 29, .action = HYDNS_ACL_##act }
#define AROUND(act) { .prefixlen = 77, .action = HYDNS_ACL_##act }   /* ::/77, which contains all IPv4-mapped addresses */

static void acl_that_allows_everybody_is_found(void)
{
	const struct {
		struct hydns_acl_entry e[3];
		size_t n;
		__u16 flags;
	} c[] = {
		{ { ROOT6(ALLOW) }, 0, 0 },
		{ { ROOT6(ALLOW) }, 1, HYDNS_RESOLVER_ALLOWS_IPV4 | HYDNS_RESOLVER_ALLOWS_IPV6 },
		{ { ROOT6(PASS), ROOT4(ALLOW) }, 2, HYDNS_RESOLVER_ALLOWS_IPV4 },
		{ { ROOT4(ALLOW), ROOT6(PASS) }, 2, HYDNS_RESOLVER_ALLOWS_IPV4 },
		{ { ROOT6(ALLOW), ROOT4(PASS) }, 2, HYDNS_RESOLVER_ALLOWS_IPV6 },
		{ { ROOT6(ALLOW), NET4(PASS) }, 2, HYDNS_RESOLVER_ALLOWS_IPV6 },
		{ { ROOT6(ALLOW), NET6(PASS) }, 2, HYDNS_RESOLVER_ALLOWS_IPV4 },
		{ { ROOT6(ALLOW), NET6(ALLOW_COOKIE), NET4(ALLOW) }, 3, HYDNS_RESOLVER_ALLOWS_IPV4 },
		{ { ROOT6(ALLOW_COOKIE) }, 1, 0 },
		{ { NET4(ALLOW), NET6(ALLOW) }, 2, 0 },
		{ { ROOT6(ALLOW), AROUND(PASS) }, 2, 0 },
		{ { ROOT6(ALLOW), AROUND(PASS), ROOT4(ALLOW) }, 3, HYDNS_RESOLVER_ALLOWS_IPV4 },
		{ { ROOT6(ALLOW), ROOT6(PASS) }, 2, 0 },
	};

	for (size_t i = 0; i < sizeof(c) / sizeof(*c); i++)
		CHECK(hydns_acl_flags(c[i].e, c[i].n) == c[i].flags);
}

static void acl_fill_replaces(void)
{
	struct hydns_kern *k = open_kern(CAPACITY, true);
	static struct hydns_acl_entry e[HYDNS_ACL_ENTRIES + 1];

	for (unsigned i = 0; i < HYDNS_ACL_ENTRIES + 1; i++) {
		e[i] = (struct hydns_acl_entry){ .prefixlen = 128, .action = HYDNS_ACL_ALLOW };
		e[i].addr[13] = (__u8)(i >> 16);
		e[i].addr[14] = (__u8)(i >> 8);
		e[i].addr[15] = (__u8)i;
	}
	CHECK(hydns_kern_acl_fill(k, 2, 1, e, HYDNS_ACL_ENTRIES) == 0 && acl_size(5) == HYDNS_ACL_ENTRIES);
	CHECK(hydns_kern_acl_fill(k, 2, 1, e, 3) == 0 && acl_size(5) == 3 && acl_size(4) == 0);
	CHECK(hydns_kern_acl_fill(k, 2, 1, e, HYDNS_ACL_ENTRIES + 1) == -E2BIG && acl_size(5) == 3);
	hydns_kern_close(k);
	k = open_kern(CAPACITY, true);
	CHECK(acl_size(5) == 3);
	CHECK(hydns_kern_acl_fill(k, 2, 1, e, 1) == 0 && acl_size(5) == 1);
	hydns_kern_close(k);
}

/* It reads the half that the program uses. */
static void acl_is_read_back(void)
{
	struct hydns_kern *k = open_kern(CAPACITY, true);
	struct hydns_acl_entry e[] = {
		{ .prefixlen = 104, .action = HYDNS_ACL_ALLOW_COOKIE }, { .prefixlen = 0, .action = HYDNS_ACL_ALLOW },
	}, back[3] = { 0 };
	struct hydns_resolver_config c = { .acl_half = 1 };

	e[0].addr[10] = e[0].addr[11] = 0xff;
	e[0].addr[12] = 10;
	CHECK(hydns_kern_acl_fill(k, 3, 0, e, 0) == 0 && hydns_kern_acl_fill(k, 3, 1, e, 2) == 0);
	CHECK(hydns_kern_resolver_config(k, 3, &c) == 0 && hydns_kern_acl_read(k, 3, back, 3) == 2);
	for (unsigned i = 0; i < 2; i++)
		CHECK(!memcmp(&back[i], back[i].prefixlen ? &e[0] : &e[1], sizeof(*e)));
	CHECK(back[0].prefixlen != back[1].prefixlen && hydns_kern_acl_read(k, 3, back, 1) == 1);
	c.acl_half = 0;
	CHECK(hydns_kern_resolver_config(k, 3, &c) == 0 && hydns_kern_acl_read(k, 3, back, 3) == 0);
	CHECK(hydns_kern_acl_read(k, HYDNS_RESOLVERS, back, 3) == -EINVAL);
	hydns_kern_close(k);
}

static __u32 id_of_pinned(const char *name)
{
	struct bpf_map_info info = { 0 };
	__u32 len = sizeof(info);
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", pin_dir, name);
	fd = bpf_obj_get(path);
	CHECK(fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &len));
	close(fd);
	return info.id;
}

/* Another map of the right type is pinned as the list. The program does not use it, so filling it would have no effect. */
static void foreign_acl_is_replaced(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_NO_PREALLOC);
	const struct hydns_acl_entry e = { .prefixlen = 0, .action = HYDNS_ACL_ALLOW };
	struct hydns_kern *k = open_kern(CAPACITY, true);
	__u32 five = 5, used = 0;
	char path[256];
	int fd;

	hydns_kern_close(k);
	snprintf(path, sizeof(path), "%s/acl_5", pin_dir);
	fd = bpf_map_create(BPF_MAP_TYPE_LPM_TRIE, "hydns_acl", sizeof(struct hydns_acl_key), sizeof(__u32),
			    HYDNS_ACL_ENTRIES, &opts);
	CHECK(fd >= 0 && !unlink(path) && !bpf_obj_pin(fd, path));
	close(fd);
	k = open_kern(CAPACITY, true);
	CHECK(hydns_kern_acl_fill(k, 2, 1, &e, 1) == 0 && acl_size(5) == 1);
	snprintf(path, sizeof(path), "%s/hydns_acls", pin_dir);
	fd = bpf_obj_get(path);
	CHECK(fd >= 0 && !bpf_map_lookup_elem(fd, &five, &used));
	close(fd);
	CHECK(used == id_of_pinned("acl_5"));
	hydns_kern_close(k);
}

/* -- resolver pages ------------------------------------------------------------------------------------ */
static void a_new_page_replaces_the_former(void)
{
	struct hydns_kern *k = open_kern(CAPACITY, true);
	struct hydns_resolver_page *mine;
	int fd = -1, second = -1, file = open("/dev/null", O_RDONLY);

	CHECK(!hydns_kern_page(k, 1));
	CHECK(hydns_kern_page_new(k, 1, 77, &fd, why) == 0);
	CHECK(hydns_kern_page(k, 1)->epoch == 77 && hydns_kern_page(k, 1)->heartbeat_ns == 0);
	mine = mmap(NULL, sizeof(*mine), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(mine != MAP_FAILED);
	mine->heartbeat_ns = 5;
	CHECK(hydns_kern_page(k, 1)->heartbeat_ns == 5);
	CHECK(hydns_kern_page_find(k, fd) == 1);
	CHECK(hydns_kern_page_find(k, file) == -ENOENT);
	CHECK(hydns_kern_page_find(k, hydns_kern_prog_fd(k)) == -ENOENT);
	CHECK(hydns_kern_page_find(k, -1) == -ENOENT);

	hydns_kern_close(k);
	k = open_kern(CAPACITY, true);
	CHECK(hydns_kern_page_find(k, fd) == 1 && hydns_kern_page(k, 1)->heartbeat_ns == 5);

	CHECK(hydns_kern_page_new(k, 1, 78, &second, why) == 0);
	mine->heartbeat_ns = 6;
	CHECK(hydns_kern_page(k, 1)->epoch == 78 && hydns_kern_page(k, 1)->heartbeat_ns == 0);
	CHECK(hydns_kern_page_find(k, fd) == -ENOENT && hydns_kern_page_find(k, second) == 1);
	CHECK(hydns_kern_page_delete(k, 1) == 0 && hydns_kern_page_delete(k, 1) == 0);
	CHECK(!hydns_kern_page(k, 1) && !pinned("page_1"));
	munmap(mine, sizeof(*mine));
	close(fd);
	close(second);
	close(file);
	hydns_kern_close(k);
}

/* -- attachments ---------------------------------------------------------------------------------------- */
static void attach_swap_detach(enum hydns_attach_mode mode, __u8 expect)
{
	struct hydns_kern *k = open_kern(CAPACITY, true);
	__u32 first;
	__u8 seen;

	CHECK(hydns_kern_attach(k, "hka", mode, why) == 0);
	first = attached("hka", &seen);
	CHECK(first == prog_id(k) && seen == expect && pinned("link_hka"));
	hydns_kern_close(k);
	CHECK(attached("hka", NULL) == first);
	k = open_kern(CAPACITY, true);
	CHECK(hydns_kern_attach(k, "hka", mode, why) == 0);
	CHECK(attached("hka", &seen) == prog_id(k) && prog_id(k) != first && seen == expect);
	CHECK(hydns_kern_detach(k, "hka", why) == 0 && hydns_kern_detach(k, "hka", why) == 0);
	CHECK(attached("hka", NULL) == 0 && !pinned("link_hka"));
	hydns_kern_close(k);
}

static void mode_can_change(void)
{
	struct hydns_kern *k = open_kern(CAPACITY, true);
	__u8 seen;

	CHECK(hydns_kern_attach(k, "hka", HYDNS_ATTACH_GENERIC, why) == 0);
	CHECK(hydns_kern_attach(k, "hka", HYDNS_ATTACH_NATIVE, why) == 0);
	CHECK(attached("hka", &seen) == prog_id(k) && seen == XDP_ATTACHED_DRV);
	CHECK(hydns_kern_detach(k, "hka", why) == 0);
	hydns_kern_close(k);
}

static void errors_name_the_mend(void)
{
	struct hydns_kern *k = open_kern(CAPACITY, true);
	int foreign = foreign_program(), hka = (int)if_nametoindex("hka");

	CHECK(hydns_kern_attach(k, "nosuchif", HYDNS_ATTACH_NATIVE, why) == -ENODEV);
	CHECK(strstr(why, "no such interface"));
	CHECK(hydns_kern_attach(k, "lo", HYDNS_ATTACH_NATIVE, why) == -EOPNOTSUPP);
	CHECK(strstr(why, "mode generic"));
	CHECK(!bpf_xdp_attach(hka, foreign, XDP_FLAGS_DRV_MODE, NULL));
	CHECK(hydns_kern_attach(k, "hka", HYDNS_ATTACH_NATIVE, why) == -EBUSY);
	CHECK(strstr(why, "mode dispatcher"));
	CHECK(!bpf_xdp_detach(hka, XDP_FLAGS_DRV_MODE, NULL));
	close(foreign);
	hydns_kern_close(k);
}

/* An interface is deleted and made again. Its name has a dot, which a bpffs allows in no file name. */
static void interfaces_come_and_go(void)
{
	struct hydns_kern *k = open_kern(CAPACITY, true);

	run("ip link add hk.7 type veth peer name hkc");
	CHECK(hydns_kern_attach(k, "hk.7", HYDNS_ATTACH_NATIVE, why) == 0);
	run("ip link del hk.7");
	run("ip link add hk.7 type veth peer name hkc");
	CHECK(attached("hk.7", NULL) == 0);
	CHECK(hydns_kern_attach(k, "hk.7", HYDNS_ATTACH_NATIVE, why) == 0);
	CHECK(attached("hk.7", NULL) == prog_id(k));
	run("ip link del hk.7");
	CHECK(hydns_kern_detach(k, "hk.7", why) == 0);
	hydns_kern_close(k);
}

/* -- capabilities ---------------------------------------------------------------------------------------- */
static void keep_capabilities(__u64 keep)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2] = { 0 };

	for (int i = 0; i < 2; i++)
		d[i].effective = d[i].permitted = (__u32)(keep >> 32 * i);
	CHECK(!syscall(SYS_capset, &h, d));
}

/* Dry runs from an interface, from one that does not exist, and from none. */
static void dry_runs_work(struct hydns_kern *k)
{
	static const __u8 frame[60]; /* neither IPv4 nor IPv6 */
	struct hydns_outcome out;
	unsigned from[] = { if_nametoindex("hka"), 1U << 30, 0 };

	for (unsigned i = 0; i < sizeof(from) / sizeof(*from); i++)
		CHECK(hydns_kern_dry_run(k, frame, sizeof(frame), from[i], &out) == 0 && out.beneath == HYDNS_R_NOT_IP &&
		      out.reason == HYDNS_R_NOT_IP);
	CHECK(hydns_kern_pause(k, true) == 0);
	CHECK(hydns_kern_dry_run(k, frame, sizeof(frame), from[0], &out) == 0 && out.reason == HYDNS_R_PAUSED &&
	      out.beneath == HYDNS_R_NOT_IP);
	CHECK(hydns_kern_pause(k, false) == 0);
}

/* Once the program is loaded, CAP_BPF and CAP_NET_ADMIN are enough for everything. */
static void works_with_two_capabilities(void)
{
	struct hydns_acl_entry e = { .prefixlen = 96, .action = HYDNS_ACL_ALLOW };
	struct hydns_service_key key = { .port = 0x3500 };
	struct hydns_kern *k = open_kern(CAPACITY, true);
	__u64 bytes;
	int fd = -1;

	keep_capabilities(1ULL << CAP_BPF | 1ULL << CAP_NET_ADMIN);
	CHECK(hydns_kern_attach(k, "hka", HYDNS_ATTACH_NATIVE, why) == 0);
	CHECK(hydns_kern_page_new(k, 4, 1, &fd, why) == 0 && hydns_kern_page_find(k, fd) == 4);
	CHECK(hydns_kern_acl_fill(k, 4, 0, &e, 1) == 0 && hydns_kern_acl_fill(k, 4, 0, &e, 1) == 0);
	CHECK(hydns_kern_service_set(k, &key, 4) == 0 && hydns_kern_service_delete(k, &key) == 0);
	CHECK(hydns_kern_pause(k, true) == 0 && hydns_kern_pause(k, false) == 0);
	CHECK(hydns_kern_memory(k, &bytes) == 0);
	dry_runs_work(k);
	CHECK(hydns_kern_page_delete(k, 4) == 0);
	CHECK(hydns_kern_attach(k, "hka", HYDNS_ATTACH_NATIVE, why) == 0);
	CHECK(hydns_kern_detach(k, "hka", why) == 0);
	close(fd);
	hydns_kern_close(k);
	CHECK(hydns_kern_clean(pin_dir, why) == 0);
	k = NULL;
	CHECK(hydns_kern_open(&(struct hydns_loader_options){ .pin_dir = pin_dir, .capacity = CAPACITY },
			      &k, &(bool){ false }, why) < 0 || k);
	CHECK(k || strstr(why, "CAP_PERFMON"));
	hydns_kern_close(k);
	CHECK(hydns_kern_clean(pin_dir, why) == 0);
}

#ifdef HAVE_LIBXDP
/* Before anything is attached that could not be detached. */
static void dispatcher_needs_another_capability(void)
{
	struct hydns_kern *k = open_kern(CAPACITY, false);

	keep_capabilities(1ULL << CAP_BPF | 1ULL << CAP_NET_ADMIN | 1ULL << CAP_PERFMON);
	CHECK(hydns_kern_attach(k, "hka", HYDNS_ATTACH_DISPATCHER, why) == -EPERM);
	CHECK(strstr(why, "Other XDP programs"));
	CHECK(attached("hka", NULL) == 0 && !pinned("shared_hka"));
	hydns_kern_close(k);
	CHECK(hydns_kern_clean(pin_dir, why) == 0);
}
#endif

/* A page without a mapping is abandoned, whatever its heartbeat; the resolver can't map it again. */
static void unmapped_pages_are_abandoned(void)
{
	struct hydns_kern *k = open_kern(CAPACITY, true);
	struct hydns_resolver_page *mine;
	int fd = -1;

	CHECK(hydns_kern_page_abandoned(k, 3));
	CHECK(hydns_kern_page_new(k, 3, 1, &fd, why) == 0);
	mine = mmap(NULL, sizeof(*mine), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(mine != MAP_FAILED);
	mine->heartbeat_ns = 5;
	CHECK(!hydns_kern_page_abandoned(k, 3));
	hydns_kern_close(k);
	k = open_kern(CAPACITY, true);                  /* a new hydnsd finds the same */
	CHECK(!hydns_kern_page_abandoned(k, 3));
	munmap(mine, sizeof(*mine));
	CHECK(hydns_kern_page_abandoned(k, 3) && hydns_kern_page_abandoned(k, 3));
	CHECK(mmap(NULL, sizeof(*mine), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
	CHECK(hydns_kern_page(k, 3)->heartbeat_ns == 5);
	CHECK(hydns_kern_page_delete(k, 3) == 0);
	close(fd);
	hydns_kern_close(k);
}

/* A resolver has no capability, only the page's descriptor. */
static void page_needs_no_capability(void)
{
	struct hydns_kern *k = open_kern(CAPACITY, true);
	struct hydns_resolver_page *mine;
	int fd = -1;

	CHECK(hydns_kern_page_new(k, 2, 9, &fd, why) == 0);
	keep_capabilities(0);
	mine = mmap(NULL, sizeof(*mine), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(mine != MAP_FAILED && mine->epoch == 9);
	mine->epoch = 10;
	CHECK(hydns_kern_page(k, 2)->epoch == 10);
}

static void in_a_child(void (*test)(void))
{
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid) {
		test();
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

/* -- the end -------------------------------------------------------------------------------------------- */
static void clean_leaves_nothing(void)
{
	struct hydns_kern *k = open_kern(CAPACITY, true);
	int fd = -1;

	CHECK(hydns_kern_attach(k, "hka", HYDNS_ATTACH_NATIVE, why) == 0);
	CHECK(hydns_kern_attach(k, "hkb", HYDNS_ATTACH_GENERIC, why) == 0);
	CHECK(hydns_kern_page_new(k, 0, 1, &fd, why) == 0);
	close(fd);
	hydns_kern_close(k);
	CHECK(hydns_kern_clean(pin_dir, why) == 0 && hydns_kern_clean(pin_dir, why) == 0);
	CHECK(attached("hka", NULL) == 0 && attached("hkb", NULL) == 0);
	CHECK(access(pin_dir, F_OK) && errno == ENOENT);
	CHECK(strlen(pin_dir));
}

/* A pin directory of another user could hold maps of any content; one of root, or of the user that hydnsd becomes, is
 * adopted. */
static void pins_of_another_user_are_refused(void)
{
	struct hydns_loader_options o = { .pin_dir = pin_dir, .capacity = CAPACITY, .uid = 4711 };
	struct hydns_kern *k = open_kern(CAPACITY, false);
	bool adopted;

	hydns_kern_close(k);
	CHECK(!chown(pin_dir, 4711, (gid_t)-1));
	CHECK(hydns_kern_open(&o, &k, &adopted, why) == 0 && adopted);
	hydns_kern_close(k);
	o.uid = 0;
	CHECK(hydns_kern_open(&o, &k, &adopted, why) == -EPERM && strstr(why, "uid 4711") && strstr(why, "--clean"));
	CHECK(hydns_kern_clean(pin_dir, why) == 0);
	CHECK(!symlink("/sys", pin_dir) && hydns_kern_open(&o, &k, &adopted, why) == -ENOTDIR);
	CHECK(!unlink(pin_dir));
}

static void without_bpffs_is_an_error(void)
{
	struct hydns_loader_options o = { .pin_dir = "/dev/shm/hydns-not-bpffs", .capacity = CAPACITY };
	struct hydns_kern *k = NULL;
	bool adopted;

	CHECK(hydns_kern_open(&o, &k, &adopted, why) == -EINVAL && strstr(why, "not in a bpffs"));
	CHECK(!rmdir(o.pin_dir));
}

int main(void)
{
	if (geteuid()) {
		puts("skipped: loading BPF programs and making namespaces needs root");
		return SKIP;
	}
	set_up();
	atexit(tear_down);
	rules_survive_a_restart();
	one_writer_only();
	other_sizes_make_new_maps();
	former_maps_stay_until_new_ones_are_published();
	pins_of_another_version_are_replaced();
	damaged_pins_are_replaced();
	tables_hold_what_was_put();
	questions_may_be_asked_again();
	acl_that_allows_everybody_is_found();
	acl_fill_replaces();
	acl_is_read_back();
	foreign_acl_is_replaced();
	a_new_page_replaces_the_former();
	unmapped_pages_are_abandoned();
	attach_swap_detach(HYDNS_ATTACH_NATIVE, XDP_ATTACHED_DRV);
	attach_swap_detach(HYDNS_ATTACH_GENERIC, XDP_ATTACHED_SKB);
	mode_can_change();
	errors_name_the_mend();
	interfaces_come_and_go();
	in_a_child(page_needs_no_capability);
	in_a_child(works_with_two_capabilities);
#ifdef HAVE_LIBXDP
	in_a_child(dispatcher_needs_another_capability);
#endif
	hydns_kern_close(open_kern(CAPACITY, false));
	clean_leaves_nothing();
	pins_of_another_user_are_refused();
	without_bpffs_is_an_error();
	puts("ok");
	return 0;
}
