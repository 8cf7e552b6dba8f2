package vx

import (
	"context"
	cryptorand "crypto/rand"
	"math/rand/v2"
	"net/http"
	"time"

	"connectrpc.com/connect"
)

// effect says what a repetition of a call can do.
type effect int

const (
	// A read changes nothing.
	read effect = iota
	// A keyed call is charged once because it has an idempotency key.
	keyed
	// An unkeyed call is charged unless the server says why it failed.
	unkeyed
	// A write could change something twice.
	write
)

const (
	firstDelay = 500 * time.Millisecond
	maxDelay   = 8 * time.Second
	// A rate limit is at most a minute away; callers decide about longer waits.
	maxRetryAfterSeconds = 60
)

// CallOption sets something for one call.
type CallOption func(*callOptions)

type callOptions struct {
	maxRetries     int
	idempotencyKey string
	header         http.Header
	onHeader       func(http.Header)
}

// WithIdempotencyKey sets the key of the call, at most 255 characters. By default each call has a new one, and streams have
// none. With a key, a generation continues when its caller leaves, and is charged in full; the same call with the same key
// returns it.
func WithIdempotencyKey(key string) CallOption {
	return func(o *callOptions) { o.idempotencyKey = key }
}

// WithCallRetries sets how often the call is repeated after an error that a retry can heal.
func WithCallRetries(n int) CallOption { return func(o *callOptions) { o.maxRetries = n } }

// WithHeader sends a header with the call.
func WithHeader(name, value string) CallOption {
	return func(o *callOptions) { o.header.Set(name, value) }
}

// WithOnHeader gets the headers of the response, such as X-Request-Id and Idempotency-Replayed.
func WithOnHeader(f func(http.Header)) CallOption { return func(o *callOptions) { o.onHeader = f } }

// withRetries makes attempts until one succeeds, an error is final, or the retries or the time are used up. The deadline
// of the context limits the time.
func withRetries[T any](ctx context.Context, c *Client, e effect, options []CallOption, attempt func(context.Context, callOptions) (T, error)) (T, error) {
	o := callOptions{maxRetries: c.maxRetries, header: http.Header{}}
	for _, set := range options {
		set(&o)
	}
	if o.idempotencyKey == "" {
		o.idempotencyKey = o.header.Get("Idempotency-Key")
	}
	o.header.Del("Idempotency-Key")
	if e == unkeyed && o.idempotencyKey != "" {
		e = keyed
	}
	if e == keyed && o.idempotencyKey == "" {
		o.idempotencyKey = cryptorand.Text()
	}
	if e == keyed {
		o.header.Set("Idempotency-Key", o.idempotencyKey)
	}
	for retries := 0; ; retries++ {
		refused := new(refusal)
		result, err := attempt(context.WithValue(ctx, refusalKey{}, refused), o)
		if err == nil {
			return result, nil
		}
		failure := toError(err, o.idempotencyKey)
		refused.complete(failure)
		delay := delayOf(failure, retries)
		deadline, hasDeadline := ctx.Deadline()
		isLate := hasDeadline && time.Now().Add(delay).After(deadline)
		if retries >= o.maxRetries || isLate || !isRetried(failure, e) {
			return result, failure
		}
		select {
		case <-ctx.Done():
			return result, toError(ctx.Err(), o.idempotencyKey)
		case <-time.After(delay):
		}
	}
}

func isRetried(err *Error, e effect) bool {
	if err.Reason == "" && (err.Code == connect.CodeCanceled || err.Code == connect.CodeDeadlineExceeded) {
		return false
	}
	if err.RetryAfterSeconds() > maxRetryAfterSeconds {
		return false
	}
	// A refusal before the call ran; after any other error, the call may have had its effect.
	hasNotRun := err.Code == connect.CodeResourceExhausted || err.Reason == Overloaded
	if e == write && !hasNotRun || e == unkeyed && err.Reason == "" {
		return false
	}
	if advice := err.Header.Get("X-Should-Retry"); advice != "" {
		return advice == "true"
	}
	if err.Reason == "" {
		return err.isConnection() || err.Code == connect.CodeUnavailable
	}
	return retried[err.Reason]
}

// delayOf is what the server says, else twice as long as before, and never the same for callers that failed together.
func delayOf(err *Error, retries int) time.Duration {
	spread := 0.5 + rand.Float64()/2
	if err.Header.Get("Retry-After") != "" {
		return time.Duration(err.RetryAfterSeconds())*time.Second + time.Duration(spread*float64(100*time.Millisecond))
	}
	return time.Duration(spread * float64(min(firstDelay<<min(retries, 10), maxDelay)))
}
