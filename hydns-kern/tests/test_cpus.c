/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A tour of all CPUs ends after every XDP program that ran when it began, on whichever CPU: frames that this test sends from one
 * CPU after the other are received by a program on hka that takes 20 ms. On a machine with one CPU nobody could see that it runs.
 * Exits 77 (skipped) without root.
 */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <pthread.h>
#include <sys/socket.h>
#include "hydns-kern/loader/cpus.h"
#include "hydns-kern/tests/sandbox.h"
#include "tests/slow.skel.h"

#define TRIES 100

static struct slow_bpf *slow;

static __u64 now(const __u64 *count)
{
	return __atomic_load_n(count, __ATOMIC_SEQ_CST);
}

static void go_to(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	CHECK(!sched_setaffinity(0, sizeof(one), &one));
}

/* Sends a frame from this CPU, on which the link's other end receives it. */
static void *send_frame(void *cpu)
{
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_802_EX1), .sll_ifindex = (int)if_nametoindex("hkb"),
		.sll_halen = ETH_ALEN,
	};
	unsigned char frame[ETH_ZLEN] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, [12] = 0x88, 0xb5 };
	int fd = socket(AF_PACKET, SOCK_RAW, 0);

	CHECK(fd >= 0);
	go_to(*(const int *)cpu);
	CHECK(sendto(fd, frame, sizeof(frame), 0, (struct sockaddr *)&to, sizeof(to)) == sizeof(frame));
	close(fd);
	return NULL;
}

/* False when the program had ended before the tour began, because this thread had to wait. */
static bool toured_while_a_program_ran(int cpu, int other)
{
	__u64 before = now(&slow->bss->begun);
	pthread_t sender;
	bool runs;

	go_to(other);
	CHECK(!pthread_create(&sender, NULL, send_frame, &cpu));
	while (now(&slow->bss->begun) == before)
		;
	runs = now(&slow->bss->ended) == before;
	CHECK(hydns_cpus_tour() == 0);
	CHECK(now(&slow->bss->ended) == before + 1);
	CHECK(!pthread_join(sender, NULL));
	return runs;
}

static void tour_ends_after_a_program_on(int cpu, int other)
{
	for (unsigned tries = 0; !toured_while_a_program_ran(cpu, other); tries++)
		CHECK(tries < TRIES);
}

static void affinity_is_as_before(int cpu)
{
	cpu_set_t set;

	go_to(cpu);
	CHECK(hydns_cpus_tour() == 0);
	CHECK(!sched_getaffinity(0, sizeof(set), &set) && CPU_COUNT(&set) == 1 && CPU_ISSET(cpu, &set));
}

int main(void)
{
	cpu_set_t online;
	int first = -1, last = -1;

	if (geteuid()) {
		puts("skipped: needs root");
		return SKIP;
	}
	CHECK(hydns_cpus_online(&online) == 0 && CPU_COUNT(&online) == sysconf(_SC_NPROCESSORS_ONLN));
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &online)) {
			first = first < 0 ? cpu : first;
			last = cpu;
		}
	affinity_is_as_before(first);
	if (first == last)
		return 0;
	set_up();
	atexit(tear_down);
	CHECK((slow = slow_bpf__open_and_load()));
	CHECK(!bpf_xdp_attach((int)if_nametoindex("hka"), bpf_program__fd(slow->progs.slow), XDP_FLAGS_DRV_MODE, NULL));
	for (int cpu = first; cpu <= last; cpu++)
		if (CPU_ISSET(cpu, &online)) {
			tour_ends_after_a_program_on(cpu, cpu == first ? last : first);
			affinity_is_as_before(cpu);
		}
	slow_bpf__destroy(slow);
	return 0;
}
