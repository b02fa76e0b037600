-- A hypergraph checkpoint database (schema 6): a run that worked, and one with a nested run that failed.
CREATE TABLE _schema_version (version INTEGER NOT NULL);
INSERT INTO _schema_version VALUES (6);
CREATE TABLE runs (id TEXT PRIMARY KEY, graph_name TEXT NOT NULL DEFAULT '', status TEXT NOT NULL DEFAULT 'active',
  duration_ms REAL, node_count INTEGER DEFAULT 0, error_count INTEGER DEFAULT 0, created_at TEXT NOT NULL,
  completed_at TEXT, parent_run_id TEXT, forked_from TEXT, fork_superstep INTEGER, retry_of TEXT, retry_index INTEGER,
  config TEXT, inputs_data BLOB);
CREATE TABLE steps (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, step_index INTEGER NOT NULL,
  superstep INTEGER NOT NULL, node_name TEXT NOT NULL, node_type TEXT, status TEXT NOT NULL,
  duration_ms REAL NOT NULL DEFAULT 0.0, cached INTEGER NOT NULL DEFAULT 0, error TEXT, decision TEXT,
  input_versions TEXT, values_data BLOB, child_run_id TEXT, partial INTEGER NOT NULL DEFAULT 0,
  created_at TEXT NOT NULL, completed_at TEXT, attempt_series_id TEXT, UNIQUE (run_id, superstep, node_name));
INSERT INTO runs (id, graph_name, status, duration_ms, node_count, created_at, completed_at, inputs_data) VALUES
  ('nightly-1', 'rag', 'completed', 300.0, 2, '2026-03-06T01:00:00+00:00', '2026-03-06T01:00:00.3+00:00',
   '{"query": "refund"}'),
  ('nightly-2', 'outer', 'failed', 90.0, 1, '2026-03-07T01:00:00+00:00', '2026-03-07T01:00:00.09+00:00', NULL);
INSERT INTO runs (id, graph_name, status, duration_ms, node_count, error_count, created_at, completed_at, parent_run_id)
  VALUES ('nightly-2/rag', 'rag', 'failed', 80.0, 1, 1, '2026-03-07T01:00:00.01+00:00',
          '2026-03-07T01:00:00.09+00:00', 'nightly-2');
INSERT INTO steps (run_id, step_index, superstep, node_name, node_type, status, duration_ms, cached, error, decision,
                   input_versions, values_data, child_run_id, created_at, completed_at) VALUES
  ('nightly-1', 0, 0, 'embed', 'FunctionNode', 'completed', 100.0, 0, NULL, NULL, '{"query": 1}',
   '{"vector": [1, 2]}', NULL, '2026-03-06T01:00:00+00:00', '2026-03-06T01:00:00.1+00:00'),
  ('nightly-1', 1, 1, 'answer', 'FunctionNode', 'completed', 200.0, 0, NULL, NULL, '{"vector": 1, "query": 1}',
   '{"answer": "30 days"}', NULL, '2026-03-06T01:00:00.1+00:00', '2026-03-06T01:00:00.3+00:00'),
  ('nightly-2', 0, 0, 'rag', 'GraphNode', 'failed', 80.0, 0, 'TimeoutError: 504', NULL, '{}', NULL, 'nightly-2/rag',
   '2026-03-07T01:00:00+00:00', '2026-03-07T01:00:00.09+00:00'),
  ('nightly-2/rag', 0, 0, 'embed', 'FunctionNode', 'failed', 80.0, 0, 'TimeoutError: 504', NULL, '{}', NULL, NULL,
   '2026-03-07T01:00:00.01+00:00', '2026-03-07T01:00:00.09+00:00');
