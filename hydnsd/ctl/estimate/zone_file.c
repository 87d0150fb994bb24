/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/ctl/estimate/zone_file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <ldns/ldns.h>

#include "hydns/dns.h"

#define PROGRESS_EVERY 1024            /* records */
#define FIXED_PART     10              /* octets of a record: type, class, TTL, length of the data */
#define POINTER        2               /* a compressed name, or what is left of it */
#define NSEC3_LABEL    33              /* of the owner of an NSEC3 record: a hash of 20 octets in base 32 */
/* Stands for the origin that is not known, so that names relative to it can be told. */
#define UNKNOWN_ORIGIN "origin.of.hydnsctl.invalid."

struct reading {
	const struct ctl_zone_file *file;
	FILE *f;
	double size;                   /* octets of the file */
	struct ctl_zone *z;
	bool open;                     /* z is */
	ldns_rdf *origin, *former_owner, *unknown;
	uint32_t ttl;
	int lines;                     /* that have ended so far */
	uint64_t records;
	uint8_t owner[HYDNS_NAME_MAX], target[HYDNS_NAME_MAX]; /* of the record, lower case */
	uint8_t former[HYDNS_NAME_MAX]; /* the last name in this owner's data, which the next may share its end with */
	size_t owner_len, former_len;
	char *why;
};

/* -- errors ---------------------------------------------------------------------------------------------------------- */
static bool fail(const struct reading *r, int line, const char *form, ...) __attribute__((format(printf, 3, 4)));
static bool fail(const struct reading *r, int line, const char *form, ...)
{
	int len = line ? snprintf(r->why, CTL_ZONE_WHY, "%.200s:%d: ", r->file->path, line) :
			 snprintf(r->why, CTL_ZONE_WHY, "%.200s: ", r->file->path);
	va_list ap;

	va_start(ap, form);
	vsnprintf(r->why + len, CTL_ZONE_WHY - (size_t)len, form, ap);
	va_end(ap);
	return false;
}

struct place {
	int line;
	bool directive;                /* it begins with $ */
};

/* Whether what was read last is no line's end: the file's last line has none, or ldns has given the line up. */
static bool is_in_line(FILE *f)
{
	long at = ftell(f);

	return at > 0 && !fseek(f, at - 1, SEEK_SET) && getc(f) != '\n';
}

/* Where the last record ends: ldns has also read the empty lines behind it. For errors. */
static struct place place_of(const struct reading *r)
{
	int lines = r->lines + is_in_line(r->f);
	struct place p = { .line = lines };
	FILE *f = fopen(r->file->path, "re");
	char *text = NULL;
	size_t room = 0;

	for (int i = 1; f && i <= lines && getline(&text, &room, f) >= 0; i++)
		if (text[strspn(text, " \t\r\n")])
			p = (struct place){ .line = i, .directive = text[0] == '$' };
	free(text);
	if (f)
		fclose(f);
	return p;
}

#define COMPILED "give the file that 'named-compilezone -s full -o FILE ZONE' writes"

static bool bad_record(const struct reading *r, ldns_status status)
{
	struct place p = place_of(r);

	if (status == LDNS_STATUS_SYNTAX_INCLUDE || p.directive)
		return fail(r, p.line, "a directive that is not read here, only $ORIGIN and $TTL are: " COMPILED);
	return fail(r, p.line, "%s", ldns_get_errorstr_by_id(status));
}

/* -- names ----------------------------------------------------------------------------------------------------------- */
static bool is_name(const ldns_rdf *data)
{
	return ldns_rdf_get_type(data) == LDNS_RDF_TYPE_DNAME;
}

static size_t to_lower(const ldns_rdf *name, uint8_t *out)
{
	const uint8_t *from = ldns_rdf_data(name);
	size_t len = ldns_rdf_size(name);

	for (size_t i = 0; i < len; i++)
		out[i] = from[i] >= 'A' && from[i] <= 'Z' ? from[i] | 0x20 : from[i];   /* lengths of labels are below 'A' */
	return len;
}

/* Octets of the end that both names have, with the root label. */
static size_t same_end(const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len)
{
	while (a_len > 1 && b_len > 1) {
		if (a_len == b_len && !memcmp(a, b, a_len))
			return a_len;
		if (a_len >= b_len) {
			a_len -= 1U + *a;
			a += 1U + *a;
		} else {
			b_len -= 1U + *b;
			b += 1U + *b;
		}
	}
	return 1;
}

static void take_owner(struct reading *r, const ldns_rdf *name)
{
	uint8_t owner[HYDNS_NAME_MAX];
	size_t len = to_lower(name, owner);

	if (len == r->owner_len && !memcmp(owner, r->owner, len))
		return;
	memcpy(r->owner, owner, len);
	r->owner_len = len;
	r->former_len = 0;
}

/* Octets of a name in data: what its owner's name, or the last name before it, ends with too is a pointer. */
static size_t compressed(struct reading *r, const ldns_rdf *data)
{
	uint8_t name[HYDNS_NAME_MAX];
	size_t len = to_lower(data, name), end = same_end(name, len, r->owner, r->owner_len),
	       former = same_end(name, len, r->former, r->former_len);

	memcpy(r->former, name, len);
	r->former_len = len;
	if (former > end)
		end = former;
	return end > 1 ? len - end + POINTER : len;
}

/* -- one record ------------------------------------------------------------------------------------------------------ */
/* RFC 3597 section 4: names in data of later types are not compressed. */
static bool compresses(ldns_rr_type type)
{
	return type == LDNS_RR_TYPE_NS || type == LDNS_RR_TYPE_CNAME || type == LDNS_RR_TYPE_SOA || type == LDNS_RR_TYPE_PTR ||
	       type == LDNS_RR_TYPE_MX;
}

/* Types whose last name is one that named looks for, to add its addresses or to follow it. */
static bool has_target(ldns_rr_type type)
{
	return type == LDNS_RR_TYPE_NS || type == LDNS_RR_TYPE_CNAME || type == LDNS_RR_TYPE_MX || type == LDNS_RR_TYPE_SRV;
}

/* "_25._tcp" and the target: where named looks for TLSA, of a mail server or a service at a port. */
static size_t service_len(const ldns_rr *rr, size_t target_len)
{
	unsigned port = 0;

	if (ldns_rr_get_type(rr) == LDNS_RR_TYPE_MX)
		port = 25;
	else if (ldns_rr_get_type(rr) == LDNS_RR_TYPE_SRV && ldns_rr_rd_count(rr) == 4)
		port = ldns_rdf2native_int16(ldns_rr_rdf(rr, 2));
	return port ? (size_t)snprintf(NULL, 0, "._%u._tcp", port) + target_len : 0;
}

/* The owner's name is a pointer to where it stands already, but of an NSEC3 record, which no question names. */
static uint32_t octets_of(struct reading *r, const ldns_rr *rr)
{
	ldns_rr_type type = ldns_rr_get_type(rr);
	size_t octets = FIXED_PART + POINTER + (type == LDNS_RR_TYPE_NSEC3 ? NSEC3_LABEL : 0);

	for (size_t i = 0; i < ldns_rr_rd_count(rr); i++) {
		const ldns_rdf *data = ldns_rr_rdf(rr, i);

		octets += is_name(data) && compresses(type) ? compressed(r, data) :
			  ldns_rdf_size(data);
	}
	return (uint32_t)octets;
}

static void take_apart(struct reading *r, const ldns_rr *rr, struct ctl_record *out)
{
	ldns_rr_type type = ldns_rr_get_type(rr);
	size_t count = ldns_rr_rd_count(rr);

	take_owner(r, ldns_rr_owner(rr));
	*out = (struct ctl_record){
		.owner = r->owner, .owner_len = r->owner_len, .type = (uint16_t)type, .octets = octets_of(r, rr),
		.opt_out = type == LDNS_RR_TYPE_NSEC3 && count > 1 && ldns_nsec3_optout(rr),
	};
	if (type == LDNS_RR_TYPE_RRSIG && count) {
		out->is_signature = true;
		out->type = (uint16_t)ldns_rdf2rr_type(ldns_rr_rrsig_typecovered(rr));
	}
	if (has_target(type) && count && is_name(ldns_rr_rdf(rr, count - 1))) {
		out->target = r->target;
		out->target_len = to_lower(ldns_rr_rdf(rr, count - 1), r->target);
		out->service_len = service_len(rr, out->target_len);
	}
}

/* ldns makes longer ones of a relative name and its origin. */
static bool names_fit(const ldns_rr *rr)
{
	bool fit = ldns_rdf_size(ldns_rr_owner(rr)) <= HYDNS_NAME_MAX;

	for (size_t i = 0; i < ldns_rr_rd_count(rr); i++)
		fit &= !is_name(ldns_rr_rdf(rr, i)) || ldns_rdf_size(ldns_rr_rdf(rr, i)) <= HYDNS_NAME_MAX;
	return fit;
}

/* Whether a name of the record is relative to an origin that is not known. */
static bool is_relative(const struct reading *r, const ldns_rr *rr)
{
	if (!r->unknown)
		return false;
	if (ldns_dname_is_subdomain(ldns_rr_owner(rr), r->unknown) || !ldns_dname_compare(ldns_rr_owner(rr), r->unknown))
		return true;
	for (size_t i = 0; i < ldns_rr_rd_count(rr); i++)
		if (is_name(ldns_rr_rdf(rr, i)) && ldns_dname_is_subdomain(ldns_rr_rdf(rr, i), r->unknown))
			return true;
	return false;
}

static bool begin_zone(struct reading *r, const struct ctl_record *first)
{
	if (first->type != HYDNS_TYPE_SOA || first->is_signature)
		return fail(r, place_of(r).line, "the first record is not the zone's SOA: without it this is no zone's file");
	r->open = ctl_zone_open(r->z, first->owner, first->owner_len);
	return r->open || fail(r, 0, "out of memory");
}

static bool take_record(struct reading *r, const ldns_rr *rr)
{
	struct ctl_record record;

	if (ldns_rr_get_class(rr) != LDNS_RR_CLASS_IN)
		return fail(r, place_of(r).line, "the record's class is not IN");
	if (!names_fit(rr))
		return fail(r, place_of(r).line, "a name of more than %d octets", HYDNS_NAME_MAX);
	if (is_relative(r, rr))
		return fail(r, place_of(r).line, "a relative name, and there is no $ORIGIN before it: give --origin");
	take_apart(r, rr, &record);
	if (!r->open && !begin_zone(r, &record))
		return false;
	return ctl_zone_add(r->z, &record) || fail(r, 0, "out of memory after %llu records", (unsigned long long)r->records);
}

/* -- the file -------------------------------------------------------------------------------------------------------- */
static void tell(const struct reading *r)
{
	long at = r->file->progress && r->records % PROGRESS_EVERY == 0 ? ftell(r->f) : -1;

	if (at >= 0)
		r->file->progress(r->file->path, r->records, r->size > 0 ? (double)at / r->size : 0);
}

static bool read_records(struct reading *r)
{
	while (!feof(r->f) && !ferror(r->f)) {
		ldns_rr *rr = NULL;
		ldns_status status = ldns_rr_new_frm_fp_l(&rr, r->f, &r->ttl, &r->origin, &r->former_owner, &r->lines);
		bool ok = true;

		if (status == LDNS_STATUS_OK) {
			r->records++;
			ok = take_record(r, rr);
			tell(r);
		} else if (status != LDNS_STATUS_SYNTAX_EMPTY && status != LDNS_STATUS_SYNTAX_TTL && status != LDNS_STATUS_SYNTAX_ORIGIN) {
			ok = bad_record(r, status);
		}
		ldns_rr_free(rr);
		if (!ok)
			return false;
	}
	if (ferror(r->f))
		return fail(r, 0, "%s", strerror(errno));
	return r->open || fail(r, 0, "there is no record in it");
}

/* named keeps zones of its own making, and secondaries', in a format that begins with its number, 2, in four octets. */
static bool is_raw(FILE *f)
{
	int first = getc(f);

	if (first != EOF)
		ungetc(first, f);
	return first == 0;
}

static bool open_file(struct reading *r)
{
	struct stat st;

	r->f = fopen(r->file->path, "re");
	if (!r->f || fstat(fileno(r->f), &st))
		return fail(r, 0, "%s", strerror(errno));
	if (S_ISDIR(st.st_mode))
		return fail(r, 0, "%s", strerror(EISDIR));
	r->size = (double)st.st_size;
	return !is_raw(r->f) || fail(r, 0, "it is in named's raw format: give the file that "
				     "'named-compilezone -f raw -F text -s full -o FILE ZONE' writes");
}

static bool set_origin(struct reading *r)
{
	const char *text = r->file->origin ? r->file->origin : UNKNOWN_ORIGIN;

	r->origin = ldns_dname_new_frm_str(text);
	if (!r->origin)
		return fail(r, 0, "'%s' is not a domain name", text);
	if (!r->file->origin)
		r->unknown = ldns_rdf_clone(r->origin);
	return r->file->origin || r->unknown || fail(r, 0, "out of memory");
}

bool ctl_zone_read(const struct ctl_zone_file *file, struct ctl_zone *z, char why[CTL_ZONE_WHY])
{
	struct reading r = { .file = file, .z = z, .ttl = LDNS_DEFAULT_TTL, .why = why };
	bool ok = open_file(&r) && set_origin(&r) && read_records(&r);

	if (r.f)
		fclose(r.f);
	ldns_rdf_deep_free(r.origin);
	ldns_rdf_deep_free(r.former_owner);
	ldns_rdf_deep_free(r.unknown);
	if (!ok && r.open)
		ctl_zone_close(z);
	return ok;
}
