#!/usr/bin/env bash
# Runs an experiment, holds it to gates, and writes the table for the comment and the job's
# summary. action.yml says what the variables are. Ends with plimsoll's exit status.
set -euo pipefail

# options NAME LINES: the lines that are not empty, each after NAME.
options() {
  local line
  while IFS= read -r line; do
    if [ -n "${line//[[:space:]]/}" ]; then printf '%s\0%s\0' "$1" "$line"; fi
  done <<<"$2"
}
mapfile -d '' sets < <(options --set "${SETS-}")
mapfile -d '' gates < <(options --gate "${GATES-}")

if [ -e "$OUT/run.db" ]; then
  echo "$OUT holds an earlier run: name another directory, or remove it" >&2
  exit 2
fi
status=0
plimsoll run "$EXPERIMENT" --out "$OUT" "${sets[@]}" || status=$?
echo "status=$status" >>"$GITHUB_OUTPUT"
[ -e "$OUT/run.db" ] || exit "$status" # nothing was started
echo "directory=$OUT" >>"$GITHUB_OUTPUT"

held=0
if [ -n "${BASE-}" ]; then
  plimsoll compare "$BASE" "$OUT" "${gates[@]}" --format markdown >"$OUT/comment.md" || held=$?
else
  {
    printf '### %s\n\n```text\n' "$EXPERIMENT"
    plimsoll report "$OUT" "${gates[@]}" || held=$?
    printf '```\n'
  } >"$OUT/comment.md"
fi
cat "$OUT/comment.md" >>"$GITHUB_STEP_SUMMARY"
if [ "$status" = 0 ]; then status=$held; fi
echo "status=$status" >>"$GITHUB_OUTPUT" # the last one counts
exit "$status"
