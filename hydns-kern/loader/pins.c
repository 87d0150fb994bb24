/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The pinned set of maps: the next hydnsd adopts all of them or none. hydns_meta is the set's seal: it is unpinned first and
 * pinned last, so a set that has it is complete. A crash at any moment leaves the old set, or none to
 * adopt; attachments have pins of their own and go on answering.
 *
 * A former set may be of any version, older or newer: of its seal the first word is the version, for all time, and of the others
 * nothing but the beginnings of their names is known.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <net/if.h>
#include <linux/magic.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "hydns/abi.h"
#include "hydns-kern/loader/kern.h"

#define MAPS_MAX     64            /* more than the object has pinned maps */
#define SEAL         "hydns_meta"
#define SEAL_MAX     4096          /* octets, of whatever version */
#define FRESH        "new_"        /* pinned, but not yet renamed to its place */

int hydns_pin_path(char path[PATH_MAX], const char *pin_dir, const char *prefix, const char *name)
{
	size_t dir = strlen(pin_dir) + 1;
	int n = snprintf(path, PATH_MAX, "%s/%s%s", pin_dir, prefix, name);

	if (n < 0 || n >= PATH_MAX)
		return -ENAMETOOLONG;
	for (char *c = path + dir; *c; c++)
		if (*c == '.')
			*c = ':';
	return 0;
}

int hydns_pinned_ifindex(const char *name)
{
	char ifname[IF_NAMESIZE];

	if (snprintf(ifname, sizeof(ifname), "%s", name) >= (int)sizeof(ifname))
		return 0;
	for (char *c = ifname; *c; c++)
		if (*c == ':')
			*c = '.';
	return (int)if_nametoindex(ifname);
}

int hydns_pin_dir_open(const char *pin_dir, uid_t uid, char why[HYDNS_WHY])
{
	struct statfs fs;
	struct stat st;
	int fd, err;

	if (mkdir(pin_dir, 0700) && errno != EEXIST)
		return hydns_fail(why, -errno, "can't make %s: %s; mount a bpffs (mount -t bpf bpf "
				  "/sys/fs/bpf) or name a pin directory in one", pin_dir,
				  strerror(errno));
	fd = open(pin_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return hydns_fail(why, -errno, "can't open %s: %s", pin_dir, strerror(errno));
	/* Its owner can pin maps of any content there, which would be adopted. */
	if (fstat(fd, &st) || (st.st_uid != 0 && st.st_uid != geteuid() && st.st_uid != uid))
		err = hydns_fail(why, -EPERM, "%s belongs to another user (uid %u): remove it (hydnsd --clean), or name "
				 "another pin directory", pin_dir, (unsigned)st.st_uid);
	else if (fstatfs(fd, &fs) || (unsigned)fs.f_type != BPF_FS_MAGIC)
		err = hydns_fail(why, -EINVAL, "%s is not in a bpffs: mount one (mount -t bpf bpf "
				 "/sys/fs/bpf) or name a pin directory in one", pin_dir);
	else if (flock(fd, LOCK_EX | LOCK_NB))
		err = hydns_fail(why, -EBUSY, "%s is in use by another hydnsd: stop that one, or give "
				 "this one a pin directory of its own", pin_dir);
	else
		return fd;
	close(fd);
	return err;
}

int hydns_pin_replace(int fd, const char *pin_dir, const char *prefix, const char *name)
{
	char fresh[PATH_MAX], path[PATH_MAX], new_prefix[64];
	int err;

	snprintf(new_prefix, sizeof(new_prefix), FRESH "%s", prefix);
	err = hydns_pin_path(fresh, pin_dir, new_prefix, name);
	if (!err)
		err = hydns_pin_path(path, pin_dir, prefix, name);
	if (err)
		return err;
	unlink(fresh);
	if (bpf_obj_pin(fd, fresh))
		return -errno;
	return rename(fresh, path) ? -errno : 0;
}

bool hydns_pin_is_ours(const char *name)
{
	static const char *const prefix[] = {
		"hydns_", FRESH, HYDNS_PIN_LINK, HYDNS_PIN_DISPATCHED, HYDNS_PIN_TC_INGRESS, HYDNS_PIN_TC_EGRESS, HYDNS_PIN_PAGE,
		HYDNS_PIN_ACL, HYDNS_PIN_STRAY,
	};

	for (unsigned i = 0; i < sizeof(prefix) / sizeof(*prefix); i++)
		if (!strncmp(name, prefix[i], strlen(prefix[i])))
			return true;
	return false;
}

bool hydns_map_is_pinned(const struct bpf_map *map)
{
	return !bpf_map__is_internal(map) && bpf_map__type(map) != BPF_MAP_TYPE_PROG_ARRAY && !hydns_map_is_of_analysers(map);
}

/* -- adopting ---------------------------------------------------------------------------------------- */
/* Descriptor of the pinned map of this name if it matches the object's definition, or negative. */
static int pinned_map(const char *pin_dir, const struct bpf_map *map)
{
	struct bpf_map_info info = { 0 };
	__u32 len = sizeof(info);
	char path[PATH_MAX];
	int fd;

	if (hydns_pin_path(path, pin_dir, "", bpf_map__name(map)))
		return -1;
	fd = bpf_obj_get(path);
	if (fd < 0)
		return -1;
	/* The kernel adds RDONLY_PROG to device maps. */
	if (!bpf_obj_get_info_by_fd(fd, &info, &len) && info.type == bpf_map__type(map) &&
	    info.key_size == bpf_map__key_size(map) && info.value_size == bpf_map__value_size(map) &&
	    info.max_entries == bpf_map__max_entries(map) &&
	    !((info.map_flags ^ bpf_map__map_flags(map)) & ~BPF_F_RDONLY_PROG))
		return fd;
	close(fd);
	return -1;
}

/* Opens all maps before any is reused: a map with a reused descriptor can't be created any more. One of a part may have another size,
 * since the former programs had the part and these have not, or the other way round: then it is made anew. */
bool hydns_pins_adopt(struct hydns_kern *k)
{
	int fds[MAPS_MAX], n = 0, i = 0;
	struct bpf_map *map;
	bool ok = true;

	bpf_object__for_each_map(map, k->skel->obj) {
		if (!hydns_map_is_pinned(map))
			continue;
		fds[n] = n < MAPS_MAX - 1 ? pinned_map(k->pin_dir, map) : -1;
		ok = n < MAPS_MAX - 1 && (fds[n] >= 0 || hydns_map_is_of_part(k->skel, map));
		if (!ok)
			break;
		n++;
	}
	bpf_object__for_each_map(map, k->skel->obj)
		if (ok && hydns_map_is_pinned(map) && fds[i++] >= 0)
			ok = !bpf_map__reuse_fd(map, fds[i - 1]);
	while (n--)
		if (fds[n] >= 0)
			close(fds[n]);
	return ok;
}

/* The seal's content, SEAL_MAX octets at most, and how many; 0: there is none. */
static size_t read_seal(const char *pin_dir, void *out)
{
	struct bpf_map_info info = { 0 };
	__u32 len = sizeof(info), key = 0;
	char path[PATH_MAX];
	bool ok;
	int fd;

	if (hydns_pin_path(path, pin_dir, "", SEAL))
		return 0;
	fd = bpf_obj_get(path);
	if (fd < 0)
		return 0;
	ok = !bpf_obj_get_info_by_fd(fd, &info, &len) && info.type == BPF_MAP_TYPE_ARRAY && info.value_size <= SEAL_MAX &&
	     info.max_entries == 1 && !bpf_map_lookup_elem(fd, &key, out);
	close(fd);
	return ok ? info.value_size : 0;
}

__u32 hydns_pins_abi(const char *pin_dir)
{
	__u32 seal[SEAL_MAX / sizeof(__u32)];

	return read_seal(pin_dir, seal) >= sizeof(seal[0]) ? seal[0] : 0;
}

bool hydns_pins_geometry(const char *pin_dir, struct hydns_geometry *out)
{
	__u32 seal[SEAL_MAX / sizeof(__u32)];

	if (read_seal(pin_dir, seal) != sizeof(*out) || seal[0] != hydns_abi_version())
		return false;
	memcpy(out, seal, sizeof(*out));
	return true;
}

bool hydns_kern_pinned(const char *pin_dir)
{
	return hydns_pins_abi(pin_dir) != 0;
}

/* -- publishing -------------------------------------------------------------------------------------- */
static int unpin(const char *pin_dir, const char *name)
{
	char path[PATH_MAX];
	int err = hydns_pin_path(path, pin_dir, "", name);

	if (err)
		return err;
	return unlink(path) && errno != ENOENT ? -errno : 0;
}

static bool has_prefix(const char *name, const char *prefix)
{
	return !strncmp(name, prefix, strlen(prefix));
}

/* Whether a pin of this name is of a map of a former set, and this set has none of that name. */
static bool is_left_over(const struct hydns_kern *k, const char *name)
{
	const struct bpf_map *map;

	if (has_prefix(name, HYDNS_PIN_PAGE) || has_prefix(name, HYDNS_PIN_ACL) || has_prefix(name, FRESH))
		return true;
	if (!has_prefix(name, "hydns_"))
		return false;
	bpf_object__for_each_map(map, k->skel->obj)
		if (hydns_map_is_pinned(map) && !strcmp(bpf_map__name(map), name))
			return false;
	return true;
}

/* Of a former set of another version, what the new one does not replace; and its resolver pages and access lists. */
static int remove_left_overs(struct hydns_kern *k)
{
	DIR *d = opendir(k->pin_dir);
	struct dirent *e;
	int err = 0;

	if (!d)
		return -errno;
	while (!err && (e = readdir(d)))
		if (is_left_over(k, e->d_name))
			err = unpin(k->pin_dir, e->d_name);
	closedir(d);
	return err;
}

static int publish(struct hydns_kern *k)
{
	struct bpf_map *map;
	int err = unpin(k->pin_dir, SEAL);

	if (!err)
		err = remove_left_overs(k);
	bpf_object__for_each_map(map, k->skel->obj) {
		if (!hydns_map_is_pinned(map) || !strcmp(bpf_map__name(map), SEAL))
			continue;
		if (!err)
			err = hydns_pin_replace(bpf_map__fd(map), k->pin_dir, "", bpf_map__name(map));
	}
	if (!err)
		err = hydns_acls_publish(k);
	return err ? err : hydns_pin_replace(bpf_map__fd(k->skel->maps.hydns_meta), k->pin_dir, "", SEAL);
}

int hydns_kern_publish(struct hydns_kern *k, char why[HYDNS_WHY])
{
	int err = k->published ? 0 : publish(k);

	if (err)
		return hydns_fail(why, err, "can't pin maps in %s: %s", k->pin_dir_named, strerror(-err));
	k->published = true;
	return 0;
}

int hydns_pins_publish_parts(struct hydns_kern *k, char why[HYDNS_WHY])
{
	struct bpf_map *map;
	int err = 0;

	bpf_object__for_each_map(map, k->skel->obj)
		if (!err && hydns_map_is_of_part(k->skel, map))
			err = hydns_pin_replace(bpf_map__fd(map), k->pin_dir, "", bpf_map__name(map));
	return err ? hydns_fail(why, err, "can't pin maps in %s: %s", k->pin_dir_named, strerror(-err)) : 0;
}

/* -- attachments ------------------------------------------------------------------------------------- */
const char *hydns_pin_attachment(const char *name)
{
	static const char *const prefix[] = {
		HYDNS_PIN_LINK, HYDNS_PIN_DISPATCHED, HYDNS_PIN_TC_INGRESS, HYDNS_PIN_TC_EGRESS,
	};

	for (unsigned i = 0; i < sizeof(prefix) / sizeof(*prefix); i++)
		if (!strncmp(name, prefix[i], strlen(prefix[i])))
			return name + strlen(prefix[i]);
	return NULL;
}

/* Whether entry n is of an interface that no entry before it is of. */
static bool first_of_interface(struct dirent *const *entry, int n)
{
	const char *pinned = hydns_pin_attachment(entry[n]->d_name);

	for (int i = 0; pinned && i < n; i++) {
		const char *before = hydns_pin_attachment(entry[i]->d_name);

		if (before && !strcmp(before, pinned))
			return false;
	}
	return pinned != NULL;
}

int hydns_kern_attached_each(struct hydns_kern *k, void (*fn)(const char *ifname, void *arg), void *arg)
{
	struct dirent **entry;
	int n = scandir(k->pin_dir, &entry, NULL, alphasort);

	if (n < 0)
		return -errno;
	for (int i = 0; i < n; i++) {
		char ifname[IF_NAMESIZE];

		if (first_of_interface(entry, i) &&
		    snprintf(ifname, sizeof(ifname), "%s", hydns_pin_attachment(entry[i]->d_name)) < (int)sizeof(ifname)) {
			for (char *c = ifname; *c; c++)
				if (*c == ':')
					*c = '.';
			fn(ifname, arg);
		}
	}
	while (n--)
		free(entry[n]);
	free(entry);
	return 0;
}
