/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/daemon/check.h"

#include <errno.h>
#include <grp.h>
#include <libgen.h>
#include <linux/magic.h>
#include <net/if.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "hydns-kern/loader/loader.h"
#include "hydns-kern/store/geometry.h"
#include "hydnsd/daemon/log.h"
#include "hydnsd/monitor/analyses.h"
#include "hydnsd/netdev/routing.h"
#include "hydnsd/daemon/sockets.h"

#define EXIT_CONFIGURATION 2
#define MIB (1024.0 * 1024.0)

struct result {
	unsigned errors, warnings;
};

#define error(r, ...) ((r)->errors++, hydnsd_log(HYDNSD_LOG_ERROR, __VA_ARGS__))
#define warning(r, ...) ((r)->warnings++, hydnsd_log(HYDNSD_LOG_WARNING, __VA_ARGS__))

/* -- where answers are given, and who may offer them --------------------------------------------------------- */
static void check_no_interface(const struct hydnsd_options *o, struct result *r)
{
	if (!o->interface.count)
		warning(r, "no interface is configured, so nothing is answered in the kernel: write `interface: eth0', or whatever "
			"queries arrive on (ip -br link shows it), into %s", o->config);
}

static void check_interfaces(const struct hydnsd_options *o, struct result *r)
{
	check_no_interface(o, r);
	for (uint32_t i = 0; i < o->interface.count; i++)
		if (!if_nametoindex(o->interface.item[i]))
			warning(r, "interface: %s does not exist: correct it (ip -br link shows those that do), or create it: hydnsd "
				"attaches when it comes", o->interface.item[i]);
}

static void check_plugin_group(const struct hydnsd_options *o, struct result *r)
{
	if (!o->plugin_group)
		warning(r, "plugin-group is not set, so only %s%s%s may connect as a resolver: write `plugin-group: hydns' into %s, "
			"and put the resolver's user into that group (usermod -aG hydns unbound)", o->user ? "root and " : "root",
			o->user ? "user " : "", o->user ? o->user : "", o->config);
}

/* -- names -------------------------------------------------------------------------------------------------- */
static void check_names(const struct hydnsd_options *o, struct result *r)
{
	const struct { const char *option, *name; } groups[] = {
		{ "plugin-group", o->plugin_group }, { "control-group", o->control_group }, { "group", o->group },
	};

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		if (groups[i].name && !getgrnam(groups[i].name))
			error(r, "%s: group %s does not exist: groupadd --system %s, or correct it", groups[i].option, groups[i].name,
			      groups[i].name);
	if (o->user && !getpwnam(o->user))
		error(r, "user: user %s does not exist: systemd-sysusers makes `hydns', useradd --system %s this one, or correct it",
		      o->user, o->user);
}

/* -- paths --------------------------------------------------------------------------------------------------- */
/* The file system of a path, or of the nearest directory above it that exists. */
static bool file_system(const char *path, struct statfs *out)
{
	char copy[4096], *slash;

	snprintf(copy, sizeof(copy), "%s", path);
	while (statfs(copy, out)) {
		slash = strrchr(copy, '/');
		if (errno != ENOENT || !slash || !slash[1])
			return false;
		slash[slash == copy] = '\0';          /* the root keeps its own */
	}
	return true;
}

static void check_pin_dir(const struct hydnsd_options *o, struct result *r)
{
	struct statfs fs;

	if (file_system(o->pin_dir, &fs) && fs.f_type != BPF_FS_MAGIC)
		error(r, "pin-dir: %s is not in a bpffs: mount -t bpf bpf /sys/fs/bpf, or name a directory in one", o->pin_dir);
}

/* hydnsd makes a socket's directory, but none above that. */
static void check_socket(const char *option, const char *path, struct result *r)
{
	char copy[4096], above[4096];

	snprintf(copy, sizeof(copy), "%s", path);
	snprintf(above, sizeof(above), "%s", dirname(copy));
	if (strlen(path) >= sizeof(((struct sockaddr_un *)0)->sun_path))
		error(r, "%s: %s is longer than %zu octets: choose a shorter path", option, path,
		      sizeof(((struct sockaddr_un *)0)->sun_path) - 1);
	else if (access(above, F_OK) && access(dirname(above), F_OK) && errno == ENOENT)
		error(r, "%s: there is no directory for %s: mkdir -p $(dirname %s), or correct it", option, path, path);
}

static void check_sockets(const struct hydnsd_options *o, struct result *r)
{
	for (uint32_t i = 0; i < o->plugin_socket.count; i++)
		check_socket("plugin-socket", o->plugin_socket.item[i], r);
	check_socket("control-socket", o->control_socket, r);
}

/* -- memory -------------------------------------------------------------------------------------------------- */
static double store_bytes(uint32_t capacity)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	uint32_t present = cpus > 0 ? (uint32_t)cpus : 1;
	struct hydns_geometry g;

	hydns_geometry_for(capacity, present, present, &g);
	return (double)hydns_geometry_bytes(&g);
}

/* The number in the first line of a file that matches form, for sscanf(). */
static bool find_number(const char *path, const char *form, double *out)
{
	FILE *f = fopen(path, "re");
	char line[512];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, form, out) == 1;
	if (f)
		fclose(f);
	return found;
}

/* The limit of this process's memory cgroup, to which BPF maps are charged. Lines: "0::PATH" (version 2), "N:memory:PATH". */
static bool cgroup_limit(double *out)
{
	FILE *f = fopen("/proc/self/cgroup", "re");
	char line[512], path[640];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f)) {
		const char *v1 = strstr(line, ":memory:");

		line[strcspn(line, "\n")] = '\0';
		if (v1)
			snprintf(path, sizeof(path), "/sys/fs/cgroup/memory%s/memory.limit_in_bytes", v1 + 8);
		else if (strncmp(line, "0::", 3) == 0)
			snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.max", line + 3);
		else
			continue;
		found = find_number(path, "%lf", out);
	}
	if (f)
		fclose(f);
	return found;
}

/* Not while a hydnsd runs: it has its memory already. */
static void check_memory(const struct hydnsd_options *o, struct result *r)
{
	double wanted = store_bytes(o->capacity), host = 0, limit;
	const char *mend = "lower it (hydns-sim advise says what your traffic needs)";

	if (hydnsd_socket_busy(o->control_socket, SOCK_STREAM))
		return;
	if (find_number("/proc/meminfo", "MemAvailable: %lf kB", &host) && wanted > host * 1024)
		warning(r, "capacity: %u rules take %.0f MiB, and this host has %.0f MiB left: %s", o->capacity, wanted / MIB,
			host / 1024, mend);
	else if (cgroup_limit(&limit) && wanted > limit)
		warning(r, "capacity: %u rules take %.0f MiB, and the memory cgroup of this process allows %.0f MiB: %s, or "
			"raise the limit (MemoryMax= of a unit)", o->capacity, wanted / MIB, limit / MIB, mend);
}

/* -- all of it ------------------------------------------------------------------------------------------------ */
static void check_monitor(const struct hydnsd_options *o, struct result *r)
{
	struct hydnsd_condition c[HYDNSD_CONDITIONS];
	struct hydnsd_analyses a;
	char why[HYDNSD_OPTION_ERROR];

	if (hydnsd_conditions_read(&o->monitor_condition, c, why) || hydnsd_analyses_read(&o->monitor_analyser, &a, why))
		error(r, "%s", why);
	if (o->monitor_hook && o->monitor_hook[0] != '/')
		error(r, "monitor-hook: %s is no absolute path: write one", o->monitor_hook);
	else if (o->monitor_hook && access(o->monitor_hook, X_OK))
		warning(r, "monitor-hook: %s cannot be run: %s; correct it", o->monitor_hook, strerror(errno));
}

static void check_guard(const struct hydnsd_options *o, struct result *r)
{
	bool finds = o->guard_suffix == HYDNSD_GUARD_AUTOMATIC && (o->guard_suffix_failures || o->guard_suffix_waiting);

	if (o->guard && !o->guard_client_queries && !finds)
		warning(r, "guard: nothing is limited but what `hydnsctl guard set' says: write guard-client-queries, or guard-suffix: "
			"automatic with guard-suffix-failures or guard-suffix-waiting, or `guard: off'");
}

static void check_routing(const struct hydnsd_options *o, struct result *r)
{
	char why[HYDNS_WHY];

	if (o->reply_path == HYDNSD_REPLY_FIB && hydnsd_routing_check(o->ipv6, why, sizeof(why)))
		error(r, "%s", why);
}

int hydnsd_check(const struct hydnsd_options *o)
{
	struct result r = { 0 };

	check_interfaces(o, &r);
	check_plugin_group(o, &r);
	check_names(o, &r);
	check_pin_dir(o, &r);
	check_sockets(o, &r);
	check_memory(o, &r);
	check_routing(o, &r);
	check_monitor(o, &r);
	check_guard(o, &r);
	if (r.errors)
		printf("hydnsd would not start with this configuration\n");
	else if (r.warnings)
		printf("hydnsd would start with this configuration, but see the warnings\n");
	else
		printf("the configuration is in order\n");
	return r.errors ? EXIT_CONFIGURATION : EXIT_SUCCESS;
}

void hydnsd_check_start(const struct hydnsd_options *o)
{
	struct result ignored = { 0 };

	check_no_interface(o, &ignored);
	check_plugin_group(o, &ignored);
}
