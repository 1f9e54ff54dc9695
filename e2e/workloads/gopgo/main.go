// SPDX-License-Identifier: Apache-2.0

// Computes in a function that the compiler inlines only with a profile: it is over the usual budget. The argument is the
// number of seconds.
package main

import (
	"os"
	"strconv"
	"time"
)

func mix(a, b uint64) uint64 {
	a ^= b >> 7
	a *= 0x9e3779b97f4a7c15
	a ^= a >> 29
	b += a<<3 | a>>61
	b *= 0xbf58476d1ce4e5b9
	b ^= b >> 32
	a += b ^ a<<17
	a *= 0x94d049bb133111eb
	b ^= a>>11 + b<<5
	b *= 0xd6e8feb86659fd93
	a ^= b>>13 | a<<51
	a += b*31 + a*17
	b ^= a>>19 + b<<23
	return a ^ b
}

func sum(n uint64) uint64 {
	var s uint64
	for i := uint64(0); i < n; i++ {
		s += mix(s, i)
	}
	return s
}

func main() {
	seconds, err := strconv.Atoi(os.Args[1])
	if err != nil {
		os.Exit(2)
	}
	for until := time.Now().Add(time.Duration(seconds) * time.Second); time.Now().Before(until); {
		sum(1000000)
	}
}
