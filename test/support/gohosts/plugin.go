// SPDX-License-Identifier: Apache-2.0

package main

// GoMain is what the host calls: the program, in the host's runtime and with its arguments.
func GoMain() { main() }
