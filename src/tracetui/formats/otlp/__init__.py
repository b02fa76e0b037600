"""OpenTelemetry: `format` reads its traces; `messages` and `vocabulary` serve other formats too."""
