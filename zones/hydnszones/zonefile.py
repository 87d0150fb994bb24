# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Zones of the model as master files (RFC 1035 section 5)."""

from . import model

SERIAL = 1
ROOT_SERVER = "ns.root-servers.net"      # the name servers of root and TLDs, all on the authoritative server's addresses
TLD_SERVER = "ns.tld-servers.net"


def servers(zone):
    """Names of the zone's name servers, without final dots."""
    if zone.name == "":
        return [ROOT_SERVER]
    if "." not in zone.name:
        return [TLD_SERVER]
    return [f"ns1.{zone.hoster}", f"ns2.{zone.hoster}"]


def address_type(address):
    return "AAAA" if ":" in address else "A"


def _below(name, zone_name):
    return zone_name == "" or name == zone_name or name.endswith("." + zone_name)


class Writer:
    """addresses: those on which the authoritative server listens; every name server has all of them."""

    def __init__(self, tree, addresses):
        self.tree = tree
        self.addresses = addresses

    def _line(self, owner, ttl, rrtype, rdata):
        return f"{owner}.\t{ttl}\tIN\t{rrtype}\t{rdata}\n"

    def _server_addresses(self, server):
        return [self._line(server, model.INFRASTRUCTURE_TTL, address_type(a), a) for a in self.addresses]

    def _head(self, zone):
        origin = servers(zone)[0]
        lines = [self._line(zone.name, 3600, "SOA",
                            f"{origin}. hostmaster.{zone.name}{'.' if zone.name else ''} "
                            f"{SERIAL} 7200 3600 1209600 {zone.negative_ttl}")]
        lines += [self._line(zone.name, model.INFRASTRUCTURE_TTL, "NS", f"{s}.") for s in servers(zone)]
        return lines

    def _delegation(self, zone, child, ds):
        """The child's NS records, and the name servers' addresses where the resolver needs glue."""
        lines, glue = [], []
        for server in servers(self.tree.zones[child]):
            lines.append(self._line(child, model.INFRASTRUCTURE_TTL, "NS", f"{server}."))
            if _below(server, child) or zone.name == "":
                glue.append(server)
        return lines + [self._line(child, 3600, "DS", text) for text in ds.get(child, ())], glue

    def text(self, zone, ds):
        """The text of the zone, owner names in the order of the model. ds: {child: DS rdata}."""
        lines = self._head(zone)
        with_address = set()
        if zone.name == "":
            with_address.add(ROOT_SERVER)
        elif zone.name == "net":
            with_address.update((ROOT_SERVER, TLD_SERVER))
        elif zone.name == zone.hoster:
            with_address.update(servers(zone))
        for child in zone.delegations:
            delegation, glue = self._delegation(zone, child, ds)
            lines += delegation
            with_address.update(glue)
        for server in sorted(with_address):
            lines += self._server_addresses(server)
        for (owner, rrtype), (ttl, rdata) in zone.rrsets.items():
            lines += [self._line(owner, ttl, rrtype, item) for item in rdata]
        return "".join(lines)

    def root_hints(self):
        lines = [self._line("", model.INFRASTRUCTURE_TTL, "NS", f"{ROOT_SERVER}.")]
        return "".join(lines + self._server_addresses(ROOT_SERVER))


def zone_file(name):
    return f"{name or 'root'}.zone"


def nsd_fragment(names):
    """NSD's zone: clauses, with paths relative to the output directory, which is its zonesdir."""
    return "".join(f'zone:\n\tname: "{name or "."}"\n\tzonefile: "zones/{zone_file(name)}"\n' for name in names)
