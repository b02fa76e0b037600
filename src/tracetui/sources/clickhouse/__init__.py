"""ClickHouse with the tables of the OpenTelemetry exporter, as a folder in which every trace is a file of rows.

Facts: the ClickHouse exporter of opentelemetry-collector-contrib, both variants (attributes as ``Map`` or ``JSON``).
`tracetui.formats.otlp` reads the rows; nothing here interprets them.
"""
