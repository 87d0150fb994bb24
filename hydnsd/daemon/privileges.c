/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/daemon/privileges.h"
#include "hydnsd/daemon/sockets.h"
#include "hydns-kern/loader/attach.h"

#include <cap-ng.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

uid_t hydnsd_privileges_user(const struct hydnsd_options *o)
{
	const struct passwd *user = o->user ? getpwnam(o->user) : NULL;

	return user ? user->pw_uid : geteuid();
}

struct identity {
	int uid, gid;                  /* -1: no change */
};

static int look_up(const struct hydnsd_options *o, struct identity *out, char *why, size_t room)
{
	const struct passwd *user = o->user ? getpwnam(o->user) : NULL;
	const struct group *group = o->group ? getgrnam(o->group) : NULL;

	if (o->user && !user) {
		snprintf(why, room, "user %s does not exist: create it or correct the option", o->user);
		return -ENOENT;
	}
	if (o->group && !group) {
		snprintf(why, room, "group %s does not exist: create it or correct the option", o->group);
		return -ENOENT;
	}
	out->uid = user ? (int)user->pw_uid : -1;
	out->gid = group ? (int)group->gr_gid : user ? (int)user->pw_gid : -1;
	return 0;
}

/* As under its unit, which starts it as that user. */
static bool is_now(const struct identity *to)
{
	return (to->uid < 0 || to->uid == (int)geteuid()) && (to->gid < 0 || to->gid == (int)getegid());
}

int hydnsd_privileges_check(const struct hydnsd_options *o, char *why, size_t room)
{
	struct identity to;
	int rc = look_up(o, &to, why, room);

	if (rc)
		return rc;
	if (capng_get_caps_process() || !capng_have_capability(CAPNG_EFFECTIVE, CAP_BPF) ||
	    !capng_have_capability(CAPNG_EFFECTIVE, CAP_NET_ADMIN)) {
		snprintf(why, room, "CAP_BPF and CAP_NET_ADMIN are missing: start hydnsd as root");
		return -EPERM;
	}
	if (!is_now(&to) && !capng_have_capability(CAPNG_EFFECTIVE, CAP_SETUID)) {
		snprintf(why, room, "user, group: hydnsd was started as another one, and without the right to change that: name that one, or set "
			 "User= and Group= of its service (systemctl edit hydnsd)");
		return -EPERM;
	}
	return 0;
}

/* Gives the user a directory, and with `contents' the files in it, so that he may make and remove files there. Follows no
 * symbolic link: this user could have made it. */
static void give_directory(const char *path, const struct identity *to, bool contents)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	if (fchown(dirfd(dir), (uid_t)to->uid, (gid_t)-1)) {
		closedir(dir);
		return;
	}
	while (contents && (e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
		    fchownat(dirfd(dir), e->d_name, (uid_t)to->uid, (gid_t)-1, AT_SYMLINK_NOFOLLOW))
			break;
	closedir(dir);
}

/* Gives the user a socket, and its directory if that is called hydns: it is not to be /run or /tmp. */
static void give_socket(const char *path, const struct identity *to)
{
	char copy[PATH_MAX];
	const char *dir;

	snprintf(copy, sizeof(copy), "%s", path);
	dir = basename(dirname(copy));
	if (hydnsd_socket_own(path, (uid_t)to->uid, (gid_t)-1, (mode_t)-1) == 0 && strcmp(dir, "hydns") == 0) {
		snprintf(copy, sizeof(copy), "%s", path);
		give_directory(dirname(copy), to, false);
	}
}

static void give_files(const struct hydnsd_options *o, const struct identity *to)
{
	if (to->uid < 0)
		return;
	give_directory(o->pin_dir, to, true);
	give_directory(o->state_dir, to, true);
	for (uint32_t i = 0; i < o->plugin_socket.count; i++)
		give_socket(o->plugin_socket.item[i], to);
	give_socket(o->control_socket, to);
}

/* libxdp takes these to change its dispatcher, whose pins belong to root, also at the end and when an interface comes. Where the
 * bounding set has not all, the interfaces' notes have said so. */
static const int dispatcher_rights[] = { CAP_SYS_ADMIN, CAP_PERFMON, CAP_DAC_OVERRIDE };

/* Of those that it has now. */
static void keep_rights(const struct hydnsd_options *o)
{
	bool kept[3], raw, load = capng_have_capability(CAPNG_PERMITTED, CAP_PERFMON);

	/* Without it packet rings are refused, and all else works. */
	raw = o->queue != HYDNSD_QUEUE_NO && capng_have_capability(CAPNG_PERMITTED, CAP_NET_RAW);
	for (int i = 0; i < 3; i++)
		kept[i] = o->attach_mode == HYDNS_ATTACH_DISPATCHER && capng_have_capability(CAPNG_PERMITTED, dispatcher_rights[i]);
	capng_clear(CAPNG_SELECT_ALL);
	capng_updatev(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, CAP_BPF, CAP_NET_ADMIN, raw ? CAP_NET_RAW : -1, -1);
	/* not in effect: the thread that loads takes it */
	if (load)
		capng_update(CAPNG_ADD, CAPNG_PERMITTED, CAP_PERFMON);
	for (int i = 0; i < 3; i++)
		if (kept[i])
			capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, dispatcher_rights[i]);
}

int hydnsd_privileges_drop(const struct hydnsd_options *o, char *why, size_t room)
{
	/* Without CAP_SETPCAP the bounding set stays as it is. It gives nothing: by no_new_privs, below, exec brings no rights. */
	const capng_select_t all = capng_have_capability(CAPNG_EFFECTIVE, CAP_SETPCAP) ? CAPNG_SELECT_ALL :
				   CAPNG_SELECT_CAPS | CAPNG_SELECT_AMBIENT;
	struct identity to;
	int rc = look_up(o, &to, why, room);

	if (rc)
		return rc;
	give_files(o, &to);
	keep_rights(o);
	if (!is_now(&to))
		rc = capng_change_id(to.uid, to.gid, CAPNG_DROP_SUPP_GRP | CAPNG_CLEAR_BOUNDING);
	else
		rc = capng_apply(all);
	if (rc || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) {
		snprintf(why, room, "cannot drop rights (libcap-ng says %d): start hydnsd as root, without "
			 "a restricting bounding set", rc);
		return -EPERM;
	}
	return 0;
}

int hydnsd_privileges_to_load(char *why, size_t room)
{
	if (capng_get_caps_process() == 0 && capng_have_capability(CAPNG_PERMITTED, CAP_PERFMON) &&
	    capng_update(CAPNG_ADD, CAPNG_EFFECTIVE, CAP_PERFMON) == 0 && capng_apply(CAPNG_SELECT_CAPS) == 0)
		return 0;
	snprintf(why, room, "loading other programs needs CAP_PERFMON, which hydnsd was started without: restart it with it");
	return -EPERM;
}
