# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A zone of an authoritative named under test, with every kind of answer; and dynamic updates of it."""

import dns.update

from .authoritative import send_update

ZONE = "auth.test"

RECORDS = """\
@ NS ns
@ NS ns2
@ MX 10 mail
ns A 192.0.2.1
ns2 A 192.0.2.2
www A 192.0.2.10
www AAAA 2001:db8::10
www TXT "www"
zero 0 A 192.0.2.11
many A 192.0.2.20
many A 192.0.2.21
many A 192.0.2.22
mail A 192.0.2.30
dual A 192.0.2.31
dual AAAA 2001:db8::31
mx MX 10 mail
mx6 MX 10 dual
srv SRV 0 0 53 mail
alias CNAME www
chain CNAME alias
out CNAME www.other.test.
lost CNAME nowhere
*.wild A 192.0.2.40
deep.ent.below A 192.0.2.41
below-d DNAME below
child NS ns.child
ns.child A 192.0.2.50
child6 NS ns.child6
ns.child6 A 192.0.2.51
ns.child6 AAAA 2001:db8::51
away NS ns.other.test.
"""


def text(records, serial=1, origin=ZONE, ttl=300):
    """A zone file. The SOA's minimum differs from the TTL, so that a test sees which one a negative answer has."""
    return f"$ORIGIN {origin}.\n$TTL {ttl}\n@ SOA ns hostmaster {serial} 3600 900 604800 60\n{records}"


def update(named, zone, *changes):
    """Sends one dynamic update; changes are (method of dns.update.Update, its arguments). Returns when named has acknowledged
    it."""
    message = dns.update.Update(zone)
    for method, *arguments in changes:
        getattr(message, method)(*arguments)
    send_update(named, message)
