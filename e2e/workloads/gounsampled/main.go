// SPDX-License-Identifier: Apache-2.0

// Allocates steadily and says nothing of heap profiles, so that Go's linker turns their sampling off.
package main

import (
	"runtime"
	"time"
)

//go:noinline
func allocateUnasked() {
	b := make([]byte, 4<<20)
	b[0] = 1
	runtime.KeepAlive(b)
}

func main() {
	for {
		allocateUnasked()
		time.Sleep(20 * time.Millisecond)
	}
}
