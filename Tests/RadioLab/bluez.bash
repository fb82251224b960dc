# shellcheck shell=bash
# BlueZ in other versions than the machine's own: fetched with apt, unpacked with all that it needs, never installed.
# To be sourced; `prepare_bluez VERSION` prints the directory of the tree, and nothing for the version that is installed.

# Which suite of Debian has which version.
declare -A bluez_suites=([5.55]=bullseye [5.66]=bookworm [5.82]=trixie [5.87]=forky)

installed_bluez() { /usr/libexec/bluetooth/bluetoothd --version; }
known_bluez() { printf '%s\n' "${!bluez_suites[@]}" | sort -V | paste -sd ' '; }
# Those that the library is for. 5.55 is there to be looked at: its bluetoothd ends itself in some of the tests.
supported_bluez() { echo 5.66 5.82 5.87; }

# scratch_apt SUITE DIRECTORY [ARCHITECTURE]: an apt that knows that suite alone and thinks that no package is installed,
# so that it fetches libc6 and all the rest too; for this machine's architecture if none is given. It takes the mirror
# that the machine's own sources name, and leaves those alone.
scratch_apt() {
    local suite=$1 directory=$2 architecture=${3:-$(dpkg --print-architecture)} mirror
    mkdir -p "$directory"/{lists/partial,archives/partial,sources,preferences}
    : >"$directory/log"
    # shellcheck disable=SC2016  # apt's own variable
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Component: main' |
        grep -v security | head -n 1)
    if [ -z "$mirror" ]; then
        say "apt knows no mirror of Debian's main archive: run apt-get update"
        return 1
    fi
    printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n' \
        "$mirror" "$suite" /usr/share/keyrings/debian-archive-keyring.gpg >"$directory/sources/suite.sources"
    : >"$directory/status"
    cat >"$directory/apt.conf" <<END
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$directory/sources";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "$directory/preferences";
Dir::State::lists "$directory/lists";
Dir::State::status "$directory/status";
Dir::Cache "$directory";
Dir::Cache::archives "$directory/archives";
APT::Architecture "$architecture";
APT::Architectures "$architecture";
APT::Install-Recommends "0";
APT::Sandbox::User "root";
Debug::NoLocking "1";
END
    APT_CONFIG=$directory/apt.conf apt-get update -qq >"$directory/log" 2>&1
}

prepare_bluez() {
    local version=$1 cache=${XDG_CACHE_HOME:-$HOME/.cache}/bluecap/radio-lab suite tree work package
    [ "$version" != "$(installed_bluez)" ] || return 0
    suite=${bluez_suites[$version]-}
    if [ -z "$suite" ]; then
        say "BlueZ $version is not among the versions the lab knows: $(known_bluez)"
        return 1
    fi
    tree=$cache/bluez-$version
    mkdir -p "$cache"
    exec 8>"$cache/bluez.lock"
    flock 8
    if [ ! -d "$tree" ]; then
        say "fetching BlueZ $version from Debian's $suite (once; about 25 MB)"
        work=$(mktemp -d "$cache/.building.XXXXXX")
        # shellcheck disable=SC2064  # the directory of now
        trap "rm -rf '$work'" EXIT
        if ! { scratch_apt "$suite" "$work/apt" && APT_CONFIG=$work/apt/apt.conf \
            apt-get install --yes --download-only bluez bluez-test-tools >>"$work/apt/log" 2>&1; }; then
            tail -n 5 "$work/apt/log" | sed 's/^/    /' >&2
            say "apt could not fetch bluez and bluez-test-tools from $suite"
            return 1
        fi
        if ! compgen -G "$work/apt/archives/bluez_$version-*.deb" >/dev/null; then
            say "$suite has another BlueZ than $version now: $(cd "$work/apt/archives" && echo bluez_*.deb)"
            return 1
        fi
        for package in "$work/apt/archives"/*.deb; do dpkg -x "$package" "$work/tree"; done
        mv "$work/tree" "$tree"
        rm -rf "$work"
    fi
    exec 8>&-
    printf '%s\n' "$tree"
}
