#!/usr/bin/env bash
# Runs a command (hack/timed.sh STEP COMMAND...), and notes in the folder TRELLIS_TIMES, if there is one, how long that
# took. Without arguments it prints a table of these steps, and of the slowest test packages and tests of what was
# printed to *.log in the folder.
set -euo pipefail

if [ $# -gt 0 ]; then
  step=$1 start=$SECONDS status=0
  shift
  "$@" || status=$?
  [ "$status" -eq 0 ] || step+=" (failed)"
  [ -z "${TRELLIS_TIMES:-}" ] || printf '%7d  %s\n' "$((SECONDS - start))" "$step" >>"$TRELLIS_TIMES/steps"
  exit "$status"
fi

printf '\nseconds  step\n'
cat "$TRELLIS_TIMES/steps" 2>/dev/null || true
printf '\nseconds  the slowest test packages and tests\n'
{ cat "$TRELLIS_TIMES"/*.log 2>/dev/null || true; } | awk '
  $1 ~ /^(ok|FAIL)$/ && $3 ~ /^[0-9.]+s$/ { printf "%7d  %s\n", $3, $2 }
  $1 == "---" && $2 ~ /^(PASS|FAIL):$/ { printf "%7d  %s\n", substr($4, 2), $3 }' | sort -rn | sed 10q
