/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For tests of the loader: a network and a mount namespace, with a bpffs:
 *
 *     hka (here, the program is attached)  <-- veth pair -->  hkb
 *
 * Needs root, Linux 6.1 and iproute2.
 */
#ifndef HYDNS_KERN_TESTS_SANDBOX_H
#define HYDNS_KERN_TESTS_SANDBOX_H

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "hydns-kern/loader/loader.h"
#include "hydns-kern/tests/emulated.h"

#define CAPACITY  2000
#define SKIP      77

static char bpffs[] = "/tmp/hydns-bpffs-XXXXXX";
static char pin_dir[sizeof(bpffs) + 16];
static char why[HYDNS_WHY];
static pid_t owner;

#define CHECK(cond)                                                                         \
	do {                                                                                \
		if (!(cond)) {                                                              \
			fprintf(stderr, "%s:%d: %s is false (errno %s; why: %s)\n",         \
				__FILE__, __LINE__, #cond, strerror(errno), why);           \
			exit(1);                                                            \
		}                                                                           \
	} while (0)

static void run(const char *command)
{
	int status = system(command);

	if (status) {
		fprintf(stderr, "%s: status %d\n", command, status);
		exit(1);
	}
}

static struct hydns_kern *open_kern_with(__u32 capacity, const struct hydns_composition *with, bool expect_adopted)
{
	struct hydns_loader_options o = { .pin_dir = pin_dir, .capacity = capacity, .with = *with };
	struct hydns_kern *k = NULL;
	bool adopted = !expect_adopted;

	CHECK(hydns_kern_open(&o, &k, &adopted, why) == 0);
	CHECK(adopted == expect_adopted);
	CHECK(hydns_kern_publish(k, why) == 0);
	return k;
}

/* With stages, but none that takes long to verify. */
static const struct hydns_composition usual = { .partial_checksum = true, .ipv6 = true, .queue = true, .parking = true };

__attribute__((unused)) static struct hydns_kern *open_kern(__u32 capacity, bool expect_adopted)
{
	return open_kern_with(capacity, &usual, expect_adopted);
}

/* Id of the program on an interface, 0 for none; *mode: XDP_ATTACHED_*. */
__attribute__((unused)) static __u32 attached(const char *ifname, __u8 *mode)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, xdp);

	CHECK(bpf_xdp_query((int)if_nametoindex(ifname), 0, &xdp) == 0);
	if (mode)
		*mode = xdp.attach_mode;
	return xdp.prog_id;
}

__attribute__((unused)) static __u32 prog_id(const struct hydns_kern *k)
{
	struct bpf_prog_info info = { 0 };
	__u32 len = sizeof(info);

	CHECK(!bpf_obj_get_info_by_fd(hydns_kern_prog_fd(k), &info, &len));
	return info.id;
}

__attribute__((unused)) static bool pinned(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", pin_dir, name);
	return !access(path, F_OK);
}

static void set_up(void)
{
	owner = getpid();
	CHECK(!unshare(CLONE_NEWNET | CLONE_NEWNS));
	CHECK(!mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	CHECK(mkdtemp(bpffs));
	CHECK(!mount("bpf", bpffs, "bpf", 0, NULL));
	snprintf(pin_dir, sizeof(pin_dir), "%s/hydns", bpffs);
	setenv("LIBXDP_BPFFS", bpffs, 1);
	run("ip link add hka type veth peer name hkb");
	run("ip link set hka up");
	run("ip link set hkb up");
}

/* A child that fails a CHECK leaves the parent its bpffs. */
static void tear_down(void)
{
	if (getpid() != owner)
		return;
	umount2(bpffs, MNT_DETACH);
	rmdir(bpffs);
}

#endif
