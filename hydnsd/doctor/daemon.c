/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* doctor: hydnsd, and what it has pinned. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hydns/abi.h"
#include "hydnsd/doctor/doctor.h"

#define UNIX_PATH 108          /* room in struct sockaddr_un */

static bool pin_dir_empty(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	bool empty = true;

	if (!d)
		return true;
	while (empty && (e = readdir(d)))
		empty = e->d_name[0] == '.';
	closedir(d);
	return empty;
}

/* The control socket of a hydnsd; its porters have none. socket: UNIX_PATH octets. */
static bool find_control_socket(pid_t pid, void *socket)
{
	char path[64], line[256], *out = socket;
	unsigned long inode;
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/net/unix", (int)pid);
	f = fopen(path, "re");
	/* Num RefCount Protocol Flags Type St Inode Path: a stream socket that listens */
	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, "%*s %*s %*s 00010000 0001 %*s %lu %107s", &inode, out) == 2 && doctor_holds_socket(pid, inode);
	if (!found)
		out[0] = 0;
	if (f)
		fclose(f);
	return found;
}

/* What systemd says of the unit; "" without systemd. */
static void unit_states(char *active, char *file, size_t room)
{
	static const char *const argv[] = {"systemctl", "show", "-p", "ActiveState", "-p", "UnitFileState", "hydnsd.service",
					   NULL};
	char *text = NULL, *rest = NULL;

	active[0] = file[0] = 0;
	if (access("/run/systemd/system", F_OK) || doctor_run(argv, false, &text))
		return;
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		if (!strncmp(line, "ActiveState=", 12))
			snprintf(active, room, "%s", line + 12);
		else if (!strncmp(line, "UnitFileState=", 14))
			snprintf(file, room, "%s", line + 14);
	}
	free(text);
}

/* Whether anything shows that hydnsd was started, or is to be started, on this host. */
static bool is_wanted(const struct doctor *d)
{
	char active[32], file[32];

	unit_states(active, file, sizeof(active));
	if (!access(d->ctl->socket_path, F_OK) || !pin_dir_empty(d->ctl->pin_dir) || !strcmp(file, "enabled") ||
	    (active[0] && strcmp(active, "inactive")))
		return true;
	for (unsigned p = 0; p < d->processes; p++)
		if (d->process[p].conf.named && !d->process[p].conf.off)
			return true;
	return false;
}

static void check_without_daemon(struct doctor *d)
{
	char socket[UNIX_PATH] = "", mend[256];
	pid_t pid = doctor_find_program("hydnsd", find_control_socket, socket);

	if (d->reach == CTL_REFUSED) {
		doctor_add(d, "daemon", NULL, DOCTOR_FAIL, "mend what the finding names, then run doctor again",
			   "%s", d->why);
		return;
	}
	if (pid) {
		snprintf(mend, sizeof(mend), "hydnsctl --socket %s doctor", socket);
		doctor_add(d, "daemon", NULL, DOCTOR_FAIL, mend, "hydnsd runs as pid %d and listens at %s, not at %s", (int)pid,
			   socket, d->ctl->socket_path);
		return;
	}
	if (!is_wanted(d)) {
		doctor_add(d, "daemon", NULL, DOCTOR_SKIP, "systemctl enable --now hydnsd", "hydnsd has not been started yet");
		return;
	}
	doctor_add(d, "daemon", NULL, DOCTOR_FAIL, DOCTOR_RESTART, "%s", d->why);
	if (!pin_dir_empty(d->ctl->pin_dir))
		doctor_add(d, "stale-pins", NULL, DOCTOR_WARN, "systemctl start hydnsd (it takes them over); or, to take "
			   "all away: hydnsd --clean", "%s holds maps and attachments of a hydnsd that no "
			   "longer runs: its rules are answered until they expire, none is renewed",
			   d->ctl->pin_dir);
}

static void check_abi(struct doctor *d)
{
	struct hydns_geometry g;
	char why[CTL_WHY];
	json_int_t abi = ctl_int(d->status, FIELD(status, abi));
	int err;

	if (abi != hydns_abi_version())
		doctor_add(d, "abi", NULL, DOCTOR_FAIL, "make install of one version, then: systemctl restart hydnsd, and "
			   "the resolver", "hydnsd has ABI %" JSON_INTEGER_FORMAT
			   ", hydnsctl %u", abi, hydns_abi_version());
	else
		doctor_add(d, "abi", NULL, DOCTOR_OK, NULL, "hydnsd %s and hydnsctl both have ABI %u",
			   ctl_str(d->status, FIELD(status, version)), hydns_abi_version());
	err = ctl_pins_geometry(d->ctl, &g, why);
	if (err == -EACCES || err == -EPERM)
		doctor_add(d, "pins", NULL, DOCTOR_SKIP, NULL, "%s", why);
	else if (err)
		doctor_add(d, "pins", NULL, DOCTOR_FAIL, "give hydnsctl the pin directory of hydnsd's "
			   "configuration (--pin-dir); if it is the right one: systemctl restart hydnsd", "%s", why);
	else if (g.abi_version != hydns_abi_version())
		doctor_add(d, "pins", NULL, DOCTOR_FAIL, "systemctl restart hydnsd", "the pinned maps have ABI %u, this "
			   "version %u", g.abi_version, hydns_abi_version());
	else
		doctor_add(d, "pins", NULL, DOCTOR_OK, NULL, "maps are pinned in %s, with %u places for each CPU's "
			   "hit counters", d->ctl->pin_dir, g.lines * HYDNS_LINE_WORDS);
}

static void check_with_daemon(struct doctor *d)
{
	doctor_add(d, "daemon", NULL, DOCTOR_OK, NULL, "hydnsd %s runs as pid %" JSON_INTEGER_FORMAT,
		   ctl_str(d->status, FIELD(status, version)), ctl_int(d->status, FIELD(status, pid)));
	check_abi(d);
	doctor_check_kill_switch(d);
}

void doctor_check_daemon(struct doctor *d)
{
	if (d->status)
		check_with_daemon(d);
	else
		check_without_daemon(d);
}
