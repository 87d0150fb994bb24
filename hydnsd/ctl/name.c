/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Checks names and types as operators write them, before a request is sent. */
#include "config.h"

#include <ldns/ldns.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hydnsd/ctl/common.h"

char *ctl_name(const char *text, char why[CTL_WHY])
{
	ldns_rdf *name = NULL;
	ldns_status st = text[0] ? ldns_str2rdf_dname(&name, text) : LDNS_STATUS_EMPTY_LABEL;
	char *out = st == LDNS_STATUS_OK ? ldns_rdf2str(name) : NULL;

	ldns_rdf_deep_free(name);
	if (!out)
		snprintf(why, CTL_WHY, "'%s' is not a domain name: %s", text, ldns_get_errorstr_by_id(st));
	return out;
}

int ctl_type(const char *text, char why[CTL_WHY])
{
	unsigned long n = 0;
	char *end = NULL;

	/* ldns cuts TYPEn to 16 bits: TYPE65537 would be A */
	if (!strncasecmp(text, "TYPE", 4) && text[4] >= '0' && text[4] <= '9') {
		n = strtoul(text + 4, &end, 10);
		if (*end || n > 0xffff)
			n = 0;
	} else {
		n = ldns_get_rr_type_by_name(text);
	}
	if (n == 0) {
		snprintf(why, CTL_WHY, "'%s' is not a record type: use a mnemonic such as AAAA, or TYPEn", text);
		return -1;
	}
	/* Meta types: OPT (RFC 6891), TKEY to ANY (RFC 6895 section 3.1). */
	if (n == LDNS_RR_TYPE_OPT || (n >= 249 && n <= LDNS_RR_TYPE_ANY)) {
		snprintf(why, CTL_WHY, "%s is not a type of data: such queries always go to the resolver", text);
		return -1;
	}
	return (int)n;
}

const char *ctl_type_text(const json_t *type, char buf[16])
{
	char *text;

	if (json_is_string(type))
		return json_string_value(type);
	text = ldns_rr_type2str((ldns_rr_type)json_integer_value(type));
	snprintf(buf, 16, "%s", text ? text : "?");
	free(text);
	return buf;
}

/* variant: HYDNS_VARIANT_* ored, or a string. */
const char *ctl_variant_text(const json_t *rule)
{
	const json_t *v = json_object_get(rule, FIELD(question, variant));

	if (json_is_string(v))
		return json_string_value(v);
	switch (json_integer_value(v)) {
	case HYDNS_VARIANT_DO:
		return "do";
	case HYDNS_VARIANT_NO_RD:
		return "norec";
	case HYDNS_VARIANT_DO | HYDNS_VARIANT_NO_RD:
		return "do norec";
	default:
		return "plain";
	}
}
