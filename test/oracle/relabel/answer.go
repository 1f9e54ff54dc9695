// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
)

// Labels of profiles are named as before Prometheus 3.
func init() { model.NameValidationScheme = model.LegacyValidation }

// A list of rules and a label set. Answer: whether the rules are refused, else whether the set is
// kept, which rule dropped it, and what it is then.
type rulesCase struct {
	Rules  []map[string]any  `json:"rules"`
	Labels map[string]string `json:"labels"`

	Refused bool              `json:"refused,omitempty"`
	Dropped bool              `json:"dropped,omitempty"`
	Rule    int               `json:"rule"`
	Result  map[string]string `json:"result"`
}

// A pattern and a text. Answer: whether it is refused, else what its groups matched.
type patternCase struct {
	Pattern string `json:"pattern"`
	Text    string `json:"text"`

	Refused bool      `json:"refused,omitempty"`
	Groups  []*string `json:"groups"`
}

// As Prometheus' YAML is read: defaults first, then what is there.
func config(rule map[string]any) (*relabel.Config, error) {
	c := relabel.DefaultRelabelConfig
	text, err := json.Marshal(rule)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return nil, err
	}
	c.Action = relabel.Action(strings.ToLower(string(c.Action)))
	if err := c.Action.UnmarshalYAML(func(to any) error { *to.(*string) = string(c.Action); return nil }); err != nil {
		return nil, err
	}
	return &c, c.Validate(model.LegacyValidation)
}

// What podprof says it does otherwise, done here too: a name that is none is not set.
func withoutOddNames(l labels.Labels) labels.Labels {
	b := labels.NewBuilder(l)
	l.Range(func(label labels.Label) {
		if !model.LegacyValidation.IsValidLabelName(label.Name) {
			b.Del(label.Name)
		}
	})
	return b.Labels()
}

func answerRules(c *rulesCase) *rulesCase {
	var configs []*relabel.Config
	for _, rule := range c.Rules {
		config, err := config(rule)
		if err != nil {
			c.Refused = true
			return c
		}
		configs = append(configs, config)
	}
	set := labels.FromMap(c.Labels)
	for i, config := range configs {
		b := labels.NewBuilder(set)
		if !relabel.ProcessBuilder(b, config) {
			c.Dropped = true
			c.Rule = i
			break
		}
		set = withoutOddNames(b.Labels())
	}
	c.Result = set.Map()
	return c
}

func answerPattern(c *patternCase) *patternCase {
	re, err := relabel.NewRegexp(c.Pattern)
	if err != nil {
		c.Refused = true
		return c
	}
	found := re.FindStringSubmatchIndex(c.Text)
	for i := 0; i < len(found); i += 2 {
		var group *string
		if found[i] >= 0 {
			text := c.Text[found[i]:found[i+1]]
			group = &text
		}
		c.Groups = append(c.Groups, group)
	}
	return c
}
