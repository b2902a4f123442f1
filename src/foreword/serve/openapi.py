"""The OpenAPI schema of a service, written from its table of routes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from foreword.serve.bodies import REFUSALS, Refused
from foreword.serve.registry import Registry

if TYPE_CHECKING:
    from foreword.serve.routes import Route

REF = "#/components/schemas/{model}"


def openapi(title: str, routes: Iterable[Route], registry: Registry) -> dict[str, Any]:
    """Return the schema as JSON. The bodies name the models that each route takes at the moment."""
    import foreword

    shown = [route for route in routes if route.tag]
    models: list[tuple[Any, JsonSchemaMode]] = [(Refused, "serialization")]
    models += [(route.body, "validation") for route in shown if route.body is not None]
    models += [(route.answer, "serialization") for route in shown if isinstance(route.answer, type)]
    schemas: dict[str, Any] = models_json_schema(models, ref_template=REF)[1].get("$defs", {})
    paths: dict[str, Any] = {}
    for route in shown:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
        if route.body is not None and (able := registry.able(route.path.removeprefix("/api/"))):
            schemas[route.body.__name__]["properties"]["model"]["enum"] = able
    info = {"title": title, "version": foreword.__version__}
    return {"openapi": "3.1.0", "info": info, "paths": paths, "components": {"schemas": schemas}}


def _operation(route: Route) -> dict[str, Any]:
    answer = {} if route.answer is None else _reference(route.answer)
    content: dict[str, Any] = {route.content_type: {"schema": answer}}
    if route.body is not None and "stream" in route.body.model_fields:
        content["text/event-stream"] = {"schema": {}}
    refused = {"application/json": {"schema": _reference(Refused)}}
    responses = {"200": {"description": "The answer.", "content": content}} | {
        str(status): {"description": why, "content": refused} for status, why in REFUSALS.items()
    }
    operation: dict[str, Any] = {"tags": [route.tag], "description": route.description, "responses": responses}
    if route.body is not None:
        schema = {"schema": _reference(route.body)}
        operation["requestBody"] = {"required": True, "content": {"application/json": schema}}
    return operation


def _reference(type_: Any) -> dict[str, Any]:
    """Return the schema of a type by reference to the models in it."""
    schema = TypeAdapter(type_).json_schema(ref_template=REF, mode="serialization")
    schema.pop("$defs", None)
    return schema if "$ref" in schema or schema.get("type") == "array" else {"$ref": REF.format(model=schema["title"])}
