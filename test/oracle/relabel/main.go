// SPDX-License-Identifier: Apache-2.0

// relabelcases SEED N prints N cases for test/unit/relabel/test_prometheus.c, one JSON object a line,
// with what Prometheus' own implementation makes of each. The same seed gives the same cases.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"strconv"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: relabelcases SEED N")
		os.Exit(2)
	}
	seed, _ := strconv.ParseInt(os.Args[1], 10, 64)
	n, _ := strconv.Atoi(os.Args[2])
	letters := everyLetter()
	g := &generator{rand.New(rand.NewSource(seed))}
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	for i := 0; i < n; i++ {
		var err error
		if i < len(letters) {
			err = lines.Encode(answerRules(letters[i]))
		} else if i%2 == 0 {
			err = lines.Encode(answerRules(g.rulesCase()))
		} else {
			err = lines.Encode(answerPattern(g.patternCase()))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
