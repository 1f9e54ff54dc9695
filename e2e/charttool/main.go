// SPDX-License-Identifier: Apache-2.0

// charttool is the part of the helm command for the chart's tests: "template" and "lint", from helm's own packages. The
// command itself has 960 packages, most of them clients of clusters and registries; without/ has stubs of the packages
// that rendering mentions and never calls.
//
//	charttool template|lint [-version 1.34.0] [-name NAME] [-namespace NS] [-f FILE] [-set K=V] CHART
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"helm.sh/helm/v3/pkg/releaseutil"
	"helm.sh/helm/v3/pkg/strvals"
)

type options struct {
	version, name, namespace, file, set, chart string
}

func (o *options) values() (map[string]interface{}, error) {
	values := chartutil.Values{}
	var err error
	if o.file != "" {
		if values, err = chartutil.ReadValuesFile(o.file); err != nil {
			return nil, err
		}
	}
	return values, strvals.ParseInto(o.set, values)
}

// Like "helm template": an input refused by the chart's schema is an error.
func (o *options) template() error {
	kube, err := chartutil.ParseKubeVersion(o.version)
	if err != nil {
		return err
	}
	values, err := o.values()
	if err != nil {
		return err
	}
	chart, err := loader.Load(o.chart)
	if err != nil {
		return err
	}
	if err := chartutil.ProcessDependenciesWithMerge(chart, values); err != nil {
		return err
	}
	can := chartutil.DefaultCapabilities.Copy()
	can.KubeVersion = *kube
	release := chartutil.ReleaseOptions{Name: o.name, Namespace: o.namespace, Revision: 1, IsInstall: true}
	top, err := chartutil.ToRenderValues(chart, values, release, can)
	if err != nil {
		return err
	}
	files, err := engine.Render(chart, top)
	if err != nil {
		return err
	}
	for name := range files {
		if strings.HasSuffix(name, "NOTES.txt") {
			delete(files, name)
		}
	}
	_, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	for _, m := range manifests {
		fmt.Printf("---\n# Source: %s\n%s\n", m.Name, m.Content)
	}
	return err
}

// As "helm lint --strict": warnings are findings.
func (o *options) lint() error {
	kube, err := chartutil.ParseKubeVersion(o.version)
	if err != nil {
		return err
	}
	values, err := o.values()
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(o.chart, "Chart.yaml")); err != nil {
		return err
	}
	found := lint.AllWithKubeVersion(o.chart, values, o.namespace, kube)
	for _, message := range found.Messages {
		if message.Severity >= support.WarningSev {
			fmt.Fprintln(os.Stderr, message)
			err = fmt.Errorf("%s has findings", o.chart)
		}
	}
	return err
}

func main() {
	var o options
	flags := flag.NewFlagSet("charttool", flag.ExitOnError)
	flags.StringVar(&o.version, "version", "1.34.0", "of Kubernetes")
	flags.StringVar(&o.name, "name", "release", "of the release")
	flags.StringVar(&o.namespace, "namespace", "default", "of the release")
	flags.StringVar(&o.file, "f", "", "values")
	flags.StringVar(&o.set, "set", "", "more values")
	run := map[string]func() error{"template": o.template, "lint": o.lint}
	if len(os.Args) < 2 || run[os.Args[1]] == nil || flags.Parse(os.Args[2:]) != nil || flags.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: charttool template|lint [OPTIONS] CHART")
		os.Exit(2)
	}
	o.chart = flags.Arg(0)
	if err := run[os.Args[1]](); err != nil {
		fmt.Fprintln(os.Stderr, "charttool:", err)
		os.Exit(1)
	}
}
