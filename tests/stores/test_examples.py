"""The files of docs/examples/clickhouse have the syntax that docs/stores.md promises, and agree with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.shared import ROOT

HERE = ROOT / "docs" / "examples" / "clickhouse"


def load(path: Path) -> Any:
    """A YAML document."""
    yaml: Any = pytest.importorskip("yaml", reason="PyYAML is not installed: python3 dev.py stores")
    return yaml.safe_load(path.read_text())


def test_the_compose_file_starts_what_the_page_says() -> None:
    services = load(HERE / "compose.yaml")["services"]
    assert services["clickhouse"]["ports"] == ["127.0.0.1:8123:8123"]
    assert "127.0.0.1:4318:4318" in services["collector"]["ports"]
    assert all("CLICKHOUSE_PASSWORD" in service["environment"] for service in services.values())


def test_the_collector_writes_to_the_database_of_the_page() -> None:
    config, environment = load(HERE / "collector.yaml"), load(HERE / "compose.yaml")["services"]["clickhouse"]
    exporter = config["exporters"]["clickhouse"]
    assert exporter["database"] == environment["environment"]["CLICKHOUSE_DB"] == "otel"
    assert exporter["username"] == environment["environment"]["CLICKHOUSE_USER"]
    for name in ("receivers", "processors", "exporters"):
        assert all(component in config[name] for component in config["service"]["pipelines"]["traces"][name])
    assert "clickhouse://otel@localhost:8123/otel" in (ROOT / "docs" / "stores.md").read_text()
