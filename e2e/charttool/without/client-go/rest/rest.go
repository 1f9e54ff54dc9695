// SPDX-License-Identifier: Apache-2.0

// Package rest stands for how to reach a cluster.
package rest

type Config struct{}
