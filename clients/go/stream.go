package vx

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	vxv1 "github.com/vx-api/vx/clients/go/gen/vx/v1"
)

// Stream is a streamed reply: range over Deltas, then call Response for the whole reply. A stream is for one goroutine.
type Stream struct {
	events   *connect.ServerStreamForClient[vxv1.StreamGenerateResponse]
	cancel   context.CancelFunc
	key      string
	hasFirst bool

	message         *vxv1.Message
	done            *vxv1.GenerateDone
	isReasoningOpen bool
}

// Stream generates one reply and streams it. Errors before the first event are retried, later ones are not. Leaving the
// loop over Deltas ends the generation, unless the call has an idempotency key.
func (c *Client) Stream(ctx context.Context, request *vxv1.GenerateRequest, options ...CallOption) (*Stream, error) {
	message := streamRequestOf(request)
	ctx, end := c.limit(ctx)
	stream, err := withRetries(ctx, c, unkeyed, options, func(ctx context.Context, o callOptions) (*Stream, error) {
		ctx, cancel := context.WithCancel(ctx)
		events, err := c.generate.StreamGenerate(ctx, requestOf(c, message, o))
		if err == nil && !events.Receive() {
			err = events.Err()
		}
		if err != nil {
			cancel()
			return nil, err
		}
		if o.onHeader != nil {
			o.onHeader(events.ResponseHeader())
		}
		reply := &vxv1.Message{Role: "assistant", Content: new(string)}
		leave := func() { cancel(); end() }
		return &Stream{events: events, cancel: leave, key: o.idempotencyKey, hasFirst: true, message: reply}, nil
	})
	if err != nil {
		end()
	}
	return stream, err
}

// streamRequestOf copies the fields, which are the same in both requests.
func streamRequestOf(request *vxv1.GenerateRequest) *vxv1.StreamGenerateRequest {
	result := &vxv1.StreamGenerateRequest{}
	fields := result.ProtoReflect().Descriptor().Fields()
	proto.Clone(request).ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		result.ProtoReflect().Set(fields.ByNumber(field.Number()), value)
		return true
	})
	return result
}

// Deltas iterates the parts of the reply. The iteration ends after an error.
func (s *Stream) Deltas() iter.Seq2[*vxv1.GenerateDelta, error] {
	return func(yield func(*vxv1.GenerateDelta, error) bool) {
		defer s.Close()
		for s.next() {
			event := s.events.Msg()
			if done := event.GetDone(); done != nil {
				s.done = done
			}
			if delta := event.GetDelta(); delta != nil {
				if err := s.append(delta); err != nil {
					yield(nil, err)
					return
				}
				if !yield(delta, nil) {
					return
				}
			}
		}
		if err := s.events.Err(); err != nil {
			yield(nil, toError(err, s.key))
		}
	}
}

// next reads an event. The first one was read before the stream was returned.
func (s *Stream) next() bool {
	if s.hasFirst {
		s.hasFirst = false
		return true
	}
	return s.events.Receive()
}

// Close ends the generation if it runs. It is needed only for a stream that is not iterated.
func (s *Stream) Close() {
	s.cancel()
	_ = s.events.Close()
}

// Response returns the whole reply after the iteration.
func (s *Stream) Response() (*vxv1.GenerateResponse, error) {
	if s.done == nil {
		return nil, errors.New("vx: the stream was not read to its end")
	}
	return &vxv1.GenerateResponse{
		Id: s.done.GetId(), Model: s.done.GetModel(), Message: s.message, FinishReason: s.done.GetFinishReason(),
		Usage: s.done.GetUsage(), BalanceMicros: s.done.GetBalanceMicros(), MaxTokens: s.done.MaxTokens,
	}, nil
}

// PartialMessage returns the message received so far, even after an error.
func (s *Stream) PartialMessage() *vxv1.Message { return s.message }

func (s *Stream) append(delta *vxv1.GenerateDelta) error {
	*s.message.Content += delta.GetContent()
	if part := delta.GetReasoning(); part != nil {
		// A signature or an encrypted text ends a block.
		if !s.isReasoningOpen {
			s.message.Reasoning = append(s.message.Reasoning, &vxv1.Reasoning{})
		}
		block := s.message.Reasoning[len(s.message.Reasoning)-1]
		block.Text += part.GetText()
		block.Signature += part.GetSignature()
		block.Encrypted += part.GetEncrypted()
		s.isReasoningOpen = part.GetSignature() == "" && part.GetEncrypted() == ""
	}
	if part := delta.GetToolCall(); part != nil {
		if index := int(part.GetIndex()); index < 0 || index > len(s.message.ToolCalls) {
			message := fmt.Sprintf("the response has no tool call before %d", index)
			return &Error{Code: connect.CodeInternal, Message: message, Header: http.Header{}, IdempotencyKey: s.key}
		} else if index == len(s.message.ToolCalls) {
			s.message.ToolCalls = append(s.message.ToolCalls, &vxv1.ToolCall{})
		}
		call := s.message.ToolCalls[part.GetIndex()]
		if part.GetId() != "" {
			call.Id = part.GetId()
		}
		if part.GetName() != "" {
			call.Name = part.GetName()
		}
		call.Arguments += part.GetArguments()
	}
	return nil
}
