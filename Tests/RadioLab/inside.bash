# shellcheck shell=bash
# What the commands in bin/ share: they give orders to server.py. To be sourced, inside the radio lab. A process costs a
# tenth of a second on the emulated processor, so what bash can do alone, it does.

[ "${RADIO_LAB-}" = 1 ] || { echo "${0##*/}: works inside the radio lab only: Tests/RadioLab/radio-lab -- …" >&2; exit 69; }
state=/run/radio-lab

complain() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }
usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$1" >&2; exit 64; }

# order PROGRAM WORD…: gives an order to the lab's server, to its peripheral or its central, and prints the answer.
order() {
    local place=$state/$1 port line IFS=$'\t'
    shift
    [ -e "$place/port" ] || complain "there is no ${place##*/}"
    read -r port <"$place/port"
    exec {server}<>"/dev/tcp/127.0.0.1/$port"
    printf '%s\n' "$*" >&"$server"
    while IFS= read -r line <&"$server"; do
        case $line in
        ok) exec {server}>&- && return ;;
        failed:*) complain "$line" ;;
        *) printf '%s\n' "$line" ;;
        esac
    done
    complain "no answer"
}
