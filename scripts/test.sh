#!/usr/bin/env bash
# go test with these flags (-flag=value) and packages. At most three tests that failed are
# run once more, one package at a time, and named: they measure a machine that others may
# disturb. A test that fails twice fails.
set -uo pipefail
cd "$(dirname "$0")/.."
log=$(mktemp) && trap 'rm -f "$log"' EXIT
flags=() && for a; do [[ $a != -* ]] || flags+=("$a"); done

go test -timeout=20m "$@" 2>&1 | tee "$log" && exit 0
tests=$(sed -n 's/^--- FAIL: \(Test[A-Za-z0-9_]*\) .*/\1/p' "$log" | sort -u)
mapfile -t packages < <(awk '$1 == "FAIL" && NF >= 3 { print $2 }' "$log" | sort -u)
# A package that does not build, a data race, a panic or a timeout is no disturbance.
if [ -z "$tests" ] || [ "$(wc -w <<<"$tests")" -gt 3 ] || grep -qE '^(panic:|fatal error:|WARNING: DATA RACE|exit status|FAIL.*\[)' "$log"; then
  exit 1
fi
printf '\n== failed, and run once more: %s\n' "$(tr '\n' ' ' <<<"$tests")"
go test -timeout=20m "${flags[@]}" -count=1 -p=1 -run="^($(paste -sd'|' <<<"$tests"))\$" "${packages[@]}"
