// Calls servers with 200 goroutines as fast as limits allow, and is their upstream: it counts what runs and what begins in each window.
// Prints the address of the upstream, reads the specification as JSON from the standard input, and prints the counts as JSON.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

const (
	callers      = 200
	inputTokens  = 5
	outputTokens = 95
	callTime     = 40 * time.Millisecond
	retryAfter   = 25 * time.Millisecond
	// The time in each window, at least.
	part = 5 * time.Second
	// A limit that refuses all calls for this time is used in full. A slow machine needs longer than the time above for that.
	quiet = 2 * time.Second
)

type spec struct {
	URLs []string
	// A key with a limit of running calls, and one with a limit of tokens per window.
	Running, Tokens string
	RunningLimit    int
	WindowSeconds   int64
	// The number of windows in which calls are made.
	Windows int
}

type counts struct {
	MostRunning int
	// By the number of the window since 1970.
	TokensBegun map[int64]int
	Calls       int
	// Statuses other than 200 and 429, with an example of their bodies.
	Unexpected map[int]string
}

var (
	mutex   sync.Mutex
	given   spec
	running int
	// Closed as soon as as many calls run as the limit allows.
	full = make(chan struct{})
	// When a call with the limit of tokens last succeeded.
	admitted time.Time
	result   = counts{TokensBegun: map[int64]int{}, Unexpected: map[int]string{}}
)

// Only calls of the key with a limit of running calls are counted as running: they use the model "running".
func serveUpstream(writer http.ResponseWriter, request *http.Request) {
	var body struct{ Model string }
	json.NewDecoder(request.Body).Decode(&body)
	mutex.Lock()
	if body.Model == "running" {
		running++
		if running > result.MostRunning {
			result.MostRunning = running
			if running == given.RunningLimit {
				close(full)
			}
		}
	} else {
		result.TokensBegun[time.Now().Unix()/given.WindowSeconds] += inputTokens + outputTokens
	}
	mutex.Unlock()
	if body.Model == "running" {
		// The first calls end once the limit is used in full. On a slow machine, servers could otherwise still be about to send
		// some of them here while others have ended here.
		select {
		case <-full:
		case <-time.After(part):
		}
	}
	time.Sleep(callTime)
	if body.Model == "running" {
		mutex.Lock()
		running--
		mutex.Unlock()
	}
	writer.Header().Set("content-type", "application/json")
	fmt.Fprintf(writer, `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`,
		inputTokens, outputTokens, inputTokens+outputTokens)
}

func call(client *http.Client, url, secret, model string) {
	body := fmt.Sprintf(`{"model":"%s","max_tokens":%d,"messages":[{"role":"user","content":"hello"}]}`, model, outputTokens)
	request, _ := http.NewRequest("POST", url+"/v1/generate", bytes.NewBufferString(body))
	request.Header.Set("authorization", "Bearer "+secret)
	request.Header.Set("content-type", "application/json")
	response, err := client.Do(request)
	status, text := 0, fmt.Sprint(err)
	if err == nil {
		content, _ := io.ReadAll(response.Body)
		response.Body.Close()
		status, text = response.StatusCode, string(content)
	}
	mutex.Lock()
	if status == 200 {
		result.Calls++
		if model == "tokens" {
			admitted = time.Now()
		}
	} else if status != 429 {
		result.Unexpected[status] = text
	}
	mutex.Unlock()
	if status != 200 {
		time.Sleep(retryAfter)
	}
}

func isQuiet() bool {
	mutex.Lock()
	defer mutex.Unlock()
	return time.Since(admitted) > quiet
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go http.Serve(listener, http.HandlerFunc(serveUpstream))
	fmt.Printf("http://%s/v1\n", listener.Addr())
	if err := json.NewDecoder(os.Stdin).Decode(&given); err != nil {
		panic(err)
	}
	window := time.Duration(given.WindowSeconds) * time.Second
	if left := time.Until(time.Now().Truncate(window).Add(window)); left < part {
		time.Sleep(left)
	}
	until := time.Now().Add(part)
	if given.Windows > 1 {
		until = time.Now().Truncate(window).Add(time.Duration(given.Windows-1)*window + part)
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers}}
	var group sync.WaitGroup
	for caller := range callers {
		secret, model := given.Running, "running"
		if caller >= callers/2 {
			secret, model = given.Tokens, "tokens"
		}
		group.Go(func() {
			for n := caller; time.Now().Before(until) || (model == "tokens" && !isQuiet()); n++ {
				call(client, given.URLs[n%len(given.URLs)], secret, model)
			}
		})
	}
	group.Wait()
	json.NewEncoder(os.Stdout).Encode(result)
}
