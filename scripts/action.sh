#!/usr/bin/env bash
# The steps of action.yml: $TRACES is triaged, tested against $BASE and audited for $AUDIT if set; documents go to $OUTPUT.
# Exit status: that of the first of `tracetui triage --fail-on new`, `gate` and `audit` that fails (docs/ci.md).
set -u
mkdir -p "$OUTPUT" || exit 2
tracetui export "$TRACES" --to "$OUTPUT/triage.md" --force || exit
tracetui triage "$TRACES" --fail-on new --verdicts "${VERDICTS:-/dev/null}"
triage=$?
gate=0
if [ -n "$BASE" ]; then
  tracetui gate "$BASE" "$TRACES" --to "$OUTPUT/gate.md" --to "$OUTPUT/gate.xml" --force
  gate=$?
fi
audit=0
if [ -n "$AUDIT" ]; then
  tracetui audit "$TRACES" --fail-on "$AUDIT" --force \
    --to "$OUTPUT/audit.md" --to "$OUTPUT/audit.xml" --to "$OUTPUT/audit.sarif"
  audit=$?
fi
for document in gate.md triage.md audit.md; do
  [ ! -f "$OUTPUT/$document" ] || cat "$OUTPUT/$document" >>"${GITHUB_STEP_SUMMARY:-/dev/null}"
done
exit $((triage ? triage : gate ? gate : audit))
