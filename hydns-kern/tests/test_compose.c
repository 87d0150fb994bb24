/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Exchanging the programs for others while packets come in: none is lost, none counted twice, and maps, attachments and what the
 * loader has told the program stay. Exits 77 (skipped) without root.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include "hydns-kern/tests/sandbox.h"

#define EXCHANGES  7                   /* the last set is another than the first */
#define BURST      32                  /* less than a veth's ring holds */
#define WAIT_S     10

static struct hydns_composition all = {
	.ipv6 = true, .vlan = true, .fib = true, .partial_checksum = true, .queue = true, .parking = true, .forwarding = true,
	.logs = true, .names = true, .monitor = true, .guard = true, .limits = { .mode = HYDNS_GUARD_COUNT, .queries = 1 },
};
static const struct hydns_composition none;

/* -- packets ---------------------------------------------------------------------------------------------- */
struct load {
	struct hydns_kern *k;
	int fd;
	unsigned long sent;
	bool stop, lost;
};

static __u64 counted(struct hydns_kern *k)
{
	__u64 reasons[HYDNS_REASONS] = { 0 }, sum = 0;

	CHECK(hydns_kern_stats(k, reasons) == 0);
	for (unsigned i = 0; i < HYDNS_REASONS; i++)
		sum += reasons[i];
	return sum;
}

static int packet_socket(const char *ifname)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex(ifname) };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0 && !bind(fd, (struct sockaddr *)&at, sizeof(at)));
	return fd;
}

/* Whether the programs have counted so many packets since then. */
static bool all_counted(const struct load *l, __u64 before)
{
	const struct timespec pause = { .tv_nsec = 100000 };
	struct timespec begun, now;

	clock_gettime(CLOCK_MONOTONIC, &begun);
	do {
		if (counted(l->k) - before >= l->sent)
			return true;
		nanosleep(&pause, NULL);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec - begun.tv_sec < WAIT_S);
	return false;
}

/* Packets come in before what follows, and behind what was before. */
static void wait_for_load(const struct load *l)
{
	const unsigned long sent = __atomic_load_n(&l->sent, __ATOMIC_RELAXED);
	const struct timespec pause = { .tv_nsec = 100000 };
	struct timespec begun, now;

	clock_gettime(CLOCK_MONOTONIC, &begun);
	do {
		nanosleep(&pause, NULL);
		clock_gettime(CLOCK_MONOTONIC, &now);
		CHECK(now.tv_sec - begun.tv_sec < 2 * WAIT_S);
	} while (__atomic_load_n(&l->sent, __ATOMIC_RELAXED) - sent < 2 * BURST);
}

/* Sends a burst, waits until all of it is counted, and so on: so a burst that loses one stays short of it. */
static void *send_load(void *arg)
{
	struct load *l = arg;
	__u64 before = counted(l->k);
	__u8 frame[ETH_ZLEN] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, ETH_P_IP >> 8, ETH_P_IP & 0xff, 0x45 };

	while (!__atomic_load_n(&l->stop, __ATOMIC_RELAXED) && !l->lost) {
		for (int i = 0; i < BURST; i++)
			if (send(l->fd, frame, sizeof(frame), 0) == sizeof(frame))
				__atomic_add_fetch(&l->sent, 1, __ATOMIC_RELAXED);
		l->lost = !all_counted(l, before);
	}
	l->lost = l->lost || counted(l->k) - before != l->sent;
	return NULL;
}

/* -- tests ------------------------------------------------------------------------------------------------ */
static __u32 link_id(void)
{
	struct bpf_link_info info = { 0 };
	__u32 len = sizeof(info);
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/link_hka", pin_dir);
	fd = bpf_obj_get(path);
	CHECK(fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &len));
	close(fd);
	return info.id;
}

/* The set that ran last, which may run again: most of this test's time would be the verifier's. */
static struct {
	struct hydns_set *set;
	struct hydns_composition with;
} spare;

static void close_spare(void)
{
	hydns_set_close(spare.set);
	spare.set = NULL;
}

/* The spare one if it has this composition, else a new one. The caller's. */
static struct hydns_set *set_of(struct hydns_kern *k, const struct hydns_composition *with)
{
	const __u32 former = prog_id(k);
	struct hydns_set *set = spare.set;

	spare.set = NULL;
	if (set && !memcmp(&spare.with, with, sizeof(*with)))
		return set;
	hydns_set_close(set);
	set = NULL;
	CHECK(hydns_set_load(k, with, &set, why) == 0);
	CHECK(prog_id(k) == former && attached("hka", NULL) == former);
	return set;
}

static void exchange(struct hydns_kern *k, const struct hydns_composition *with)
{
	const __u32 link = link_id(), former = prog_id(k);
	struct hydns_set *set = set_of(k, with);
	struct hydns_composition now = hydns_kern_composition(k);

	CHECK(hydns_kern_exchange(k, set, why) == 0);
	now.limits = now.guard ? all.limits : none.limits;
	spare.set = set;
	spare.with = now;
	now = hydns_kern_composition(k);
	now.limits = with->limits;
	CHECK(!memcmp(&now, with, sizeof(now)));
	CHECK(prog_id(k) != former && attached("hka", NULL) == prog_id(k));
	CHECK(link_id() == link);
}

static void nothing_is_lost(struct hydns_kern *k, enum hydns_attach_mode mode)
{
	struct load l = { .k = k, .fd = packet_socket("hkb") };
	pthread_t sender;

	CHECK(hydns_kern_attach(k, "hka", mode, why) == 0);
	exchange(k, &all);
	CHECK(!pthread_create(&sender, NULL, send_load, &l));
	for (int i = 0; i < EXCHANGES; i++) {
		wait_for_load(&l);
		exchange(k, i % 2 ? &all : &none);     /* at first a new set, and the end of another */
	}
	wait_for_load(&l);
	__atomic_store_n(&l.stop, true, __ATOMIC_RELAXED);
	CHECK(!pthread_join(sender, NULL));
	CHECK(!l.lost);
	close(l.fd);
	CHECK(hydns_kern_detach(k, "hka", why) == 0);
}

/* .bss is one of all sets: hydnsd writes it while programs come and go. */
static void what_was_told_stays(struct hydns_kern *k)
{
	const __u64 seed = hydns_kern_geometry(k)->seed[0];
	__u32 window;

	CHECK(hydns_kern_attach(k, "hka", HYDNS_ATTACH_NATIVE, why) == 0);
	window = hydns_kern_window_next(k);
	exchange(k, &all);
	CHECK(hydns_kern_geometry(k)->seed[0] == seed);
	CHECK(hydns_kern_window_next(k) != window);
	exchange(k, &none);
	CHECK(hydns_kern_window_next(k) == window);
	CHECK(hydns_kern_detach(k, "hka", why) == 0);
}

struct listed {
	unsigned in, stages, out;
};

static void list_one(const struct hydns_program_state *p, void *arg)
{
	struct listed *l = arg;

	CHECK(p->name && p->text && !p->id == !p->in && !p->instructions == !p->in && !p->verified == !p->in);
	l->in += p->in;
	l->out += !p->in;
	l->stages += p->in && p->stage;
}

static void only_what_is_asked_for_is_in(struct hydns_kern *k)
{
	struct listed l = { 0 };

	CHECK(hydns_kern_attach(k, "hka", HYDNS_ATTACH_NATIVE, why) == 0);
	exchange(k, &all);
	hydns_kern_programs_each(k, list_one, &l);
	CHECK(l.out == (is_emulated() ? 3 : 0) && l.stages > 6);
	exchange(k, &none);
	l = (struct listed){ 0 };
	hydns_kern_programs_each(k, list_one, &l);
	CHECK(l.in == 2 && !l.stages && l.out > 10);   /* hydns_xdp and hydns_dry */
	CHECK(hydns_kern_detach(k, "hka", why) == 0);
}

/* -- maps of parts ---------------------------------------------------------------------------------------- */
#define SMALL_OCTETS   (1U << 20)      /* no map of what is always in has more, but for the store's */
#define OTHERS_OCTETS  (3U << 19)      /* all of these together */
#define TOLD_OCTETS    (64U << 20)     /* with those of the store, which is small here */

/* Before 6.4 the kernel estimates it from the sizes of keys and values: 0 for a ring buffer. */
static unsigned long memlock(int fd)
{
	unsigned long octets = 0;
	char path[64], line[128];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "memlock: %lu", &octets);
	CHECK(f && !fclose(f));
	return octets;
}

static int pinned_info(const char *name, struct bpf_map_info *info)
{
	__u32 len = sizeof(*info);
	char path[256];
	int fd;

	memset(info, 0, sizeof(*info));
	snprintf(path, sizeof(path), "%s/%s", pin_dir, name);
	fd = bpf_obj_get(path);
	CHECK(fd >= 0 && !bpf_obj_get_info_by_fd(fd, info, &len));
	return fd;
}

static bool is_of_store(const char *name)
{
	const char *const names[] = { "hydns_slots", "hydns_index", "hydns_hits", "hydns_claims", "hydns_seen" };

	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

static bool memory_is_told(void)
{
	struct bpf_map_info info;
	int fd = pinned_info("hydns_parked", &info);
	bool told = memlock(fd);

	close(fd);
	return told;
}

/* What the kernel says of all pinned maps besides the store; the largest is printed when they are too large. */
static void small_in_all(void)
{
	unsigned long sum = 0, octets;
	struct bpf_map_info info;
	struct dirent *e;
	DIR *d = opendir(pin_dir);

	CHECK(d);
	while (memory_is_told() && (e = readdir(d))) {
		int fd;

		if (strncmp(e->d_name, "hydns_", 6) || is_of_store(e->d_name))
			continue;
		fd = pinned_info(e->d_name, &info);
		octets = memlock(fd);
		close(fd);
		if (octets > SMALL_OCTETS)
			printf("%s takes %lu octets\n", e->d_name, octets);
		CHECK(octets <= SMALL_OCTETS);
		sum += octets;
	}
	closedir(d);
	if (sum >= OTHERS_OCTETS)
		printf("maps besides the store take %lu octets\n", sum);
	CHECK(sum < OTHERS_OCTETS && !sum == !memory_is_told());
}

static const struct part_map { const char *name; __u32 entries; } of_parts[] = {
	{ "hydns_parked", HYDNS_PARKED_RING }, { "hydns_answered", HYDNS_FORWARD_ANSWERS }, { "hydns_fwd_open", HYDNS_FORWARD_OPEN },
	{ "hydns_fwd_ports", HYDNS_PORTS }, { "hydns_windows", HYDNS_WINDOWS }, { "hydns_gd_cells", HYDNS_GUARD_BUCKETS },
	{ "hydns_gd_rules", HYDNS_GUARD_RULES },
};

/* Whether the maps of parts that are pinned have their full sizes; ids: of these maps. */
static bool parts_are_full(__u32 ids[])
{
	struct bpf_map_info info;
	unsigned full = 0, n = sizeof(of_parts) / sizeof(*of_parts);

	for (unsigned i = 0; i < n; i++) {
		close(pinned_info(of_parts[i].name, &info));
		full += info.max_entries == of_parts[i].entries;
		ids[i] = info.id;
	}
	CHECK(full == 0 || full == n);
	return full;
}

/* Also where the kernel estimates it, what is told of all maps is not of access lists that nobody has filled. */
static void told_memory_is_small(struct hydns_kern *k)
{
	__u64 bytes = 0;

	CHECK(hydns_kern_memory(k, &bytes) == 0 && bytes > 0);
	if (bytes >= TOLD_OCTETS)
		printf("%llu octets are told\n", bytes);
	CHECK(bytes < TOLD_OCTETS);
}

/* What is off takes no memory; what comes in gets its maps, and the next hydnsd takes them over if it has the part, too. */
static void what_is_off_takes_no_memory(void)
{
	__u32 ids[8] = { 0 }, later[8] = { 0 };
	struct hydns_kern *k = open_kern_with(CAPACITY, &none, false);

	CHECK(!parts_are_full(ids));
	small_in_all();
	told_memory_is_small(k);
	CHECK(hydns_kern_attach(k, "hka", HYDNS_ATTACH_NATIVE, why) == 0);
	exchange(k, &all);
	CHECK(parts_are_full(ids));
	close_spare();                 /* it has the small maps */
	exchange(k, &none);
	CHECK(parts_are_full(later) && !memcmp(ids, later, sizeof(ids)));
	CHECK(hydns_kern_detach(k, "hka", why) == 0);
	close_spare();
	hydns_kern_close(k);
	hydns_kern_close(open_kern_with(CAPACITY, &all, true));
	CHECK(parts_are_full(later) && !memcmp(ids, later, sizeof(ids)));
	hydns_kern_close(open_kern_with(CAPACITY, &none, true));
	CHECK(!parts_are_full(ids));
	small_in_all();
}

/* An interface refuses: the others keep, or get back, what they had. */
static void a_refusal_changes_nothing(struct hydns_kern *k)
{
	__u32 former = prog_id(k);
	struct hydns_set *set;
	char path[256];
	int fd;

	CHECK(hydns_kern_attach(k, "hka", HYDNS_ATTACH_NATIVE, why) == 0);
	snprintf(path, sizeof(path), "%s/link_hkb", pin_dir);  /* no link: it takes no program */
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "foreign", 4, 4, 1, NULL);
	CHECK(fd >= 0 && !bpf_obj_pin(fd, path));
	close(fd);
	set = set_of(k, &all);
	CHECK(hydns_kern_exchange(k, set, why) < 0 && strstr(why, "hkb"));
	hydns_set_close(set);
	CHECK(prog_id(k) == former && attached("hka", NULL) == former);
	CHECK(!unlink(path));
	CHECK(hydns_kern_detach(k, "hka", why) == 0);
}

/* The next hydnsd takes the maps over whatever their programs consisted of. */
static void the_next_adopts(void)
{
	struct hydns_kern *k = open_kern(CAPACITY, true);

	CHECK(hydns_kern_attach(k, "hka", HYDNS_ATTACH_NATIVE, why) == 0);
	exchange(k, &all);
	close_spare();
	hydns_kern_close(k);
	k = open_kern(CAPACITY, true);
	CHECK(hydns_kern_attach(k, "hka", HYDNS_ATTACH_NATIVE, why) == 0);
	CHECK(attached("hka", NULL) == prog_id(k));
	CHECK(hydns_kern_detach(k, "hka", why) == 0);
	hydns_kern_close(k);
}

int main(void)
{
	struct hydns_kern *k;

	if (geteuid()) {
		puts("skipped: needs root");
		return SKIP;
	}
	if (is_emulated())             /* test_packets verifies these two there: two thirds of all instructions */
		all.logs = all.names = false;
	atexit(tear_down);
	set_up();
	run("echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6");  /* its neighbour discovery would be counted */
	k = open_kern(CAPACITY, false);
	nothing_is_lost(k, HYDNS_ATTACH_NATIVE);
	nothing_is_lost(k, HYDNS_ATTACH_GENERIC);
	what_was_told_stays(k);
	only_what_is_asked_for_is_in(k);
	a_refusal_changes_nothing(k);
	close_spare();
	hydns_kern_close(k);
	the_next_adopts();
	CHECK(hydns_kern_clean(pin_dir, why) == 0);
	what_is_off_takes_no_memory();
	CHECK(hydns_kern_clean(pin_dir, why) == 0);
	puts("test_compose: all passed");
	return 0;
}
