#!/usr/bin/env bash
# Runs a command (hack/timed.sh STEP COMMAND...), and notes in the folder TRELLIS_TIMES, if there is one, how long that
# took. Without arguments it prints a table of these steps, of the slowest test packages and tests of what was printed
# to *.log in the folder, and what tests that failed said.
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

# What a test says comes after a line that names it. Diagnoses of the landscape are long, and stand above.
{ cat "$TRELLIS_TIMES"/*.log 2>/dev/null || true; } | awk '
  $1 == "===" || $1 == "---" { test = $3; told = 0 }
  $1 == "---" && $2 == "FAIL:" { failed[$3] = 1 }
  /^ *[A-Za-z0-9_]+\.go:[0-9]+: / { told = $1 !~ /^diagnosis_test/ }
  told && length(said[test]) < 3000 { said[test] = said[test] substr($0, 1, 400) "\n" }
  END { for (test in failed) if (said[test] != "") printf "\n%s failed; it said:\n%s", test, said[test] }'
