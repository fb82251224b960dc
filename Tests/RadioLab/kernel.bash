# shellcheck shell=bash
# The kernel of the radio lab and its initial RAM disk: fetched and built once, kept in the cache.
# To be sourced; `prepare_boot_files LAB [KERNEL]` prints the directory that holds vmlinuz and initrd.gz.

# Kernels of Debian 12 in which the lab was seen to work, the preferred one first. -50 is the one of the
# distribution's last point release, so it stays in the archive. From -56 (6.1.192) on, a link that ends
# after encryption corrupts a list in hci_chan_del; on 6.12 discovery between virtual controllers stalls.
sound_kernels=(linux-image-6.1.0-50-amd64 linux-image-6.1.0-47-amd64)

# In the order in which they must be loaded. drbg and ctr come before bluetooth, which brings ecdh_generic:
# without a random generator LE Secure Connections has no keys, and pairing fails.
modules=(
    virtio_pci virtio_console 9p 9pnet_virtio overlay
    sha512_generic sha256_generic hmac ctr drbg aes_generic cmac ecb ccm algif_hash algif_skcipher
    uhid hci_vhci
)

# Prints the kernel package to use: the one asked for, or the first sound one that apt can give us.
choose_kernel() {
    local wanted=$1 candidate
    if [ -n "$wanted" ]; then
        printf '%s\n' "$wanted"
        return
    fi
    for candidate in "${sound_kernels[@]}"; do
        if [ -e "$cache/$candidate/vmlinuz" ] || apt-cache show "$candidate" >/dev/null 2>&1; then
            [ "$candidate" = "${sound_kernels[0]}" ] || say "notice: ${sound_kernels[0]} is not to be had; using $candidate"
            printf '%s\n' "$candidate"
            return
        fi
    done
    say "apt knows none of the kernels the lab was tried with: ${sound_kernels[*]}."
    say "Refresh its lists (apt-get update, with Debian 12's main archive among the sources), or name another"
    say "kernel with --kernel PACKAGE or --kernel FILE.deb; what apt has now:"
    apt-cache search --names-only '^linux-image-6\.1\.0-[0-9]+-amd64$' | sed 's/^/    /' >&2
    return 1
}

# Unpacks a kernel package into a directory, without installing it.
unpack_kernel() {
    local kernel=$1 directory=$2
    if [ -e "$kernel" ]; then
        dpkg -x "$kernel" "$directory"
        return
    fi
    say "fetching $kernel (once; about 70 MB)"
    if ! (cd "$directory" && apt-get download "$kernel" >apt.log 2>&1); then
        sed 's/^/    /' "$directory/apt.log" >&2
        say "apt-get could not download $kernel: try apt-get update, or another kernel with --kernel"
        return 1
    fi
    dpkg -x "$directory/$kernel"_*.deb "$directory"
    rm "$directory/$kernel"_*.deb "$directory/apt.log"
}

# Packs busybox, the modules and the lab's init into an initial RAM disk.
build_initrd() {
    local lab=$1 directory=$2 version ram module file number=10
    version=$(basename "$directory"/lib/modules/*)
    depmod -b "$directory" "$version"
    ram=$directory/ram
    mkdir -p "$ram"/{bin,modules,proc,sys,dev,lower,upper,root}
    cp "$(command -v busybox)" "$ram/bin/busybox"
    cp "$lab/init" "$ram/init"
    chmod +x "$ram/init"
    # Each with what it depends on, numbered in the order of loading.
    for module in "${modules[@]}"; do
        # A kernel may have one of them built in.
        modprobe -d "$directory" -S "$version" --show-depends "$module" 2>/dev/null | awk '$1 == "insmod" { print $2 }'
    done | awk '!seen[$0]++' | while read -r file; do
        number=$((number + 1))
        case $file in
        *.xz) xz -dc "$file" >"$ram/modules/$number-$(basename "$file" .xz)" ;;
        *) cp "$file" "$ram/modules/$number-$(basename "$file")" ;;
        esac
    done
    (cd "$ram" && find . | cpio --quiet -o -H newc | gzip -1) >"$directory/initrd.gz"
    rm -r "$ram"
}

prepare_boot_files() {
    local lab=$1 kernel cache=${XDG_CACHE_HOME:-$HOME/.cache}/bluecap/radio-lab name mark work
    mkdir -p "$cache"
    kernel=$(choose_kernel "$2") || return 1
    name=$(basename "$kernel" .deb)
    # Built from these two files: another text of theirs, another RAM disk.
    mark=$(cat "$lab/kernel.bash" "$lab/init" | sha256sum | cut -c1-12)
    exec 9>"$cache/lock"
    flock 9
    if [ ! -e "$cache/$name/initrd-$mark" ]; then
        work=$(mktemp -d "$cache/.building.XXXXXX")
        # shellcheck disable=SC2064  # the directory of now
        trap "rm -rf '$work'" EXIT
        if [ -e "$cache/$name/vmlinuz" ]; then
            cp -R "$cache/$name/." "$work/"
            rm -f "$work"/initrd-*
        else
            unpack_kernel "$kernel" "$work" || return 1
            # From 6.12 on the modules are below usr; from 7 on the kernel is among them.
            [ -e "$work/lib" ] || ln -s usr/lib "$work/lib"
            mv "$work"/boot/vmlinuz-* "$work/vmlinuz" 2>/dev/null || cp "$work"/lib/modules/*/vmlinuz "$work/vmlinuz"
        fi
        build_initrd "$lab" "$work" || return 1
        touch "$work/initrd-$mark"
        rm -rf "${cache:?}/$name"
        mv "$work" "$cache/$name"
    fi
    exec 9>&-
    printf '%s\n' "$cache/$name"
}
