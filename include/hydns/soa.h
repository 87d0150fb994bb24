/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The present SOA of each preloaded zone: the part of its SOA that versions change, with the signature. Every denial shows it, and most
 * versions change no more of a denial, so templates (names.h) have a gap there, and the program fills it from here. The plugin writes it
 * and the program reads it, without a lock.
 *
 * Before a version is served the number is made odd, and a grace period passes; then the version's SOA is written, and the number is made
 * even. Whatever else answers show of the SOA stands in the templates: its names, TTLs, the length of the signature. With these the id
 * changes, which a template has, too; so it never shows the SOA of another zone.
 */
#ifndef HYDNS_SOA_H
#define HYDNS_SOA_H

#include "hydns/common.h"

#define HYDNS_SOA_NUMBERS    20        /* octets from the serial to the minimum: RFC 1035 section 3.3.13 */
#define HYDNS_RRSIG_FIXED    18        /* octets of an RRSIG's RDATA before the signer's name: RFC 4034 section 3.1 */
#define HYDNS_SIGNATURE_MOST 256       /* of RSA with 2,048 bits. Where the SOA's is longer, denials with DO have no gap */

struct hydns_soa_now {
	__u64 id;            /* 0: there is none */
	__u32 number;        /* odd: nobody may rely on it. Advanced when it changes */
	__u16 signature_len; /* 0: none, or several, or one that has no room: denials with DO do not show it */
	__u16 numbers_sum;   /* of what follows, each as if it began at an even offset: as answer_sum in rule.h */
	__u16 fixed_sum;
	__u16 signature_sum;
	__u8  numbers[HYDNS_SOA_NUMBERS];
	__u8  fixed[HYDNS_RRSIG_FIXED]; /* of the RRSIG that covers the SOA, its only one */
	__u8  signature[HYDNS_SIGNATURE_MOST];
	__u8  reserved[70];
};

/* It takes so many elements of the map that the set of names is in, behind the leaves. Those of ECDSA P-256 and
 * Ed25519 end in the first. */
#define HYDNS_SOA_ELEMENT    128
#define HYDNS_SOA_ELEMENTS   3
#define HYDNS_SOA_FIRST      (HYDNS_SOA_ELEMENT - __builtin_offsetof(struct hydns_soa_now, signature)) /* octets of the signature there */

HYDNS_STATIC_ASSERT(sizeof(struct hydns_soa_now) == HYDNS_SOA_ELEMENTS * HYDNS_SOA_ELEMENT, "whole elements");

#endif
