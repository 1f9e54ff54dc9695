// SPDX-License-Identifier: Apache-2.0

// Package discovery stands for asking a cluster what it has.
package discovery

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

type DiscoveryClient struct{}

func NewDiscoveryClientForConfig(*rest.Config) (*DiscoveryClient, error) {
	return nil, errors.New("there is no cluster here")
}

func (*DiscoveryClient) ServerResourcesForGroupVersion(string) (*metav1.APIResourceList, error) {
	return nil, errors.New("there is no cluster here")
}
