// SPDX-License-Identifier: Apache-2.0
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"slices"
	"strings"
)

// compare reads entries and compares each profile of a container at all backends, by type, entity and time:
//
//	lost     another backend has the profile
//	unequal  another backend has another total
//	twice    copies beyond the first; "excused" of these had their answer lost
//
// Exit status 1: lost or unequal profiles, or copies without an excuse.

type key struct {
	entity, kind string
	time         int64
}

type copies struct {
	n, nLost int
	total    int64
}

// The types that a backend does not get, or not as values of a window.
func carries(backend, kind string) bool {
	switch backend {
	case "coroot":
		return kind != "samples" && !strings.HasPrefix(kind, "offcpu_")
	case "collector", "otlp":
		return kind != "samples" && kind != "offcpu_switches"
	case "folder":
		return kind == "cpu" || kind == "samples" || strings.HasPrefix(kind, "offcpu_")
	}
	return true
}

type comparison struct {
	backends map[string]map[key]*copies
	totals   map[key]int64 // of any backend
	unequal  map[string]int
	windows  []int64         // the times of the profiles, in order, without Coroot's
	lost     map[string]bool // requests whose answer got lost
}

// window is the begin of the entry's window: at Coroot each container's windows are up to a millisecond later.
func (c *comparison) window(e entry) int64 {
	if e.Backend == "coroot" {
		if i, _ := slices.BinarySearch(c.windows, e.TimeNanos+1); i > 0 && e.TimeNanos-c.windows[i-1] < 1e6 {
			return c.windows[i-1]
		}
	}
	return e.TimeNanos
}

func (c *comparison) add(e entry, excuseOnly bool) {
	// a profile with nothing in it is not sent everywhere
	if e.Entity == "" || e.Total == 0 {
		return
	}
	k := key{e.Entity, e.Type, c.window(e)}
	if c.backends[e.Backend] == nil {
		c.backends[e.Backend] = map[key]*copies{}
	}
	got := c.backends[e.Backend][k]
	if got == nil {
		got = &copies{total: e.Total}
		c.backends[e.Backend][k] = got
	}
	if c.lost[e.Request] {
		got.nLost++
	}
	if excuseOnly {
		return
	}
	got.n++
	if _, ok := c.totals[k]; !ok {
		c.totals[k] = e.Total
	}
	if c.totals[k] != e.Total {
		c.unequal[e.Backend]++
		log.Printf("%s: %v has %d, elsewhere %d", e.Backend, k, e.Total, c.totals[k])
	}
}

func readEntries(path string) ([]entry, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var entries []entry
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxBody)
	for lines.Scan() {
		var e entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, lines.Err()
}

func (c *comparison) print() bool {
	fine := true
	names := make([]string, 0, len(c.backends))
	for name := range c.backends {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		profiles, lost, twice, excused := 0, 0, 0, 0
		for k := range c.totals {
			if !carries(name, k.kind) {
				continue
			}
			profiles++
			got := c.backends[name][k]
			switch {
			case got == nil || got.n == 0:
				lost++
				log.Printf("%s: lost %v", name, k)
			case got.n > 1:
				twice += got.n - 1
				excused += min(got.n-1, got.nLost)
			}
		}
		fmt.Printf("%-10s %7d values of profiles, lost %d, unequal %d, twice %d, excused %d\n", name, profiles, lost, c.unequal[name], twice, excused)
		fine = fine && profiles > 0 && lost == 0 && c.unequal[name] == 0 && twice == excused
	}
	return fine && len(names) > 1
}

func readLines(path string) (map[string]bool, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	lines := map[string]bool{}
	for _, line := range strings.Fields(string(data)) {
		lines[line] = true
	}
	return lines, err
}

func compareMain(args []string) {
	flags := flag.NewFlagSet("compare", flag.ExitOnError)
	lost := flags.String("lost", "", "file with the names of requests whose answer got lost")
	flags.Parse(args)
	c := comparison{backends: map[string]map[key]*copies{}, totals: map[key]int64{}, unequal: map[string]int{}}
	var all []entry
	var err error
	if c.lost, err = readLines(*lost); err != nil {
		log.Fatal(err)
	}
	for _, path := range flags.Args() {
		entries, err := readEntries(path)
		if err != nil {
			log.Fatal(err)
		}
		all = append(all, entries...)
	}
	for _, e := range all {
		if e.Backend != "coroot" {
			c.windows = append(c.windows, e.TimeNanos)
		}
	}
	slices.Sort(c.windows)
	for _, e := range all {
		// the collector's own lines name no request; those of its proxy are no profiles of their own
		c.add(e, e.Backend == "collector" && e.Request != "")
	}
	if !c.print() {
		os.Exit(1)
	}
}
