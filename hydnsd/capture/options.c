/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "config.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <ldns/ldns.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "hydnsd/capture/options.h"

#define DEFAULT_OCTETS (64ULL << 20)
#define LEAST_SNAPLEN  64

/* -- numbers ------------------------------------------------------------------------------------------------ */
/* A number up to most, or with K, M or G behind it; text NULL: it stays. */
static bool number(const char *option, const char *text, uint64_t least, uint64_t most, uint64_t *out)
{
	static const char units[] = "KMG";
	const char *unit;
	unsigned shift = 0;
	char *end;
	unsigned long long n;

	if (!text)
		return true;
	errno = 0;
	n = strtoull(text, &end, 10);
	unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
	if (unit && end != text) {
		shift = 10 * (unsigned)(unit - units + 1);
		end++;
	}
	if (errno || end == text || *end || !isdigit((unsigned char)text[0]) || n > most >> shift || n << shift < least) {
		ctl_error("%s takes a number from %llu to %llu, not '%s'", option, (unsigned long long)least, (unsigned long long)most, text);
		return false;
	}
	*out = n << shift;
	return true;
}

/* -- reasons ------------------------------------------------------------------------------------------------ */
static uint64_t reasons_of_queries(void)
{
	uint64_t bits = 1ULL << HYDNS_R_PARKED | 1ULL << HYDNS_R_FORWARDED | 1ULL << HYDNS_R_UPSTREAM_ANSWER |
			1ULL << HYDNS_R_UPSTREAM_FALSE;

	for (unsigned r = 0; r < HYDNS_REASONS; r++)
		if (hydns_reason_of((enum hydns_reason)r) == HYDNS_OF_QUERY)
			bits |= 1ULL << r;
	return bits;
}

static bool no_such_reason(const char *text)
{
	char names[2 * CTL_WHY] = "any";

	for (unsigned r = 0; r < HYDNS_REASONS; r++) {
		strncat(names, ", ", sizeof(names) - strlen(names) - 1);
		strncat(names, hydns_reason_name((enum hydns_reason)r), sizeof(names) - strlen(names) - 1);
	}
	ctl_error("no such reason: %s; there are %s", text, names);
	return false;
}

static bool add_reason(const char *text, uint64_t *bits)
{
	if (!strcasecmp(text, "any")) {
		*bits |= reasons_of_queries() & ~(1ULL << HYDNS_R_ANSWERED);
		return true;
	}
	for (unsigned r = 0; r < HYDNS_REASONS; r++)
		if (!strcasecmp(text, hydns_reason_name((enum hydns_reason)r))) {
			*bits |= 1ULL << r;
			return true;
		}
	return no_such_reason(text);
}

static bool reasons(const struct ctl *c, uint64_t *bits)
{
	*bits = c->answered ? 1ULL << HYDNS_R_ANSWERED : 0;
	for (unsigned i = 0; i < c->passed_count; i++)
		if (!add_reason(c->passed[i], bits))
			return false;
	if (!*bits)
		*bits = reasons_of_queries();
	return true;
}

/* -- names and clients -------------------------------------------------------------------------------------- */
static bool name(const char *text, bool below, struct hydns_capture_filter *f)
{
	char why[CTL_WHY], *checked = ctl_name(text, why);
	ldns_rdf *wire = NULL;

	if (!checked || ldns_str2rdf_dname(&wire, text) != LDNS_STATUS_OK) {
		ctl_error("%s", checked ? "that is not a domain name" : why);
		free(checked);
		return false;
	}
	free(checked);
	f->below = below;
	f->name_len = (uint16_t)ldns_rdf_size(wire);
	for (uint16_t i = 0; i < f->name_len; i++)
		f->name[i] = (uint8_t)tolower(ldns_rdf_data(wire)[i]);
	ldns_rdf_deep_free(wire);
	return true;
}

static bool names(const struct ctl *c, struct hydns_capture_filter *f)
{
	if (c->name && c->zone) {
		ctl_error("--name and --zone exclude each other");
		return false;
	}
	if (c->name && !strncmp(c->name, "*.", 2))
		return name(c->name + 2, true, f);
	return c->name ? name(c->name, false, f) : c->zone ? name(c->zone, true, f) : true;
}

/* An address, or a prefix with its length. */
static bool client(const char *text, struct hydns_capture_filter *f)
{
	uint8_t *address = (uint8_t *)f->client, *mask = (uint8_t *)f->mask;
	char copy[INET6_ADDRSTRLEN + 8], *slash;
	uint64_t len = 128, most = 128;

	if (!text)
		return true;
	snprintf(copy, sizeof(copy), "%s", text);
	slash = strchr(copy, '/');
	if (slash)
		*slash++ = 0;
	if (inet_pton(AF_INET, copy, address + 12) == 1) {
		memset(address + 10, 0xff, 2);
		len = most = 32;
	} else if (inet_pton(AF_INET6, copy, address) != 1) {
		ctl_error("--client takes an address or a prefix, not '%s'", text);
		return false;
	}
	if (!number("the length of --client's prefix", slash, 0, most, &len))
		return false;
	for (uint64_t i = 0; i < 128; i++)
		if (i < 128 - most + len)
			mask[i / 8] |= (uint8_t)(0x80 >> i % 8);
	for (unsigned i = 0; i < 16; i++)
		address[i] &= mask[i];
	return true;
}

/* -- interfaces ------------------------------------------------------------------------------------------------ */
struct wanted {
	const char *name;
	unsigned ifindex;
};

static void on_link(const char *ifname, unsigned ifindex, void *arg)
{
	struct wanted *w = arg;

	if (!strcmp(ifname, w->name))
		w->ifindex = ifindex;
}

static bool interface(const struct ctl *c, struct hydns_capture_filter *f)
{
	struct wanted w = {.name = c->interface};

	if (!c->interface)
		return true;
	ctl_pins_links(c, on_link, &w);
	if (!w.ifindex)
		w.ifindex = if_nametoindex(c->interface);
	if (!w.ifindex)
		ctl_error("there is no interface %s", c->interface);
	f->ifindex = w.ifindex;
	return w.ifindex != 0;
}

bool capture_options(const struct ctl *c, struct hydns_capture_filter *filter, struct capture_bounds *bounds)
{
	uint64_t most = HYDNS_CAPTURE_MOST, bits = 0;

	memset(filter, 0, sizeof(*filter));
	*bounds = (struct capture_bounds){.octets = DEFAULT_OCTETS};
	if (!reasons(c, &bits) || !names(c, filter) || !client(c->client, filter) || !interface(c, filter) ||
	    !number("--count", c->count, 1, UINT32_MAX, &bounds->packets) ||
	    !number("--seconds", c->seconds, 1, UINT32_MAX, &bounds->seconds) ||
	    !number("--size", c->size, 4096, UINT64_MAX >> 1, &bounds->octets) ||
	    !number("--snaplen", c->snaplen, LEAST_SNAPLEN, HYDNS_CAPTURE_MOST, &most))
		return false;
	filter->reasons = bits;
	filter->most = (uint32_t)most;
	return true;
}
