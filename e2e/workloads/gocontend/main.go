// SPDX-License-Identifier: Apache-2.0

// Goroutines that wait for a mutex and for a channel, with Go's profiles of both.
package main

import (
	"runtime"
	"sync"
	"time"
)

var mu sync.Mutex

//go:noinline
func holdMutex() {
	mu.Lock()
	time.Sleep(time.Millisecond)
	mu.Unlock()
}

func main() {
	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1)
	for i := 0; i < 4; i++ {
		go func() {
			for {
				holdMutex()
			}
		}()
	}
	ticks := make(chan struct{})
	go func() {
		for {
			time.Sleep(5 * time.Millisecond)
			ticks <- struct{}{}
		}
	}()
	for range ticks {
	}
}
