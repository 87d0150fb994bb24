/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Numbers of the DNS that plugins, hydnsd and the program read in messages, in host byte order. */
#ifndef HYDNS_DNS_H
#define HYDNS_DNS_H

/* Header flags: RFC 1035 section 4.1.1; AD and CD: RFC 4035 section 3. */
#define HYDNS_FLAG_QR          0x8000
#define HYDNS_FLAGS_OPCODE     0x7800
#define HYDNS_FLAG_AA          0x0400
#define HYDNS_FLAG_TC          0x0200
#define HYDNS_FLAG_RD          0x0100
#define HYDNS_FLAG_Z           0x0040
#define HYDNS_FLAG_AD          0x0020
#define HYDNS_FLAG_CD          0x0010
#define HYDNS_FLAGS_RCODE      0x000f
#define HYDNS_RCODE_NOERROR    0
#define HYDNS_RCODE_SERVFAIL   2
#define HYDNS_RCODE_NXDOMAIN   3
#define HYDNS_RCODE_REFUSED    5

#define HYDNS_CLASS_IN         1
#define HYDNS_TYPE_NONE        0
#define HYDNS_TYPE_A           1
#define HYDNS_TYPE_NS          2
#define HYDNS_TYPE_CNAME       5
#define HYDNS_TYPE_SOA         6
#define HYDNS_TYPE_NULL        10
#define HYDNS_TYPE_SIG         24
#define HYDNS_TYPE_KEY         25
#define HYDNS_TYPE_AAAA        28
#define HYDNS_TYPE_OPT         41
#define HYDNS_TYPE_DS          43
#define HYDNS_TYPE_RRSIG       46
#define HYDNS_TYPE_NSEC        47
#define HYDNS_TYPE_DNSKEY      48
#define HYDNS_TYPE_NSEC3       50
#define HYDNS_TYPE_NXNAME      128          /* RFC 9824 section 4: no question and no record is of it */
#define HYDNS_TYPE_META_FIRST  128          /* RFC 6895 section 3.1: 128..255 are QTYPEs and Meta-TYPEs */
#define HYDNS_TYPE_META_LAST   255
#define HYDNS_TYPE_ANY         255
#define HYDNS_TTL_MAX          0x7fffffffU  /* RFC 2181 section 8 */

#define HYDNS_EDNS_DO          0x8000       /* in the lower half of the OPT record's TTL: RFC 6891 section 6.1.3 */
#define HYDNS_OPTION_NSID      3            /* RFC 5001 */
#define HYDNS_OPTION_SUBNET    8            /* RFC 7871 */
#define HYDNS_OPTION_EXPIRE    9            /* RFC 7314 */
#define HYDNS_OPTION_COOKIE    10           /* RFC 7873 */
#define HYDNS_OPTION_ERROR     15           /* extended error: RFC 8914 */
#define HYDNS_ERROR_STALE_ANSWER 3          /* one of them: section 4.4 */

#endif
