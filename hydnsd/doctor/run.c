/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* doctor: runs another program for its output. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hydnsd/doctor/doctor.h"

#define OUTPUT_MAX (1U << 26)

extern char **environ;

/* Reads everything, NUL-terminated. free() *out also after an error. */
static int read_all(int fd, char **out)
{
	size_t have = 0, room = 0;
	ssize_t r;

	do {
		if (have + 1 >= room) {
			char *more = room >= OUTPUT_MAX ? NULL : realloc(*out, room = room ? room * 2 : 65536);

			if (!more)
				return -ENOMEM;
			*out = more;
		}
		r = read(fd, *out + have, room - have - 1);
		if (r > 0)
			have += (size_t)r;
	} while (r > 0 || (r < 0 && errno == EINTR));
	(*out)[have] = 0;
	return r < 0 ? -errno : 0;
}

static int start(const char *const argv[], bool errors, int output, pid_t *pid)
{
	posix_spawn_file_actions_t fa;
	int err;

	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_adddup2(&fa, output, STDOUT_FILENO);
	if (errors)
		posix_spawn_file_actions_adddup2(&fa, output, STDERR_FILENO);
	else
		posix_spawn_file_actions_addopen(&fa, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	err = -posix_spawnp(pid, argv[0], &fa, NULL, (char *const *)argv, environ);
	posix_spawn_file_actions_destroy(&fa);
	return err;
}

int doctor_run(const char *const argv[], bool errors, char **out)
{
	char *text = NULL;
	int pipefd[2], status = 0, err;
	pid_t pid;

	if (pipe2(pipefd, O_CLOEXEC))
		return -errno;
	err = start(argv, errors, pipefd[1], &pid);
	close(pipefd[1]);
	if (!err) {
		err = read_all(pipefd[0], &text);
		close(pipefd[0]);              /* ends a program that never stops writing */
		if (waitpid(pid, &status, 0) == pid && status && !err)
			err = errors && WIFEXITED(status) ? WEXITSTATUS(status) : -EIO;
	} else {
		close(pipefd[0]);
	}
	if (err < 0)
		free(text);
	else
		*out = text;
	return err;
}
