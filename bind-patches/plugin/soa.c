/* SPDX-License-Identifier: BSD-3-Clause */
/* The SOA of a version of a zone, as denials show it. */
#include <string.h>
#include <dns/db.h>
#include <dns/fixedname.h>
#include <dns/name.h>
#include <dns/rdata.h>
#include <dns/rdataset.h>
#include <isc/util.h>
#include "compat.h"
#include "plugin.h"

/* The only record of the set. False: there is another, or none. */
static bool only_record(dns_rdataset_t *set, isc_region_t *out)
{
	dns_rdata_t rdata = DNS_RDATA_INIT;

	if (!dns_rdataset_isassociated(set) || dns_rdataset_count(set) != 1 || dns_rdataset_first(set) != ISC_R_SUCCESS)
		return false;
	dns_rdataset_current(set, &rdata);
	dns_rdata_toregion(&rdata, out);
	return true;
}

/* named writes the owner with the letters that it was stored with, where it does not compress it. */
static void show_owner(dns_db_t *db, dns_rdataset_t *set, struct hydns_zone_soa *out)
{
	dns_fixedname_t fixed;
	dns_name_t *name = dns_fixedname_initname(&fixed);
	isc_region_t r;

	dns_name_copy(dns_db_origin(db), name);
	dns_rdataset_getownercase(set, name);
	dns_name_toregion(name, &r);
	hydns_zone_soa_shows(out, r.base, r.length);
	hydns_zone_soa_shows(out, &set->ttl, sizeof(set->ttl));
}

/* The minimum is also the TTL of denials, if that is less than the SOA's. */
static bool take_soa(dns_db_t *db, dns_rdataset_t *set, struct hydns_zone_soa *out)
{
	isc_region_t r;

	if (!only_record(set, &r) || r.length < sizeof(out->numbers))
		return false;
	show_owner(db, set, out);
	r.length -= sizeof(out->numbers);
	hydns_zone_soa_shows(out, r.base, r.length);
	memcpy(out->numbers, r.base + r.length, sizeof(out->numbers));
	hydns_zone_soa_shows(out, r.base + r.length + sizeof(out->numbers) - 4, 4);
	return true;
}

/* Where there is none, or another than a present SOA has room for, there is none. */
static void take_signature(dns_db_t *db, dns_rdataset_t *set, struct hydns_zone_soa *out)
{
	size_t before;                 /* octets before the signature: the signer's name is the last of them */
	isc_region_t r, signer;
	dns_name_t name;

	if (!only_record(set, &r) || r.length < sizeof(out->fixed))
		return;
	signer = (isc_region_t){ .base = r.base + sizeof(out->fixed), .length = r.length - (unsigned int)sizeof(out->fixed) };
	dns_name_init(&name, NULL);
	dns_name_fromregion(&name, &signer);
	before = sizeof(out->fixed) + name.length;
	if (r.length <= before || r.length - before > sizeof(out->signature))
		return;
	show_owner(db, set, out);
	hydns_zone_soa_shows(out, name.ndata, name.length);
	memcpy(out->fixed, r.base, sizeof(out->fixed));
	out->signature_len = (uint16_t)(r.length - before);
	memcpy(out->signature, r.base + before, out->signature_len);
}

bool hydns_soa_of(dns_db_t *db, dns_dbversion_t *version, struct hydns_zone_soa *out)
{
	dns_rdataset_t soa, signature;
	dns_dbnode_t *node = NULL;

	*out = (struct hydns_zone_soa){ 0 };
	if (dns_db_getoriginnode(db, &node) != ISC_R_SUCCESS)
		return false;
	dns_rdataset_init(&soa);
	dns_rdataset_init(&signature);
	if (dns_db_findrdataset(db, node, version, dns_rdatatype_soa, 0, 0, &soa, &signature) == ISC_R_SUCCESS && take_soa(db, &soa, out)) {
		take_signature(db, &signature, out);
		hydns_zone_soa_shows(out, &out->signature_len, sizeof(out->signature_len));
		out->of = db;
	}
	if (dns_rdataset_isassociated(&soa))
		dns_rdataset_disassociate(&soa);
	if (dns_rdataset_isassociated(&signature))
		dns_rdataset_disassociate(&signature);
	dns_db_detachnode(db, &node);
	return out->of != NULL;
}
