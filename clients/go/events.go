package vx

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	vxv1 "github.com/vx-api/vx/clients/go/gen/vx/v1"
)

const (
	// A connection of a watch that broke unnoticed is replaced after this time.
	connectionTime = 5 * time.Minute
	// How old a request of a webhook may be.
	webhookTolerance = 5 * time.Minute
)

// Events iterates the events after the event with the id After, oldest first; with the order "desc" those before it, newest first.
func (c *Client) Events(ctx context.Context, request *vxv1.ListEventsRequest, options ...CallOption) iter.Seq2[*vxv1.Event, error] {
	return pages(func(after string) ([]*vxv1.Event, string, error) {
		next := &vxv1.ListEventsRequest{
			Types: request.GetTypes(), After: after, PageSize: request.GetPageSize(), Order: request.GetOrder(),
		}
		page, err := unary(ctx, c, read, c.events.ListEvents, next, options)
		if !page.GetHasMore() {
			return page.GetEvents(), "", err
		}
		return page.GetEvents(), page.GetNextAfter(), err
	}, request.GetAfter())
}

// WatchEvents iterates the events after the event with the id After and then each new one, without an end. A broken connection is made
// again, and continues after the last event that the loop has finished. Store its id, and pass it as After when the program starts again:
// no event is missed, and one may come twice. With WithCallRetries, the error of so many failed connections in a row ends the iteration;
// WithTimeout has no effect.
func (c *Client) WatchEvents(ctx context.Context, request *vxv1.WatchEventsRequest, options ...CallOption) iter.Seq2[*vxv1.Event, error] {
	return func(yield func(*vxv1.Event, error) bool) {
		after := request.GetAfter()
		if after == "now" {
			// Where "now" is, for all connections. Empty if there is no event.
			after = ""
			last := &vxv1.ListEventsRequest{Order: "desc", PageSize: 1}
			page, err := unary(ctx, c, read, c.events.ListEvents, last, options)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, event := range page.GetEvents() {
				after = event.GetId()
			}
		}
		forever := append([]CallOption{WithCallRetries(math.MaxInt)}, options...)
		isLeft := false
		take := func(event *vxv1.Event) bool {
			isLeft = !yield(event, nil)
			after = event.GetId()
			return !isLeft
		}
		// Each call counts its failures from the first one.
		for !isLeft {
			_, err := withRetries(ctx, c, read, forever, func(ctx context.Context, o callOptions) (struct{}, error) {
				return struct{}{}, c.watchOnce(ctx, &vxv1.WatchEventsRequest{Types: request.GetTypes(), After: after}, o, take)
			})
			if err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// watchOnce reads one connection of a watch. It has no error if the connection made progress, and another one can continue.
func (c *Client) watchOnce(ctx context.Context, request *vxv1.WatchEventsRequest, o callOptions, take func(*vxv1.Event) bool) error {
	connection, cancel := context.WithTimeout(ctx, connectionTime)
	defer cancel()
	stream, err := c.events.WatchEvents(connection, requestOf(c, request, o))
	hadEvent := false
	if err == nil {
		defer func() { _ = stream.Close() }()
		for stream.Receive() {
			hadEvent = true
			if !take(stream.Msg().GetEvent()) {
				return nil
			}
		}
		if err = stream.Err(); err == nil {
			err = connect.NewError(connect.CodeUnavailable, errors.New("the stream ended"))
		}
	}
	failure := toError(err, "")
	isOver := failure.Code == connect.CodeDeadlineExceeded && ctx.Err() == nil
	if isOver || hadEvent && isRetried(failure, read) {
		return nil
	}
	return failure
}

// EventData returns the data of an event as the message of its type, such as *vxv1.BalanceLowEvent. It is nil if the server is newer and
// this client does not know the type.
func EventData(event *vxv1.Event) (proto.Message, error) {
	data := newEventData(event.GetType())
	if data == nil {
		return nil, nil
	}
	text, err := protojson.Marshal(event.GetData())
	if err != nil {
		return nil, err
	}
	return data, protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(text, data)
}

// ErrWebhookSignature is a request that no server signed with the secret, or that is more than five minutes old.
var ErrWebhookSignature = errors.New("vx: the request has no valid signature")

// VerifyWebhook returns the event of a request that a webhook got. The body is as it arrived: parsed and written again, it may differ.
func VerifyWebhook(body []byte, header http.Header, secret string) (*vxv1.Event, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return nil, errors.New("vx: the secret of the webhook is malformed")
	}
	sentAt, err := strconv.ParseInt(header.Get("Webhook-Timestamp"), 10, 64)
	if err != nil || time.Since(time.Unix(sentAt, 0)).Abs() > webhookTolerance {
		return nil, fmt.Errorf("%w: its time is malformed or more than five minutes away", ErrWebhookSignature)
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%d.", header.Get("Webhook-Id"), sentAt)
	mac.Write(body)
	expected := []byte("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	isExpected := func(signature string) bool { return hmac.Equal([]byte(signature), expected) }
	if !slices.ContainsFunc(strings.Fields(header.Get("Webhook-Signature")), isExpected) {
		return nil, fmt.Errorf("%w of this secret", ErrWebhookSignature)
	}
	var received struct {
		ID        string         `json:"id"`
		Type      string         `json:"type"`
		Timestamp time.Time      `json:"timestamp"`
		AccountID string         `json:"account_id"`
		Seq       int64          `json:"seq"`
		Data      map[string]any `json:"data"`
	}
	if err := json.Unmarshal(body, &received); err != nil {
		return nil, err
	}
	data, err := structpb.NewStruct(received.Data)
	if err != nil {
		return nil, err
	}
	return &vxv1.Event{
		Id: received.ID, Type: received.Type, CreatedAt: timestamppb.New(received.Timestamp), AccountId: received.AccountID,
		Seq: received.Seq, Data: data,
	}, nil
}

// Webhooks returns the webhooks of the account, newest first.
func (c *Client) Webhooks(ctx context.Context, options ...CallOption) ([]*vxv1.Webhook, error) {
	response, err := unary(ctx, c, read, c.webhooks.ListWebhooks, &vxv1.ListWebhooksRequest{}, options)
	return response.GetWebhooks(), err
}

// Webhook returns one webhook.
func (c *Client) Webhook(ctx context.Context, id string, options ...CallOption) (*vxv1.Webhook, error) {
	response, err := unary(ctx, c, read, c.webhooks.GetWebhook, &vxv1.GetWebhookRequest{WebhookId: id}, options)
	return response.GetWebhook(), err
}

// CreateWebhook creates a webhook. Only this response has its secret. It is not repeated if its connection ends.
func (c *Client) CreateWebhook(ctx context.Context, request *vxv1.CreateWebhookRequest, options ...CallOption) (*vxv1.CreateWebhookResponse, error) {
	return unary(ctx, c, write, c.webhooks.CreateWebhook, request, options)
}

// UpdateWebhook changes the fields that are set, or those that the update mask names.
func (c *Client) UpdateWebhook(ctx context.Context, request *vxv1.UpdateWebhookRequest, options ...CallOption) (*vxv1.Webhook, error) {
	response, err := unary(ctx, c, read, c.webhooks.UpdateWebhook, request, options)
	return response.GetWebhook(), err
}

// DeleteWebhook deletes a webhook. It is not repeated if its connection ends, because the webhook may not exist then.
func (c *Client) DeleteWebhook(ctx context.Context, id string, options ...CallOption) error {
	_, err := unary(ctx, c, write, c.webhooks.DeleteWebhook, &vxv1.DeleteWebhookRequest{WebhookId: id}, options)
	return err
}

// RotateWebhook gives a webhook a new secret. It is not repeated if its connection ends, because the webhook may have it then.
func (c *Client) RotateWebhook(ctx context.Context, request *vxv1.RotateWebhookRequest, options ...CallOption) (*vxv1.RotateWebhookResponse, error) {
	return unary(ctx, c, write, c.webhooks.RotateWebhook, request, options)
}

// TestWebhook sends an event of the type "webhook.test", and returns the outcome.
func (c *Client) TestWebhook(ctx context.Context, id string, options ...CallOption) (*vxv1.DeliveryOutcome, error) {
	response, err := unary(ctx, c, write, c.webhooks.TestWebhook, &vxv1.TestWebhookRequest{WebhookId: id}, options)
	return response.GetOutcome(), err
}

// Deliveries iterates the events that a webhook receives, the newest first, with the outcome of the last attempt.
func (c *Client) Deliveries(ctx context.Context, request *vxv1.ListDeliveriesRequest, options ...CallOption) iter.Seq2[*vxv1.Delivery, error] {
	return pages(func(token string) ([]*vxv1.Delivery, string, error) {
		next := &vxv1.ListDeliveriesRequest{
			WebhookId: request.GetWebhookId(), State: request.GetState(), PageSize: request.GetPageSize(), PageToken: token,
		}
		page, err := unary(ctx, c, read, c.webhooks.ListDeliveries, next, options)
		return page.GetDeliveries(), page.GetNextPageToken(), err
	}, request.GetPageToken())
}

// Redeliver delivers one event, or those of a time, again.
func (c *Client) Redeliver(ctx context.Context, request *vxv1.RedeliverRequest, options ...CallOption) (*vxv1.RedeliverResponse, error) {
	return unary(ctx, c, write, c.webhooks.Redeliver, request, options)
}
