/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* hydnsctl doctor: runs all checks and prints their findings. */
#include "config.h"

#include <stdio.h>
#include <time.h>

#include "hydns/common.h"
#include "hydnsd/doctor/doctor.h"

#define ASK_AGAIN_MS 200

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

static void ask_status(struct doctor *d)
{
	json_decref(d->status);
	d->status = NULL;
	d->reach = ctl_call(d->ctl, json_pack("{s:s}", "cmd", "status"), &d->status, d->why);
}

/* What has begun a moment ago is not ill. */
static void let_resolvers_come(struct doctor *d)
{
	const struct timespec pause = {.tv_nsec = ASK_AGAIN_MS * HYDNS_NS_PER_MS};

	if (!d->ctl->json && doctor_resolvers_come(d))
		fprintf(stderr, "hydnsctl: hydnsd has just started; its resolvers have %d seconds to register\n", DOCTOR_COME_S);
	for (unsigned ms = 0; ms < DOCTOR_COME_S * 1000 && doctor_resolvers_come(d); ms += ASK_AGAIN_MS) {
		nanosleep(&pause, NULL);
		ask_status(d);
	}
}

int ctl_cmd_doctor(const struct ctl *c, int argc, char **argv)
{
	struct doctor d = {.ctl = c, .checks = json_array(), .interfaces = json_array()};
	bool healthy;

	ask_status(&d);
	doctor_find_processes(&d);
	let_resolvers_come(&d);
	if (d.reach == CTL_ANSWERED && ctl_call(c, json_pack("{s:s}", "cmd", "stats"), &d.stats, d.why) != CTL_ANSWERED)
		d.stats = NULL;
	doctor_check_host(&d);
	doctor_check_daemon(&d);
	doctor_check_resolvers(&d);
	/* this may enter hydnsd's network namespace */
	doctor_check_interfaces(&d, argc, argv);
	doctor_check_rings(&d);
	doctor_check_forwarding(&d);
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
	json_decref(d.stats);
	return healthy ? CTL_OK : CTL_ERROR;
}
