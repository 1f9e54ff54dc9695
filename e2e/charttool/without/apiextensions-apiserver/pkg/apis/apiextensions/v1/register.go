// SPDX-License-Identifier: Apache-2.0

// Package v1 stands for the kinds of custom resource definitions.
package v1

import "k8s.io/apimachinery/pkg/runtime"

func AddToScheme(*runtime.Scheme) error {
	return nil
}
