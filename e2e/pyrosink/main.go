// SPDX-License-Identifier: Apache-2.0

// Command pyrosink stands in for a Pyroscope server in tests. pyrosink takes pushes through Pyroscope's own generated
// handler, checks every profile with pprof's reader, and stores each profile as two files: NUMBER.pb.gz, the received
// bytes, and NUMBER.json, with the labels and the functions' values of the first sample type.
//
//	pyrosink -dir DIR [-listen 127.0.0.1:0] [-address-file FILE] [-fail-first N]
//	         [-tenant NAME] [-user NAME -password PASSWORD] [-token TOKEN]
//
// Stricter than the server: all parts that podprof always sends are required.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"sync"

	"connectrpc.com/connect"
	"github.com/google/pprof/profile"
	pushv1 "github.com/grafana/pyroscope/api/gen/proto/go/push/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/push/v1/pushv1connect"
	typesv1 "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"
)

// The limits of a server with default settings.
const (
	maxSeries       = 256
	maxLabels       = 30
	maxPprofBytes   = 4 << 20
	maxSamples      = 16000
	maxLabelValue   = 2048
	compressedMagic = "\x1f\x8b"
)

var (
	labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	uuid      = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
)

// entry is the content of NUMBER.json.
type entry struct {
	ID            string            `json:"id"`
	Labels        map[string]string `json:"labels"`
	SampleTypes   []string          `json:"sample_types"`
	PeriodType    string            `json:"period_type"`
	Period        int64             `json:"period"`
	TimeNanos     int64             `json:"time_nanos"`
	DurationNanos int64             `json:"duration_nanos"`
	Samples       int               `json:"samples"`
	Total         int64             `json:"total"`
	Functions     map[string]int64  `json:"functions"`
	Tenant        string            `json:"tenant,omitempty"`
	Request       string            `json:"request,omitempty"` // of the proxy of e2e/backends
}

type sink struct {
	pushv1connect.UnimplementedPusherServiceHandler

	dir string

	mu   sync.Mutex
	next int
}

func valueType(t *profile.ValueType) string {
	if t == nil {
		return ""
	}
	return t.Type + "/" + t.Unit
}

func checkLabels(pairs []*typesv1.LabelPair) (map[string]string, error) {
	labels := map[string]string{}
	for _, pair := range pairs {
		switch {
		case !labelName.MatchString(pair.Name):
			return nil, fmt.Errorf("label name %q is not valid", pair.Name)
		case pair.Value == "" || len(pair.Value) > maxLabelValue:
			return nil, fmt.Errorf("label %s has a value of %d bytes", pair.Name, len(pair.Value))
		}
		if _, twice := labels[pair.Name]; twice {
			return nil, fmt.Errorf("label %s is there twice", pair.Name)
		}
		labels[pair.Name] = pair.Value
	}
	if len(labels) > maxLabels {
		return nil, fmt.Errorf("%d labels, more than %d", len(labels), maxLabels)
	}
	for _, name := range []string{"__name__", "service_name"} {
		if labels[name] == "" {
			return nil, fmt.Errorf("label %s is missing", name)
		}
	}
	if labels["__delta__"] != "false" {
		return nil, errors.New("label __delta__ is not false")
	}
	return labels, nil
}

func checkProfile(raw []byte) (*profile.Profile, error) {
	if !bytes.HasPrefix(raw, []byte(compressedMagic)) {
		return nil, errors.New("the profile is not compressed")
	}
	unzip, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(unzip, maxPprofBytes+1))
	if err != nil {
		return nil, err
	}
	if len(plain) > maxPprofBytes {
		return nil, fmt.Errorf("the profile is larger than %d bytes", maxPprofBytes)
	}
	p, err := profile.ParseData(raw)
	if err != nil {
		return nil, err
	}
	if err := p.CheckValid(); err != nil {
		return nil, err
	}
	switch {
	case p.PeriodType == nil:
		return nil, errors.New("the profile has no period type")
	case p.TimeNanos == 0:
		return nil, errors.New("the profile has no time")
	case len(p.Sample) > maxSamples:
		return nil, fmt.Errorf("%d samples, more than %d", len(p.Sample), maxSamples)
	}
	return p, nil
}

// sums adds up the first value of all stacks, and of each function's stacks.
func sums(p *profile.Profile) (int64, map[string]int64) {
	total, functions := int64(0), map[string]int64{}
	for _, s := range p.Sample {
		seen := map[string]bool{}
		for _, location := range s.Location {
			for _, line := range location.Line {
				if name := line.Function.Name; !seen[name] {
					seen[name] = true
					functions[name] += s.Value[0]
				}
			}
		}
		total += s.Value[0]
	}
	return total, functions
}

// check reads one sample and returns the stored part.
func check(series *pushv1.RawProfileSeries, sample *pushv1.RawSample, tenant string) (*entry, error) {
	labels, err := checkLabels(series.Labels)
	if err != nil {
		return nil, err
	}
	if !uuid.MatchString(sample.ID) {
		return nil, fmt.Errorf("sample id %q is not a random UUID", sample.ID)
	}
	p, err := checkProfile(sample.RawProfile)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", labels, err)
	}
	e := &entry{
		ID:            sample.ID,
		Labels:        labels,
		PeriodType:    valueType(p.PeriodType),
		Period:        p.Period,
		TimeNanos:     p.TimeNanos,
		DurationNanos: p.DurationNanos,
		Samples:       len(p.Sample),
		Tenant:        tenant,
	}
	e.Total, e.Functions = sums(p)
	for _, t := range p.SampleType {
		e.SampleTypes = append(e.SampleTypes, valueType(t))
	}
	return e, nil
}

// write makes a file that appears whole.
func write(path string, data []byte) error {
	if err := os.WriteFile(path+".new", data, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func (s *sink) keep(e *entry, raw []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	base := filepath.Join(s.dir, fmt.Sprintf("%06d", s.next))
	description, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return err
	}
	if err := write(base+".json", append(description, '\n')); err != nil {
		return err
	}
	return write(base+".pb.gz", raw)
}

// Push implements the service. A request is stored only if all parts are right.
func (s *sink) Push(_ context.Context, r *connect.Request[pushv1.PushRequest]) (*connect.Response[pushv1.PushResponse], error) {
	type item struct {
		entry *entry
		raw   []byte
	}
	var items []item
	if n := len(r.Msg.Series); n == 0 || n > maxSeries {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("%d series", n))
	}
	for _, series := range r.Msg.Series {
		for _, sample := range series.Samples {
			e, err := check(series, sample, r.Header().Get("X-Scope-OrgID"))
			if err != nil {
				log.Printf("refused: %v", err)
				return nil, connect.NewError(connect.CodeInvalidArgument, err)
			}
			e.Request = r.Header().Get("X-Request")
			items = append(items, item{e, sample.RawProfile})
		}
	}
	for _, it := range items {
		if err := s.keep(it.entry, it.raw); err != nil {
			return nil, connect.NewError(connect.CodeInternal, err)
		}
		fmt.Printf("PUSH %v types=%v samples=%d id=%s\n", it.entry.Labels, it.entry.SampleTypes,
			it.entry.Samples, it.entry.ID)
	}
	return connect.NewResponse(&pushv1.PushResponse{}), nil
}

// gate stands before the handler: failures on demand, and access control.
type gate struct {
	next                          http.Handler
	tenant, user, password, token string

	mu   sync.Mutex
	fail int
}

func (g *gate) failsNow() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fail == 0 {
		return false
	}
	g.fail--
	return true
}

func (g *gate) allowed(r *http.Request) bool {
	user, password, _ := r.BasicAuth()
	return (g.tenant == "" || r.Header.Get("X-Scope-OrgID") == g.tenant) &&
		(g.user == "" || user == g.user && password == g.password) &&
		(g.token == "" || r.Header.Get("Authorization") == "Bearer "+g.token)
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case g.failsNow():
		log.Print("failed on demand")
		http.Error(w, "failed on demand", http.StatusInternalServerError)
	case !g.allowed(r):
		log.Print("not allowed")
		http.Error(w, "not allowed", http.StatusUnauthorized)
	default:
		g.next.ServeHTTP(w, r)
	}
}

func run() error {
	s := &sink{}
	g := &gate{}
	listen := flag.String("listen", "127.0.0.1:0", "address to listen on; port 0 takes a free one")
	addressFile := flag.String("address-file", "", "write the address there once it is listened on")
	flag.StringVar(&s.dir, "dir", "", "where profiles are written")
	flag.IntVar(&g.fail, "fail-first", 0, "answer 500 to so many requests first")
	flag.StringVar(&g.tenant, "tenant", "", "tenant that requests must name")
	flag.StringVar(&g.user, "user", "", "user that requests must name, with -password")
	flag.StringVar(&g.password, "password", "", "")
	flag.StringVar(&g.token, "token", "", "bearer token that requests must carry")
	flag.Parse()
	if s.dir == "" || flag.NArg() != 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle(pushv1connect.NewPusherServiceHandler(s))
	g.next = mux
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	address := listener.Addr().String()
	fmt.Printf("listening on %s\n", address)
	if *addressFile != "" {
		if err := write(*addressFile, []byte(address+"\n")); err != nil {
			return err
		}
	}
	return http.Serve(listener, g)
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
