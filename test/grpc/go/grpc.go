package main

import (
	"context"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	vx "vx/grpcclients/gen/vx/v1"
)

type grpcClient struct {
	connection *grpc.ClientConn
	key        string
}

func openGrpc(address, key string) client {
	connection, err := grpc.NewClient(
		address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)),
		// The shortest interval that the library allows.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second, PermitWithoutStream: true}),
	)
	if err != nil {
		panic(err)
	}
	return &grpcClient{connection, key}
}

func (one *grpcClient) options(ctx context.Context, c *call, header *metadata.MD) (context.Context, []grpc.CallOption) {
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+one.key)
	for name, value := range c.headers {
		ctx = metadata.AppendToOutgoingContext(ctx, name, value)
	}
	options := []grpc.CallOption{grpc.Header(header), grpc.WaitForReady(c.wait)}
	if c.gzip {
		options = append(options, grpc.UseCompressor(gzip.Name))
	}
	return ctx, options
}

func (c *call) keep(header metadata.MD) {
	c.received = map[string]string{}
	for name, values := range header {
		c.received[name] = strings.Join(values, ", ")
	}
}

func grpcFailure(err error) *failure {
	if err == nil {
		return nil
	}
	found, _ := status.FromError(err)
	f := &failure{code: nameOf(found.Code()), message: found.Message()}
	for _, detail := range found.Details() {
		if message, ok := detail.(proto.Message); ok {
			f.details = append(f.details, message)
		}
	}
	return f
}

// nameOf returns the name of the code in the specification.
func nameOf(code codes.Code) string {
	names := [...]string{
		"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
		"PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
		"INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
	}
	return names[code]
}

func (one *grpcClient) getMe(ctx context.Context, c *call) (*vx.GetMeResponse, *failure) {
	var header metadata.MD
	ctx, options := one.options(ctx, c, &header)
	response, err := vx.NewMeServiceClient(one.connection).GetMe(ctx, &vx.GetMeRequest{}, options...)
	c.keep(header)
	return response, grpcFailure(err)
}

func (one *grpcClient) generate(ctx context.Context, c *call, request *vx.GenerateRequest) (*vx.GenerateResponse, *failure) {
	var header metadata.MD
	ctx, options := one.options(ctx, c, &header)
	response, err := vx.NewGenerateServiceClient(one.connection).Generate(ctx, request, options...)
	c.keep(header)
	return response, grpcFailure(err)
}

func (one *grpcClient) embed(ctx context.Context, c *call, request *vx.EmbedRequest) (*vx.EmbedResponse, *failure) {
	var header metadata.MD
	ctx, options := one.options(ctx, c, &header)
	response, err := vx.NewEmbedServiceClient(one.connection).Embed(ctx, request, options...)
	return response, grpcFailure(err)
}

func (one *grpcClient) stream(ctx context.Context, c *call, request *vx.StreamGenerateRequest, receive func(*vx.StreamGenerateResponse)) *failure {
	var header metadata.MD
	ctx, options := one.options(ctx, c, &header)
	stream, err := vx.NewGenerateServiceClient(one.connection).StreamGenerate(ctx, request, options...)
	if err != nil {
		return grpcFailure(err)
	}
	for {
		message, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return grpcFailure(err)
		}
		receive(message)
	}
}
