/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* doctor: source validation, as hydnsd reports it. */
#include "config.h"

#include "hydnsd/doctor/doctor.h"

static void check_family(struct doctor *d, const json_t *s)
{
	const char *note = ctl_str(s, FIELD(source, note)), *mode = ctl_str(s, FIELD(source, rp_filter));
	const char *mend = ctl_str(s, FIELD(source, mend));

	if (note[0])
		doctor_add(d, "sources", ctl_str(s, FIELD(source, family)), mend[0] ? DOCTOR_WARN : DOCTOR_OK,
			   mend[0] ? mend : NULL, "%s", note);
	else
		doctor_add(d, "sources", ctl_str(s, FIELD(source, family)), DOCTOR_OK, NULL, "queries are answered from where this host has "
			   "a route to%s%s", mode[0] ? "; rp_filter: " : "", mode);
}

void doctor_check_sources(struct doctor *d)
{
	const json_t *s;
	size_t n;

	json_array_foreach(json_object_get(d->status, FIELD(status, sources)), n, s)
		check_family(d, s);
}
