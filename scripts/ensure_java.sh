#!/usr/bin/env bash
# Makes sure that Spark finds Java 17 or newer. Where it does not, and this is root on a Debian-like system,
# installs Debian's package; anywhere else says what to install and fails.
#
#   ensure_java.sh           look, and install if need be
#   ensure_java.sh --check   only look
#
# JAVA_HOME, where set, is the Java that Spark starts, so it alone counts.
set -euo pipefail

readonly oldest=17
readonly packages=(openjdk-17-jre-headless openjdk-21-jre-headless) # the first that the system offers

# The major version of a java program, or 0 if it does not run: "1.8.0_392" is 8, "17.0.15" is 17.
major_of() {
    local line first second
    line=$("$1" -version 2>&1 | grep -m 1 ' version "') || {
        echo 0
        return
    }
    line=${line#*\"}
    IFS='._-"+' read -r first second _ <<<"$line"
    [[ $first == 1 ]] && first=$second
    [[ $first =~ ^[0-9]+$ ]] && echo "$first" || echo 0
}

# The program that Spark would start; nothing if there is none.
java_program() {
    if [[ -n ${JAVA_HOME:-} ]]; then
        echo "$JAVA_HOME/bin/java"
    else
        command -v java || true
    fi
}

# Succeeds if Spark would find a Java that is new enough; else `problem` says what is wrong.
java_is_fine() {
    local java major
    java=$(java_program)
    if [[ -z $java ]]; then
        problem="java was not found"
        return 1
    fi
    major=$(major_of "$java")
    if ((major == 0)); then
        problem="$java does not run"
    elif ((major < oldest)); then
        problem="$java is Java $major, which is too old"
    else
        return 0
    fi
    return 1
}

refuse() {
    {
        echo "error: $problem; Spark needs Java $oldest or newer."
        if [[ -n ${JAVA_HOME:-} ]]; then
            echo "  JAVA_HOME is $JAVA_HOME: point it at Java $oldest or newer, or unset it. To install one:"
        fi
        echo "  Debian, Ubuntu:  sudo apt-get update && sudo apt-get install ${packages[0]}"
        echo "  Fedora, RHEL:    sudo dnf install java-$oldest-openjdk-headless"
        echo "  macOS:           brew install openjdk@$oldest"
        echo "  elsewhere:       any OpenJDK $oldest or newer, with 'java' on the PATH or JAVA_HOME set"
    } >&2
    exit 1
}

install_java() {
    local package
    export DEBIAN_FRONTEND=noninteractive
    echo "$problem; installing Java from the system's packages" >&2
    apt-get update -q >&2
    for package in "${packages[@]}"; do
        if apt-cache policy "$package" | grep -q 'Candidate: [^(]'; then
            apt-get install -y -q --no-install-recommends "$package" >&2
            return
        fi
    done
    problem="$problem, and this system offers none of ${packages[*]}"
    return 1
}

problem=
if java_is_fine; then
    exit 0
fi
# A JAVA_HOME that is wrong stays wrong whatever is installed.
if [[ ${1:-} == --check || -n ${JAVA_HOME:-} || $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
    refuse
fi
install_java || refuse
hash -r
java_is_fine || {
    problem="$problem, and comes before the one just installed: set JAVA_HOME or change the PATH"
    refuse
}
