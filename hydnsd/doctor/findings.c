/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* doctor: the list of findings. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>

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

const char *doctor_config_file(const struct doctor *d)
{
	const char *path = ctl_str(d->status, FIELD(status, config));

	return path[0] ? path : HYDNSD_CONFIG_FILE;
}

void doctor_words(const struct doctor *d, char *out, size_t room, const char *unbound, const char *bind)
{
	if (d->servers == DOCTOR_UNBOUND)
		snprintf(out, room, "%s", unbound);
	else if (d->servers == DOCTOR_BIND)
		snprintf(out, room, "%s", bind);
	else
		snprintf(out, room, "with Unbound: %s; with BIND: %s", unbound, bind);
}
