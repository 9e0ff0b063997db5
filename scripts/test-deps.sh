#!/usr/bin/env bash
# Installs what the tests need and the machine lacks: nginx, iproute2, Chromium,
# OpenSSH (Debian packages, when we may), versitygw (a Go module), Tahoe-LAFS, Deluge and
# DuckDB (Python environments of their own) and the page's development packages.
# Anything it cannot install it names; the tests that need it then skip with
# that reason, or fail when PLIMSOLL_REQUIRE lists it.
set -euo pipefail
cd "$(dirname "$0")/.."

missing=()
command -v nginx >/dev/null || [ -x /usr/sbin/nginx ] || missing+=(nginx-light)
command -v ip >/dev/null || [ -x /usr/sbin/ip ] || missing+=(iproute2)
command -v chromium >/dev/null || missing+=(chromium)
command -v iperf3 >/dev/null || missing+=(iperf3)
command -v wrk >/dev/null || missing+=(wrk)
command -v sshd >/dev/null || [ -x /usr/sbin/sshd ] || missing+=(openssh-server)
command -v scp >/dev/null || missing+=(openssh-client)
command -v python3 >/dev/null || missing+=(python3 python3-venv)
if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing ${missing[*]}"
    apt-get update -q >/dev/null
    # RUNLEVEL=1: packages with a service (sshd) do not start it.
    RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null
  else
    echo "not installed, and not ours to install here: ${missing[*]} (as root on Debian: apt-get install ${missing[*]})"
  fi
fi

# The S3 gateway that plays the storage server; pinned, built into .tools/bin.
want_versitygw=v1.8.0
if ! go version -m .tools/bin/versitygw 2>/dev/null | grep -q "versitygw.*$want_versitygw"; then
  echo "building versitygw $want_versitygw"
  GOBIN="$PWD/.tools/bin" CGO_ENABLED=0 go install "github.com/versity/versitygw/cmd/versitygw@$want_versitygw"
fi

# Tahoe-LAFS, and Deluge, the way a user gets them; and DuckDB, which reads our Parquet files.
lock=report/export/testdata/duckdb.txt
if command -v python3 >/dev/null; then
  go run ./cmd/plimsoll systems install tahoe deluge
  if ! cmp -s "$lock" .tools/duckdb/lock.txt; then
    python3 -m venv --clear .tools/duckdb
    .tools/duckdb/bin/python -m pip install -q --disable-pip-version-check --no-input \
      --require-hashes --no-deps --only-binary :all: -r "$lock"
    cp "$lock" .tools/duckdb/lock.txt
  fi
else
  echo "python3 is not installed: the tests of tahoe, deluge and Parquet skip"
fi

if command -v npm >/dev/null; then
  if [ ! -e web/node_modules/.package-lock.json ] || [ web/package-lock.json -nt web/node_modules/.package-lock.json ]; then
    (cd web && npm ci --no-audit --no-fund)
  fi
else
  echo "npm is not installed: the page's own tests skip"
fi
