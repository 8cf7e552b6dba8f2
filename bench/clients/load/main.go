// Command load makes calls over HTTP/1.1 or gRPC for a limited time and prints what they took. It needs less CPU
// time per call than a client on Node, so it is not the bottleneck of a measurement on the same machine.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// Spec is read from the standard input as JSON.
type Spec struct {
	Protocol    string // "http" or "grpc"
	Address     string
	Callers     int
	Connections int // gRPC; over HTTP each caller has a connection
	Seconds     float64
	PauseMs     float64  // after each call of a caller
	CallsEach   int      // if not 0, each caller makes this many calls, in place of Seconds
	Requests    [][]byte // sent in turn: whole requests over HTTP, length-prefixed messages over gRPC
	Path        string   // gRPC
	// gRPC: values of the header, used in turn; none if empty.
	Authorizations []string
	Expect         string // HTTP: every response body contains it
	ExpectTimes    int    // HTTP: how many times at least; once if 0
	MayFail        bool   // HTTP: count calls with another status or body, in place of ending
}

// Result is printed as JSON.
type Result struct {
	Calls     int     `json:"calls"`
	Failed    int     `json:"failed"`   // not among the calls
	Messages  int     `json:"messages"` // gRPC messages received
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"perSecond"`
	P50Ms     float64 `json:"p50Ms"`
	P99Ms     float64 `json:"p99Ms"`
	MaxMs     float64 `json:"maxMs"`
}

// A call that never ends fails after the measured time and this.
const maxCallTime = 60 * time.Second

func main() {
	var spec Spec
	check(json.NewDecoder(os.Stdin).Decode(&spec))
	// Garbage is small, and collections would delay calls.
	debug.SetGCPercent(1_000)
	clock := &Clock{pause: time.Duration(spec.PauseMs * float64(time.Millisecond)), callsEach: spec.CallsEach}
	var sessions []Session
	switch spec.Protocol {
	case "http":
		sessions = openHTTP(spec)
	case "grpc":
		sessions = openGRPC(spec)
	default:
		check(fmt.Errorf("protocol %q is neither http nor grpc", spec.Protocol))
	}
	clock.start = time.Now()
	clock.end = clock.start.Add(time.Duration(spec.Seconds * float64(time.Second)))
	check(json.NewEncoder(os.Stdout).Encode(runAll(sessions, clock)))
}

// Session is a connection with one or more callers.
type Session interface {
	// Run makes calls until the clock stops them, and records each.
	Run(clock *Clock, record *Record) error
}

// Clock says when callers stop.
type Clock struct {
	start, end time.Time
	pause      time.Duration
	callsEach  int
}

// Stops tells whether a caller that has made some calls stops.
func (c *Clock) Stops(made int, now time.Time) bool {
	if c.callsEach > 0 {
		return made >= c.callsEach
	}
	return !now.Before(c.end)
}

// Record is what one session measured.
type Record struct {
	latencies []time.Duration
	failed    int
	messages  int
}

func runAll(sessions []Session, clock *Clock) Result {
	records := make([]Record, len(sessions))
	var group sync.WaitGroup
	for i, session := range sessions {
		group.Go(func() { check(session.Run(clock, &records[i])) })
	}
	group.Wait()
	seconds := time.Since(clock.start).Seconds()
	var all []time.Duration
	result := Result{Seconds: seconds}
	for _, record := range records {
		all = append(all, record.latencies...)
		result.Messages += record.messages
		result.Failed += record.failed
	}
	slices.Sort(all)
	result.Calls = len(all)
	result.PerSecond = float64(len(all)) / seconds
	result.P50Ms, result.P99Ms, result.MaxMs = share(all, 0.5), share(all, 0.99), share(all, 1)
	return result
}

func share(sorted []time.Duration, part float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	at := min(len(sorted)-1, int(float64(len(sorted))*part))
	return float64(sorted[at]) / float64(time.Millisecond)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
