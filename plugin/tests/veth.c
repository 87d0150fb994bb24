/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "plugin/tests/veth.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#ifndef AF_XDP
#define AF_XDP 44
#endif

void veth_run(const char *command)
{
	if (system(command))
		fail_msg("%s", command);
}

/* return thread_of[0] -> redirect to that socket, or pass */
static int load_program(int thread_of, int sockets)
{
	const struct bpf_insn code[] = {
		{ .code = BPF_ST | BPF_MEM | BPF_W, .dst_reg = BPF_REG_10, .off = -4, .imm = 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_2, .src_reg = BPF_REG_10 },
		{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_2, .imm = -4 },
		{ .code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = BPF_REG_1, .src_reg = BPF_PSEUDO_MAP_FD, .imm = thread_of }, { 0 },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_map_lookup_elem },
		{ .code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = BPF_REG_0, .off = 2, .imm = 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = XDP_PASS },
		{ .code = BPF_JMP | BPF_EXIT },
		{ .code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = BPF_REG_2, .src_reg = BPF_REG_0 },
		{ .code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = BPF_REG_1, .src_reg = BPF_PSEUDO_MAP_FD, .imm = sockets }, { 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3, .imm = XDP_PASS },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_redirect_map },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return bpf_prog_load(BPF_PROG_TYPE_XDP, "to_ring", "GPL", code, sizeof(code) / sizeof(code[0]), NULL);
}

/* As hydnsd does: makes the sockets, enters them into the map. */
int veth_open_lane(struct veth *v)
{
	const struct hydns_lane_setup s = { .id = { .ifindex = v->ifindex, .queue = 0 }, .number = 7, .mtu = VETH_MTU,
					    .device = VETH_DEVICE, .hops = VETH_HOPS, .sends = true };
	int fd[VETH_THREADS], place;

	for (__u32 i = 0; i < VETH_THREADS; i++) {
		fd[i] = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
		assert_true(fd[i] >= 0);
		assert_int_equal(bpf_map_update_elem(v->sockets, &i, &fd[i], 0), 0);
	}
	for (int tries = 0;; tries++) {                /* a queue is busy for a moment after its sockets were closed */
		int copy[VETH_THREADS];

		for (int i = 0; i < VETH_THREADS; i++)
			copy[i] = dup(fd[i]);
		place = hydns_lane_open(v->lanes, &s, copy);
		if (place != -EBUSY || tries == 100)
			break;
		for (__u32 i = 0; i < VETH_THREADS; i++) {
			close(fd[i]);
			fd[i] = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
			assert_int_equal(bpf_map_update_elem(v->sockets, &i, &fd[i], 0), 0);
		}
		usleep(20000);
	}
	for (int i = 0; i < VETH_THREADS; i++)
		close(fd[i]);
	return place;
}

static int make_wire(unsigned ifindex)
{
	const struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)ifindex };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), room = 1 << 24, yes = 1;

	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)), 0);
	assert_int_equal(setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes, sizeof(yes)), 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

void veth_begin(struct veth *v)
{
	veth_run("ip link add near address 02:00:00:00:00:01 type veth peer name far address 02:00:00:00:00:02 && "
		 "for f in near far; do echo 1 >/proc/sys/net/ipv6/conf/$f/disable_ipv6; ip link set $f up; done");
	v->ifindex = if_nametoindex("near");
	v->far = if_nametoindex("far");
	v->sockets = bpf_map_create(BPF_MAP_TYPE_XSKMAP, "sockets", 4, 4, VETH_THREADS, NULL);
	v->thread_of = bpf_map_create(BPF_MAP_TYPE_ARRAY, "thread_of", 4, 4, 1, NULL);
	v->program = load_program(v->thread_of, v->sockets);
	assert_true(v->program >= 0);
	assert_int_equal(bpf_link_create(v->program, (int)v->ifindex, BPF_XDP, NULL) < 0, 0);
	v->wire = make_wire(v->far);
	v->lanes = hydns_lanes_new(VETH_THREADS, VETH_FRAMES);
	assert_non_null(v->lanes);
	v->place = veth_open_lane(v);
	assert_true(v->place >= 0);
}

void veth_end(struct veth *v)
{
	hydns_lanes_free(v->lanes);
	veth_run("ip link del near");
	close(v->wire);
	close(v->program);
	close(v->thread_of);
	close(v->sockets);
}

void veth_choose(struct veth *v, uint32_t thread)
{
	const __u32 zero = 0;

	assert_int_equal(bpf_map_update_elem(v->thread_of, &zero, &thread, 0), 0);
}

bool veth_readable(struct hydns_lane_thread *t, int wait_ms)
{
	struct pollfd p = { .fd = hydns_lanes_fd(t), .events = POLLIN };

	return poll(&p, 1, wait_ms) == 1;
}

bool veth_possible(void)
{
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
	int fd;

	setrlimit(RLIMIT_MEMLOCK, &all);
	if (geteuid() != 0 || unshare(CLONE_NEWNET))
		return false;
	fd = socket(AF_XDP, SOCK_RAW, 0);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}
