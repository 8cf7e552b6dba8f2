// Command delay stands for a network: delay UPSTREAM MS listens on a port of 127.0.0.1, which it prints, and forwards each
// connection to a Unix socket or to host:port. What either side sends arrives half of MS milliseconds later. Bandwidth is not limited.
package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A chunk is due at its time.
type chunk struct {
	bytes []byte
	due   time.Time
}

// Limits for the chunks that are delayed in one direction.
const maxChunks = 4096
const maxChunk = 1 << 16

// PR_SET_TIMERSLACK of prctl(2), in nanoseconds.
const prSetTimerSlack = 29

func main() {
	upstream := os.Args[1]
	milliseconds, err := strconv.ParseFloat(os.Args[2], 64)
	check(err)
	oneWay := time.Duration(milliseconds / 2 * float64(time.Millisecond))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	fmt.Printf("listening on %s\n", listener.Addr())
	for {
		near, err := listener.Accept()
		check(err)
		network := "tcp"
		if strings.HasPrefix(upstream, "/") {
			network = "unix"
		}
		far, err := net.Dial(network, upstream)
		if err != nil {
			near.Close()
			continue
		}
		go forward(near, far, oneWay)
		go forward(far, near, oneWay)
	}
}

// forward copies from one connection to another with the delay. When the source closes, the other one is closed after the last chunk.
func forward(from, to net.Conn, oneWay time.Duration) {
	chunks := make(chan chunk, maxChunks)
	go func() {
		runtime.LockOSThread()
		// By default, the kernel may wake a thread 50 µs late.
		syscall.RawSyscall(syscall.SYS_PRCTL, prSetTimerSlack, 1, 0)
		for next := range chunks {
			sleepUntil(next.due)
			// After an error the other chunks fail too.
			to.Write(next.bytes)
		}
		to.Close()
	}()
	buffer := make([]byte, maxChunk)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			chunks <- chunk{bytes.Clone(buffer[:n]), time.Now().Add(oneWay)}
		}
		if err != nil {
			from.Close()
			close(chunks)
			return
		}
	}
}

// time.Sleep would wake up to a millisecond late on a machine that is idle otherwise.
func sleepUntil(due time.Time) {
	if left := time.Until(due); left > 0 {
		duration := syscall.NsecToTimespec(left.Nanoseconds())
		syscall.Nanosleep(&duration, nil)
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
