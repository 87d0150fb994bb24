/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/tests/running.h"

#include <dirent.h>
#include <errno.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <net/route.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#define ARGUMENTS_MAX 40

static char directory[] = "/tmp/hydnsd-test-XXXXXX", state_dir[64];
char pins[64], plugin_path[64], control_path[64];
pid_t daemon_pid;

/* -- the daemon ------------------------------------------------------------------------------------------- */
pid_t spawn(const char *interface, const char *const *more)
{
	const char *argument[ARGUMENTS_MAX] = {
		"hydnsd", "--interface", interface, "--attach-mode", "generic", "--pin-dir", pins, "--state-dir", state_dir,
		"--plugin-socket", plugin_path, "--control-socket", control_path, "--min-hits", "0", "--log-level", "warning",
		"--capacity", "1000",
	};
	pid_t pid = fork();
	unsigned n = 0;

	if (pid)
		return pid;
	while (argument[n])
		n++;
	while (more && *more && n < ARGUMENTS_MAX - 1)
		argument[n++] = *more++;
	execv(getenv("HYDNSD"), (char *const *)(uintptr_t)argument);
	_exit(127);
}

int connect_to(const char *path, int type)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	strcpy(a.sun_path, path);
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
		return fd;
	close(fd);
	return -1;
}

json_t *ask(const char *request)
{
	int fd = connect_to(control_path, SOCK_STREAM);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r+");
	char *line = NULL;
	size_t room = 0;
	json_t *reply;

	if (!f)
		return NULL;
	fprintf(f, "%s\n", request);
	fflush(f);
	reply = getline(&line, &room, f) > 0 ? json_loads(line, 0, NULL) : NULL;
	free(line);
	fclose(f);
	return reply;
}

json_int_t number(const char *request, const char *key)
{
	json_t *o = ask(request);
	json_int_t n = o ? json_integer_value(json_object_get(o, key)) : -1;

	json_decref(o);
	return n;
}

json_int_t number_of_resolver(const char *request, const char *part, const char *key)
{
	json_t *reply = ask(request), *resolver = json_array_get(json_object_get(reply, "resolvers"), 0);
	json_int_t n = json_integer_value(json_object_get(json_object_get(resolver, part), key));

	json_decref(reply);
	return n;
}

json_int_t rules(void)
{
	return number("{\"cmd\":\"status\"}", "rules");
}

json_int_t rejected(const char *why)
{
	json_t *o = ask("{\"cmd\":\"stats\"}");
	const json_t *all = json_object_get(json_object_get(o, "offers"), "rejected");
	json_int_t n = json_integer_value(json_object_get(all, why));

	json_decref(o);
	return n;
}

bool program_is_settled(void)
{
	json_t *o = ask("{\"cmd\":\"status\"}");
	bool is = json_is_true(json_object_get(json_object_get(o, "composition"), "settled"));

	json_decref(o);
	return is;
}

bool resolver_is(const char *state)
{
	json_t *o = ask("{\"cmd\":\"status\"}");
	json_t *r = json_array_get(json_object_get(o, "resolvers"), 0);
	bool is = o && !strcmp(r ? json_string_value(json_object_get(r, "state")) : "none", state);

	json_decref(o);
	return is;
}

static void quiet(enum hydns_log_level level, const char *text)
{
	(void)level;
	(void)text;
}

struct hydns_plugin *make_resolver(uint32_t flush_timeout_ms, uint32_t refresh_percent)
{
	const struct hydns_plugin_options o = {
		.socket = plugin_path, .identity = "tester", .version = "1", .threads = 2, .admission = 1,
		.window_ms = 10000, .flush_timeout_ms = flush_timeout_ms, .edns_size = 1232, .max_udp = 1232,
		.refresh_percent = refresh_percent, .log = quiet,
	};
	const struct hydns_acl_entry everyone = { .action = HYDNS_ACL_ALLOW };
	struct hydns_plugin *p = hydns_plugin_new(&o);

	assert_non_null(p);
	assert_int_equal(hydns_plugin_add_acl(p, &everyone, 1), 0);
	return p;
}

void begin_resolver(struct hydns_plugin *p)
{
	assert_int_equal(hydns_plugin_start(p), 0);
	WAIT_FOR(resolver_is("ready"));
}

uint8_t make_name(unsigned i, uint8_t *out)
{
	int n = sprintf((char *)out + 1, "n%04u", i);

	out[0] = (uint8_t)n;
	memcpy(out + 1 + n, "\7example", 9);
	return (uint8_t)(n + 10);
}

void start_daemon_on(const char *interface, const char *const *more)
{
	daemon_pid = spawn(interface, more);
	WAIT_FOR(rules() >= 0);
	WAIT_FOR(access(plugin_path, F_OK) == 0);
}

void start_daemon_with(const char *const *more)
{
	start_daemon_on("lo", more);
}

void start_daemon(void)
{
	start_daemon_with(NULL);
}

int end_daemon(int with)
{
	int status;

	kill(daemon_pid, with);
	assert_int_equal(waitpid(daemon_pid, &status, 0), daemon_pid);
	daemon_pid = 0;
	return status;
}

void end_cleanly(void)
{
	assert_int_equal(end_daemon(SIGTERM), 0);
	assert_int_not_equal(access(pins, F_OK), 0);
	assert_int_not_equal(access(plugin_path, F_OK), 0);
	assert_int_not_equal(access(control_path, F_OK), 0);
}

bool look_up_pin(const char *name, const void *key, void *value)
{
	union bpf_attr attr = { 0 };
	char path[96];
	bool found;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", pins, name);
	attr.pathname = (uintptr_t)path;
	fd = (int)syscall(SYS_bpf, BPF_OBJ_GET, &attr, sizeof(attr));
	assert_true(fd >= 0);
	attr = (union bpf_attr){ .map_fd = (uint32_t)fd, .key = (uintptr_t)key, .value = (uintptr_t)value };
	found = !syscall(SYS_bpf, BPF_MAP_LOOKUP_ELEM, &attr, sizeof(attr));
	close(fd);
	return found;
}

void read_pin(const char *name, uint32_t key, void *value)
{
	assert_true(look_up_pin(name, &key, value));
}

/* -- surroundings ------------------------------------------------------------------------------------------ */
/* With a route to clients: source validation would pass their queries otherwise. */
static bool loopback_up(void)
{
	struct ifreq r = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_LOOPBACK | IFF_RUNNING };
	struct rtentry to_clients = { .rt_dst.sa_family = AF_INET, .rt_genmask.sa_family = AF_INET, .rt_flags = RTF_UP,
				      .rt_dev = r.ifr_name };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	bool good = ioctl(fd, SIOCSIFFLAGS, &r) == 0 && ioctl(fd, SIOCADDRT, &to_clients) == 0;

	close(fd);
	return good;
}

void take_held_daemon(void)
{
	if (getenv("HELD_HYDNSD"))
		setenv("HYDNSD", getenv("HELD_HYDNSD"), 1);
}

static bool enter(void)
{
	char bpf[48];

	if (!getenv("HYDNSD") || unshare(CLONE_NEWNET | CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) || !mkdtemp(directory) || chmod(directory, 0777))
		return false;
	snprintf(bpf, sizeof(bpf), "%s/bpf", directory);
	snprintf(pins, sizeof(pins), "%s/bpf/hydns", directory);
	snprintf(state_dir, sizeof(state_dir), "%s/state", directory);
	snprintf(plugin_path, sizeof(plugin_path), "%s/plugin.sock", directory);
	snprintf(control_path, sizeof(control_path), "%s/control.sock", directory);
	return mkdir(bpf, 0700) == 0 && mount("bpf", bpf, "bpf", 0, NULL) == 0 && loopback_up();
}

bool surroundings(void)
{
	bool entered = enter();

	if (!entered)
		fprintf(stderr, "skipped: needs $HYDNSD, root, a network and a mount namespace, and a bpffs: %s\n", strerror(errno));
	return entered;
}

static void empty(const char *folder)
{
	struct dirent *e;
	DIR *d = opendir(folder);

	while (d && (e = readdir(d)))
		unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
	rmdir(folder);
}

int clear(void **state)
{
	(void)state;
	if (daemon_pid > 0) {
		kill(daemon_pid, SIGKILL);
		waitpid(daemon_pid, NULL, 0);
		daemon_pid = 0;
	}
	empty(pins);
	unlink(plugin_path);
	unlink(control_path);
	return 0;
}

int tidy(void **state)
{
	char bpf[48];

	clear(state);
	snprintf(bpf, sizeof(bpf), "%s/bpf", directory);
	umount(bpf);
	rmdir(bpf);
	rmdir(state_dir);
	return rmdir(directory);
}
