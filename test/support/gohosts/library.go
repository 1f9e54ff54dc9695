// SPDX-License-Identifier: Apache-2.0

package main

import "C"

import (
	"os"
	"strings"
)

// goMain is what a host in another language calls: the program, with arguments separated by spaces.
//
//export goMain
func goMain(args *C.char) {
	os.Args = append([]string{"go"}, strings.Fields(C.GoString(args))...)
	main()
}
