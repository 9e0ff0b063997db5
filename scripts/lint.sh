#!/usr/bin/env bash
# gofmt, go vet, staticcheck, tsc, and the committed bundle against a fresh build.
set -euo pipefail
cd "$(dirname "$0")/.."

unformatted=$(git ls-files '*.go' | xargs gofmt -l)
if [ -n "$unformatted" ]; then
  echo "gofmt wants to change:"; echo "$unformatted"; exit 1
fi
go vet ./...
go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
if command -v shellcheck >/dev/null; then shellcheck scripts/*.sh action/*.sh .ci/run; fi
# `go install` reads no go.work, and refuses a go.mod that replaces modules.
! grep -q "^replace" go.mod
GOWORK=off go build -tags nowalletd -o /dev/null ./cmd/plimsoll
cd web
[ -d node_modules ] || npm ci --no-audit --no-fund
npx tsc --noEmit
npm run check
