// SPDX-License-Identifier: Apache-2.0

// Package scheme stands for the list of Kubernetes' own kinds: none is known here, so that templates
// cannot ask for them (.Capabilities.APIVersions) and none counts as deprecated.
package scheme

import "k8s.io/apimachinery/pkg/runtime"

var Scheme = runtime.NewScheme()

func AddToScheme(*runtime.Scheme) error {
	return nil
}
