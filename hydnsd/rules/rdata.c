/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A layout is a string with a letter for each field: 1 2 4 6 8 integers of so many octets; a IPv4 and A IPv6 address; n name
 * that may be compressed (RFC 3597 section 4); N name that may not; s character-string; o none or one of them, S one or more;
 * b type bitmap (RFC 4034 section 4.1.2); v SvcParams (RFC 9460 section 2.2); h what HIP has (RFC 8005 section 5); x the rest,
 * X the rest and at least one octet. A type that is not in the table is octets (RFC 3597): the program copies them, and they
 * have no compressed name.
 */
#include "hydnsd/rules/rdata.h"

#include <string.h>

static const struct {
	uint16_t type;
	const char *layout;
} layouts[] = {
	{ 1, "a" },        /* A */
	{ 2, "n" },        /* NS */
	{ 3, "n" },        /* MD */
	{ 4, "n" },        /* MF */
	{ 5, "n" },        /* CNAME */
	{ 6, "nn44444" },  /* SOA */
	{ 7, "n" },        /* MB */
	{ 8, "n" },        /* MG */
	{ 9, "n" },        /* MR */
	{ 11, "a1x" },     /* WKS */
	{ 12, "n" },       /* PTR */
	{ 13, "ss" },      /* HINFO */
	{ 14, "nn" },      /* MINFO */
	{ 15, "2n" },      /* MX */
	{ 16, "S" },       /* TXT */
	{ 17, "nn" },      /* RP */
	{ 18, "2n" },      /* AFSDB */
	{ 19, "s" },       /* X25 */
	{ 20, "so" },      /* ISDN */
	{ 21, "2n" },      /* RT */
	{ 23, "s" },       /* NSAP-PTR, as resolvers read it */
	{ 24, "211444" "2nX" }, /* SIG */
	{ 25, "211X" },    /* KEY */
	{ 26, "2nn" },     /* PX */
	{ 27, "sss" },     /* GPOS */
	{ 28, "A" },       /* AAAA */
	{ 29, "1111444" }, /* LOC */
	{ 30, "nx" },      /* NXT */
	{ 33, "222N" },    /* SRV */
	{ 35, "22sssN" },  /* NAPTR */
	{ 36, "2N" },      /* KX */
	{ 37, "221X" },    /* CERT */
	{ 39, "N" },       /* DNAME */
	{ 40, "1" },       /* SINK, as resolvers read it */
	{ 43, "211X" },    /* DS */
	{ 44, "11X" },     /* SSHFP */
	{ 46, "211444" "2NX" }, /* RRSIG */
	{ 47, "Nb" },      /* NSEC */
	{ 48, "211X" },    /* DNSKEY */
	{ 49, "X" },       /* DHCID */
	{ 50, "112ssb" },  /* NSEC3 */
	{ 51, "112s" },    /* NSEC3PARAM */
	{ 52, "111X" },    /* TLSA */
	{ 53, "111X" },    /* SMIMEA */
	{ 55, "h" },       /* HIP */
	{ 58, "NN" },      /* TALINK */
	{ 59, "211X" },    /* CDS */
	{ 60, "211X" },    /* CDNSKEY */
	{ 61, "X" },       /* OPENPGPKEY */
	{ 62, "42b" },     /* CSYNC */
	{ 63, "411X" },    /* ZONEMD */
	{ 64, "2Nv" },     /* SVCB */
	{ 65, "2Nv" },     /* HTTPS */
	{ 99, "S" },       /* SPF */
	{ 104, "28" },     /* NID */
	{ 105, "24" },     /* L32 */
	{ 106, "28" },     /* L64 */
	{ 107, "2N" },     /* LP */
	{ 108, "6" },      /* EUI48 */
	{ 109, "8" },      /* EUI64 */
	{ 256, "22X" },    /* URI */
	{ 257, "1sx" },    /* CAA */
	{ 32769, "211X" }, /* DLV */
};

static const char *layout_of(uint16_t type)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (layouts[i].type == type)
			return layouts[i].layout;
	return "x";
}

static bool skip(uint32_t *pos, uint32_t end, uint32_t octets)
{
	if (end - *pos < octets)
		return false;
	*pos += octets;
	return true;
}

static bool skip_string(const struct hydnsd_message *m, uint32_t *pos, uint32_t end)
{
	return *pos < end && skip(pos, end, 1U + *hydnsd_at(m, *pos));
}

static bool skip_strings(const struct hydnsd_message *m, uint32_t *pos, uint32_t end)
{
	do {
		if (!skip_string(m, pos, end))
			return false;
	} while (*pos < end);
	return true;
}

static bool skip_bitmap(const struct hydnsd_message *m, uint32_t *pos, uint32_t end)
{
	int last = -1;

	while (*pos < end) {
		const uint8_t *window = hydnsd_at(m, *pos);

		if (end - *pos < 2 || window[0] <= last || window[1] < 1 || window[1] > 32)
			return false;
		last = window[0];
		if (!skip(pos, end, 2U + window[1]))
			return false;
	}
	return true;
}

static bool skip_params(const struct hydnsd_message *m, uint32_t *pos, uint32_t end)
{
	int32_t last = -1;

	while (*pos < end) {
		const uint8_t *param = hydnsd_at(m, *pos);

		if (end - *pos < 4 || hydnsd_u16(param) <= last)
			return false;
		last = hydnsd_u16(param);
		if (!skip(pos, end, 4U + hydnsd_u16(param + 2)))
			return false;
	}
	return true;
}

static bool skip_hip(const struct hydnsd_message *m, uint32_t *pos, uint32_t end)
{
	const uint8_t *p = hydnsd_at(m, *pos);
	struct hydnsd_name server;

	if (end - *pos < 4 || !skip(pos, end, 4U + p[0] + hydnsd_u16(p + 2)))
		return false;
	while (*pos < end)
		if (!hydnsd_name_read(m, pos, end, false, &server, NULL))
			return false;
	return true;
}

static bool skip_field(const struct hydnsd_message *m, char field, uint32_t *pos, uint32_t end,
		       struct hydnsd_marks *marks)
{
	struct hydnsd_name name;

	switch (field) {
	case 'a':
		return skip(pos, end, 4);
	case 'A':
		return skip(pos, end, 16);
	case 'n':
	case 'N':
		return hydnsd_name_read(m, pos, end, field == 'n', &name, marks);
	case 's':
		return skip_string(m, pos, end);
	case 'o':
		return *pos == end || skip_string(m, pos, end);
	case 'S':
		return skip_strings(m, pos, end);
	case 'b':
		return skip_bitmap(m, pos, end);
	case 'h':
		return skip_hip(m, pos, end);
	case 'v':
		return skip_params(m, pos, end);
	case 'x':
	case 'X':
		return skip(pos, end, end - *pos < (field == 'X') ? 1 : end - *pos);
	default:
		return skip(pos, end, (uint32_t)(field - '0'));
	}
}

enum hydnsd_rdata hydnsd_rdata_check(const struct hydnsd_message *m, const struct hydnsd_rr *rr,
				     struct hydnsd_marks *marks)
{
	uint32_t pos = rr->rdata;

	if (hydnsd_type_is_meta(rr->type))
		return HYDNSD_RDATA_META;
	for (const char *layout = layout_of(rr->type); *layout; layout++)
		if (!skip_field(m, *layout, &pos, rr->end, marks))
			return HYDNSD_RDATA_BAD;
	return pos == rr->end ? HYDNSD_RDATA_GOOD : HYDNSD_RDATA_BAD;
}
