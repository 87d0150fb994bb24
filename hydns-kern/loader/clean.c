/* SPDX-License-Identifier: GPL-2.0-only */
/* Removes every attachment and pin, also those of a hydnsd that crashed. */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "hydns-kern/loader/kern.h"

/* Attachments come first: a program answers as long as it is attached. */
static int clean_attachments(DIR *d, const char *pin_dir, char why[HYDNS_WHY])
{
	struct dirent *e;
	int err, first = 0;

	while ((e = readdir(d))) {
		const char *ifname = hydns_pin_attachment(e->d_name);

		if (!ifname)
			continue;
		err = hydns_detach(pin_dir, ifname, why);
		if (err && !first)
			first = err;
	}
	return first;
}

/* Removes only names of ours: others may use the pin directory too. */
static int clean_rest(DIR *d, const char *pin_dir, char why[HYDNS_WHY])
{
	struct dirent *e;
	int first = 0;

	rewinddir(d);
	while ((e = readdir(d)))
		if (hydns_pin_is_ours(e->d_name) && unlinkat(dirfd(d), e->d_name, 0) && errno != ENOENT && !first)
			first = hydns_fail(why, -errno, "can't remove %s/%s: %s", pin_dir, e->d_name,
					   strerror(errno));
	return first;
}

static int clean(const char *pin_dir, const char *named, char why[HYDNS_WHY])
{
	DIR *d = opendir(pin_dir);
	int err;

	if (!d)
		return errno == ENOENT ? 0 : hydns_fail(why, -errno, "can't open %s: %s", named, strerror(errno));
	err = clean_attachments(d, pin_dir, why);
	if (!err)
		err = hydns_stray_remove(pin_dir, why);
	if (!err)
		err = clean_rest(d, named, why);
	closedir(d);
	return err;
}

int hydns_kern_clean(const char *pin_dir, char why[HYDNS_WHY])
{
	int err = clean(pin_dir, pin_dir, why);

	if (!err && rmdir(pin_dir) && errno != ENOENT && errno != ENOTEMPTY && errno != EBUSY)
		err = hydns_fail(why, -errno, "can't remove %s: %s", pin_dir, strerror(errno));
	return err;
}

int hydns_kern_remove(struct hydns_kern *k, char why[HYDNS_WHY])
{
	int err = clean(k->pin_dir, k->pin_dir_named, why);

	if (!err)
		rmdir(k->pin_dir_named);       /* an unprivileged user may not: then it stays, empty */
	return err;
}
