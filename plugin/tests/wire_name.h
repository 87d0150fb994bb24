/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#ifndef PLUGIN_TESTS_WIRE_NAME_H
#define PLUGIN_TESTS_WIRE_NAME_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Writes a name without escapes ("a.example" or "a.example.") in wire format (RFC 1035, section 3.1), and returns its octets: at most
 * HYDNS_NAME_MAX, for which out has room. */
static inline size_t wire(const char *name, uint8_t *out)
{
	size_t at = 0;

	while (*name) {
		size_t len = strcspn(name, ".");

		out[at++] = (uint8_t)len;
		memcpy(out + at, name, len);
		at += len;
		name += len + (name[len] == '.');
	}
	out[at++] = 0;
	return at;
}

#endif
