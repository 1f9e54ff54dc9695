// SPDX-License-Identifier: Apache-2.0

// Writes the profiles of this folder: go run profiles.go DIRECTORY
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"sync"
	"time"
)

var sink [][]byte

//go:noinline
func spin(d time.Duration) (n int) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		for i := 0; i < 1000; i++ {
			n += i
		}
	}
	return n
}

//go:noinline
func recurse(depth int, d time.Duration) int {
	if depth == 0 {
		return spin(d)
	}
	return recurse(depth-1, d) + 1
}

func inlined(d time.Duration) int { return recurse(5, d) }

//go:noinline
func allocate(n, size int) {
	for i := 0; i < n; i++ {
		sink = append(sink, make([]byte, size))
	}
}

//go:noinline
func contend() {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := 0; i < 4; i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for j := 0; j < 20; j++ {
				mu.Lock()
				time.Sleep(100 * time.Microsecond)
				mu.Unlock()
			}
		}()
	}
	wg.Wait()
}

func create(dir, name string) *os.File {
	f, err := os.Create(filepath.Join(dir, name+".pb.gz"))
	if err != nil {
		panic(err)
	}
	return f
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: profiles DIRECTORY")
		os.Exit(2)
	}
	dir := os.Args[1]
	runtime.MemProfileRate = 512
	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1)

	cpu := create(dir, "go_cpu")
	pprof.StartCPUProfile(cpu)
	spin(300 * time.Millisecond)
	pprof.Do(context.Background(), pprof.Labels("request", "slow", "tier", "gold"), func(context.Context) {
		inlined(500 * time.Millisecond)
	})
	pprof.StopCPUProfile()
	cpu.Close()

	allocate(100, 4096)
	allocate(1000, 64)
	contend()
	runtime.GC()
	for _, name := range []string{"heap", "mutex", "block", "goroutine"} {
		f := create(dir, "go_"+name)
		pprof.Lookup(name).WriteTo(f, 0)
		f.Close()
	}
	empty := create(dir, "go_empty")
	pprof.NewProfile("empty").WriteTo(empty, 0)
	empty.Close()
}
