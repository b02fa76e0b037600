"""OpenTelemetry: `format` reads its traces. Other formats read their messages and words with `messages`, `vocabulary`."""
