// SPDX-License-Identifier: Apache-2.0
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// parcaServer is a whole Parca.
type parcaServer struct {
	address     string
	byContainer bool // the profiles have this label
	begin, end  time.Time
}

// parcaValue is the value that Parca shows: it multiplies samples by the period.
func parcaValue(sampleType string, value, period int64) int64 {
	if sampleType == "samples" {
		return value * period
	}
	return value
}

func (p parcaServer) ask(path string, parameters url.Values, answer any) error {
	reply, err := http.Get(p.address + "/api/profiles/" + path + "?" + parameters.Encode())
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err == nil && reply.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", path, reply.Status, text)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, answer)
}

func (p parcaServer) types() ([]string, error) {
	var answer struct {
		Types []struct {
			Name, SampleType, SampleUnit, PeriodType, PeriodUnit string
			Delta                                                bool
		}
	}
	err := p.ask("types", url.Values{}, &answer)
	var names []string
	for _, t := range answer.Types {
		name := strings.Join([]string{t.Name, t.SampleType, t.SampleUnit, t.PeriodType, t.PeriodUnit}, ":")
		if t.Delta {
			name += ":delta"
		}
		names = append(names, name)
	}
	return names, err
}

// merged is the sum of a type in the merged profile.
func (p parcaServer) merged(name string) (int64, error) {
	var answer struct{ Pprof []byte }
	err := p.ask("query", url.Values{
		"mode": {"MODE_MERGE"}, "report_type": {"REPORT_TYPE_PPROF"}, "merge.query": {name + "{}"},
		"merge.start": {p.begin.Format(time.RFC3339)}, "merge.end": {p.end.Format(time.RFC3339)},
	}, &answer)
	if err != nil {
		return 0, err
	}
	profile, err := parse(answer.Pprof)
	if err != nil {
		return 0, err
	}
	sum := int64(0)
	for _, sample := range profile.Sample {
		sum += sample.Value[0]
	}
	return sum, nil
}

// sums are those of the range query, if the merged profile has the same in all.
func (p parcaServer) sums(name string) (map[string]int64, error) {
	var answer struct {
		Series []struct {
			Labelset struct {
				Labels []struct{ Name, Value string }
			}
			Samples []struct{ Value string } // int64 is a string in JSON
		}
	}
	parameters := url.Values{
		"query": {name + "{}"}, "start": {p.begin.Format(time.RFC3339)}, "end": {p.end.Format(time.RFC3339)}, "step": {"1s"},
	}
	if p.byContainer {
		parameters.Set("sum_by", "container")
	}
	err := p.ask("query_range", parameters, &answer)
	if err != nil {
		return nil, err
	}
	sums, all := map[string]int64{}, int64(0)
	for _, series := range answer.Series {
		container := ""
		for _, l := range series.Labelset.Labels {
			if l.Name == "container" {
				container = l.Value
			}
		}
		for _, s := range series.Samples {
			value, err := strconv.ParseInt(s.Value, 10, 64)
			if err != nil {
				return nil, err
			}
			sums[container] += value
			all += value
		}
	}
	merged, err := p.merged(name)
	if err == nil && merged != all {
		err = fmt.Errorf("%s: %d in the range query, %d in the merged profile", name, all, merged)
	}
	return sums, err
}
