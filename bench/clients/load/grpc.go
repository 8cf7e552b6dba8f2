package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// grpcSession is an HTTP/2 connection with several callers. One goroutine reads and writes: each response starts
// the next call of its caller.
type grpcSession struct {
	conn    net.Conn
	reader  *bufio.Reader
	writer  *bufio.Writer
	framer  *http2.Framer
	block   bytes.Buffer
	encoder *hpack.Encoder
	spec    *Spec
	callers int
	turn    int
	nextID  uint32
	open    map[uint32]*grpcCall
}

type grpcCall struct {
	startedAt time.Time
	made      int // calls that its caller made before
	messages  messageCounter
	status    string
}

// The largest window of HTTP/2, so that the client never delays the server.
const maxWindow = 1<<31 - 1
const initialWindow = 65_535

func openGRPC(spec Spec) []Session {
	sessions := make([]Session, spec.Connections)
	for i := range sessions {
		conn, err := net.Dial("tcp", spec.Address)
		check(err)
		callers := spec.Callers / spec.Connections
		if i < spec.Callers%spec.Connections {
			callers++
		}
		session := &grpcSession{
			conn: conn, reader: bufio.NewReaderSize(conn, 1<<16), writer: bufio.NewWriterSize(conn, 1<<16),
			spec: &spec, callers: callers, turn: i, nextID: 1, open: map[uint32]*grpcCall{},
		}
		session.framer = http2.NewFramer(session.writer, session.reader)
		session.framer.ReadMetaHeaders = hpack.NewDecoder(4_096, nil)
		session.encoder = hpack.NewEncoder(&session.block)
		check(session.greet())
		sessions[i] = session
	}
	return sessions
}

func (s *grpcSession) greet() error {
	_, err := io.WriteString(s.writer, http2.ClientPreface)
	return errors.Join(err,
		s.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: maxWindow}),
		s.framer.WriteWindowUpdate(0, maxWindow-initialWindow),
		s.writer.Flush())
}

func (s *grpcSession) Run(clock *Clock, record *Record) error {
	defer s.conn.Close()
	if err := s.conn.SetDeadline(clock.end.Add(maxCallTime)); err != nil {
		return err
	}
	for range s.callers {
		if err := s.start(0); err != nil {
			return err
		}
	}
	for len(s.open) > 0 {
		// Written together with the calls that the next frames start.
		if s.reader.Buffered() == 0 {
			if err := s.writer.Flush(); err != nil {
				return err
			}
		}
		frame, err := s.framer.ReadFrame()
		if err != nil {
			return err
		}
		if err := s.handle(frame, clock, record); err != nil {
			return err
		}
	}
	return nil
}

// start writes the next call of a caller.
func (s *grpcSession) start(made int) error {
	s.block.Reset()
	s.header(":method", "POST")
	s.header(":scheme", "http")
	s.header(":authority", s.spec.Address)
	s.header(":path", s.spec.Path)
	s.header("content-type", "application/grpc")
	s.header("te", "trailers")
	if count := len(s.spec.Authorizations); count > 0 {
		s.header("authorization", s.spec.Authorizations[s.turn%count])
	}
	message := s.spec.Requests[s.turn%len(s.spec.Requests)]
	s.turn += s.spec.Connections
	id := s.nextID
	s.nextID += 2
	s.open[id] = &grpcCall{startedAt: time.Now(), made: made}
	return errors.Join(
		s.framer.WriteHeaders(http2.HeadersFrameParam{
			StreamID: id, BlockFragment: s.block.Bytes(), EndHeaders: true,
		}),
		s.framer.WriteData(id, true, message))
}

func (s *grpcSession) header(name, value string) {
	check(s.encoder.WriteField(hpack.HeaderField{Name: name, Value: value}))
}

func (s *grpcSession) handle(frame http2.Frame, clock *Clock, record *Record) error {
	call := s.open[frame.Header().StreamID]
	switch frame := frame.(type) {
	case *http2.SettingsFrame:
		if !frame.IsAck() {
			return s.framer.WriteSettingsAck()
		}
	case *http2.PingFrame:
		if !frame.IsAck() {
			return s.framer.WritePing(true, frame.Data)
		}
	case *http2.GoAwayFrame:
		return fmt.Errorf("the server closes the connection: %v", frame.ErrCode)
	case *http2.RSTStreamFrame:
		return fmt.Errorf("the server reset the stream: %v", frame.ErrCode)
	case *http2.MetaHeadersFrame:
		for _, field := range frame.RegularFields() {
			if field.Name == "grpc-status" {
				call.status = field.Value
			}
		}
		if frame.StreamEnded() {
			return s.finish(frame.StreamID, call, clock, record)
		}
	case *http2.DataFrame:
		call.messages.feed(frame.Data())
		if frame.StreamEnded() {
			return s.finish(frame.StreamID, call, clock, record)
		}
	}
	return nil
}

// finish fails on any status but OK.
func (s *grpcSession) finish(id uint32, call *grpcCall, clock *Clock, record *Record) error {
	if call.status != "0" {
		return fmt.Errorf("grpc-status %q", call.status)
	}
	delete(s.open, id)
	now := time.Now()
	record.latencies = append(record.latencies, now.Sub(call.startedAt))
	record.messages += call.messages.count
	if made := call.made + 1; !clock.Stops(made, now) {
		return s.start(made)
	}
	return nil
}

// messageCounter counts length-prefixed messages that frames may divide anywhere.
type messageCounter struct {
	count     int
	head      [5]byte
	headBytes int
	remaining uint32
}

func (m *messageCounter) feed(data []byte) {
	for len(data) > 0 {
		if m.remaining > 0 {
			taken := min(m.remaining, uint32(len(data)))
			m.remaining -= taken
			data = data[taken:]
			continue
		}
		taken := copy(m.head[m.headBytes:], data)
		m.headBytes += taken
		data = data[taken:]
		if m.headBytes == len(m.head) {
			m.headBytes = 0
			m.remaining = binary.BigEndian.Uint32(m.head[1:])
			m.count++
		}
	}
}
