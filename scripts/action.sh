#!/usr/bin/env bash
# The steps of action.yml: $TRACES is triaged, and tested against $BASE if set; documents go to $OUTPUT.
# Exit status: that of `tracetui triage --fail-on new`, else that of `tracetui gate` (docs/cli.md).
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
for document in gate.md triage.md; do
  [ ! -f "$OUTPUT/$document" ] || cat "$OUTPUT/$document" >>"${GITHUB_STEP_SUMMARY:-/dev/null}"
done
exit $((triage ? triage : gate))
