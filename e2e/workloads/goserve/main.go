// SPDX-License-Identifier: Apache-2.0

// An HTTP server like many: nothing in it asks for heap profiles, and it is built without symbols. It
// listens on a socket in its container, and asks itself all the time. An answer is 60 KiB of items, each
// request parses 20 KiB of them.
package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

//go:noinline
func parseItems(body io.Reader) int {
	items := make([]byte, 20<<10)
	n, _ := io.ReadFull(body, items)
	return n
}

//go:noinline
func buildAnswer(n int) []byte {
	return bytes.Repeat([]byte{byte(n)}, 60<<10)
}

func answer(w http.ResponseWriter, r *http.Request) {
	_, _ = w.Write(buildAnswer(parseItems(r.Body)))
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func main() {
	const socket = "/out/server.sock"

	listener, err := net.Listen("unix", socket)
	if err != nil {
		fail(err)
	}
	go func() { fail(http.Serve(listener, http.HandlerFunc(answer))) }()
	client := http.Client{Transport: &http.Transport{
		Dial: func(string, string) (net.Conn, error) { return net.Dial("unix", socket) },
	}}
	body := make([]byte, 20<<10)
	for {
		response, err := client.Post("http://server/", "text/plain", bytes.NewReader(body))
		if err != nil {
			fail(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		time.Sleep(time.Millisecond)
	}
}
