#!/usr/bin/env bash
# Run one test recipe of the project in this folder, approved by the CI service's own key.
#
#     bash ci_job.sh RECIPE KEY REPORT
#
# REPORT takes the recipe's output `results`, whether the tests passed or failed. The exit code is
# that of `harness run`: 0 passed, 1 failed, anything else is no verdict on the code.
set -euo pipefail
recipe=$1 key=$2 report=$3

rm -f "$report"
plan=$(harness seal "$recipe" --why "${CI_COMMIT:-a CI job}" --json |
  python3 -c 'import json, sys; print(json.load(sys.stdin)["plan"])')

status=0
harness run "$plan" --key "$key" || status=$?
case $status in
  0) harness artifacts get "$plan" results --output "$report" ;;
  1) harness artifacts get "$plan" results --output "$report" || echo "no report" >&2 ;;
esac
exit "$status"
