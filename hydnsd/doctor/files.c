/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* doctor: reads files for checks. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hydnsd/doctor/doctor.h"

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
