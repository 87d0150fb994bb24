/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* hydnsctl doctor: runs all checks and shows what they found. */
#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hydnsd/doctor/doctor.h"

static const char *const state_text[DOCTOR_STATES] = {"ok", "skip", "warn", "fail"};

void doctor_add(struct doctor *d, const char *check, const char *subject, enum doctor_state state,
		const char *mend, const char *finding, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, finding);
	vsnprintf(text, sizeof(text), finding, ap);
	va_end(ap);
	d->count[state]++;
	json_array_append_new(d->checks, json_pack("{s:s, s:s?, s:s, s:s, s:s?}", "check", check,
		"subject", subject, "state", state_text[state], "finding", text, "mend", mend));
}

void doctor_words(const struct doctor *d, char *out, size_t room, const char *unbound, const char *bind)
{
	if (d->kinds == DOCTOR_UNBOUND)
		snprintf(out, room, "%s", unbound);
	else if (d->kinds == DOCTOR_BIND)
		snprintf(out, room, "%s", bind);
	else
		snprintf(out, room, "with Unbound: %s; with BIND: %s", unbound, bind);
}

const char *doctor_config_dir(void)
{
	const char *dir = getenv("HYDNS_CONFIG_DIR");

	return dir && *dir ? dir : HYDNS_CONFIG_DIR;
}

int doctor_read_line(const char *path, char *out, size_t room)
{
	FILE *f = fopen(path, "re");
	int err = 0;

	if (!f)
		return -errno;
	if (!fgets(out, (int)room, f))
		err = -ENODATA;
	else
		out[strcspn(out, "\n")] = 0;
	fclose(f);
	return err;
}

static void print_checks(const struct doctor *d)
{
	const json_t *c;
	size_t i;
	char label[64];

	json_array_foreach(d->checks, i, c) {
		const char *subject = ctl_str(c, "subject"), *mend = ctl_str(c, "mend");

		snprintf(label, sizeof(label), "%s%s%s", ctl_str(c, "check"), subject[0] ? " " : "", subject);
		printf("%-4s  %-22s  %s\n", ctl_str(c, "state"), label, ctl_str(c, "finding"));
		if (mend[0])
			printf("      %-22s  mend: %s\n", "", mend);
	}
	printf("\n%u ok, %u to look at (warn), %u to mend (fail), %u skipped\n", d->count[DOCTOR_OK],
	       d->count[DOCTOR_WARN], d->count[DOCTOR_FAIL], d->count[DOCTOR_SKIP]);
}

int ctl_cmd_doctor(const struct ctl *c, int argc, char **argv)
{
	struct doctor d = {.ctl = c, .checks = json_array(), .interfaces = json_array()};
	bool healthy;

	d.reach = ctl_call(c, json_pack("{s:s}", "cmd", "status"), &d.status, d.why);
	doctor_find_processes(&d);
	doctor_check_host(&d);
	doctor_check_daemon(&d);
	doctor_check_resolvers(&d);
	/* From here on perhaps in hydnsd's network namespace. */
	doctor_check_interfaces(&d, argc, argv);
	doctor_check_sources(&d);
	doctor_check_config(&d);
	doctor_check_firewall(&d);
	healthy = !d.count[DOCTOR_WARN] && !d.count[DOCTOR_FAIL];
	if (c->json) {
		ctl_json(json_pack("{s:b, s:o}", "healthy", healthy, "checks", d.checks));
	} else {
		print_checks(&d);
		json_decref(d.checks);
	}
	json_decref(d.interfaces);
	json_decref(d.status);
	return healthy ? CTL_OK : CTL_ERROR;
}
