/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/daemon/pause.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NAME "paused"

void hydns_pause_prepare(const char *state_dir)
{
	mkdir(state_dir, 0755);
}

static int open_directory(const char *state_dir)
{
	int dir = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return dir < 0 ? -errno : dir;
}

bool hydns_pause_is_recorded(const char *state_dir)
{
	int dir = open_directory(state_dir);
	struct stat st;
	bool recorded;

	if (dir < 0)
		return false;
	recorded = fstatat(dir, FILE_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0;
	close(dir);
	return recorded;
}

/* Writes to no existing file and follows no link: the directory may be that of hydnsd's user while the caller is root. */
static int make_file(int dir)
{
	int fd = openat(dir, FILE_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);

	if (fd < 0)
		return errno == EEXIST ? 0 : -errno;
	close(fd);
	return 0;
}

int hydns_pause_record(const char *state_dir, bool on)
{
	int dir, rc;

	if (on)
		hydns_pause_prepare(state_dir);
	dir = open_directory(state_dir);
	if (dir < 0)
		return !on && dir == -ENOENT ? 0 : dir;
	if (on)
		rc = make_file(dir);
	else
		rc = unlinkat(dir, FILE_NAME, 0) && errno != ENOENT ? -errno : 0;
	close(dir);
	return rc;
}

int hydns_pause_sync(const char *state_dir)
{
	int dir = open_directory(state_dir), rc;

	if (dir < 0)
		return dir;
	rc = fsync(dir) ? -errno : 0;
	close(dir);
	return rc;
}
