/* SPDX-License-Identifier: GPL-2.0-only */
/* The program hydns_stray: its attachment to the network namespace, and its sockets. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "hydns-kern/loader/kern.h"

static const char own_namespace[] = "/proc/self/ns/net";

/* -- the pinned link ------------------------------------------------------------------------------------- */
static int pinned_link(const char *pin_dir)
{
	char path[PATH_MAX];
	int err = hydns_pin_path(path, pin_dir, HYDNS_PIN_STRAY, ""), fd;

	if (err)
		return err;
	fd = bpf_obj_get(path);
	return fd < 0 ? -errno : fd;
}

static int unpin(const char *pin_dir)
{
	char path[PATH_MAX];
	int err = hydns_pin_path(path, pin_dir, HYDNS_PIN_STRAY, "");

	if (err)
		return err;
	return unlink(path) && errno != ENOENT ? -errno : 0;
}

/* Whether the link is attached to this process's network namespace. */
static bool stands_here(int link_fd)
{
	struct bpf_link_info info = { 0 };
	__u32 len = sizeof(info);
	struct stat here;

	return !bpf_obj_get_info_by_fd(link_fd, &info, &len) && info.type == BPF_LINK_TYPE_NETNS &&
	       info.netns.attach_type == BPF_SK_LOOKUP && !stat(own_namespace, &here) && info.netns.netns_ino == here.st_ino;
}

static void close_link(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static const struct bpf_program *program(const struct hydns_kern *k)
{
	return hydns_program_at(k->skel, HYDNS_HOOK_SK_LOOKUP);
}

/* -- attaching ------------------------------------------------------------------------------------------- */
int hydns_stray_remove(const char *pin_dir, char why[HYDNS_WHY])
{
	int fd = pinned_link(pin_dir), err = 0;

	/* Unpinning alone would not end a link that another descriptor holds. */
	if (fd >= 0 && bpf_link_detach(fd) && errno != ENOLINK && errno != EOPNOTSUPP)
		err = -errno;
	if (fd >= 0)
		close(fd);
	if (!err)
		err = unpin(pin_dir);
	return err ? hydns_fail(why, err, "can't detach hydns_stray from the network namespace: %s", strerror(-err)) : 0;
}

int hydns_stray_open(struct hydns_kern *k, bool adopted, bool used, char why[HYDNS_WHY])
{
	int fd = used || !adopted ? pinned_link(k->pin_dir) : -1;

	if (fd < 0)
		return hydns_stray_remove(k->pin_dir, why);
	if (!stands_here(fd)) {
		close(fd);
		return hydns_stray_remove(k->pin_dir, why);
	}
	if (!adopted) {
		k->former_stray_fd = fd;
		return 0;
	}
	k->stray_fd = fd;
	return hydns_stray_exchange(k, why);
}

void hydns_stray_close(struct hydns_kern *k)
{
	close_link(&k->stray_fd);
	close_link(&k->former_stray_fd);
}

int hydns_kern_stray_attach(struct hydns_kern *k, char why[HYDNS_WHY])
{
	int err, netns;

	k->stray_wanted = true;
	if (k->stray_fd >= 0 || !k->skel->rodata->hydns_queue)
		return 0;
	netns = open(own_namespace, O_RDONLY | O_CLOEXEC);
	if (netns < 0)
		return hydns_fail(why, -errno, "can't open %s: %s", own_namespace, strerror(errno));
	k->stray_fd = bpf_link_create(bpf_program__fd(program(k)), netns, BPF_SK_LOOKUP, NULL);
	err = k->stray_fd < 0 ? -errno : hydns_pin_replace(k->stray_fd, k->pin_dir, HYDNS_PIN_STRAY, "");
	close(netns);
	if (!err)
		return 0;
	close_link(&k->stray_fd);
	return hydns_fail(why, err, "can't attach hydns_stray to the network namespace: %s", strerror(-err));
}

bool hydns_kern_stray_asked(const struct hydns_kern *k)
{
	return k->stray_wanted || k->stray_fd >= 0;
}

int hydns_stray_exchange(struct hydns_kern *k, char why[HYDNS_WHY])
{
	if (k->stray_fd < 0)
		return k->stray_wanted ? hydns_kern_stray_attach(k, why) : 0;
	if (!k->skel->rodata->hydns_queue)
		return hydns_kern_stray_detach(k, why);
	if (bpf_link_update(k->stray_fd, bpf_program__fd(program(k)), NULL))
		return hydns_fail(why, -errno, "can't swap the program hydns_stray: %s", strerror(errno));
	return 0;
}

int hydns_kern_stray_detach(struct hydns_kern *k, char why[HYDNS_WHY])
{
	k->stray_wanted = false;
	if (k->stray_fd < 0)
		return 0;
	close_link(&k->stray_fd);
	return hydns_stray_remove(k->pin_dir, why);
}

void hydns_kern_stray_former_end(struct hydns_kern *k)
{
	if (k->former_stray_fd < 0)
		return;
	bpf_link_detach(k->former_stray_fd);
	close_link(&k->former_stray_fd);
	if (k->stray_fd < 0)           /* else the pin is the new one's */
		unpin(k->pin_dir);
}

/* -- sockets ---------------------------------------------------------------------------------------------- */
static int strays(const struct hydns_kern *k)
{
	return bpf_map__fd(k->skel->maps.hydns_strays);
}

int hydns_kern_stray_set(struct hydns_kern *k, __u32 resolver, __u32 thread, bool ipv6, int fd)
{
	__u32 key = HYDNS_STRAY(resolver, thread, ipv6);
	__u64 value = (__u64)fd;

	if (resolver >= HYDNS_RESOLVERS || thread >= HYDNS_THREADS_MAX)
		return -EINVAL;
	return bpf_map_update_elem(strays(k), &key, &value, BPF_ANY) ? -errno : 0;
}

void hydns_kern_stray_clear(struct hydns_kern *k, __u32 resolver)
{
	const __u32 end = HYDNS_STRAY(resolver + 1, 0, 0);

	for (__u32 key = HYDNS_STRAY(resolver, 0, 0); key < end; key++)
		bpf_map_delete_elem(strays(k), &key);
}

bool hydns_kern_strays_used(const struct hydns_kern *k)
{
	for (__u32 i = 0; i < HYDNS_RESOLVERS; i++) {
		const __u32 key = HYDNS_STRAY(i, 0, false);
		__u64 cookie;

		if (!bpf_map_lookup_elem(strays(k), &key, &cookie))
			return true;
	}
	return false;
}
