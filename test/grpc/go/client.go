// Calls the server as the programs of its users do, and prints what they receive as JSON. The test says when the server
// stops and starts again.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"

	vx "vx/grpcclients/gen/vx/v1"
)

// call has the metadata of a call and receives that of its response.
type call struct {
	headers  map[string]string
	gzip     bool
	wait     bool
	received map[string]string
}

// failure is an error with its details.
type failure struct {
	code    string
	message string
	details []proto.Message
}

// client hides which library makes the calls.
type client interface {
	getMe(ctx context.Context, c *call) (*vx.GetMeResponse, *failure)
	generate(ctx context.Context, c *call, request *vx.GenerateRequest) (*vx.GenerateResponse, *failure)
	embed(ctx context.Context, c *call, request *vx.EmbedRequest) (*vx.EmbedResponse, *failure)
	// stream passes each message to the function.
	stream(ctx context.Context, c *call, request *vx.StreamGenerateRequest, receive func(*vx.StreamGenerateResponse)) *failure
}

type result = map[string]any

const model = "vx-sandbox-small"

func main() {
	protocol, address, key := os.Args[1], os.Args[2], os.Args[3]
	open := func() client { return open(protocol, address, key) }
	one := open()
	lines := bufio.NewScanner(os.Stdin)
	results := result{}
	var kept sync.WaitGroup
	var keepAlive result
	quiet := "[[tokens=8 delay_ms=2000]]"
	if protocol == "grpc-go" {
		// It sends pings every 10 s, the other connections every second.
		quiet = "[[tokens=8 delay_ms=6000]]"
	}
	kept.Go(func() { keepAlive = streamOf(open(), &call{}, quiet, 0) })
	results["unary"] = unary(one)
	results["generate"] = generate(one, &call{})
	results["stream"] = streamOf(one, &call{}, "[[tokens=40]] hello", 0)
	results["errors"] = refusals(one, protocol, address)
	results["streamError"] = streamOf(one, &call{}, "[[tokens=40 fail_after=8]]", 0)
	results["deadline"] = deadline(one)
	results["cancel"] = cancel(one)
	results["replay"] = replay(one)
	results["large"] = large(one)
	results["gzip"] = generate(one, &call{gzip: true})
	results["concurrent"] = concurrent(one)
	kept.Wait()
	results["keepAlive"] = keepAlive
	results["drain"] = drain(one, lines)
	say("drained")
	wait(lines)
	results["reconnect"] = reconnect(one)
	text, err := json.Marshal(results)
	if err != nil {
		panic(err)
	}
	say(string(text))
}

func open(protocol, address, key string) client {
	if protocol == "grpc-go" {
		return openGrpc(address, key)
	}
	return openConnect(protocol, address, key)
}

func say(line string) { fmt.Println(line) }

// wait waits for a line of the test.
func wait(lines *bufio.Scanner) {
	if !lines.Scan() {
		panic("the test ended the input")
	}
}

func prompt(text string) []*vx.Message {
	return []*vx.Message{{Role: "user", Content: &text}}
}

func codeOf(f *failure) string {
	if f == nil {
		return "OK"
	}
	return f.code
}

func unary(one client) result {
	c := &call{headers: map[string]string{"x-request-id": "my-unary"}}
	response, f := one.getMe(context.Background(), c)
	return result{"code": codeOf(f), "plan": response.GetPlan(), "requestId": c.received["x-request-id"]}
}

func generate(one client, c *call) result {
	response, f := one.generate(context.Background(), c, &vx.GenerateRequest{Model: model, Messages: prompt("hello")})
	return result{"code": codeOf(f), "text": response.GetMessage().GetContent(), "output": response.GetUsage().GetOutputTokens()}
}

// streamOf reads a stream, and cancels it after some pieces unless that is zero.
func streamOf(one client, c *call, text string, cancelAfter int) result {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	pieces, done := 0, false
	f := one.stream(ctx, c, &vx.StreamGenerateRequest{Model: model, Messages: prompt(text)}, func(message *vx.StreamGenerateResponse) {
		if message.GetDone() != nil {
			done = true
		} else {
			pieces++
		}
		if pieces == cancelAfter {
			cancel()
		}
	})
	return result{"code": codeOf(f), "pieces": pieces, "done": done, "reason": reasonOf(f)}
}

func reasonOf(f *failure) string {
	if f != nil {
		for _, detail := range f.details {
			if info, ok := detail.(*errdetails.ErrorInfo); ok {
				return info.GetDomain() + " " + info.GetReason()
			}
		}
	}
	return ""
}

func fieldsOf(f *failure) []string {
	fields := []string{}
	if f != nil {
		for _, detail := range f.details {
			if bad, ok := detail.(*errdetails.BadRequest); ok {
				for _, violation := range bad.GetFieldViolations() {
					fields = append(fields, violation.GetField())
				}
			}
		}
	}
	return fields
}

func refusals(one client, protocol, address string) result {
	ctx := context.Background()
	_, unknown := one.generate(ctx, &call{}, &vx.GenerateRequest{Model: "no-such-model", Messages: prompt("hello")})
	_, invalid := one.generate(ctx, &call{}, &vx.GenerateRequest{Model: model})
	_, noKey := open(protocol, address, "vx_live_x").getMe(ctx, &call{})
	return result{
		"unknown": []string{codeOf(unknown), reasonOf(unknown)},
		"invalid": []any{codeOf(invalid), reasonOf(invalid), fieldsOf(invalid)},
		"noKey":   []string{codeOf(noKey), reasonOf(noKey)},
	}
}

func deadline(one client) result {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	c := &call{headers: map[string]string{"x-request-id": "my-deadline"}}
	pieces := 0
	request := &vx.StreamGenerateRequest{Model: model, Messages: prompt("[[tokens=400 delay_ms=100]]")}
	f := one.stream(ctx, c, request, func(*vx.StreamGenerateResponse) { pieces++ })
	return result{"code": codeOf(f), "somePieces": pieces > 0}
}

func cancel(one client) result {
	c := &call{headers: map[string]string{"x-request-id": "my-cancellation"}}
	return streamOf(one, c, "[[tokens=400 delay_ms=50]]", 2)
}

func replay(one client) result {
	ids := map[string]bool{}
	replayed := []string{}
	for range 2 {
		c := &call{headers: map[string]string{"idempotency-key": fmt.Sprint("key of ", os.Args[1])}}
		response, _ := one.generate(context.Background(), c, &vx.GenerateRequest{Model: model, Messages: prompt("hello")})
		ids[response.GetId()] = true
		replayed = append(replayed, c.received["idempotency-replayed"])
	}
	return result{"ids": len(ids), "replayed": replayed}
}

// large sends and receives a message of more than 5 MB.
func large(one client) result {
	image := append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 5<<20)...)
	text := "What is this?"
	parts := []*vx.ContentPart{{Text: &text}, {Image: &vx.Image{Data: image}}}
	request := &vx.GenerateRequest{Model: model, Messages: []*vx.Message{{Role: "user", Parts: parts}}}
	_, sent := one.generate(context.Background(), &call{}, request)
	texts, dimensions := make([]string, 512), int32(2_600)
	for i := range texts {
		texts[i] = "a"
	}
	response, received := one.embed(context.Background(), &call{}, &vx.EmbedRequest{Model: "vx-sandbox-embed", Input: texts, Dimensions: &dimensions})
	values := 0
	for _, embedding := range response.GetEmbeddings() {
		values += len(embedding.GetValues())
	}
	return result{"sent": codeOf(sent), "received": codeOf(received), "values": values}
}

// concurrent makes more calls at once than the server allows on one connection.
func concurrent(one client) result {
	codes := sync.Map{}
	var calls sync.WaitGroup
	for i := range 300 {
		calls.Go(func() {
			_, f := one.getMe(context.Background(), &call{})
			codes.Store(fmt.Sprint("unary ", i), codeOf(f))
		})
		calls.Go(func() {
			streamed := streamOf(one, &call{}, "[[tokens=12]]", 0)
			codes.Store(fmt.Sprint("stream ", i), streamed["code"])
		})
	}
	calls.Wait()
	counts := map[string]int{}
	codes.Range(func(_, code any) bool {
		counts[code.(string)]++
		return true
	})
	return result{"counts": counts}
}

// drain starts a stream, and another call after the server was told to stop.
func drain(one client, lines *bufio.Scanner) result {
	var during *failure
	isFirst, pieces := true, 0
	request := &vx.StreamGenerateRequest{Model: model, Messages: prompt("[[tokens=120 delay_ms=100]]")}
	f := one.stream(context.Background(), &call{}, request, func(*vx.StreamGenerateResponse) {
		pieces++
		if isFirst {
			isFirst = false
			say("streaming")
			wait(lines)
			_, during = one.getMe(context.Background(), &call{})
		}
	})
	return result{"code": codeOf(f), "pieces": pieces, "during": codeOf(during)}
}

func reconnect(one client) result {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_, f := one.getMe(ctx, &call{wait: true})
	return result{"code": codeOf(f)}
}
