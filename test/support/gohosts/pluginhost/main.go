// SPDX-License-Identifier: Apache-2.0

// pluginhost loads the plugin that lies beside it under its own name and ".so", and runs the program in
// that.
package main

import (
	"fmt"
	"os"
	"plugin"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "pluginhost:", err)
		os.Exit(1)
	}
}

func main() {
	self, err := os.Executable()
	check(err)
	p, err := plugin.Open(self + ".so")
	check(err)
	run, err := p.Lookup("GoMain")
	check(err)
	run.(func())()
}
