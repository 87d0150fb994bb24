# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# The kernel that `run` and `guest` boot: Debian's cloud image, fetched once into the cache. For a shell script that has die().

cache=${HYDNS_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/hydns}

# In the order of loading: veth, what VLAN devices need, a card that takes VLAN tags out of frames, what interfaces are ports of, or
# lie on, tc programs without tcx.
link_modules="veth llc stp garp mrp 8021q vmxnet3 bridge tls bonding dummy macvlan sch_ingress cls_bpf"
# What a guest's own disk and cards need.
guest_modules="virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci fuse virtiofs overlay failover
	net_failover virtio_net"
kept_modules="$link_modules $guest_modules"

all_modules_in() {
	for module in $kept_modules; do [ -e "$1/$module.ko" ] || return 1; done
}

# Prints the newest kernel of $series in $cache, fetching one if there is none; one after the other.
kernel_image() {
	dir=$cache/kernels/$series
	mkdir -p "$dir"
	exec 9>"$dir/lock"
	flock 9
	image=$(ls "$dir"/vmlinuz-"$series"* 2>/dev/null | sort -V | tail -n 1)
	if [ -z "$image" ] || ! all_modules_in "$dir"; then
		pattern="^linux-image-$(echo "$series" | sed 's/\./\\./g')\.[-0-9.]+(\+deb[0-9]+)?-cloud-amd64\$"
		[ -n "$(apt-cache search --names-only "$pattern")" ] || apt-get -qq update >&2 || true
		package=$(apt-cache search --names-only "$pattern" | cut -d' ' -f1 | sort -V | tail -n 1)
		[ -n "$package" ] || die "no linux-image-$series*-cloud-amd64 in the package lists: apt-get update"
		rm -rf "$dir"/fetch.* # of a run that was killed
		fetch=$(mktemp -d "$dir/fetch.XXXXXX")
		chmod 755 "$fetch" # apt's own user downloads into it
		(cd "$fetch" && apt-get -qq download "$package" >&2) || die "apt-get download $package failed"
		dpkg-deb --fsys-tarfile "$fetch"/*.deb | tar -C "$fetch" -xf - ./boot ./lib
		for module in $kept_modules; do
			find "$fetch/lib" -name "$module.ko" -exec mv {} "$dir" \;
			[ -e "$dir/$module.ko" ] || die "$package has no $module.ko"
		done
		mv "$fetch"/boot/vmlinuz-* "$dir"
		rm -rf "$fetch"
		image=$(ls "$dir"/vmlinuz-"$series"* | tail -n 1)
	fi
	echo "$image"
}
