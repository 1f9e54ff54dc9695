// SPDX-License-Identifier: Apache-2.0
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"maps"
	"math/big"
	"os"
	"slices"
	"strings"
)

// compare reads entries and compares each profile of a container at all backends, by type, entity and time:
//
//	lost       another backend has the profile
//	unequal    another backend has another total or unit
//	twice      copies beyond the first; "excused" of these had their answer lost
//	forgotten  the backend answered 200 and stored nothing: neither lost nor a copy, but a further copy is one
//
// The first file with a profile says its total. With -types, the number and the sum of the values of each type follow.
//
// Exit status 1: lost or unequal profiles, or copies without an excuse.

type key struct {
	entity, kind string
	time         int64
}

type copies struct {
	n, nLost, nForgotten int
	total                int64
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
	backends  map[string]map[key]*copies
	totals    map[key]int64 // of any backend
	units     map[string]string
	unequal   map[string]int
	windows   []int64         // the times of the profiles, in order, without Coroot's
	lost      map[string]bool // requests whose answer got lost
	forgotten map[string]bool // requests answered with 200 and not stored
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
	if c.forgotten[e.Request] {
		got.nForgotten++
	}
	if _, ok := c.totals[k]; !ok {
		c.totals[k] = e.Total
	}
	if _, ok := c.units[e.Type]; !ok {
		c.units[e.Type] = e.Unit
	}
	if c.units[e.Type] != e.Unit {
		c.unequal[e.Backend]++
		log.Printf("%s: %v is in %s, elsewhere in %s", e.Backend, k, e.Unit, c.units[e.Type])
	} else if c.totals[k] != e.Total {
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
		profiles, lost, twice, excused, forgotten := 0, 0, 0, 0, 0
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
			if got != nil && got.nForgotten > 0 {
				forgotten++
			}
		}
		fmt.Printf("%-10s %7d values of profiles, lost %d, unequal %d, twice %d, excused %d, forgotten %d\n", name, profiles, lost,
			c.unequal[name], twice, excused, forgotten)
		fine = fine && profiles > 0 && lost == 0 && c.unequal[name] == 0 && twice == excused
	}
	return fine && len(names) > 1
}

func (c *comparison) printTypes() {
	values, sums := map[string]int{}, map[string]*big.Int{}
	for k, total := range c.totals {
		if sums[k.kind] == nil {
			sums[k.kind] = new(big.Int)
		}
		values[k.kind]++
		sums[k.kind].Add(sums[k.kind], big.NewInt(total))
	}
	for _, kind := range slices.Sorted(maps.Keys(sums)) {
		fmt.Printf("%-18s %6d values, %s %s\n", kind, values[kind], sums[kind], c.units[kind])
	}
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
	forgotten := flags.String("forgotten", "", "file with the names of requests answered with 200 and not stored")
	types := flags.Bool("types", false, "print the values of each type")
	flags.Parse(args)
	c := comparison{backends: map[string]map[key]*copies{}, totals: map[key]int64{}, units: map[string]string{}, unequal: map[string]int{}}
	var all []entry
	var err error
	if c.lost, err = readLines(*lost); err != nil {
		log.Fatal(err)
	}
	if c.forgotten, err = readLines(*forgotten); err != nil {
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
	fine := c.print()
	if *types {
		c.printTypes()
	}
	if !fine {
		os.Exit(1)
	}
}
