# shellcheck shell=bash
# What the commands in bin/ share. To be sourced, inside the radio lab.

[ "${RADIO_LAB-}" = 1 ] || { echo "${0##*/}: works inside the radio lab only: Tests/RadioLab/radio-lab -- …" >&2; exit 69; }
state=/run/radio-lab
mkdir -p "$state"

complain() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }
usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$1" >&2; exit 64; }

# await WHAT COMMAND…: repeats the command until it succeeds; complains after half a minute.
await() {
    local what=$1 end=$((SECONDS + 30))
    shift
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $end ] || complain "waited half a minute in vain: $what"
        sleep 0.05
    done
}

# detached COMMAND… &: becomes the command, without what else the caller has open. Foundation's Process takes a
# child for alive as long as any descendant holds a socket that it hands down.
detached() {
    local descriptor
    for descriptor in "/proc/$BASHPID/fd"/*; do
        descriptor=${descriptor##*/}
        [ "$descriptor" -le 2 ] || eval "exec $descriptor>&-"
    done
    exec "$@"
}

# await_line FILE PATTERN: prints the first line that matches, as soon as it is there; fails after half a minute.
await_line() {
    grep -a -m1 -E "$2" < <(timeout 30 tail -n +1 -f "$1" 2>/dev/null)
}

# call PATH METHOD ARGUMENT…: a call to bluetoothd; prints the answer's values, without quotes.
call() {
    dbus-send --system --print-reply=literal --dest=org.bluez "$@"
}
properties() { call "/org/bluez/$1" "org.freedesktop.DBus.Properties.$2" string:org.bluez.Adapter1 "${@:3}"; }

# adapter_get hci0 Address: the value alone, without its type.
adapter_get() { properties "$1" Get "string:$2" | awk '{ print $NF }'; }
adapter_set_powered() { properties "$1" Set string:Powered "variant:boolean:$2" >/dev/null; }
adapter_set_blocked() { echo "$2" | tee /sys/class/bluetooth/"$1"/rfkill*/soft >/dev/null; }
devices_of() {
    call / org.freedesktop.DBus.ObjectManager.GetManagedObjects | { grep -oE "/org/bluez/$1/dev(_[0-9A-F]{2}){6}" || true; } | sort -u
}

bus_has_bluez() {
    dbus-send --system --print-reply=literal --dest=org.freedesktop.DBus / \
        org.freedesktop.DBus.GetNameOwner string:org.bluez >/dev/null 2>&1
}

# --- Programs that take orders: orders.py, in a directory of their own with their number, their port and their log ---

lab_python() {
    local python=${RADIO_PYTHON:-$(dirname "${BASH_SOURCE[0]}")/../../.build/python/bin/python3}
    [ -x "$python" ] || complain "there is no Python at $python: run make python"
    printf '%s\n' "$python"
}

program_runs() { kill -0 "$(cat "$1/pid" 2>/dev/null)" 2>/dev/null && test -e "$1/port"; }
program_came_or_died() { ! kill -0 "$(cat "$1/pid")" 2>/dev/null || test -e "$1/port"; }

# start_program PLACE COMMAND…: returns when it takes orders.
start_program() {
    local place=$1 log=$RADIO_OUT/${1##*/}.log
    detached "${@:2}" >>"$log" 2>&1 </dev/null &
    echo $! >"$place/pid"
    await "${place##*/}" program_came_or_died "$place"
    test -e "$place/port" || complain "it did not come up: $(tail -n 3 "$log")"
}

# stop_program PLACE: fails where there is none.
stop_program() {
    local pid
    pid=$(cat "$1/pid" 2>/dev/null) || return 1
    kill "$pid" 2>/dev/null || true
    tail --pid="$pid" -s 0.05 -f /dev/null
    rm -r "$1"
}

# order_program PLACE WORD…: prints its answer.
order_program() {
    local line
    exec 3<>"/dev/tcp/127.0.0.1/$(cat "$1/port" 2>/dev/null || complain "there is no ${1##*/}")"
    printf '%s\n' "${*:2}" >&3
    while read -r line <&3; do
        case $line in
        ok) return ;;
        failed:*) complain "$line" ;;
        *) printf '%s\n' "$line" ;;
        esac
    done
    complain "no answer"
}

# bluetoothd drops an advertisement when its owner leaves the bus, which the answer to a call made after that shows.
stop_advertising() {
    local speaker=$state/advertise-$1 pid
    pid=$(cat "$speaker/pid" 2>/dev/null) || return 0
    kill "$pid" 2>/dev/null || true
    tail --pid="$pid" -s 0.05 -f /dev/null
    rm -r "$speaker"
}
