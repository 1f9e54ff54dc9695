// SPDX-License-Identifier: Apache-2.0

// Command backends stands in for Parca, Coroot and an OTLP receiver in tests. It decodes requests with the libraries
// that these servers use, checks what the servers check, and appends a JSON line for each profile and sample type:
//
//	backends -out FILE [-listen 127.0.0.1:0] [-address-file FILE] [-fail-first N]
//
// The type is the one of podprof's pprof ("cpu", "alloc_space"; "offcpu_delay", "mutex_delay" where the name alone is
// ambiguous), so the totals of all backends can be compared. More commands are for tests with faults and with whole servers:
//
//	backends proxy -dir DIR NAME=URL...            a proxy with faults before each server (proxy.go)
//	backends read -out FILE [-lost] KIND=PATH...   the same lines from what other servers stored (read.go)
//	backends compare [-lost FILE] [-forgotten FILE] [-types] FILE...   lost and duplicate profiles of each backend (compare.go)
//	backends query -server URL ... FILE...         the sums that a whole Pyroscope or Parca answers (query.go)
//	backends keep -server URL -dir DIR ...         a proxy that keeps the answers to a scraper (keep.go)
package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/google/pprof/profile"
	collector "go.opentelemetry.io/proto/slim/otlp/collector/profiles/v1development"
	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	profiles "go.opentelemetry.io/proto/slim/otlp/profiles/v1development"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// The collector's ceiling of a request, before compression.
const maxBody = 20 << 20

// entry is a line of the output. Time is the start of the window.
type entry struct {
	Backend       string           `json:"backend"`
	Entity        string           `json:"entity"` // the last part of the container's name
	Type          string           `json:"type"`
	Unit          string           `json:"unit"`
	Total         int64            `json:"total"`
	TimeNanos     int64            `json:"time_nanos"`
	DurationNanos int64            `json:"duration_nanos"`
	Period        int64            `json:"period,omitempty"`
	Functions     map[string]int64 `json:"functions"`         // values of the innermost functions
	Request       string           `json:"request,omitempty"` // a proxy's name of the request
}

// typeOf is the name of a pprof's type, with the kind of the profile where several kinds have the same type.
func typeOf(kind, sampleType string) string {
	if kind == "offcpu" || kind == "mutex" || kind == "block" {
		return kind + "_" + sampleType
	}
	return sampleType
}

type sink struct {
	mu   sync.Mutex
	out  *os.File
	fail map[string]int // requests still to be refused, by backend
}

// add appends the entries of one accepted request.
func (s *sink) add(entries []entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range entries {
		line, err := json.Marshal(e)
		if err != nil {
			log.Fatal(err)
		}
		if _, err := s.out.Write(append(line, '\n')); err != nil {
			log.Fatal(err)
		}
	}
}

func (s *sink) fails(backend string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail[backend]--
	return s.fail[backend] >= 0
}

// handle refuses the first requests of a backend, then decodes.
func (s *sink) handle(backend string, decode func(r *http.Request, body []byte) ([]entry, error), reply func(w http.ResponseWriter)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
		if err == nil && r.Header.Get("Content-Encoding") == "gzip" {
			body, err = gunzip(body)
		}
		if err == nil && len(body) > maxBody {
			err = errors.New("the request is too large")
		}
		if s.fails(backend) {
			http.Error(w, "not yet", http.StatusServiceUnavailable)
			return
		}
		var entries []entry
		if err == nil {
			entries, err = decode(r, body)
		}
		for i := range entries {
			entries[i].Request = r.Header.Get(requestHeader)
		}
		if err != nil {
			log.Printf("%s: %v", backend, err)
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.add(entries)
		reply(w)
	}
}

func gunzip(data []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, maxBody+1))
}

func parse(data []byte) (*profile.Profile, error) {
	p, err := profile.ParseData(data)
	if err != nil {
		return nil, err
	}
	if p.PeriodType == nil || p.PeriodType.Type == "" {
		return nil, errors.New("no period type")
	}
	return p, p.CheckValid()
}

// sampled sums one type of a pprof profile.
func sampled(e entry, p *profile.Profile, i int, zeros bool) (entry, error) {
	e.Unit, e.Functions = p.SampleType[i].Unit, map[string]int64{}
	for _, sample := range p.Sample {
		if sample.Value[i] == 0 && !zeros {
			return e, fmt.Errorf("%s: a sample is 0", e.Type)
		}
		e.Total += sample.Value[i]
		if len(sample.Location) > 0 && len(sample.Location[0].Line) > 0 {
			e.Functions[sample.Location[0].Line[0].Function.Name] += sample.Value[i]
		}
	}
	return e, nil
}

// Parca, pkg/normalizer: labels, ids in order, a duration for differences only.

type parcaRequest struct {
	Normalized bool `json:"normalized"`
	Series     []struct {
		Labels struct {
			Labels []struct {
				Name  string `json:"name"`
				Value string `json:"value"`
			} `json:"labels"`
		} `json:"labels"`
		Samples []struct {
			RawProfile []byte `json:"rawProfile"`
		} `json:"samples"`
	} `json:"series"`
}

func parcaProfile(labels map[string]string, raw []byte) ([]entry, error) {
	p, err := parse(raw)
	if err != nil {
		return nil, err
	}
	for i, m := range p.Mapping {
		if m.ID != uint64(i)+1 {
			return nil, errors.New("mapping ids are not in order")
		}
	}
	for i, l := range p.Location {
		if l.ID != uint64(i)+1 {
			return nil, errors.New("location ids are not in order")
		}
	}
	var entries []entry
	for i, t := range p.SampleType {
		if delta := !strings.HasPrefix(t.Type, "inuse_"); delta != (p.DurationNanos != 0) {
			return nil, fmt.Errorf("%s has the duration %d", t.Type, p.DurationNanos)
		}
		e := entry{Backend: "parca", Entity: labels["container"], Type: typeOf(labels["__name__"], t.Type), TimeNanos: p.TimeNanos, DurationNanos: p.DurationNanos}
		if e, err = sampled(e, p, i, true); err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

func parca(_ *http.Request, body []byte) ([]entry, error) {
	var request parcaRequest
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&request); err != nil {
		return nil, err
	}
	var entries []entry
	for _, series := range request.Series {
		labels := map[string]string{}
		for _, l := range series.Labels.Labels {
			if _, twice := labels[l.Name]; twice {
				return nil, fmt.Errorf("label %s is there twice", l.Name)
			}
			labels[l.Name] = l.Value
		}
		if labels["__name__"] == "" {
			return nil, errors.New("missing __name__ label")
		}
		for _, sample := range series.Samples {
			more, err := parcaProfile(labels, sample.RawProfile)
			if err != nil {
				return nil, err
			}
			entries = append(entries, more...)
		}
	}
	return entries, nil
}

// lastPart is "" for a name without parts: such a profile is of no container.
func lastPart(name string) string { return name[strings.LastIndex(name, "/")+1:] }

// Coroot, collector/profiles.go: the entity in the address, one type, the time of the end.

func coroot(r *http.Request, body []byte) ([]entry, error) {
	query := r.URL.Query()
	for name, values := range query {
		if len(values) != 1 {
			return nil, fmt.Errorf("%s is there %d times", name, len(values))
		}
	}
	if query.Get("service.name") == "" {
		return nil, errors.New("service.name is empty")
	}
	p, err := parse(body)
	if err != nil {
		return nil, err
	}
	if len(p.SampleType) != 1 {
		return nil, fmt.Errorf("%d sample types", len(p.SampleType))
	}
	kind := strings.Split(p.SampleType[0].Type, ":")
	if len(kind) != 3 {
		return nil, fmt.Errorf("the type is %s", p.SampleType[0].Type)
	}
	e := entry{
		Backend: "coroot", Entity: lastPart(query.Get("container.id")), Type: strings.TrimPrefix(kind[1], "heap_"),
		TimeNanos: p.TimeNanos - p.DurationNanos, DurationNanos: p.DurationNanos,
	}
	e, err = sampled(e, p, 0, false)
	return []entry{e}, err
}

// OTLP, with the messages of the specification.

type dictionary struct{ *profiles.ProfilesDictionary }

// check is for requests of podprof's: in what the collector writes, null entries have empty messages inside.
func (d dictionary) check() error {
	tables := map[string]int{
		"mappings": len(d.MappingTable), "locations": len(d.LocationTable), "functions": len(d.FunctionTable),
		"links": len(d.LinkTable), "strings": len(d.StringTable), "attributes": len(d.AttributeTable), "stacks": len(d.StackTable),
	}
	for name, n := range tables {
		if n == 0 {
			return fmt.Errorf("no null entry in the table of %s", name)
		}
	}
	empty := []proto.Message{d.MappingTable[0], d.LocationTable[0], d.FunctionTable[0], d.LinkTable[0], d.AttributeTable[0], d.StackTable[0]}
	for _, message := range empty {
		if proto.Size(message) != 0 {
			return fmt.Errorf("entry 0 is %v", message)
		}
	}
	if d.StringTable[0] != "" {
		return errors.New("string 0 is not empty")
	}
	return nil
}

// attribute panics for an index out of range; the handler's caller sees a lost connection.
func (d dictionary) attribute(indices []int32, key string) string {
	for _, i := range indices {
		if a := d.AttributeTable[i]; d.StringTable[a.KeyStrindex] == key {
			return d.text(a.Value)
		}
	}
	return ""
}

func (d dictionary) samples(e *entry, p *profiles.Profile, scale int64) error {
	for _, sample := range p.Samples {
		if len(sample.Values) != 1 || len(sample.TimestampsUnixNano) != 0 || sample.Values[0] == 0 {
			return fmt.Errorf("a sample has the values %v", sample.Values)
		}
		value := sample.Values[0] * scale
		e.Total += value
		for i, index := range d.StackTable[sample.StackIndex].LocationIndices {
			location := d.LocationTable[index]
			if d.attribute(location.AttributeIndices, "profile.frame.type") == "" {
				return errors.New("a location without a frame type")
			}
			_ = d.MappingTable[location.MappingIndex]
			for j, line := range location.Lines {
				if function := d.FunctionTable[line.FunctionIndex]; i == 0 && j == 0 {
					e.Functions[d.StringTable[function.NameStrindex]] += value
				}
			}
		}
	}
	return nil
}

func (d dictionary) profile(entity string, p *profiles.Profile) (entry, error) {
	e := entry{
		Backend: "otlp", Entity: entity, Type: d.StringTable[p.SampleType.TypeStrindex], Unit: d.StringTable[p.SampleType.UnitStrindex],
		TimeNanos: int64(p.TimeUnixNano), DurationNanos: int64(p.DurationNano), Functions: map[string]int64{},
	}
	if len(p.ProfileId) != 16 {
		return e, errors.New("the id has not 16 bytes")
	}
	scale := int64(1)
	if e.Type == "samples" {
		e.Type, e.Unit, scale = d.StringTable[p.PeriodType.TypeStrindex], d.StringTable[p.PeriodType.UnitStrindex], p.Period
	} else if e.Type == "off_cpu" {
		e.Type = typeOf("offcpu", "delay")
	} else if p.PeriodType != nil {
		e.Type = typeOf(d.StringTable[p.PeriodType.TypeStrindex], e.Type)
	}
	return e, d.samples(&e, p, scale)
}

// known refuses fields that the specification does not have, at any depth.
func known(m proto.Message) error {
	return protorange.Range(m.ProtoReflect(), func(p protopath.Values) error {
		last := p.Index(-1).Value
		if message, ok := last.Interface().(protoreflect.Message); ok && len(message.GetUnknown()) > 0 {
			return fmt.Errorf("unknown fields in %s", message.Descriptor().FullName())
		}
		return nil
	})
}

// text is a string of an attribute; the collector moves these strings into the dictionary.
func (d dictionary) text(v *common.AnyValue) string {
	if i := v.GetStringValueStrindex(); i != 0 {
		return d.StringTable[i]
	}
	return v.GetStringValue()
}

func (d dictionary) attributes(pairs []*common.KeyValue) map[string]string {
	values := map[string]string{}
	for _, pair := range pairs {
		key := pair.Key
		if key == "" {
			key = d.StringTable[pair.KeyStrindex]
		}
		values[key] = d.text(pair.Value)
	}
	return values
}

func otlp(r *http.Request, body []byte) ([]entry, error) {
	if r.Header.Get("Content-Type") != "application/x-protobuf" {
		return nil, errors.New("the content type is " + r.Header.Get("Content-Type"))
	}
	return otlpRequest(body, dictionary.check)
}

// otlpRequest also reads what the collector's file exporter writes: the message is the same.
func otlpRequest(body []byte, check func(dictionary) error) ([]entry, error) {
	var request collector.ExportProfilesServiceRequest
	if err := proto.Unmarshal(body, &request); err != nil {
		return nil, err
	}
	if err := known(&request); err != nil {
		return nil, err
	}
	if request.Dictionary == nil {
		return nil, errors.New("no dictionary")
	}
	d := dictionary{request.Dictionary}
	if err := check(d); err != nil {
		return nil, err
	}
	var entries []entry
	for _, resource := range request.ResourceProfiles {
		values := d.attributes(resource.Resource.Attributes)
		if values["service.name"] == "" {
			return nil, errors.New("no service.name")
		}
		for _, scope := range resource.ScopeProfiles {
			if scope.Scope.Name == "" {
				return nil, errors.New("no scope")
			}
			for _, p := range scope.Profiles {
				e, err := d.profile(cmp.Or(values["container.name"], values["k8s.container.name"]), p)
				if err != nil {
					return nil, err
				}
				entries = append(entries, e)
			}
		}
	}
	return entries, nil
}

// listenAt listens, and then writes the address to a file.
func listenAt(address, file string) net.Listener {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		log.Fatal(err)
	}
	if file != "" {
		if err := os.WriteFile(file+".new", []byte(listener.Addr().String()), 0o644); err != nil {
			log.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			log.Fatal(err)
		}
	}
	return listener
}

func serve() {
	out := flag.String("out", "", "file of the entries")
	listen := flag.String("listen", "127.0.0.1:0", "address")
	addressFile := flag.String("address-file", "", "file for the address")
	failFirst := flag.Int("fail-first", 0, "requests of each backend to answer with 503")
	flag.Parse()
	file, err := os.Create(*out)
	if err != nil {
		log.Fatal(err)
	}
	s := &sink{out: file, fail: map[string]int{"parca": *failFirst, "coroot": *failFirst, "otlp": *failFirst}}
	http.HandleFunc("POST /api/profiles/writeraw", s.handle("parca", parca, func(w http.ResponseWriter) { fmt.Fprint(w, "{}") }))
	http.HandleFunc("POST /v1/profiles", s.handle("coroot", coroot, func(http.ResponseWriter) {}))
	http.HandleFunc("POST /v1development/profiles", s.handle("otlp", otlp, func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	log.Fatal(http.Serve(listenAt(*listen, *addressFile), nil))
}

func main() {
	commands := map[string]func(args []string){"proxy": proxyMain, "read": readMain, "compare": compareMain, "query": queryMain, "keep": keepMain}
	if len(os.Args) > 1 {
		if command, ok := commands[os.Args[1]]; ok {
			command(os.Args[2:])
			return
		}
	}
	serve()
}
