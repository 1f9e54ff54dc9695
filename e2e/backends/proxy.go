// SPDX-License-Identifier: Apache-2.0
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	collector "go.opentelemetry.io/proto/slim/otlp/collector/profiles/v1development"
	profiles "go.opentelemetry.io/proto/slim/otlp/profiles/v1development"
	"google.golang.org/protobuf/proto"
)

// A proxy before each server has the fault in DIR/NAME.fault at the time of the request, and appends a line with the
// fault to DIR/NAME.requests. DIR/NAME.address has the proxy's address. Each request has a name in a header, which the
// servers of the test store. DIR/lost has a line with the name of each request whose answer got lost: by a fault, or
// because the sender had waited long enough: it closed the connection before it read all of the answer, and the kernel
// reset the connection. The body of such a request is also kept, in DIR/NAME.lost/: the collector
// does not store the header.
//
//	none      the server's answer
//	slow      the server's answer, after 2 s
//	down      the connection is closed before the request is read by the server
//	429, 503  this answer, and the server sees nothing; 429 with Retry-After: 1
//	413       this answer to a request above 512 KiB, else the server's
//	garbage   bytes that are not HTTP, and the server sees nothing
//	lost      the server takes the request, and the connection is closed in place of an answer
//	cut       the same in the middle of the answer
//	stall     the server takes the request, and the answer waits until the sender has gone
//	huge      the server takes the request, and its answer is followed by 1 GB
//	lying     the server takes the request, and the answer is 503
//	forgets   the answer is 200, but the server stores nothing: DIR/forgotten has the request's name. The request goes on
//	          to the server all the same, as a record of what the sender has sent
//	partial   the server takes the request, and its answer says that a profile was refused (OTLP): DIR/NAME.partial has a
//	          line for each such answer
//	convert   500 as of Pyroscope's conversion to an OTLP request with more than one resource, and the server sees nothing
//	limited   the server gets the first half of an OTLP request's resources, and the answer is 429 and names the profiles of
//	          the others, as Pyroscope above a rate limit
type proxy struct {
	dir, name, url string

	mu sync.Mutex
	n  int
}

func appendLine(path, line string) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	if _, err := fmt.Fprintln(f, line); err != nil {
		log.Fatal(err)
	}
}

// requestHeader has the name of a request.
const requestHeader = "X-Request"

// Bytes that a server with a small ceiling accepts: more than one profile of the test has.
const smallRequest = 512 << 10

// answers of the servers are short; a client may stop reading earlier
const hugeAnswer = 1 << 30

// connection is of a sender.
type connection struct {
	net.Conn

	mu     sync.Mutex
	unread func() // after an answer, until the next request: the answer was not read
}

type connectionKey struct{}

// isReset is true if the other side closed the connection with bytes left to read, or before they came. On loopback the
// kernel knows as soon as the bytes are written.
func (c *connection) isReset() bool {
	const closed = 7 // TCP_CLOSE; without a reset it is TCP_CLOSE_WAIT
	state := closed
	raw, err := c.Conn.(*net.TCPConn).SyscallConn()
	if err == nil {
		raw.Control(func(fd uintptr) {
			var info int // the first bytes of struct tcp_info
			if info, err = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_INFO); err == nil {
				state = info & 0xff
			}
		})
	}
	return state == closed
}

func (c *connection) Read(bytes []byte) (int, error) {
	n, err := c.Conn.Read(bytes)
	c.mu.Lock()
	defer c.mu.Unlock()
	if n > 0 {
		c.unread = nil
	} else if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) && c.unread != nil && (errors.Is(err, syscall.ECONNRESET) || c.isReset()) {
		c.unread()
		c.unread = nil
	}
	return n, err
}

func (c *connection) answering(unread func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unread = unread
}

type connections struct{ net.Listener }

func (l connections) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &connection{Conn: c}, nil
}

func (p *proxy) path(what string) string { return filepath.Join(p.dir, p.name+"."+what) }

func (p *proxy) fault() string {
	text, err := os.ReadFile(p.path("fault"))
	if err != nil {
		return "none"
	}
	return strings.TrimSpace(string(text))
}

func (p *proxy) next() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n++
	return fmt.Sprintf("%s-%d", p.name, p.n)
}

func (p *proxy) noteLost(name string, body []byte) {
	appendLine(filepath.Join(p.dir, "lost"), name)
	if err := os.MkdirAll(p.path("lost"), 0o755); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.path("lost"), name), body, 0o644); err != nil {
		log.Fatal(err)
	}
}

// forward returns the server's answer.
func (p *proxy) forward(r *http.Request, body []byte, name string) (*http.Response, []byte, error) {
	request, err := http.NewRequest(r.Method, p.url+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	request.Header = r.Header.Clone()
	request.Header.Set(requestHeader, name)
	answer, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer, text, err
}

// raw writes bytes in place of an answer and closes the connection.
func raw(w http.ResponseWriter, text string) {
	connection, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		log.Print(err)
		return
	}
	io.WriteString(connection, text)
	connection.Close()
}

// otlpOf decodes an OTLP request.
func otlpOf(body []byte) (*collector.ExportProfilesServiceRequest, error) {
	var request collector.ExportProfilesServiceRequest
	plain, err := gunzip(body)
	if err == nil {
		err = proto.Unmarshal(plain, &request)
	}
	return &request, err
}

// nProfiles is the number of OTLP profiles.
func nProfiles(resources []*profiles.ResourceProfiles) int {
	n := 0
	for _, resource := range resources {
		for _, scope := range resource.ScopeProfiles {
			n += len(scope.Profiles)
		}
	}
	return n
}

// limit cuts the request, and returns the text of the answer.
func limit(request *collector.ExportProfilesServiceRequest) string {
	all := nProfiles(request.ResourceProfiles)
	request.ResourceProfiles = request.ResourceProfiles[:len(request.ResourceProfiles)/2]
	first := nProfiles(request.ResourceProfiles)
	var failures []string
	for i := first; i < all; i++ {
		failures = append(failures, fmt.Sprintf("push series with index %d and id %x failed: resource_exhausted: too much", i, rand.Int63()))
	}
	rand.Shuffle(len(failures), func(i, k int) { failures[i], failures[k] = failures[k], failures[i] })
	count := ""
	if len(failures) > 1 {
		count = fmt.Sprintf("%d errors: ", len(failures))
	}
	return "failed to make a GRPC request: " + count + strings.Join(failures, "; ")
}

// otlpFault answers a request with more than one resource, and says whether it has.
func (p *proxy) otlpFault(fault string, w http.ResponseWriter, r *http.Request, body []byte, name string) bool {
	request, err := otlpOf(body)
	if err != nil {
		log.Printf("%s: %v", p.name, err)
		raw(w, "")
		return true
	}
	if len(request.ResourceProfiles) < 2 {
		return false
	}
	if fault == "convert" {
		http.Error(w, "rpc error: code = InvalidArgument desc = failed to convert otel profile: x", http.StatusInternalServerError)
		return true
	}
	text := limit(request)
	part, err := proto.Marshal(request)
	if err != nil {
		log.Fatal(err)
	}
	r.Header.Del("Content-Encoding")
	answer, _, err := p.forward(r, part, name)
	if err != nil || answer.StatusCode/100 != 2 {
		log.Printf("%s: a part is not stored: %v", p.name, err)
		p.noteLost(name, body)
		raw(w, "")
		return true
	}
	http.Error(w, text, http.StatusTooManyRequests)
	return true
}

func copyAnswer(w http.ResponseWriter, answer *http.Response, text []byte) {
	for name, values := range answer.Header {
		if name != "Content-Length" {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(answer.StatusCode)
	w.Write(text)
}

// partialAnswer refuses one profile of the request.
func partialAnswer() []byte {
	answer, err := proto.Marshal(&collector.ExportProfilesServiceResponse{
		PartialSuccess: &collector.ExportProfilesPartialSuccess{RejectedProfiles: 1, ErrorMessage: "a profile is refused"},
	})
	if err != nil {
		log.Fatal(err)
	}
	return answer
}

// lose answers a request that the server has taken.
func lose(fault string, w http.ResponseWriter, answer *http.Response, text []byte) {
	switch fault {
	case "lost":
		raw(w, "")
	case "cut":
		raw(w, fmt.Sprintf("HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n", answer.Status, len(text)+100))
	case "lying":
		http.Error(w, "lying", http.StatusServiceUnavailable)
	case "forgets":
		w.WriteHeader(http.StatusOK)
	case "partial":
		w.Header().Set("Content-Type", "application/x-protobuf")
		w.Write(partialAnswer())
	case "huge":
		copyAnswer(w, answer, text)
		piece := bytes.Repeat([]byte("x"), 1<<20)
		for sent := 0; sent < hugeAnswer; sent += len(piece) {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	}
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		raw(w, "")
		return
	}
	fault := p.fault()
	name := p.next()
	loses := fault == "lost" || fault == "cut" || fault == "lying" || fault == "huge" || fault == "stall"
	answers := fault == "forgets" || fault == "partial"
	appendLine(p.path("requests"), fault)
	switch {
	case fault == "down":
		raw(w, "")
	case fault == "garbage":
		raw(w, "\x00\x01 no HTTP here\r\n\r\n")
	case fault == "429":
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many requests", http.StatusTooManyRequests)
	case fault == "503":
		http.Error(w, "not now", http.StatusServiceUnavailable)
	case (fault == "convert" || fault == "limited") && p.otlpFault(fault, w, r, body, name):
	case fault == "413" && len(body) > smallRequest:
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
	default:
		if fault == "slow" {
			time.Sleep(2 * time.Second)
		}
		answer, text, err := p.forward(r, body, name)
		if err != nil {
			log.Printf("%s: %v", p.name, err)
			p.noteLost(name, body) // the server may have taken it
			raw(w, "")
			return
		}
		loses = loses && answer.StatusCode/100 == 2
		if loses && fault == "stall" {
			<-r.Context().Done()
		}
		if loses || r.Context().Err() != nil {
			p.noteLost(name, body)
		}
		if answer.StatusCode/100 == 2 && fault == "forgets" {
			appendLine(filepath.Join(p.dir, "forgotten"), name)
		} else if answer.StatusCode/100 == 2 && fault == "partial" {
			appendLine(p.path("partial"), name)
		}
		if loses || answers && answer.StatusCode/100 == 2 {
			lose(fault, w, answer, text)
			return
		}
		sender := r.Context().Value(connectionKey{}).(*connection)
		sender.answering(func() { p.noteLost(name, body) })
		copyAnswer(w, answer, text)
		// The sender had left before its request was read; a busy machine sees that late.
		if http.NewResponseController(w).Flush() != nil || r.Context().Err() != nil || sender.isReset() {
			p.noteLost(name, body)
		}
	}
}

func proxyMain(args []string) {
	flags := flag.NewFlagSet("proxy", flag.ExitOnError)
	dir := flags.String("dir", "", "folder of the faults")
	flags.Parse(args)
	for _, server := range flags.Args() {
		name, url, ok := strings.Cut(server, "=")
		if !ok {
			log.Fatal("write NAME=URL")
		}
		p := &proxy{dir: *dir, name: name, url: url}
		listener := listenAt("127.0.0.1:0", p.path("address"))
		server := http.Server{Handler: p, ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, c)
		}}
		go func() { log.Fatal(server.Serve(connections{listener})) }()
	}
	select {}
}
