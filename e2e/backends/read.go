// SPDX-License-Identifier: Apache-2.0
package main

import (
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"strings"
)

// read writes the entries of what was stored elsewhere: by podprof's kind "file" (folder=DIR), by pyrosink
// (pyroscope=DIR), by the collector's file exporter (collector=FILE, format proto), or by a proxy whose answers got lost
// (collector=DIR with -lost: one request a file).

type labels struct {
	Labels  map[string]string `json:"labels"`
	Request string            `json:"request"`
}

func readLabels(path string) (labels, error) {
	var l labels
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &l)
	}
	return l, err
}

func profileEntries(backend, kind string, l labels, path string) ([]entry, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var entries []entry
	for i, t := range p.SampleType {
		e := entry{
			Backend: backend, Entity: l.Labels["container"], Type: typeOf(kind, t.Type), Request: l.Request,
			TimeNanos: p.TimeNanos, DurationNanos: p.DurationNanos, Period: p.Period,
		}
		if e, err = sampled(e, p, i, true); err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// The names of kinds in a folder's files, and what the values are: only those of a window are the same in all backends.
var folderKinds = map[string]string{"cpu": "cpu", "offcpu": "offcpu"}

func readFolder(dir string) ([]entry, error) {
	var entries []entry
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".pb.gz") {
			return err
		}
		name := strings.SplitN(strings.TrimSuffix(filepath.Base(path), ".pb.gz"), "_", 3)
		kind, ok := folderKinds[name[len(name)-1]]
		if !ok {
			return nil
		}
		data, err := os.ReadFile(filepath.Join(filepath.Dir(path), "labels.json"))
		if err != nil {
			return err
		}
		var l labels
		if err := json.Unmarshal(data, &l.Labels); err != nil {
			return err
		}
		more, err := profileEntries("folder", kind, l, path)
		entries = append(entries, more...)
		return err
	})
	return entries, err
}

func readPyroscope(dir string) ([]entry, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	var entries []entry
	for _, path := range paths {
		l, err := readLabels(path)
		if err != nil {
			return nil, err
		}
		more, err := profileEntries("pyroscope", l.Labels["__name__"], l, strings.TrimSuffix(path, ".json")+".pb.gz")
		if err != nil {
			return nil, err
		}
		entries = append(entries, more...)
	}
	return entries, err
}

// readCollector reads messages, each behind its length in 4 bytes.
func readCollector(path string) ([]entry, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var entries []entry
	for len(data) > 0 {
		if len(data) < 4 || uint64(len(data)-4) < uint64(binary.BigEndian.Uint32(data)) {
			return nil, fmt.Errorf("%s: cut off", path)
		}
		end := 4 + int(binary.BigEndian.Uint32(data))
		more, err := otlpRequest(data[4:end], func(dictionary) error { return nil })
		if err != nil {
			return nil, err
		}
		entries = append(entries, more...)
		data = data[end:]
	}
	for i := range entries {
		entries[i].Backend = "collector"
	}
	return entries, nil
}

func readLost(dir string) ([]entry, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	var entries []entry
	for _, path := range paths {
		body, err := os.ReadFile(path)
		if err == nil && strings.HasPrefix(string(body), "\x1f\x8b") {
			body, err = gunzip(body)
		}
		var more []entry
		if err == nil {
			more, err = otlpRequest(body, dictionary.check)
		}
		if err != nil {
			return nil, err
		}
		for i := range more {
			more[i].Backend, more[i].Request = "collector", filepath.Base(path)
		}
		entries = append(entries, more...)
	}
	return entries, err
}

func readMain(args []string) {
	flags := flag.NewFlagSet("read", flag.ExitOnError)
	out := flags.String("out", "", "file of the entries")
	lost := flags.Bool("lost", false, "the collector's requests whose answers got lost")
	flags.Parse(args)
	readers := map[string]func(string) ([]entry, error){"folder": readFolder, "pyroscope": readPyroscope, "collector": readCollector}
	if *lost {
		readers["collector"] = readLost
	}
	file, err := os.Create(*out)
	if err != nil {
		log.Fatal(err)
	}
	s := &sink{out: file}
	for _, source := range flags.Args() {
		kind, path, _ := strings.Cut(source, "=")
		read, ok := readers[kind]
		if !ok {
			log.Fatalf("no kind %s", kind)
		}
		entries, err := read(path)
		if err != nil {
			log.Fatal(err)
		}
		s.add(entries)
	}
}
