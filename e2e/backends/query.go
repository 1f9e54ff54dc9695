// SPDX-License-Identifier: Apache-2.0
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"
)

// query asks the interface of a whole Pyroscope or Parca for the sum of each type and container, and compares each sum with
// that of the entries in FILE:
//
//	backends query -server URL -tenant NAME -way pyroscope|otlp [-without CONTAINER] FILE...
//	backends query -server URL -way parca FILE...
//	backends query -server URL -way scrape DIR    the answers that "keep" has kept (keep.go)
//
// Containers that Pyroscope refuses (-without) have no sum. Exit status 1: a sum or a type is missing, differs, or is
// not in FILE.

// The server's names of the types over each way; "" for a type that does not go this way.
var queriedTypes = map[string]map[string]string{
	"cpu":               {"pyroscope": "process_cpu:cpu:nanoseconds:cpu:nanoseconds", "otlp": "process_cpu:cpu:nanoseconds:cpu:nanoseconds"},
	"samples":           {"pyroscope": "process_cpu:samples:count:cpu:nanoseconds"},
	"offcpu_delay":      {"pyroscope": "offcpu:delay:nanoseconds:delay:nanoseconds", "otlp": "off_cpu:off_cpu:nanoseconds::"},
	"offcpu_switches":   {"pyroscope": "offcpu:switches:count:delay:nanoseconds"},
	"alloc_objects":     {"pyroscope": "memory:alloc_objects:count:space:bytes", "otlp": "space:alloc_objects:count:space:bytes"},
	"alloc_space":       {"pyroscope": "memory:alloc_space:bytes:space:bytes", "otlp": "space:alloc_space:bytes:space:bytes"},
	"inuse_objects":     {"pyroscope": "memory:inuse_objects:count:space:bytes", "otlp": "space:inuse_objects:count:space:bytes"},
	"inuse_space":       {"pyroscope": "memory:inuse_space:bytes:space:bytes", "otlp": "space:inuse_space:bytes:space:bytes"},
	"mutex_contentions": {"pyroscope": "mutex:contentions:count:contentions:count", "otlp": "mutex:contentions:count:mutex:count"},
	"mutex_delay":       {"pyroscope": "mutex:delay:nanoseconds:contentions:count", "otlp": "mutex:delay:nanoseconds:mutex:count"},
	"block_contentions": {"pyroscope": "block:contentions:count:contentions:count", "otlp": "block:contentions:count:block:count"},
	"block_delay":       {"pyroscope": "block:delay:nanoseconds:contentions:count", "otlp": "block:delay:nanoseconds:block:count"},
}

// parcaType is Parca's name of a type in podprof's profiles: Pyroscope's, and whether the values are those of a time.
func parcaType(kind string) string {
	name := queriedTypes[kind]["pyroscope"]
	if name == "" || strings.HasPrefix(kind, "inuse_") {
		return name
	}
	return name + ":delta"
}

// server is a whole server with an interface for queries.
type server interface {
	types() ([]string, error)                   // the names of all types
	sums(name string) (map[string]int64, error) // of a type by container
}

// Label of the container over each way.
var containerLabels = map[string]string{"pyroscope": "container", "otlp": "container.name"}

type pyroscopeServer struct {
	server, tenant, way string
	begin, end          int64 // ms
}

// ask sends a JSON message of the Connect protocol.
func (q pyroscopeServer) ask(method string, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	r, err := http.NewRequest(http.MethodPost, q.server+"/querier.v1.QuerierService/"+method, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Scope-OrgID", q.tenant)
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err == nil && reply.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", method, reply.Status, text)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, answer)
}

func (q pyroscopeServer) types() ([]string, error) {
	var answer struct {
		ProfileTypes []struct {
			ID string `json:"ID"`
		} `json:"profileTypes"`
	}
	err := q.ask("ProfileTypes", map[string]any{"start": q.begin, "end": q.end}, &answer)
	var names []string
	for _, t := range answer.ProfileTypes {
		names = append(names, t.ID)
	}
	return names, err
}

func (q pyroscopeServer) sums(name string) (map[string]int64, error) {
	var answer struct {
		Series []struct {
			Labels []struct{ Name, Value string }
			Points []struct{ Value float64 }
		}
	}
	label := containerLabels[q.way]
	err := q.ask("SelectSeries", map[string]any{
		"profileTypeID": name, "labelSelector": "{}", "start": q.begin, "end": q.end, "groupBy": []string{label}, "step": 15,
	}, &answer)
	sums := map[string]int64{}
	for _, series := range answer.Series {
		container := ""
		for _, l := range series.Labels {
			if l.Name == label {
				container = l.Value
			}
		}
		for _, p := range series.Points {
			sums[container] += int64(p.Value) // exact below 2^53
		}
	}
	return sums, err
}

// wanted are the sums that the way carries, by Pyroscope's type and container.
func wanted(entries []entry, way, without string) map[string]map[string]int64 {
	sums := map[string]map[string]int64{}
	for _, e := range entries {
		name, total := queriedTypes[e.Type][way], e.Total
		if way == "parca" {
			name, total = parcaType(e.Type), parcaValue(e.Type, e.Total, e.Period)
		}
		if name == "" || e.Total == 0 || e.Entity == without {
			continue
		}
		if sums[name] == nil {
			sums[name] = map[string]int64{}
		}
		sums[name][e.Entity] += total
	}
	return sums
}

// compareSums reports the containers whose sums differ, and returns their number.
func compareSums(name string, got, want map[string]int64) int {
	differ := 0
	for container, sum := range want {
		if got[container] != sum {
			differ++
			log.Printf("%s of %s: %d, sent were %d", name, container, got[container], sum)
		}
	}
	for container := range got {
		if _, ok := want[container]; !ok {
			differ++
			log.Printf("%s of %s: %d, sent was nothing", name, container, got[container])
		}
	}
	return differ
}

// compareAll prints a line for each type, and returns the number of differences.
func compareAll(q server, way string, want map[string]map[string]int64) (int, error) {
	names, err := q.types()
	differ := 0
	for _, name := range names {
		if want[name] == nil {
			differ++
			log.Printf("%s: nothing of this type was sent", name)
		}
	}
	var lines []string
	for name, sums := range want {
		if err != nil {
			return 0, err
		}
		var got map[string]int64
		if got, err = q.sums(name); err != nil {
			return 0, err
		}
		differ += compareSums(name, got, sums)
		total := new(big.Int)
		for _, sum := range got {
			total.Add(total, big.NewInt(sum))
		}
		lines = append(lines, fmt.Sprintf("%-9s %-56s %3d series, %s", way, name, len(got), total))
	}
	slices.Sort(lines)
	fmt.Println(strings.Join(lines, "\n"))
	return differ, err
}

func queryMain(args []string) {
	flags := flag.NewFlagSet("query", flag.ExitOnError)
	address := flags.String("server", "", "the server's address")
	tenant := flags.String("tenant", "", "its tenant")
	way := flags.String("way", "pyroscope", "pyroscope, otlp, parca or scrape")
	without := flags.String("without", "", "the container that Pyroscope refuses")
	flags.Parse(args)
	var want map[string]map[string]int64
	if *way == "scrape" {
		want = keptSums(flags.Arg(0))
	} else {
		var entries []entry
		for _, path := range flags.Args() {
			more, err := readEntries(path)
			if err != nil {
				log.Fatal(err)
			}
			entries = append(entries, more...)
		}
		want = wanted(entries, *way, *without)
	}
	if len(want) == 0 {
		log.Fatal("nothing was sent")
	}
	now := time.Now()
	begin, end := now.Add(-time.Hour), now.Add(time.Minute)
	var q server = pyroscopeServer{*address, *tenant, *way, begin.UnixMilli(), end.UnixMilli()}
	if *way == "parca" || *way == "scrape" {
		q = parcaServer{*address, *way == "parca", begin, end}
	}
	differ, err := compareAll(q, *way, want)
	if err != nil {
		log.Fatal(err)
	}
	if differ > 0 {
		log.Printf("%d sums or types differ", differ)
		os.Exit(1)
	}
}
