// Package vx is a client of vx, a paid, metered generation API.
package vx

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"time"

	"connectrpc.com/connect"

	vxv1 "github.com/vx-api/vx/clients/go/gen/vx/v1"
	"github.com/vx-api/vx/clients/go/gen/vx/v1/vxv1connect"
)

// Messages of the API, from the generated package vxv1, which has all of them.
type (
	GenerateRequest  = vxv1.GenerateRequest
	GenerateResponse = vxv1.GenerateResponse
	Message          = vxv1.Message
	ContentPart      = vxv1.ContentPart
	Image            = vxv1.Image
)

// User is a message with the role "user".
func User(text string) *Message { return &Message{Role: "user", Content: &text} }

// System is a message with the role "system".
func System(text string) *Message { return &Message{Role: "system", Content: &text} }

const (
	defaultURL        = "http://127.0.0.1:8080"
	defaultMaxRetries = 2
	defaultTimeout    = 10 * time.Minute
	// maxBytes is the size of the largest response, and of the largest message of a stream.
	maxBytes = 64 << 20
)

// Option sets something for a client.
type Option func(*Client)

// WithURL sets the address of the server. Default: the variable VX_URL, or http://127.0.0.1:8080.
func WithURL(url string) Option { return func(c *Client) { c.url = url } }

// WithKey sets the API key. Default: the variable VX_KEY.
func WithKey(key string) Option { return func(c *Client) { c.key = key } }

// WithMaxRetries sets how often a call is repeated after an error that a retry can heal. Default: 2.
func WithMaxRetries(n int) Option { return func(c *Client) { c.maxRetries = n } }

// WithTimeout sets the time limit of each call with its retries, and of a whole stream. Default: 10 minutes. 0 for none. An
// earlier deadline of the context applies.
func WithTimeout(limit time.Duration) Option { return func(c *Client) { c.timeout = limit } }

// WithHTTPClient sets the HTTP client, for proxies, certificates and pools. The default follows no redirects.
func WithHTTPClient(client connect.HTTPClient) Option { return func(c *Client) { c.http = client } }

// Client is a client of one server with one API key. Goroutines can share it.
type Client struct {
	url, key   string
	maxRetries int
	timeout    time.Duration
	http       connect.HTTPClient

	generate vxv1connect.GenerateServiceClient
	embed    vxv1connect.EmbedServiceClient
	me       vxv1connect.MeServiceClient
	models   vxv1connect.ModelServiceClient
	keys     vxv1connect.KeyServiceClient
	ledger   vxv1connect.LedgerServiceClient
	usage    vxv1connect.UsageServiceClient
	limits   vxv1connect.LimitServiceClient
	events   vxv1connect.EventServiceClient
	webhooks vxv1connect.WebhookServiceClient
}

// Format prints the client without its fields, because logs must not show the key.
func (c Client) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, "vx.Client") }

// New makes a client.
func New(options ...Option) (*Client, error) {
	c := &Client{
		url: os.Getenv("VX_URL"), key: os.Getenv("VX_KEY"),
		maxRetries: defaultMaxRetries, timeout: defaultTimeout, http: noRedirects,
	}
	for _, set := range options {
		set(c)
	}
	c.key = strings.TrimSpace(c.key)
	if c.key == "" {
		return nil, errors.New("vx: there is no API key: use vx.WithKey, or set the variable VX_KEY")
	}
	if strings.ContainsFunc(c.key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("vx: the API key has a space, a line end or another character that no key has")
	}
	if c.url == "" {
		c.url = defaultURL
	}
	c.url = strings.TrimRight(c.url, "/")
	c.http = recorder{c.http}
	limit := connect.WithReadMaxBytes(maxBytes)
	c.generate = vxv1connect.NewGenerateServiceClient(c.http, c.url, limit)
	c.embed = vxv1connect.NewEmbedServiceClient(c.http, c.url, limit)
	c.me = vxv1connect.NewMeServiceClient(c.http, c.url, limit)
	c.models = vxv1connect.NewModelServiceClient(c.http, c.url, limit)
	c.keys = vxv1connect.NewKeyServiceClient(c.http, c.url, limit)
	c.ledger = vxv1connect.NewLedgerServiceClient(c.http, c.url, limit)
	c.usage = vxv1connect.NewUsageServiceClient(c.http, c.url, limit)
	c.limits = vxv1connect.NewLimitServiceClient(c.http, c.url, limit)
	c.events = vxv1connect.NewEventServiceClient(c.http, c.url, limit)
	c.webhooks = vxv1connect.NewWebhookServiceClient(c.http, c.url, limit)
	return c, nil
}

// Generate generates one reply. It is charged once, whatever the number of retries.
func (c *Client) Generate(ctx context.Context, request *vxv1.GenerateRequest, options ...CallOption) (*vxv1.GenerateResponse, error) {
	return unary(ctx, c, keyed, c.generate.Generate, request, options)
}

// Quote returns what Generate would hold for the same request, and the error it would get. Charges nothing.
func (c *Client) Quote(ctx context.Context, request *vxv1.GenerateRequest, options ...CallOption) (*vxv1.QuoteGenerateResponse, error) {
	return unary(ctx, c, read, c.generate.QuoteGenerate, request, options)
}

// Embed returns one vector for each text.
func (c *Client) Embed(ctx context.Context, request *vxv1.EmbedRequest, options ...CallOption) (*vxv1.EmbedResponse, error) {
	return unary(ctx, c, keyed, c.embed.Embed, request, options)
}

// Me returns the key of this client, its plan and the balance of its account.
func (c *Client) Me(ctx context.Context, options ...CallOption) (*vxv1.GetMeResponse, error) {
	return unary(ctx, c, read, c.me.GetMe, &vxv1.GetMeRequest{}, options)
}

// Models iterates the models of the server.
func (c *Client) Models(ctx context.Context, request *vxv1.ListModelsRequest, options ...CallOption) iter.Seq2[*vxv1.Model, error] {
	return pages(func(token string) ([]*vxv1.Model, string, error) {
		page, err := unary(ctx, c, read, c.models.ListModels, &vxv1.ListModelsRequest{PageSize: request.GetPageSize(), PageToken: token}, options)
		return page.GetData(), page.GetNextPageToken(), err
	}, request.GetPageToken())
}

// Model returns one model.
func (c *Client) Model(ctx context.Context, id string, options ...CallOption) (*vxv1.Model, error) {
	response, err := unary(ctx, c, read, c.models.GetModel, &vxv1.GetModelRequest{Model: id}, options)
	return response.GetModel(), err
}

// Keys iterates the keys of the account, newest first.
func (c *Client) Keys(ctx context.Context, request *vxv1.ListKeysRequest, options ...CallOption) iter.Seq2[*vxv1.ApiKey, error] {
	return pages(func(token string) ([]*vxv1.ApiKey, string, error) {
		page, err := unary(ctx, c, read, c.keys.ListKeys, &vxv1.ListKeysRequest{PageSize: request.GetPageSize(), PageToken: token}, options)
		return page.GetApiKeys(), page.GetNextPageToken(), err
	}, request.GetPageToken())
}

// Key returns one key of the account.
func (c *Client) Key(ctx context.Context, id string, options ...CallOption) (*vxv1.ApiKey, error) {
	response, err := unary(ctx, c, read, c.keys.GetKey, &vxv1.GetKeyRequest{KeyId: id}, options)
	return response.GetApiKey(), err
}

// CreateKey creates a key. It is not repeated if its connection ends, because the key may exist then.
func (c *Client) CreateKey(ctx context.Context, request *vxv1.CreateKeyRequest, options ...CallOption) (*vxv1.CreateKeyResponse, error) {
	return unary(ctx, c, write, c.keys.CreateKey, request, options)
}

// UpdateKey changes the fields that are set, or those that the update mask names.
func (c *Client) UpdateKey(ctx context.Context, request *vxv1.UpdateKeyRequest, options ...CallOption) (*vxv1.ApiKey, error) {
	response, err := unary(ctx, c, read, c.keys.UpdateKey, request, options)
	return response.GetApiKey(), err
}

// RotateKey gives a key a new secret. It is not repeated if its connection ends, because the key may have it then.
func (c *Client) RotateKey(ctx context.Context, request *vxv1.RotateKeyRequest, options ...CallOption) (*vxv1.RotateKeyResponse, error) {
	return unary(ctx, c, write, c.keys.RotateKey, request, options)
}

// Limits returns every limit that applies to the key of this client.
func (c *Client) Limits(ctx context.Context, request *vxv1.ListLimitsRequest, options ...CallOption) ([]*vxv1.Limit, error) {
	response, err := unary(ctx, c, read, c.limits.ListLimits, request, options)
	return response.GetLimits(), err
}

// RevokeKey revokes a key permanently. Revoking a revoked key has no effect.
func (c *Client) RevokeKey(ctx context.Context, id string, options ...CallOption) (*vxv1.ApiKey, error) {
	response, err := unary(ctx, c, read, c.keys.RevokeKey, &vxv1.RevokeKeyRequest{KeyId: id}, options)
	return response.GetApiKey(), err
}

// Ledger iterates the charges and credits of the account, newest first.
func (c *Client) Ledger(ctx context.Context, request *vxv1.ListEntriesRequest, options ...CallOption) iter.Seq2[*vxv1.LedgerEntry, error] {
	return pages(func(token string) ([]*vxv1.LedgerEntry, string, error) {
		next := &vxv1.ListEntriesRequest{
			PageSize: request.GetPageSize(), PageToken: token, Kind: request.GetKind(), KeyId: request.GetKeyId(),
			Model: request.GetModel(), From: request.GetFrom(), To: request.GetTo(),
		}
		page, err := unary(ctx, c, read, c.ledger.ListEntries, next, options)
		return page.GetEntries(), page.GetNextPageToken(), err
	}, request.GetPageToken())
}

// Generation returns the ledger entry of a generation, by the id of its reply.
func (c *Client) Generation(ctx context.Context, id string, options ...CallOption) (*vxv1.LedgerEntry, error) {
	response, err := unary(ctx, c, read, c.ledger.GetGeneration, &vxv1.GetGenerationRequest{Id: id}, options)
	return response.GetEntry(), err
}

// Usage iterates the charged usage by period, key, model and end user.
func (c *Client) Usage(ctx context.Context, request *vxv1.GetUsageRequest, options ...CallOption) iter.Seq2[*vxv1.UsageRow, error] {
	return pages(func(token string) ([]*vxv1.UsageRow, string, error) {
		next := &vxv1.GetUsageRequest{
			PageSize: request.GetPageSize(), PageToken: token, From: request.GetFrom(), To: request.GetTo(),
			GroupBy: request.GetGroupBy(), Tz: request.GetTz(),
		}
		page, err := unary(ctx, c, read, c.usage.GetUsage, next, options)
		return page.GetRows(), page.GetNextPageToken(), err
	}, request.GetPageToken())
}

func unary[Request, Response any](
	ctx context.Context, c *Client, e effect,
	method func(context.Context, *connect.Request[Request]) (*connect.Response[Response], error),
	message *Request, options []CallOption,
) (*Response, error) {
	ctx, end := c.limit(ctx)
	defer end()
	return withRetries(ctx, c, e, options, func(ctx context.Context, o callOptions) (*Response, error) {
		response, err := method(ctx, requestOf(c, message, o))
		if err != nil {
			return nil, err
		}
		if o.onHeader != nil {
			o.onHeader(response.Header())
		}
		return response.Msg, nil
	})
}

// limit applies the time limit of a call.
func (c *Client) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.timeout == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, c.timeout)
}

func requestOf[T any](c *Client, message *T, o callOptions) *connect.Request[T] {
	request := connect.NewRequest(message)
	for name, values := range o.header {
		request.Header()[name] = values
	}
	request.Header().Set("Authorization", "Bearer "+c.key)
	request.Header().Set("User-Agent", "vx-go/"+version)
	return request
}

// pages iterates a list and reads further pages meanwhile. The iteration ends after an error.
func pages[Item any](next func(token string) ([]Item, string, error), token string) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for {
			items, after, err := next(token)
			if err != nil {
				var none Item
				yield(none, err)
				return
			}
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			if after == "" {
				return
			}
			token = after
		}
	}
}
