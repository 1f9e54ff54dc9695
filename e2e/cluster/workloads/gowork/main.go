// SPDX-License-Identifier: Apache-2.0

// Command gowork allocates and takes a twentieth of a CPU, for ever. It links heap profiles, as a program
// with a pprof endpoint does, so that they are sampled.
package main

import (
	"runtime/pprof"
	"time"
)

var (
	sink  uint64
	kept  [8][]byte
	turns int
)

//go:noinline
func workGo() {
	for end := time.Now().Add(5 * time.Millisecond); time.Now().Before(end); {
		for i := 0; i < 20000; i++ {
			sink = sink*6364136223846793005 + 1442695040888963407
		}
	}
}

//go:noinline
func allocateGo() {
	kept[turns%len(kept)] = make([]byte, 1<<20)
	turns++
}

func main() {
	for pprof.Lookup("heap") != nil {
		workGo()
		allocateGo()
		time.Sleep(100 * time.Millisecond)
	}
}
