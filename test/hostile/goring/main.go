// SPDX-License-Identifier: Apache-2.0

// A Go program whose list of heap records never ends: the last record points to the first. It
// prints "ready" and burns CPU time.
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"time"
	_ "unsafe" // for go:linkname
)

// The begin of the runtime's bucket (runtime/mprof.go), the same from Go 1.16 on.
type bucket struct {
	next, allNext *bucket
}

//go:linkname mbuckets runtime.mbuckets
var mbuckets *bucket

var kept [][]byte

func main() {
	debug.SetGCPercent(-1) // the collector would follow the list
	go func() {
		// ends with the one that reads its output
		var one [1]byte
		_, _ = os.Stdin.Read(one[:])
		os.Exit(0)
	}()
	if len(os.Args) > 1 {
		runtime.MemProfile(nil, true) // or the linker turns the profiler off
	}
	for i := 0; i < 64; i++ {
		kept = append(kept, make([]byte, 1<<20))
	}
	last := mbuckets
	if last == nil {
		fmt.Fprintln(os.Stderr, "no heap records")
		os.Exit(1)
	}
	for last.allNext != nil {
		last = last.allNext
	}
	last.allNext = mbuckets
	fmt.Println("ready")
	for end := time.Now().Add(time.Hour); time.Now().Before(end); {
		for i := 0; i < 1000000; i++ {
			kept[0][i] += byte(i)
		}
	}
}
