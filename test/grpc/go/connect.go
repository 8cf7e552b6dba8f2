package main

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	vx "vx/grpcclients/gen/vx/v1"
	"vx/grpcclients/gen/vx/v1/vxv1connect"
)

type connectClient struct {
	transport http.RoundTripper
	url       string
	key       string
	options   []connect.ClientOption
}

// openConnect opens a client of connect-go: "connect" and "connect-json" over HTTP/1.1, "connect-grpc" and
// "connect-grpc-web" over HTTP/2.
func openConnect(protocol, address, key string) client {
	one := &connectClient{transport: &http.Transport{MaxIdleConnsPerHost: 64}, url: "http://" + address, key: key}
	h2 := &http2.Transport{
		AllowHTTP:       true,
		ReadIdleTimeout: time.Second,
		DialTLSContext: func(ctx context.Context, network, address string, _ *tls.Config) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
	}
	switch protocol {
	case "connect-json":
		one.options = append(one.options, connect.WithProtoJSON())
	case "connect-grpc":
		one.transport = h2
		one.options = append(one.options, connect.WithGRPC())
	case "connect-grpc-web":
		one.transport = h2
		one.options = append(one.options, connect.WithGRPCWeb())
	}
	return one
}

func (one *connectClient) of(c *call) (connect.HTTPClient, []connect.ClientOption) {
	options := one.options
	if c.gzip {
		options = append(options, connect.WithSendGzip())
	}
	return &http.Client{Transport: one.transport}, options
}

func requestOf[T any](one *connectClient, c *call, message *T) *connect.Request[T] {
	request := connect.NewRequest(message)
	request.Header().Set("authorization", "Bearer "+one.key)
	for name, value := range c.headers {
		request.Header().Set(name, value)
	}
	return request
}

func messageOf[T any](c *call, response *connect.Response[T], err error) (*T, *failure) {
	if err != nil {
		return nil, connectFailure(err)
	}
	c.received = map[string]string{
		"x-request-id":         response.Header().Get("x-request-id"),
		"idempotency-replayed": response.Header().Get("idempotency-replayed"),
	}
	return response.Msg, nil
}

func connectFailure(err error) *failure {
	if err == nil {
		return nil
	}
	found := new(connect.Error)
	if !errors.As(err, &found) {
		return &failure{code: "UNKNOWN", message: err.Error()}
	}
	f := &failure{code: nameOf(codes.Code(found.Code())), message: found.Message()}
	for _, detail := range found.Details() {
		if value, err := detail.Value(); err == nil {
			f.details = append(f.details, value.(proto.Message))
		}
	}
	return f
}

func (one *connectClient) getMe(ctx context.Context, c *call) (*vx.GetMeResponse, *failure) {
	http, options := one.of(c)
	response, err := vxv1connect.NewMeServiceClient(http, one.url, options...).GetMe(ctx, requestOf(one, c, &vx.GetMeRequest{}))
	return messageOf(c, response, err)
}

func (one *connectClient) generate(ctx context.Context, c *call, request *vx.GenerateRequest) (*vx.GenerateResponse, *failure) {
	http, options := one.of(c)
	response, err := vxv1connect.NewGenerateServiceClient(http, one.url, options...).Generate(ctx, requestOf(one, c, request))
	return messageOf(c, response, err)
}

func (one *connectClient) embed(ctx context.Context, c *call, request *vx.EmbedRequest) (*vx.EmbedResponse, *failure) {
	http, options := one.of(c)
	response, err := vxv1connect.NewEmbedServiceClient(http, one.url, options...).Embed(ctx, requestOf(one, c, request))
	return messageOf(c, response, err)
}

func (one *connectClient) stream(ctx context.Context, c *call, request *vx.StreamGenerateRequest, receive func(*vx.StreamGenerateResponse)) *failure {
	http, options := one.of(c)
	stream, err := vxv1connect.NewGenerateServiceClient(http, one.url, options...).StreamGenerate(ctx, requestOf(one, c, request))
	if err != nil {
		return connectFailure(err)
	}
	defer stream.Close()
	for stream.Receive() {
		receive(stream.Msg())
	}
	return connectFailure(stream.Err())
}
