"""Many traces, made by the engine: agents that call a model and tools, of which one in fifty fails."""

from __future__ import annotations

SPANS = 10
"""Spans of each trace: an agent, and five calls of a model with four calls of tools between them."""


def insert(database: str, traces: int, *, first: int = 0, typed: bool = False) -> str:
    """The statement that inserts traces, one a second, ending now; the number of the newest is the highest."""
    attributes = """multiIf(
        n = 0, map('gen_ai.operation.name', 'invoke_agent',
            'gen_ai.agent.name', ['planner', 'coder', 'clerk'][t % 3 + 1],
            'input.value', concat('Book flight ', toString(t))),
        n % 2 = 1, map('gen_ai.operation.name', 'chat', 'gen_ai.request.model', ['fern-1', 'moss-2'][t % 2 + 1],
            'gen_ai.usage.input_tokens', toString(100 + t % 900), 'gen_ai.usage.output_tokens', toString(20 + n),
            'gen_ai.input.messages', concat('[{"role":"user","parts":[{"type":"text","content":"Book flight ',
            toString(t), repeat(' and hotel', 50), '"}]}]'),
            'gen_ai.output.messages', '[{"role":"assistant","parts":[{"type":"text","content":"Done."}]}]'),
        map('gen_ai.operation.name', 'execute_tool', 'gen_ai.tool.name', ['search', 'book', 'pay', 'mail'][t % 4 + 1],
            'gen_ai.tool.call.arguments', concat('{"id":', toString(t), '}'),
            if(fails AND n = 8, 'error.type', 'gen_ai.tool.call.id'),
            if(fails AND n = 8, 'TimeoutError', toString(t))))"""
    if typed:
        attributes = f"CAST(toJSONString({attributes}), 'JSON')"
    resource = "map('service.name', 'garden', 'telemetry.sdk.version', '1.30')"
    resource = f"CAST(toJSONString({resource}), 'JSON')" if typed else resource
    return f"""
INSERT INTO {database}.otel_traces (Timestamp, TraceId, SpanId, ParentSpanId, SpanName, SpanKind, ServiceName,
    ResourceAttributes, ScopeName, SpanAttributes, Duration, StatusCode, StatusMessage)
WITH intDiv(number, {SPANS}) + {first} AS t, number % {SPANS} AS n, t % 50 = 7 AS fails
SELECT
    addMilliseconds(toDateTime64(now(), 9) - {traces + first} + t, n * 100) AS Timestamp,
    lower(leftPad(hex(t), 32, '0')), lower(leftPad(hex(t * {SPANS} + n + 1), 16, '0')),
    if(n = 0, '', lower(leftPad(hex(t * {SPANS} + 1), 16, '0'))),
    multiIf(n = 0, 'invoke_agent', n % 2 = 1, 'chat', 'execute_tool'), 'Internal', 'garden',
    {resource}, 'demo', {attributes},
    if(n = 0, 1000000000, 90000000), if(fails AND n IN (0, 8), 'Error', 'Unset'),
    if(fails AND n IN (0, 8), concat('tool timed out after ', toString(t % 7), ' s'), '')
FROM numbers({traces * SPANS})"""
