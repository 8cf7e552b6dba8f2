package vx_test

// Runs against a server: VX_URL and VX_KEY name it, VX_FAULT_URL a proxy in front of it that fails on demand.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	vx "github.com/vx-api/vx/clients/go"
	vxv1 "github.com/vx-api/vx/clients/go/gen/vx/v1"
)

const model = "vx-sandbox-small"

var (
	ctx   = context.Background()
	run   = fmt.Sprintf("go-%d", time.Now().UnixNano())
	calls = 0
)

func client(t *testing.T, options ...vx.Option) *vx.Client {
	t.Helper()
	c, err := vx.New(options...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func faulty(t *testing.T) *vx.Client { return client(t, vx.WithURL(os.Getenv("VX_FAULT_URL"))) }

func asks(text string) *vx.GenerateRequest {
	return &vx.GenerateRequest{Model: model, Messages: []*vx.Message{vx.User(text)}}
}

// must returns the value of a call that has no error.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func failure(t *testing.T, err error) *vx.Error {
	t.Helper()
	found := new(vx.Error)
	if !errors.As(err, &found) {
		t.Fatalf("no *vx.Error: %v", err)
	}
	return found
}

// final reads a stream to its end.
func final(stream *vx.Stream, err error) (*vx.GenerateResponse, error) {
	if err != nil {
		return nil, err
	}
	for _, err := range stream.Deltas() {
		if err != nil {
			return nil, err
		}
	}
	return stream.Response()
}

// fault is a header for the proxy; attempts returns the idempotency keys that the attempts of the call sent.
func fault(t *testing.T, parts string) (id string, option vx.CallOption, attempts func() []string) {
	calls++
	id = fmt.Sprintf("%s-%d", run, calls)
	return id, vx.WithHeader("x-fault", "id="+id+";"+parts), func() []string {
		response, err := http.Get(os.Getenv("VX_FAULT_URL") + "/attempts?id=" + id)
		body := must(response, err).Body
		defer body.Close()
		var keys []*string
		if err := json.Unmarshal(must(io.ReadAll(body)), &keys); err != nil {
			t.Fatal(err)
		}
		texts := []string{}
		for _, key := range keys {
			if key == nil {
				key = new(string)
			}
			texts = append(texts, *key)
		}
		return texts
	}
}

func chargesOf(t *testing.T, user string) []*vxv1.LedgerEntry {
	t.Helper()
	found := []*vxv1.LedgerEntry{}
	for entry, err := range client(t).Ledger(ctx, &vxv1.ListEntriesRequest{Kind: "generation"}) {
		if must(entry, err).GetUser() == user {
			found = append(found, entry)
		}
	}
	return found
}

func firstChargesOf(t *testing.T, user string) []*vxv1.LedgerEntry {
	for {
		if found := chargesOf(t, user); len(found) > 0 {
			return found
		}
	}
}

func TestTheResponseOfAStreamIsTheReplyWithoutAStream(t *testing.T) {
	for _, text := range []string{"hello", "[[reasoning=20]] hello", "[[tool]] hello", "[[tools=2 reasoning=8]] hello"} {
		request := asks(text)
		request.Tools = []*vxv1.Tool{{Name: "weather"}}
		request.MaxTokens = proto.Int32(9_000)
		unary := must(client(t).Generate(ctx, request))
		if entry := must(client(t).Generation(ctx, unary.GetId())); entry.GetAmountMicros() != -unary.GetUsage().GetCostMicros() {
			t.Error("the ledger has another cost")
		}
		streamed := must(final(client(t).Stream(ctx, request)))
		for _, reply := range []*vx.GenerateResponse{unary, streamed} {
			reply.Id, reply.BalanceMicros = "", 0
			for _, call := range reply.GetMessage().GetToolCalls() {
				call.Id = ""
			}
			for _, block := range reply.GetMessage().GetReasoning() {
				block.Signature, block.Encrypted = "", ""
			}
		}
		if !proto.Equal(unary, streamed) {
			t.Errorf("%v\n%v", unary, streamed)
		}
	}
}

func TestLeavingAStreamEndsTheGeneration(t *testing.T) {
	request := asks("[[tokens=400 delay_ms=50]]")
	request.User = run + "-left"
	stream := must(client(t).Stream(ctx, request))
	for range stream.Deltas() {
		break
	}
	if _, err := stream.Response(); err == nil {
		t.Error("there is a response")
	}
	if charge := firstChargesOf(t, request.User)[0]; charge.GetOutputTokens() >= 200 {
		t.Error(charge)
	}
}

func TestOtherCalls(t *testing.T) {
	c := client(t)
	if quote := must(c.Quote(ctx, asks("hello"))); !quote.GetFits() {
		t.Error(quote)
	}
	dimensions := int32(8)
	embedded := must(c.Embed(ctx, &vxv1.EmbedRequest{Model: "vx-sandbox-embed", Input: []string{"a", "b"}, Dimensions: &dimensions}))
	if len(embedded.GetEmbeddings()) != 2 || len(embedded.GetEmbeddings()[0].GetValues()) != 8 {
		t.Error(embedded)
	}
	if me := must(c.Me(ctx)); !strings.HasPrefix(me.GetBalance(), "$") {
		t.Error(me)
	}
	ids := []string{}
	for one, err := range c.Models(ctx, &vxv1.ListModelsRequest{PageSize: 1}) {
		ids = append(ids, must(one, err).GetId())
	}
	if len(ids) < 3 || !slices.Contains(ids, must(c.Model(ctx, model)).GetId()) {
		t.Error(ids)
	}
	for row, err := range c.Usage(ctx, &vxv1.GetUsageRequest{GroupBy: []string{"model"}}) {
		if must(row, err).GetRequests() == 0 {
			t.Error(row)
		}
	}
	created := must(c.CreateKey(ctx, &vxv1.CreateKeyRequest{Name: "test", Scopes: []string{"read"}}))
	id := created.GetApiKey().GetId()
	limit := &vxv1.Limit{Metric: "cost", Window: "day", Amount: 5_000_000}
	if key := must(c.UpdateKey(ctx, &vxv1.UpdateKeyRequest{KeyId: id, Name: "changed", Limits: []*vxv1.Limit{limit}})); key.GetName() != "changed" {
		t.Error(key)
	}
	rotated := must(c.RotateKey(ctx, &vxv1.RotateKeyRequest{KeyId: id, OverlapSeconds: 60}))
	limits := must(client(t, vx.WithKey(rotated.GetSecret())).Limits(ctx, &vxv1.ListLimitsRequest{}))
	if !slices.ContainsFunc(limits, func(one *vxv1.Limit) bool { return one.GetMetric() == "cost" && one.GetRemaining() == 5_000_000 }) {
		t.Error(limits)
	}
	if key := must(c.RevokeKey(ctx, created.GetApiKey().GetId())); key.GetState() != "revoked" {
		t.Error(key)
	}
	if _, err := client(t, vx.WithKey(created.GetSecret())).Me(ctx); !errors.Is(err, vx.RevokedApiKey) {
		t.Error(err)
	}
}

func TestErrorsHaveTheirReason(t *testing.T) {
	_, err := client(t, vx.WithKey(os.Getenv("VX_BROKE_KEY"))).Generate(ctx, asks("hello"))
	if !errors.Is(err, vx.InsufficientBalance) || failure(t, err).Metadata["balance_micros"] != "0" {
		t.Error(err)
	}
	_, err = client(t).Stream(ctx, &vx.GenerateRequest{Model: "no-model", Messages: []*vx.Message{vx.User("hello")}})
	if !errors.Is(err, vx.ModelNotFound) || !strings.HasPrefix(failure(t, err).RequestID, "req_") {
		t.Error(err)
	}
	var rows []struct{ Reason, Code string }
	if err := json.Unmarshal([]byte(os.Getenv("VX_REASONS")), &rows); err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		_, option, _ := fault(t, "times=9;reason="+row.Reason)
		_, err := faulty(t).Me(ctx, option, vx.WithCallRetries(0))
		if found := failure(t, err); string(found.Reason) != row.Reason || found.Code.String() != row.Code {
			t.Error(row, err)
		}
	}
	if _, err := client(t, vx.WithURL("http://127.0.0.1:1"), vx.WithMaxRetries(0)).Me(ctx); failure(t, err).Code != connect.CodeUnavailable {
		t.Error(err)
	}
	if _, err := vx.New(vx.WithKey("")); err == nil {
		t.Error("there is a client without a key")
	}
	late, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	if _, err := client(t).Generate(late, asks("[[tokens=400 delay_ms=100]]")); failure(t, err).Code != connect.CodeDeadlineExceeded {
		t.Error(err)
	}
}

func limitedKey(t *testing.T, limit *vxv1.Limit) vx.Option {
	created := must(client(t).CreateKey(ctx, &vxv1.CreateKeyRequest{Name: "limited", Limits: []*vxv1.Limit{limit}}))
	return vx.WithKey(created.GetSecret())
}

func TestACallThatARunningCallRefusesSucceedsByItself(t *testing.T) {
	c := client(t, limitedKey(t, &vxv1.Limit{Metric: "concurrent", Amount: 1}))
	both := func(options ...vx.CallOption) []error {
		first := make(chan error)
		go func() {
			_, err := c.Generate(ctx, asks("[[tokens=2 delay_ms=400]]"), options...)
			first <- err
		}()
		_, err := final(c.Stream(ctx, asks("[[tokens=2 delay_ms=400]]"), options...))
		return slices.DeleteFunc([]error{<-first, err}, func(err error) bool { return err == nil })
	}
	if errs := both(); len(errs) > 0 {
		t.Error(errs)
	}
	errs := both(vx.WithCallRetries(0))
	if len(errs) != 1 || !errors.Is(errs[0], vx.ConcurrencyLimitReached) {
		t.Fatal(errs)
	}
	refused := failure(t, errs[0])
	limit := refused.Limit()
	if refused.RetryAfterSeconds() != 1 || limit.Metric != "concurrent" || limit.Held != 1 || !limit.ResetsAt.IsZero() {
		t.Error(refused, limit)
	}
}

func TestAnErrorHasTheLimitThatRefusedItsCall(t *testing.T) {
	c := client(t, vx.WithURL(os.Getenv("VX_FAULT_URL")), limitedKey(t, &vxv1.Limit{Metric: "generations", Window: "month", Amount: 1}))
	must(c.Generate(ctx, asks("hello")))
	_, option, attempts := fault(t, "times=0")
	_, err := c.Generate(ctx, asks("hello"), option)
	if !errors.Is(err, vx.GenerationLimitExceeded) || len(attempts()) != 1 {
		t.Error(err, attempts())
	}
	limit := *failure(t, err).Limit()
	if !strings.HasPrefix(limit.ID, "lim_") || !strings.HasPrefix(limit.OwnerID, "key_") || !limit.ResetsAt.After(time.Now()) {
		t.Error(limit)
	}
	limit.ID, limit.OwnerID, limit.ResetsAt = "", "", time.Time{}
	if limit != (vx.LimitDetails{Metric: "generations", Window: "month", Amount: 1, Spent: 1, Needed: 1}) {
		t.Error(limit)
	}
	_, err = client(t).Generate(ctx, &vx.GenerateRequest{Model: "no-model", Messages: []*vx.Message{vx.User("hello")}})
	if failure(t, err).Limit() != nil {
		t.Error(err)
	}
}

func TestARetryWithTheSameKeySucceedsAndIsChargedOnce(t *testing.T) {
	for _, parts := range []string{"status=503;retry-after=0", "lose=1", "reason=overloaded;retry-after=0"} {
		for _, kind := range []string{"generate", "stream"} {
			user, option, attempts := fault(t, parts)
			request := asks("[[tokens=5]]")
			request.User = user
			var reply *vx.GenerateResponse
			if kind == "generate" {
				reply = must(faulty(t).Generate(ctx, request, option))
			} else {
				reply = must(final(faulty(t).Stream(ctx, request, option, vx.WithIdempotencyKey(user))))
			}
			keys := attempts()
			if len(keys) != 2 || keys[0] == "" || keys[0] != keys[1] {
				t.Error(kind, parts, keys)
			}
			if charges := chargesOf(t, user); len(charges) != 1 || charges[0].GetGenerationId() != reply.GetId() {
				t.Error(kind, parts, charges)
			}
		}
	}
}

func TestAKeyInTheHeadersIsTheKeyOfTheCall(t *testing.T) {
	_, option, attempts := fault(t, "lose=1")
	key := run + "-header"
	must(faulty(t).Generate(ctx, asks("hello"), option, vx.WithHeader("Idempotency-Key", key)))
	if !slices.Equal(attempts(), []string{key, key}) {
		t.Error(attempts())
	}
	_, empty, attempts := fault(t, "lose=1")
	_, err := final(faulty(t).Stream(ctx, asks("hello"), empty, vx.WithIdempotencyKey("")))
	if err == nil || !slices.Equal(attempts(), []string{""}) {
		t.Error(err, attempts())
	}
}

func TestFinalErrorsAreNotRetried(t *testing.T) {
	_, down, attempts := fault(t, "times=9;status=503;retry-after=0")
	if _, err := faulty(t).Generate(ctx, asks("hello"), down); failure(t, err).Code != connect.CodeUnavailable || len(attempts()) != 3 {
		t.Error(err, attempts())
	}
	_, wrong, attempts := fault(t, "times=9;reason=invalid_argument")
	if _, err := faulty(t).Generate(ctx, asks("hello"), wrong); !errors.Is(err, vx.InvalidArgument) || len(attempts()) != 1 {
		t.Error(err, attempts())
	}
	_, lost, attempts := fault(t, "lose=1")
	if _, err := final(faulty(t).Stream(ctx, asks("hello"), lost)); err == nil || len(attempts()) != 1 {
		t.Error(err, attempts())
	}
	_, refused, attempts := fault(t, "reason=overloaded;retry-after=0")
	if _, err := final(faulty(t).Stream(ctx, asks("hello"), refused)); err != nil || len(attempts()) != 2 {
		t.Error(err, attempts())
	}
	_, created, attempts := fault(t, "lose=1")
	_, err := faulty(t).CreateKey(ctx, &vxv1.CreateKeyRequest{Name: "lost", Scopes: []string{"read"}}, created)
	if err == nil || len(attempts()) != 1 {
		t.Error(err, attempts())
	}
}

func TestAStreamThatIsCutInTheMiddle(t *testing.T) {
	for _, key := range []string{"", run + "-cut"} {
		user, option, attempts := fault(t, "cut=120")
		request := asks("[[tokens=40]] hello")
		request.User = user
		options := []vx.CallOption{}
		if key != "" {
			options = append(options, vx.WithIdempotencyKey(key))
		}
		stream := must(faulty(t).Stream(ctx, request, append(options, option)...))
		var cut error
		for _, err := range stream.Deltas() {
			cut = err
		}
		if failure(t, cut).IdempotencyKey != key || stream.PartialMessage().GetContent() == "" || !slices.Equal(attempts(), []string{key}) {
			t.Error(key, cut, attempts())
		}
		if key != "" {
			again := must(final(client(t, vx.WithMaxRetries(9)).Stream(ctx, request, options...)))
			if again.GetUsage().GetOutputTokens() != 40 {
				t.Error(again)
			}
		}
		if charges := firstChargesOf(t, user); len(charges) != 1 {
			t.Error(charges)
		}
	}
}
