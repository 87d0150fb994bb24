/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Sockets in a directory of a user with fewer rights: hydnsd does not touch what that user puts in their place. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "hydnsd/daemon/sockets.h"

static char folder[] = "/tmp/hydnsd-sockets-XXXXXX", path[64], other[64];

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/socket", folder);
	snprintf(other, sizeof(other), "%s/other", folder);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(path);
	unlink(other);
	return rmdir(folder);
}

static mode_t mode_of(const char *name)
{
	struct stat st;

	assert_int_equal(stat(name, &st), 0);
	return st.st_mode & 07777;
}

static void modes_are_set(void **state)
{
	char why[256];
	int fd = hydnsd_socket_listen(path, SOCK_STREAM, NULL, why, sizeof(why));

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(mode_of(path), 0600);
	assert_int_equal(hydnsd_socket_own(path, (uid_t)-1, getgid(), 0660), 0);
	assert_int_equal(mode_of(path), 0660);
	close(fd);
}

/* Before the socket has its group only its user may connect. A start that fails at that point shows the mode. */
static void nobody_connects_before_the_group_is_set(void **state)
{
	char why[256];

	(void)state;
	unlink(path);
	assert_int_equal(hydnsd_socket_listen(path, SOCK_STREAM, "no-such-group", why, sizeof(why)), -ENOENT);
	assert_int_equal(mode_of(path), 0600);
}

/* The attack: between bind() and chmod() the socket is replaced. */
static void a_link_is_not_followed(void **state)
{
	FILE *f = fopen(other, "w");

	(void)state;
	assert_non_null(f);
	fclose(f);
	assert_int_equal(chmod(other, 0400), 0);
	unlink(path);
	assert_int_equal(symlink(other, path), 0);
	assert_int_equal(hydnsd_socket_own(path, (uid_t)-1, getgid(), 0666), -EPERM);
	assert_int_equal(mode_of(other), 0400);
	unlink(path);
	assert_int_equal(link(other, path), 0);
	assert_int_equal(hydnsd_socket_own(path, (uid_t)-1, getgid(), 0666), -EPERM);
	assert_int_equal(mode_of(other), 0400);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(modes_are_set), cmocka_unit_test(nobody_connects_before_the_group_is_set),
		cmocka_unit_test(a_link_is_not_followed),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
