"""The methods that clients call."""

from __future__ import annotations

from ._wire import Method
from ._messages import (
    embed_pb2,
    event_pb2,
    generate_pb2,
    key_pb2,
    ledger_pb2,
    limit_pb2,
    me_pb2,
    model_pb2,
    usage_pb2,
    webhook_pb2,
)

GENERATE = Method(
    "/vx.v1.GenerateService/Generate", generate_pb2.GenerateRequest, generate_pb2.GenerateResponse, "keyed"
)
STREAM = Method(
    "/vx.v1.GenerateService/StreamGenerate",
    generate_pb2.StreamGenerateRequest,
    generate_pb2.StreamGenerateResponse,
    "unkeyed",
    is_stream=True,
)
QUOTE = Method(
    "/vx.v1.GenerateService/QuoteGenerate", generate_pb2.GenerateRequest, generate_pb2.QuoteGenerateResponse, "read"
)
EMBED = Method("/vx.v1.EmbedService/Embed", embed_pb2.EmbedRequest, embed_pb2.EmbedResponse, "keyed")
GET_ME = Method("/vx.v1.MeService/GetMe", me_pb2.GetMeRequest, me_pb2.GetMeResponse, "read")
LIST_MODELS = Method(
    "/vx.v1.ModelService/ListModels", model_pb2.ListModelsRequest, model_pb2.ListModelsResponse, "read"
)
GET_MODEL = Method("/vx.v1.ModelService/GetModel", model_pb2.GetModelRequest, model_pb2.GetModelResponse, "read")
LIST_KEYS = Method("/vx.v1.KeyService/ListKeys", key_pb2.ListKeysRequest, key_pb2.ListKeysResponse, "read")
GET_KEY = Method("/vx.v1.KeyService/GetKey", key_pb2.GetKeyRequest, key_pb2.GetKeyResponse, "read")
# To revoke a revoked key has no effect.
REVOKE_KEY = Method("/vx.v1.KeyService/RevokeKey", key_pb2.RevokeKeyRequest, key_pb2.RevokeKeyResponse, "read")
CREATE_KEY = Method("/vx.v1.KeyService/CreateKey", key_pb2.CreateKeyRequest, key_pb2.CreateKeyResponse, "write")
# The same change twice has the effect of one.
UPDATE_KEY = Method("/vx.v1.KeyService/UpdateKey", key_pb2.UpdateKeyRequest, key_pb2.UpdateKeyResponse, "read")
ROTATE_KEY = Method("/vx.v1.KeyService/RotateKey", key_pb2.RotateKeyRequest, key_pb2.RotateKeyResponse, "write")
LIST_LIMITS = Method(
    "/vx.v1.LimitService/ListLimits", limit_pb2.ListLimitsRequest, limit_pb2.ListLimitsResponse, "read"
)
LIST_ENTRIES = Method(
    "/vx.v1.LedgerService/ListEntries", ledger_pb2.ListEntriesRequest, ledger_pb2.ListEntriesResponse, "read"
)
GET_GENERATION = Method(
    "/vx.v1.LedgerService/GetGeneration", ledger_pb2.GetGenerationRequest, ledger_pb2.GetGenerationResponse, "read"
)
GET_USAGE = Method("/vx.v1.UsageService/GetUsage", usage_pb2.GetUsageRequest, usage_pb2.GetUsageResponse, "read")
LIST_EVENTS = Method("/vx.v1.EventService/ListEvents", event_pb2.ListEventsRequest, event_pb2.ListEventsResponse, "read")
WATCH_EVENTS = Method(
    "/vx.v1.EventService/WatchEvents",
    event_pb2.WatchEventsRequest,
    event_pb2.WatchEventsResponse,
    "read",
    is_stream=True,
)
CREATE_WEBHOOK = Method(
    "/vx.v1.WebhookService/CreateWebhook",
    webhook_pb2.CreateWebhookRequest,
    webhook_pb2.CreateWebhookResponse,
    "write",
)
LIST_WEBHOOKS = Method(
    "/vx.v1.WebhookService/ListWebhooks", webhook_pb2.ListWebhooksRequest, webhook_pb2.ListWebhooksResponse, "read"
)
GET_WEBHOOK = Method(
    "/vx.v1.WebhookService/GetWebhook", webhook_pb2.GetWebhookRequest, webhook_pb2.GetWebhookResponse, "read"
)
# The same change twice has the effect of one.
UPDATE_WEBHOOK = Method(
    "/vx.v1.WebhookService/UpdateWebhook", webhook_pb2.UpdateWebhookRequest, webhook_pb2.UpdateWebhookResponse, "read"
)
DELETE_WEBHOOK = Method(
    "/vx.v1.WebhookService/DeleteWebhook", webhook_pb2.DeleteWebhookRequest, webhook_pb2.DeleteWebhookResponse, "write"
)
ROTATE_WEBHOOK = Method(
    "/vx.v1.WebhookService/RotateWebhook", webhook_pb2.RotateWebhookRequest, webhook_pb2.RotateWebhookResponse, "write"
)
TEST_WEBHOOK = Method(
    "/vx.v1.WebhookService/TestWebhook", webhook_pb2.TestWebhookRequest, webhook_pb2.TestWebhookResponse, "write"
)
LIST_DELIVERIES = Method(
    "/vx.v1.WebhookService/ListDeliveries",
    webhook_pb2.ListDeliveriesRequest,
    webhook_pb2.ListDeliveriesResponse,
    "read",
)
REDELIVER = Method(
    "/vx.v1.WebhookService/Redeliver", webhook_pb2.RedeliverRequest, webhook_pb2.RedeliverResponse, "write"
)
