# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# The kernel that `run` and `guest` boot: Debian's cloud image, fetched once into the cache. For a shell script that has die().

cache=${HYDNS_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/hydns}

# In the order of loading: veth, what VLAN devices need, a card that takes VLAN tags out of frames, what interfaces are ports of, or
# lie on, tc programs without tcx.
link_modules="veth llc stp garp mrp 8021q vmxnet3 bridge tls bonding dummy macvlan sch_ingress cls_bpf"
# What a guest's own disk and cards need.
guest_modules="virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci fuse virtiofs overlay failover
	net_failover virtio_net"
# The same of an arm64, without those that they need.
arm64_modules="virtio_pci virtiofs overlay virtio_net"
kept_modules="$link_modules $guest_modules"

# A module that is built into the kernel has an empty file.
all_modules_in() {
	for module in $kept_modules; do [ -e "$1/$module.ko" ] || return 1; done
}

# Copies these modules, those of the kernel $image that are none of its own parts, into a folder, and lists them there in `modules`.
copy_modules() {
	to=$1
	shift
	for module in "$@"; do
		[ -s "$(dirname "$image")/$module.ko" ] || continue
		cp "$(dirname "$image")/$module.ko" "$to"
		echo "$module"
	done >"$to/modules"
}

# Downloads the package into the folder.
fetch_package() {
	pattern="^linux-image-$(echo "$series" | sed 's/\./\\./g')\.[-0-9.]+(\+deb[0-9]+)?-cloud-amd64\$"
	[ -n "$(apt-cache search --names-only "$pattern")" ] || apt-get -qq update >&2 || true
	package=$(apt-cache search --names-only "$pattern" | cut -d' ' -f1 | sort -V | tail -n 1)
	[ -n "$package" ] || die "no linux-image-$series*-cloud-amd64 in the package lists: apt-get update"
	(cd "$1" && apt-get -qq download "$package" >&2) || die "apt-get download $package failed"
}

# Moves a module from an unpacked package into $dir.
take_module() {
	file=$(find "$fetch/lib" "$fetch/usr/lib" -name "$1.ko*" 2>/dev/null | head -n 1)
	case $file in
	*.xz) xz -dc "$file" >"$dir/$1.ko" ;;
	*.ko) mv "$file" "$dir" ;;
	*) grep -qrs "/$1\.ko" --include=modules.builtin "$fetch" && : >"$dir/$1.ko" || die "the package has no $1.ko" ;;
	esac
}

# Prints the newest kernel of $series in $cache, fetching one if there is none; one after the other.
kernel_image() {
	dir=$cache/kernels/$series
	mkdir -p "$dir"
	exec 9>"$dir/lock"
	flock 9
	image=$(ls "$dir"/vmlinuz-"$series"* 2>/dev/null | sort -V | tail -n 1)
	if [ -z "$image" ] || ! all_modules_in "$dir"; then
		rm -rf "$dir"/fetch.* # of a run that was killed
		fetch=$(mktemp -d "$dir/fetch.XXXXXX")
		chmod 755 "$fetch" # apt's own user downloads into it
		fetch_package "$fetch"
		dpkg-deb -x "$fetch"/*.deb "$fetch"
		for module in $kept_modules; do take_module "$module"; done
		mv "$fetch"/boot/vmlinuz-* "$dir"
		rm -rf "$fetch"
		image=$(ls "$dir"/vmlinuz-"$series"* | tail -n 1)
	fi
	echo "$image"
}
