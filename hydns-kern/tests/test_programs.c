/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * tc programs of the loader: attached, replaced and detached on hka, in both directions, by tcx links and by filters.
 *
 *     hka (the tc programs)  <-- veth pair -->  hkb
 *
 * Frames are sent from hkb for ingress and from hka for egress. Exits 77 (skipped) without root. On a kernel without tcx
 * the loader attaches filters only.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include "hydns-kern/tests/sandbox.h"
#include "hydns-kern/loader/kern.h"
#include "tests/tc.skel.h"

#define FRAMES 200             /* of one burst */
#define ROUNDS 20

typedef int attach_fn(const struct hydns_tc *at, int prog_fd, char why[HYDNS_WHY]);

static struct tc_bpf *load(void)
{
	struct tc_bpf *b = tc_bpf__open_and_load();

	CHECK(b);
	return b;
}

static int prog_fd(const struct tc_bpf *b)
{
	return bpf_program__fd(b->progs.count);
}

static __u64 frames(const struct tc_bpf *b)
{
	return __atomic_load_n(&b->bss->frames, __ATOMIC_RELAXED);
}

static struct hydns_tc on_hka(enum hydns_hook hook)
{
	return (struct hydns_tc){
		.pin_dir = pin_dir, .ifname = "hka", .ifindex = (int)if_nametoindex("hka"), .hook = hook,
	};
}

/* Frames of the counted protocol that come in at hka, or leave there. */
static void send_frames(enum hydns_hook hook)
{
	static const __u8 frame[ETH_ZLEN] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 0x88, 0xb5 };
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET, .sll_halen = ETH_ALEN,
		.sll_ifindex = (int)if_nametoindex(hook == HYDNS_HOOK_TC_INGRESS ? "hkb" : "hka"),
	};
	int out = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	CHECK(out >= 0);
	for (int i = 0; i < FRAMES; i++)
		CHECK(sendto(out, frame, sizeof(frame), 0, (struct sockaddr *)&to, sizeof(to)) == sizeof(frame));
	close(out);
}

/* A veth's receiver runs in a softirq, which may be after the sender's system call. Returns what two programs have counted. */
static __u64 wait_for(const struct tc_bpf *a, const struct tc_bpf *b, __u64 expected)
{
	for (int ms = 0; frames(a) + frames(b) < expected && ms < 5000; ms++)
		usleep(1000);
	return frames(a) + frames(b);
}

/* Whether all frames of a burst have come to b, and none to a. */
static bool only_runs(enum hydns_hook hook, const struct tc_bpf *b, const struct tc_bpf *a)
{
	__u64 before = frames(a), expected = before + frames(b) + FRAMES;

	send_frames(hook);
	return wait_for(a, b, expected) == expected && frames(a) == before;
}

static const char *pin_name(enum hydns_hook hook)
{
	return hook == HYDNS_HOOK_TC_INGRESS ? "tc_ingress_hka" : "tc_egress_hka";
}

/* Id of the pinned link; 0: what is pinned is the program of a filter. */
static __u32 link_id(enum hydns_hook hook)
{
	struct bpf_link_info info = { 0 };
	__u32 len = sizeof(info);
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", pin_dir, pin_name(hook));
	fd = bpf_obj_get(path);
	CHECK(fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &len));
	close(fd);
	return info.type == BPF_PROG_TYPE_SCHED_CLS ? 0 : info.id;
}

static void expect_good_end(int status)
{
	if (!status)
		return;
	fprintf(stderr, "the child ended with %s %d\n", WIFSIGNALED(status) ? "signal" : "status",
		WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	exit(1);
}

/* -- one direction, one way to attach -------------------------------------------------------------------- */
/* What one process attaches goes on after its end, and another process replaces it: a link stays the same. */
static void outlives_its_process(enum hydns_hook hook, attach_fn *attach)
{
	struct tc_bpf *first = load(), *second = load();
	struct hydns_tc at = on_hka(hook);
	__u32 id;
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid) {
		CHECK(attach(&at, prog_fd(first), why) == 0);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	expect_good_end(status);
	CHECK(pinned(pin_name(hook)));
	id = link_id(hook);
	CHECK(only_runs(hook, first, second));
	CHECK(attach(&at, prog_fd(second), why) == 0);
	CHECK(link_id(hook) == id && only_runs(hook, second, first));
	CHECK(hydns_tc_detach(&at, why) == 0 && hydns_tc_detach(&at, why) == 0 && !pinned(pin_name(hook)));
	send_frames(hook);
	CHECK(frames(first) == FRAMES && frames(second) == FRAMES);
	tc_bpf__destroy(first);
	tc_bpf__destroy(second);
}

/* While frames pass, one program replaces the other: each frame runs through exactly one of them. */
static void replaced_without_a_gap(enum hydns_hook hook, attach_fn *attach)
{
	struct tc_bpf *b[2] = { load(), load() };
	struct hydns_tc at = on_hka(hook);
	unsigned replaced = 0;
	int status;
	pid_t pid;

	CHECK(attach(&at, prog_fd(b[0]), why) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		for (int i = 0; i < ROUNDS; i++) {
			send_frames(hook);
			usleep(2000);          /* the receiver's backlog holds net.core.netdev_max_backlog frames */
		}
		_exit(0);
	}
	do
		CHECK(attach(&at, prog_fd(b[++replaced % 2]), why) == 0);
	while (waitpid(pid, &status, WNOHANG) == 0);
	expect_good_end(status);
	CHECK(replaced > 1);
	CHECK(wait_for(b[0], b[1], ROUNDS * FRAMES) == ROUNDS * FRAMES && frames(b[0]) && frames(b[1]));
	CHECK(hydns_tc_detach(&at, why) == 0);
	tc_bpf__destroy(b[0]);
	tc_bpf__destroy(b[1]);
}

/* A pin of an interface that has gone: the next one of this name gets an attachment of its own. */
static void interface_comes_again(enum hydns_hook hook, attach_fn *attach)
{
	struct tc_bpf *first = load(), *second = load();
	struct hydns_tc at = on_hka(hook);

	CHECK(attach(&at, prog_fd(first), why) == 0);
	run("ip link del hka");
	run("ip link add hka type veth peer name hkb && ip link set hka up && ip link set hkb up");
	at = on_hka(hook);
	CHECK(attach(&at, prog_fd(second), why) == 0 && only_runs(hook, second, first));
	run("ip link del hka");
	at.ifindex = 0;
	CHECK(hydns_tc_detach(&at, why) == 0 && !pinned(pin_name(hook)));
	run("ip link add hka type veth peer name hkb && ip link set hka up && ip link set hkb up");
	tc_bpf__destroy(first);
	tc_bpf__destroy(second);
}

/* -- with the whole loader --------------------------------------------------------------------------------- */
static void count_name(const char *ifname, void *arg)
{
	CHECK(!strcmp(ifname, "hka"));
	++*(unsigned *)arg;
}

/* Attachments of a former hydnsd: attaching to the interface ends them where there is no program for the direction, as do
 * detaching and cleaning. The interface is one, however many pins it has. */
static void former_attachments_end(attach_fn *attach)
{
	struct hydns_kern *k = open_kern(CAPACITY, true);
	struct hydns_tc in = on_hka(HYDNS_HOOK_TC_INGRESS), out = on_hka(HYDNS_HOOK_TC_EGRESS);
	struct tc_bpf *b = load(), *none = load();
	unsigned names = 0;

	for (int way = 0; way < 3; way++) {
		CHECK(attach(&in, prog_fd(b), why) == 0 && attach(&out, prog_fd(b), why) == 0);
		CHECK(only_runs(in.hook, b, none) && only_runs(out.hook, b, none));
		CHECK(hydns_kern_attached_each(k, count_name, &names) == 0 && names == way + 1U);
		if (way == 0)
			CHECK(hydns_kern_attach(k, "hka", HYDNS_ATTACH_GENERIC, why) == 0 && attached("hka", NULL) == prog_id(k));
		else if (way == 1)
			CHECK(hydns_kern_detach(k, "hka", why) == 0 && !attached("hka", NULL));
		else
			CHECK(hydns_kern_remove(k, why) == 0);
		CHECK(!pinned("tc_ingress_hka") && !pinned("tc_egress_hka"));
		__atomic_store_n(&b->bss->frames, 0, __ATOMIC_RELAXED);
		send_frames(out.hook);
		send_frames(in.hook);
		usleep(20000);
		CHECK(frames(b) == 0);
	}
	tc_bpf__destroy(b);
	tc_bpf__destroy(none);
	hydns_kern_close(k);
	hydns_kern_close(open_kern(CAPACITY, false));
}

static void errors_name_the_interface(void)
{
	struct hydns_tc at = on_hka(HYDNS_HOOK_TC_EGRESS);
	struct tc_bpf *b = load();

	at.ifindex = 1 << 30;
	CHECK(hydns_tc_attach(&at, prog_fd(b), why) < 0 && strstr(why, "hka: can't attach to tc egress: "));
	CHECK(!pinned(pin_name(at.hook)));
	tc_bpf__destroy(b);
}

int main(void)
{
	static attach_fn *const ways[] = { hydns_tc_attach, hydns_tc_attach_filter };

	if (geteuid()) {
		puts("skipped: loading BPF programs and making namespaces needs root");
		return SKIP;
	}
	set_up();
	atexit(tear_down);
	hydns_kern_close(open_kern(CAPACITY, false));
	for (unsigned i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		for (enum hydns_hook hook = HYDNS_HOOK_TC_INGRESS; hook <= HYDNS_HOOK_TC_EGRESS; hook++) {
			outlives_its_process(hook, ways[i]);
			replaced_without_a_gap(hook, ways[i]);
			interface_comes_again(hook, ways[i]);
		}
		former_attachments_end(ways[i]);
	}
	errors_name_the_interface();
	puts("ok");
	return 0;
}
