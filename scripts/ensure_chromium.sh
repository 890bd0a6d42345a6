#!/usr/bin/env bash
# Makes sure that there is a Chromium for the tests of the audit's page. Where there is none, and this is root on a
# Debian-like system, installs Debian's package; anywhere else says what to install and fails.
#
#   ensure_chromium.sh           look, and install if need be
#   ensure_chromium.sh --check   only look
#
# CHROMIUM, where set, is the program that the tests start.
set -euo pipefail

# Succeeds if the tests would find a browser.
chromium_is_there() {
    local name
    if [[ -n ${CHROMIUM:-} ]]; then
        [[ -x $CHROMIUM ]] || command -v "$CHROMIUM" >/dev/null
        return
    fi
    for name in chromium chromium-browser google-chrome; do
        if command -v "$name" >/dev/null; then
            return 0
        fi
    done
    return 1
}

refuse() {
    {
        echo "error: no Chromium was found; the tests of the audit's page need one."
        if [[ -n ${CHROMIUM:-} ]]; then
            echo "  CHROMIUM is $CHROMIUM: point it at a program, or unset it. To install one:"
        fi
        echo "  Debian, Ubuntu:  sudo apt-get update && sudo apt-get install chromium"
        echo "  Fedora, RHEL:    sudo dnf install chromium"
        echo "  elsewhere:       any Chromium or Chrome, with CHROMIUM set to its program"
    } >&2
    exit 1
}

if chromium_is_there; then
    exit 0
fi
# A CHROMIUM that is wrong stays wrong whatever is installed.
if [[ ${1:-} == --check || -n ${CHROMIUM:-} || $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
    refuse
fi
export DEBIAN_FRONTEND=noninteractive
echo "no Chromium was found; installing it from the system's packages" >&2
apt-get update -q >&2
apt-get install -y -q --no-install-recommends chromium >&2 || refuse
hash -r
chromium_is_there || refuse
