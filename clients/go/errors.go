package vx

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
)

// Reason says why the server refused a call. It is an error, so that errors.Is(err, vx.InsufficientBalance) works.
type Reason string

func (r Reason) Error() string { return string(r) }

// Error is every error of a call.
type Error struct {
	// Code is the code of gRPC. It is connect.CodeUnavailable if there was no complete response.
	Code connect.Code
	// Reason is empty if the error is not of the server.
	Reason  Reason
	Message string
	// RequestID is for questions to the operator of the server.
	RequestID string
	// Details are the google.rpc messages, such as *errdetails.BadRequest.
	Details []proto.Message
	// Metadata has data of the error, such as the balance in micros.
	Metadata map[string]string
	Header   http.Header
	// IdempotencyKey is the key of the call, if it had one. The same call with the same key is charged once.
	IdempotencyKey string

	cause error
}

func (e *Error) Error() string {
	text := "vx: "
	if e.Reason != "" {
		text += string(e.Reason) + ": "
	}
	text += e.Message
	if e.RequestID != "" {
		text += " (" + e.RequestID + ")"
	}
	return text
}

// Is reports whether the error has the reason.
func (e *Error) Is(target error) bool {
	reason, ok := target.(Reason)
	return ok && reason == e.Reason
}

// Unwrap returns the error of the transport, such as context.Canceled.
func (e *Error) Unwrap() error { return e.cause }

// RetryAfterSeconds is when the server says that a retry can succeed. It is zero if it says nothing.
func (e *Error) RetryAfterSeconds() int {
	seconds, _ := strconv.Atoi(e.Header.Get("Retry-After"))
	return seconds
}

// LimitDetails is the limit that refused a call, and what it had counted. Amounts of cost are micros.
type LimitDetails struct {
	ID string
	// OwnerID is the id of its account or key, or the name of its plan.
	OwnerID                     string
	Metric, Window, Model, Per  string
	Amount, Spent, Held, Needed int64
	// ResetsAt is zero if it does not reset.
	ResetsAt time.Time
}

// Limit returns the limit that refused the call. It is nil if none did.
func (e *Error) Limit() *LimitDetails {
	m := e.Metadata
	if m["limit_id"] == "" {
		return nil
	}
	limit := &LimitDetails{ID: m["limit_id"], OwnerID: m["limit_owner"], Metric: m["metric"], Window: m["window"], Model: m["model"], Per: m["per"]}
	for name, value := range map[string]*int64{"amount": &limit.Amount, "spent": &limit.Spent, "held": &limit.Held, "needed": &limit.Needed} {
		number, err := strconv.ParseInt(m[name], 10, 64)
		if err != nil {
			return nil
		}
		*value = number
	}
	limit.ResetsAt, _ = time.Parse(time.RFC3339, m["resets_at"])
	return limit
}

func (e *Error) isConnection() bool {
	if e.Reason != "" || len(e.Header) > 0 {
		return false
	}
	// A response that is too large has the last of these codes.
	return e.Code != connect.CodeCanceled && e.Code != connect.CodeDeadlineExceeded && e.Code != connect.CodeResourceExhausted
}

func toError(err error, idempotencyKey string) *Error {
	found := new(Error)
	if errors.As(err, &found) {
		return found
	}
	result := &Error{Code: connect.CodeOf(err), Message: err.Error(), Header: http.Header{}, IdempotencyKey: idempotencyKey, cause: err}
	wire := new(connect.Error)
	if !errors.As(err, &wire) {
		return result
	}
	// Connect also uses this code when the connection is reset.
	if result.Code == connect.CodeCanceled && !connect.IsWireError(err) && !errors.Is(err, context.Canceled) {
		result.Code = connect.CodeUnavailable
	}
	result.Message = wire.Message()
	result.Header = wire.Meta()
	result.RequestID = result.Header.Get("X-Request-Id")
	for _, detail := range wire.Details() {
		value, err := detail.Value()
		if err != nil {
			continue
		}
		result.Details = append(result.Details, value)
		if info, ok := value.(*errdetails.ErrorInfo); ok && info.GetDomain() == "vx" {
			result.Reason = Reason(strings.ToLower(info.GetReason()))
			result.Metadata = info.GetMetadata()
		}
	}
	return result
}
