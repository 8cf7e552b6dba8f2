package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// httpCaller has a connection and one request at a time.
type httpCaller struct {
	conn    net.Conn
	reader  *bufio.Reader
	next    func() []byte
	expect  []byte
	times   int
	mayFail bool
	body    bytes.Buffer
}

// unexpectedResponse is a whole response with another status or body. The connection can be used further.
type unexpectedResponse struct {
	status int
	body   string
}

func (r unexpectedResponse) Error() string {
	return fmt.Sprintf("status %d: %.500s", r.status, r.body)
}

func openHTTP(spec Spec) []Session {
	var turn atomic.Int64
	next := func() []byte { return spec.Requests[int(turn.Add(1))%len(spec.Requests)] }
	sessions := make([]Session, spec.Callers)
	for i := range sessions {
		conn, err := net.Dial("tcp", spec.Address)
		check(err)
		sessions[i] = &httpCaller{
			conn: conn, reader: bufio.NewReaderSize(conn, 1<<16), next: next,
			expect: []byte(spec.Expect), times: max(1, spec.ExpectTimes), mayFail: spec.MayFail,
		}
	}
	return sessions
}

func (c *httpCaller) Run(clock *Clock, record *Record) error {
	defer c.conn.Close()
	if err := c.conn.SetDeadline(clock.end.Add(maxCallTime)); err != nil {
		return err
	}
	for made, at := 0, time.Now(); !clock.Stops(made, at); made++ {
		err := c.call()
		now := time.Now()
		var unexpected unexpectedResponse
		switch {
		case err == nil:
			record.latencies = append(record.latencies, now.Sub(at))
		case c.mayFail && errors.As(err, &unexpected):
			record.failed++
		default:
			return err
		}
		if at = now; clock.pause > 0 {
			time.Sleep(clock.pause)
			at = time.Now()
		}
	}
	return nil
}

// call returns an unexpectedResponse for any status but 200.
func (c *httpCaller) call() error {
	if _, err := c.conn.Write(c.next()); err != nil {
		return err
	}
	response, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return fmt.Errorf("no response: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK && len(c.expect) == 0 {
		_, err = io.Copy(io.Discard, response.Body)
		return err
	}
	c.body.Reset()
	if _, err := c.body.ReadFrom(response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK || bytes.Count(c.body.Bytes(), c.expect) < c.times {
		return unexpectedResponse{response.StatusCode, c.body.String()}
	}
	return nil
}
