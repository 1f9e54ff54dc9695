// SPDX-License-Identifier: Apache-2.0
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/google/pprof/profile"
)

// keep is a proxy between a scraper and podprof that keeps the first -n answers of each kind, and answers 503 afterwards:
//
//	backends keep -server URL -dir DIR -n N [-address-file FILE]
//
// The first part of the path is the scraper's name of the kind: /memory/debug/pprof/allocs. DIR/KIND-I.pb.gz has an answer
// as soon as the scraper has read it.
type keeper struct {
	server, dir string
	max         int

	mu sync.Mutex
	n  map[string]int
}

// take is the number of the next answer; false above the ceiling.
func (k *keeper) take(kind string) (int, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.n[kind]++
	return k.n[kind], k.n[kind] <= k.max
}

// give makes room for another answer: the last one was none.
func (k *keeper) give(kind string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.n[kind]--
}

func (k *keeper) pass(w http.ResponseWriter, r *http.Request, kind, path string) error {
	i, ok := k.take(kind)
	if !ok {
		k.give(kind)
		http.Error(w, "that is all", http.StatusServiceUnavailable)
		return nil
	}
	reply, err := http.Get(k.server + "/" + path + "?" + r.URL.RawQuery)
	if err != nil {
		k.give(kind)
		return err
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err == nil {
		w.WriteHeader(reply.StatusCode)
		_, err = w.Write(body)
	}
	if err != nil || reply.StatusCode != http.StatusOK || r.Context().Err() != nil {
		k.give(kind)
		return err
	}
	name := filepath.Join(k.dir, fmt.Sprintf("%s-%d.pb.gz", kind, i))
	if err = os.WriteFile(name+".new", body, 0o644); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

func (k *keeper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if err := k.pass(w, r, kind, path); err != nil {
		log.Printf("%s: %v", kind, err)
	}
}

func keepMain(args []string) {
	flags := flag.NewFlagSet("keep", flag.ExitOnError)
	server := flags.String("server", "", "podprof's address")
	dir := flags.String("dir", "", "folder of the answers")
	n := flags.Int("n", 3, "answers of each kind")
	addressFile := flags.String("address-file", "", "file for the address")
	flags.Parse(args)
	k := &keeper{server: *server, dir: *dir, max: *n, n: map[string]int{}}
	log.Fatal(http.Serve(listenAt("127.0.0.1:0", *addressFile), k))
}

// keptName is Parca's name of a scraped type: the values of a time are those of a profile with a duration.
func keptName(kind string, p *profile.Profile, i int) string {
	name := fmt.Sprintf("%s:%s:%s:%s:%s", kind, p.SampleType[i].Type, p.SampleType[i].Unit, p.PeriodType.Type, p.PeriodType.Unit)
	if p.DurationNanos != 0 {
		name += ":delta"
	}
	return name
}

// keptSums are the sums of the answers, by Parca's type; a scraped type has no container.
func keptSums(dir string) map[string]map[string]int64 {
	paths, err := filepath.Glob(filepath.Join(dir, "*.pb.gz"))
	if err != nil {
		log.Fatal(err)
	}
	sums := map[string]map[string]int64{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			log.Fatal(err)
		}
		p, err := parse(data)
		if err != nil {
			log.Fatalf("%s: %v", path, err)
		}
		kind, _, _ := strings.Cut(filepath.Base(path), "-")
		for i, t := range p.SampleType {
			name := keptName(kind, p, i)
			for _, sample := range p.Sample {
				if sample.Value[i] == 0 {
					continue
				}
				if sums[name] == nil {
					sums[name] = map[string]int64{}
				}
				sums[name][""] += parcaValue(t.Type, sample.Value[i], p.Period)
			}
		}
	}
	return sums
}
