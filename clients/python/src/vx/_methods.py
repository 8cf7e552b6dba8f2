"""The methods that clients call."""

from __future__ import annotations

from ._wire import Method
from ._messages import embed_pb2, generate_pb2, key_pb2, ledger_pb2, limit_pb2, me_pb2, model_pb2, usage_pb2

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
