// SPDX-License-Identifier: Apache-2.0

// Command checkprofile reads pprof files with pprof's own reader, prints what is in them, and checks
// what is asked for:
//
//	checkprofile [-label NAME=VALUE]... [-type TYPE] [-last] [-cum] [-wire]
//	             [-function REGEXP [-share PERCENT] [-value NUMBER] [-tolerance PERCENT]] PATH...
//
// A PATH is a file, or a folder of pyrosink's, which stands for all profiles in it. With -label only
// those count whose description (the .json beside it) has the label, with -type only those that have
// the sample type. All that count are merged; with -last the one that began last is taken.
//
// -share is the function's part of the total, and -tolerance then means percentage points; -value is
// its sum, and -tolerance then is percent of it. Without either the function only has to be there.
//
// -encode has Go's encoder write the profile that many times, and prints the CPU time and the allocations of
// each.
//
// -wire compares the size of each file with the size of what Go's encoder (pprof's, with its default
// compression) makes of the same profile. No file may be larger.
//
// Exit status: 0 as asked for, 1 not, 2 wrong usage.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"sort"
	"strings"
	"syscall"
	"time"

	"github.com/google/pprof/profile"
)

type labelFlag map[string]string

func (l labelFlag) String() string { return "" }

func (l labelFlag) Set(s string) error {
	name, value, ok := strings.Cut(s, "=")
	if !ok {
		return errors.New("write NAME=VALUE")
	}
	l[name] = value
	return nil
}

type options struct {
	labels     labelFlag
	sampleType string
	last       bool
	cumulative bool
	wire       bool
	encode     int
	function   string
	share      float64
	value      float64
	tolerance  float64
	paths      []string
}

// files replaces folders by the profiles in them.
func files(paths []string) ([]string, error) {
	var list []string
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			list = append(list, path)
			continue
		}
		inside, err := filepath.Glob(filepath.Join(path, "*.pb.gz"))
		if err != nil {
			return nil, err
		}
		list = append(list, inside...)
	}
	return list, nil
}

// hasLabels tells whether the description of a profile has all the labels.
func hasLabels(path string, want labelFlag) (bool, error) {
	var description struct {
		Labels map[string]string `json:"labels"`
	}
	if len(want) == 0 {
		return true, nil
	}
	data, err := os.ReadFile(strings.TrimSuffix(path, ".pb.gz") + ".json")
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(data, &description); err != nil {
		return false, err
	}
	for name, value := range want {
		if description.Labels[name] != value {
			return false, nil
		}
	}
	return true, nil
}

// largerMax is how many times as large a single file may be as by Go's encoder: podprof gives zlib less memory,
// which then repeats its tables more often in a large file.
const largerMax = 1.02

// wire adds up the sizes of files, and of what Go's encoder makes of them; larger has the files that are
// much larger than by Go's encoder.
type wire struct {
	files, ours, theirs int
	larger              []string
}

func (w *wire) add(path string, ours int, p *profile.Profile) error {
	var theirs bytes.Buffer
	if err := p.Write(&theirs); err != nil {
		return err
	}
	w.files++
	w.ours += ours
	w.theirs += theirs.Len()
	if float64(ours) > largerMax*float64(theirs.Len()) {
		w.larger = append(w.larger, fmt.Sprintf("%s: %d bytes, by Go's encoder %d", path, ours, theirs.Len()))
	}
	return nil
}

func read(path string, w *wire) (*profile.Profile, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p, err := profile.ParseData(data)
	if err == nil {
		err = p.CheckValid()
	}
	if err == nil && w != nil {
		err = w.add(path, len(data), p)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func encode(p *profile.Profile, rounds int) error {
	var out bytes.Buffer
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := cpuTime()
	for i := 0; i < rounds; i++ {
		out.Reset()
		if err := p.Write(&out); err != nil {
			return err
		}
	}
	used := cpuTime() - start
	runtime.ReadMemStats(&after)
	fmt.Printf("  Go's encoder   %8.2f ms %9d bytes, allocates %d KB\n", used.Seconds()*1000/float64(rounds), out.Len(),
		(after.TotalAlloc-before.TotalAlloc)/uint64(rounds)/1000)
	return nil
}

func hasType(p *profile.Profile, name string) bool {
	for _, t := range p.SampleType {
		if t.Type == name {
			return true
		}
	}
	return name == ""
}

// readAll merges what counts.
func readAll(o *options, w *wire) (*profile.Profile, int, error) {
	var list []*profile.Profile
	paths, err := files(o.paths)
	if err != nil {
		return nil, 0, err
	}
	for _, path := range paths {
		counts, err := hasLabels(path, o.labels)
		if err != nil {
			return nil, 0, err
		}
		if !counts {
			continue
		}
		p, err := read(path, w)
		if err != nil {
			return nil, 0, err
		}
		if hasType(p, o.sampleType) {
			list = append(list, p)
		}
	}
	if len(list) == 0 {
		return nil, 0, fmt.Errorf("none of %d profiles has the labels %v and the type %q", len(paths),
			map[string]string(o.labels), o.sampleType)
	}
	if o.last {
		sort.SliceStable(list, func(i, j int) bool { return list[i].TimeNanos < list[j].TimeNanos })
		list = list[len(list)-1:]
	}
	merged, err := profile.Merge(list)
	return merged, len(list), err
}

// typeIndex finds the sample type by name; the default one without a name.
func typeIndex(p *profile.Profile, name string) int {
	if name == "" {
		name = p.DefaultSampleType
	}
	for i, t := range p.SampleType {
		if t.Type == name {
			return i
		}
	}
	return len(p.SampleType) - 1
}

type sums struct {
	total     int64
	flat, cum map[string]int64
}

// functions lists the names on a stack, leaf first, inlined ones included.
func functions(s *profile.Sample) []string {
	var names []string
	for _, location := range s.Location {
		for _, line := range location.Line {
			names = append(names, line.Function.Name)
		}
		if len(location.Line) == 0 {
			names = append(names, fmt.Sprintf("%#x", location.Address))
		}
	}
	return names
}

func sum(p *profile.Profile, index int) sums {
	result := sums{flat: map[string]int64{}, cum: map[string]int64{}}
	for _, s := range p.Sample {
		value := s.Value[index]
		names := functions(s)
		seen := map[string]bool{}
		result.total += value
		if len(names) > 0 {
			result.flat[names[0]] += value
		}
		for _, name := range names {
			if !seen[name] {
				result.cum[name] += value
			}
			seen[name] = true
		}
	}
	return result
}

func percent(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}

func print(p *profile.Profile, n int, index int, r sums) {
	const rows = 12
	fmt.Printf("%d profiles, %d samples, %s/%s total %d\n", n, len(p.Sample),
		p.SampleType[index].Type, p.SampleType[index].Unit, r.total)
	names := make([]string, 0, len(r.cum))
	for name := range r.cum {
		names = append(names, name)
	}
	sort.Slice(names, func(i, j int) bool {
		a, b := names[i], names[j]
		if r.flat[a] != r.flat[b] {
			return r.flat[a] > r.flat[b]
		}
		if r.cum[a] != r.cum[b] {
			return r.cum[a] > r.cum[b]
		}
		return a < b
	})
	for i, name := range names {
		if i == rows {
			fmt.Printf("  ... %d more\n", len(names)-rows)
			break
		}
		fmt.Printf("  flat %6.2f%%  cum %6.2f%%  %s\n", percent(r.flat[name], r.total),
			percent(r.cum[name], r.total), name)
	}
}

// check compares the sum of the functions that match with what was asked for.
func check(o *options, r sums) error {
	pattern, err := regexp.Compile("^(?:" + o.function + ")$")
	if err != nil {
		return err
	}
	values, found, got := r.flat, false, int64(0)
	if o.cumulative {
		values = r.cum
	}
	for name := range r.cum {
		if pattern.MatchString(name) {
			found = true
			got += values[name]
		}
	}
	share := percent(got, r.total)
	switch {
	case !found:
		return fmt.Errorf("no function %s", o.function)
	case o.share >= 0 && math.Abs(share-o.share) > o.tolerance:
		return fmt.Errorf("%s has %.2f %%, not %g within %g points", o.function, share, o.share, o.tolerance)
	case o.value >= 0 && math.Abs(float64(got)-o.value) > o.value*o.tolerance/100:
		return fmt.Errorf("%s has %d, not %g within %g %%", o.function, got, o.value, o.tolerance)
	}
	fmt.Printf("ok: %s has %d, %.2f %%\n", o.function, got, share)
	return nil
}

func run(o *options) error {
	var w *wire
	if o.wire {
		w = &wire{}
	}
	p, n, err := readAll(o, w)
	if err != nil {
		return err
	}
	if o.encode > 0 {
		return encode(p, o.encode)
	}
	if w != nil {
		fmt.Printf("%d files of %d bytes, by Go's encoder %d\n", w.files, w.ours, w.theirs)
		if len(w.larger) > 0 || w.ours > w.theirs {
			return fmt.Errorf("files are larger than by Go's encoder: %s", strings.Join(w.larger, "; "))
		}
	}
	index := typeIndex(p, o.sampleType)
	r := sum(p, index)
	print(p, n, index, r)
	if o.function == "" {
		return nil
	}
	return check(o, r)
}

func main() {
	o := &options{labels: labelFlag{}}
	flag.Var(o.labels, "label", "NAME=VALUE that a profile must have; repeatable")
	flag.StringVar(&o.sampleType, "type", "", "sample type; the profile's default one without it")
	flag.BoolVar(&o.last, "last", false, "take the last profile instead of the sum of all")
	flag.BoolVar(&o.cumulative, "cum", false, "count a function's callees, too")
	flag.IntVar(&o.encode, "encode", 0, "rounds of Go's encoder")
	flag.BoolVar(&o.wire, "wire", false, "files may not be larger than by Go's encoder, a single one by 2 per cent at most")
	flag.StringVar(&o.function, "function", "", "name that must be there, as a regular expression for all of it")
	flag.Float64Var(&o.share, "share", -1, "percent of the total that it must have")
	flag.Float64Var(&o.value, "value", -1, "sum that it must have")
	flag.Float64Var(&o.tolerance, "tolerance", 5, "points for -share, percent for -value")
	flag.Parse()
	o.paths = flag.Args()
	if len(o.paths) == 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "checkprofile:", err)
		os.Exit(1)
	}
}
