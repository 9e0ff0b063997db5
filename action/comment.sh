#!/usr/bin/env bash
# comment.sh FILE: puts FILE into this workflow's comment on the pull request, or makes that comment.
set -euo pipefail
mark="<!-- plimsoll: $GITHUB_WORKFLOW/$GITHUB_JOB/${MARK-} -->"
body=$(mktemp)
trap 'rm -f "$body"' EXIT
printf '%s\n' "$mark" >"$body"
head -c 60000 "$1" >>"$body" # a comment has at most 65,536 characters
comments="repos/$GITHUB_REPOSITORY/issues/$PULL_REQUEST/comments"
known=$(gh api --paginate "$comments" --jq ".[] | select(.body | startswith(\"$mark\")) | .id" | head -n 1)
if [ -n "$known" ]; then
  gh api --silent --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$known" --field "body=@$body"
else
  gh api --silent --method POST "$comments" --field "body=@$body"
fi
