/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/daemon/sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 64

static int address(const char *path, struct sockaddr_un *out)
{
	memset(out, 0, sizeof(*out));
	out->sun_family = AF_UNIX;
	if (strlen(path) >= sizeof(out->sun_path))
		return -ENAMETOOLONG;
	strcpy(out->sun_path, path);
	return 0;
}

int hydnsd_socket_busy(const char *path, int type)
{
	struct sockaddr_un a;
	int fd, rc;

	if (address(path, &a))
		return 0;
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return 0;
	rc = connect(fd, (struct sockaddr *)&a, sizeof(a));
	/* EPROTOTYPE: a listener of another type; EAGAIN: one that is overrun */
	rc = rc == 0 || errno == EAGAIN || errno == EPROTOTYPE;
	close(fd);
	return rc;
}

static int clear_path(const char *path, int type, char *why, size_t room)
{
	struct stat st;

	if (lstat(path, &st))
		return 0;
	if (!S_ISSOCK(st.st_mode)) {
		snprintf(why, room, "%s is no socket: move it away or choose another path", path);
		return -EEXIST;
	}
	if (hydnsd_socket_busy(path, type)) {
		snprintf(why, room, "another process listens at %s: stop it, or choose another path", path);
		return -EADDRINUSE;
	}
	unlink(path);
	return 0;
}

static void make_directory(const char *path)
{
	char copy[sizeof(((struct sockaddr_un *)0)->sun_path)];

	snprintf(copy, sizeof(copy), "%s", path);
	mkdir(dirname(copy), 0755);    /* if this fails, bind() says so */
}

/* Works on a descriptor of the socket: the directory may be that of a user with fewer rights, who could put a symbolic link in
 * the socket's place. */
int hydnsd_socket_own(const char *path, uid_t uid, gid_t gid, mode_t mode)
{
	char held[64];
	struct stat st;
	int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC), rc = 0;

	if (fd < 0)
		return -errno;
	snprintf(held, sizeof(held), "/proc/self/fd/%d", fd);
	if (fstat(fd, &st))
		rc = -errno;
	else if (!S_ISSOCK(st.st_mode) || st.st_uid != geteuid())
		rc = -EPERM;
	else if (fchownat(fd, "", uid, gid, AT_EMPTY_PATH) || (mode != (mode_t)-1 && chmod(held, mode)))
		rc = -errno;
	close(fd);
	return rc;
}

static int give_to_group(const char *path, const char *group, char *why, size_t room)
{
	struct group *g = group ? getgrnam(group) : NULL;
	int rc;

	if (group && !g) {
		snprintf(why, room, "group %s does not exist: create it or correct the option", group);
		return -ENOENT;
	}
	rc = hydnsd_socket_own(path, (uid_t)-1, g ? g->gr_gid : (gid_t)-1, g ? 0660 : 0600);
	if (rc)
		snprintf(why, room, "cannot set owner and mode of %s: %s", path, strerror(-rc));
	return rc;
}

static int bind_and_listen(int fd, const struct sockaddr_un *a, const char *group, char *why,
			   size_t room)
{
	/* at no instant may other users connect */
	mode_t before = umask(0177);
	int rc = bind(fd, (const struct sockaddr *)a, sizeof(*a)) ? -errno : 0;

	umask(before);
	if (!rc && (rc = give_to_group(a->sun_path, group, why, room)))
		return rc;
	if (!rc && listen(fd, BACKLOG))
		rc = -errno;
	if (rc)
		snprintf(why, room, "cannot listen at %s: %s", a->sun_path, strerror(-rc));
	return rc;
}

int hydnsd_socket_accept(int listener, bool *exhausted)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	*exhausted = fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM);
	return fd;
}

int hydnsd_socket_listen(const char *path, int type, const char *group, char *why, size_t room)
{
	struct sockaddr_un a;
	int fd, rc = address(path, &a);

	if (rc) {
		snprintf(why, room, "socket path %s is longer than %zu octets: choose a shorter one", path,
			 sizeof(a.sun_path) - 1);
		return rc;
	}
	rc = clear_path(path, type, why, room);
	if (rc)
		return rc;
	make_directory(path);
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		snprintf(why, room, "cannot make a socket: %s", strerror(errno));
		return -errno;
	}
	rc = bind_and_listen(fd, &a, group, why, room);
	if (rc) {
		close(fd);
		return rc;
	}
	return fd;
}
