// SPDX-License-Identifier: Apache-2.0

// Allocates a known number of bytes in two functions, keeps a known part of them, then waits. What it
// did is printed, for a test to compare with what is seen from outside.
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"time"
)

// Blocks are 32 times the sampling interval, so that each is sampled: all but one in 10^14.
const (
	blockBytes = 16 << 20
	keptBlocks = 2 // 32 MiB stay
	lostBlocks = 8 // 128 MiB become garbage
)

// Not a slice that grows: its memory may be the one small allocation of these that is sampled, which then counts as
// 512 KiB.
var kept [keptBlocks][]byte

//go:noinline
func allocateKept() {
	for i := range kept {
		kept[i] = make([]byte, blockBytes)
	}
}

//go:noinline
func allocateLost() {
	for i := 0; i < lostBlocks; i++ {
		b := make([]byte, blockBytes)
		b[0] = byte(i)
		runtime.KeepAlive(b)
	}
}

func main() {
	allocateKept()
	allocateLost()
	// Two cycles publish everything allocated so far.
	runtime.GC()
	runtime.GC()
	if len(os.Args) > 1 {
		f, err := os.Create(os.Args[1])
		if err == nil {
			err = pprof.Lookup("heap").WriteTo(f, 0)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		f.Close()
	}
	fmt.Printf("kept=%d lost=%d\n", keptBlocks*blockBytes, lostBlocks*blockBytes)
	for {
		time.Sleep(time.Hour)
		runtime.KeepAlive(kept)
	}
}
