// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package tools names the programs that the tests build from Go's module proxy, so that go.mod and
// go.sum fix their versions.
package tools

import (
	_ "helm.sh/helm/v3/cmd/helm"
)
