"""Client of vx, a paid, metered generation API."""

from pkgutil import extend_path

from ._async import AsyncClient as AsyncClient, AsyncGenerationStream as AsyncGenerationStream, AsyncPages as AsyncPages
from ._errors import (
    AuthenticationError as AuthenticationError,
    BillingError as BillingError,
    ConnectionFailedError as ConnectionFailedError,
    InvalidRequestError as InvalidRequestError,
    LimitDetails as LimitDetails,
    PermissionDeniedError as PermissionDeniedError,
    RateLimitError as RateLimitError,
    ServerError as ServerError,
    TimedOutError as TimedOutError,
    VxError as VxError,
)
from ._events import (
    WebhookVerificationError as WebhookVerificationError,
    event_data as event_data,
    verify_webhook as verify_webhook,
)
from ._inputs import (
    ContentPartInput as ContentPartInput,
    ImageInput as ImageInput,
    LimitInput as LimitInput,
    MessageInput as MessageInput,
    ReasoningInput as ReasoningInput,
    ResponseFormatInput as ResponseFormatInput,
    ToolCallInput as ToolCallInput,
    ToolInput as ToolInput,
)
from ._reasons import *  # noqa: F403
from ._retries import CallOptions as CallOptions
from ._sync import Client as Client, GenerationStream as GenerationStream, Pages as Pages
from ._version import __version__ as __version__
from ._messages.embed_pb2 import EmbedRequest as EmbedRequest, EmbedResponse as EmbedResponse, Embedding as Embedding
from ._messages.event_pb2 import (
    AccountEvent as AccountEvent,
    AutoTopUpEvent as AutoTopUpEvent,
    BalanceDepletedEvent as BalanceDepletedEvent,
    BalanceLowEvent as BalanceLowEvent,
    EntryPostedEvent as EntryPostedEvent,
    Event as Event,
    GrantExpiredEvent as GrantExpiredEvent,
    KeyEvent as KeyEvent,
    LimitThresholdEvent as LimitThresholdEvent,
    PriceChangedEvent as PriceChangedEvent,
    TopUpEvent as TopUpEvent,
    WebhookDisabledEvent as WebhookDisabledEvent,
    WebhookTestEvent as WebhookTestEvent,
)
from ._messages.generate_pb2 import (
    ContentPart as ContentPart,
    GenerateDelta as GenerateDelta,
    GenerateRequest as GenerateRequest,
    GenerateResponse as GenerateResponse,
    Image as Image,
    Message as Message,
    QuoteGenerateResponse as QuoteGenerateResponse,
    Reasoning as Reasoning,
    ResponseFormat as ResponseFormat,
    Tool as Tool,
    ToolCall as ToolCall,
    Usage as Usage,
)
from ._messages.key_pb2 import ApiKey as ApiKey, CreateKeyResponse as CreateKeyResponse, RotateKeyResponse as RotateKeyResponse
from ._messages.ledger_pb2 import LedgerEntry as LedgerEntry
from ._messages.limit_pb2 import Limit as Limit
from ._messages.me_pb2 import GetMeResponse as GetMeResponse
from ._messages.model_pb2 import Model as Model
from ._messages.usage_pb2 import UsageRow as UsageRow
from ._messages.webhook_pb2 import (
    CreateWebhookResponse as CreateWebhookResponse,
    Delivery as Delivery,
    DeliveryOutcome as DeliveryOutcome,
    RedeliverResponse as RedeliverResponse,
    RotateWebhookResponse as RotateWebhookResponse,
    Webhook as Webhook,
)

# Stubs that were generated from the .proto files are in folders named vx/v1, which Python also finds.
__path__ = extend_path(__path__, __name__)
