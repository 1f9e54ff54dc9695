// SPDX-License-Identifier: Apache-2.0

// Go: eight goroutines that read and write JSON, with a garbage collector at work. See workloads.py.
package main

import (
	"encoding/json"
	"os"
	"strconv"
	"syscall"
	"time"
)

type item struct {
	ID    int               `json:"id"`
	Name  string            `json:"name"`
	Tags  []string          `json:"tags"`
	Attrs map[string]string `json:"attrs"`
}

func cpuTime() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func serve(request []byte) []byte {
	var items []item
	if err := json.Unmarshal(request, &items); err != nil {
		panic(err)
	}
	for i := range items {
		items[i].ID++
		items[i].Attrs["seen"] = strconv.Itoa(i)
	}
	answer, err := json.Marshal(items)
	if err != nil {
		panic(err)
	}
	return answer
}

func main() {
	share := 0.25
	if len(os.Args) > 1 {
		share, _ = strconv.ParseFloat(os.Args[1], 64)
	}
	items := make([]item, 40)
	for i := range items {
		items[i] = item{i, "name", []string{"a", "b"}, map[string]string{"key": "value"}}
	}
	request, _ := json.Marshal(items)
	work, done := make(chan []byte), make(chan []byte)
	for i := 0; i < 8; i++ {
		go func() {
			for r := range work {
				done <- serve(r)
			}
		}()
	}
	begin, cpu := time.Now(), cpuTime()
	for {
		for float64(cpuTime()-cpu) < share*float64(time.Since(begin)) {
			for i := 0; i < 4; i++ {
				work <- request
			}
			for i := 0; i < 4; i++ {
				<-done
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
}
