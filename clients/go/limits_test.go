package vx_test

// Calls of servers that send what no vx server sends, and keys that no header can have.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	vx "github.com/vx-api/vx/clients/go"
	vxv1 "github.com/vx-api/vx/clients/go/gen/vx/v1"
)

var key = "vx_live_" + strings.Repeat("a", 32)

func TestAResponseHasALimit(t *testing.T) {
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		if strings.HasSuffix(r.URL.Path, "/StreamGenerate") {
			w.Header().Set("Content-Type", "application/connect+proto")
			_, _ = w.Write([]byte{0, 255, 255, 255, 255})
		} else {
			w.Header().Set("Content-Type", "application/proto")
		}
		for range 100 {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	c := client(t, vx.WithURL(server.URL), vx.WithKey(key))
	if _, err := c.Me(ctx); failure(t, err).Code != connect.CodeResourceExhausted {
		t.Error(err)
	}
	if _, err := c.Stream(ctx, asks("hello"), vx.WithIdempotencyKey("k")); failure(t, err).Code != connect.CodeResourceExhausted {
		t.Error(err)
	}
	if calls.Load() != 2 {
		t.Error(calls.Load())
	}
}

func TestAServerThatNeverAnswersEndsTheCallInTime(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer server.Close()
	c := client(t, vx.WithURL(server.URL), vx.WithKey(key), vx.WithTimeout(200*time.Millisecond))
	if _, err := c.Me(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if _, err := c.Stream(ctx, asks("hello")); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestTheTimeLimitOfAStreamIsThatOfTheWholeStream(t *testing.T) {
	event := must(proto.Marshal(&vxv1.StreamGenerateResponse{Event: &vxv1.StreamGenerateResponse_Delta{Delta: &vxv1.GenerateDelta{}}}))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/connect+proto")
		_, _ = w.Write(append([]byte{0, 0, 0, 0, byte(len(event))}, event...))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer server.Close()
	c := client(t, vx.WithURL(server.URL), vx.WithKey(key), vx.WithTimeout(time.Second))
	if _, err := final(c.Stream(ctx, asks("hello"))); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestACallIsRepeatedAfterAResetOfItsConnection(t *testing.T) {
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		connection, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = connection.(*net.TCPConn).SetLinger(0)
		_ = connection.Close()
	}))
	defer server.Close()
	c := client(t, vx.WithURL(server.URL), vx.WithKey(key), vx.WithMaxRetries(1))
	if _, err := c.Me(ctx); failure(t, err).Code != connect.CodeUnavailable || calls.Load() != 2 {
		t.Error(err, calls.Load())
	}
}

func TestTheRetryAfterOfAProxyCounts(t *testing.T) {
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.Header().Set("Retry-After", "3600")
		http.Error(w, "<h1>slow down", http.StatusTooManyRequests)
	}))
	defer server.Close()
	c := client(t, vx.WithURL(server.URL), vx.WithKey(key))
	if _, err := c.Me(ctx); failure(t, err).RetryAfterSeconds() != 3600 {
		t.Error(err)
	}
	if _, err := c.Stream(ctx, asks("hello"), vx.WithIdempotencyKey("k")); failure(t, err).RetryAfterSeconds() != 3600 {
		t.Error(err)
	}
	if calls.Load() != 2 {
		t.Error(calls.Load())
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the redirect was followed")
	}))
	defer other.Close()
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	if _, err := client(t, vx.WithURL(server.URL), vx.WithKey(key)).Me(ctx); err == nil {
		t.Error("no error")
	}
}

func TestAToolCallFollowsTheOneBeforeIt(t *testing.T) {
	for _, index := range []int32{-1, 1, 1<<31 - 1} {
		part := &vxv1.GenerateDelta{ToolCall: &vxv1.ToolCallDelta{Index: index}}
		event := must(proto.Marshal(&vxv1.StreamGenerateResponse{Event: &vxv1.StreamGenerateResponse_Delta{Delta: part}}))
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/connect+proto")
			_, _ = w.Write(append([]byte{0, 0, 0, 0, byte(len(event))}, event...))
			_, _ = w.Write([]byte{2, 0, 0, 0, 2, '{', '}'})
		}))
		_, err := final(client(t, vx.WithURL(server.URL), vx.WithKey(key)).Stream(ctx, asks("hello")))
		server.Close()
		if failure(t, err).Code != connect.CodeInternal {
			t.Error(index, err)
		}
	}
}

func TestAKeyThatNoHeaderCanHave(t *testing.T) {
	for _, good := range []string{" " + key + "\n", key + "\r\n"} {
		client(t, vx.WithKey(good))
	}
	for _, rest := range []string{"\nx", "\x01", "…", " x"} {
		if _, err := vx.New(vx.WithKey(key + rest)); err == nil || strings.Contains(err.Error(), key) {
			t.Error(rest, err)
		}
	}
}

func TestClientIsPrintedWithoutItsKey(t *testing.T) {
	client, err := vx.New(vx.WithKey("vx_live_secret"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{fmt.Sprintf("%v", client), fmt.Sprintf("%+v", client), fmt.Sprintf("%#v", *client)} {
		if strings.Contains(text, "vx_live_secret") {
			t.Error(text)
		}
	}
}
