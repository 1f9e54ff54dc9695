// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/rand"
	"strings"
	"unicode"
)

type generator struct{ *rand.Rand }

func (g *generator) one(of ...string) string { return of[g.Intn(len(of))] }

// chance in a hundred
func (g *generator) chance(percent int) bool { return g.Intn(100) < percent }

// ---------------------------------------------------------------- patterns

const letters = "abcABC019_- .:/\n\u00e9\u00c9\u03bc\u03a9kKsS\u212a\u017f\u4e16\U0001f600"

func (g *generator) letter() string {
	all := []rune(letters)
	return string(all[g.Intn(len(all))])
}

func (g *generator) text(longest int) string {
	var b strings.Builder
	for n := g.Intn(longest + 1); n > 0; n-- {
		b.WriteString(g.letter())
	}
	return b.String()
}

func (g *generator) literal() string {
	switch g.Intn(8) {
	case 0:
		return g.one(`\.`, `\-`, `\_`, `\/`, `\n`, `\t`, `\v`, `\a`, `\f`, `\x41`, `\x{e9}`,
			`\x{1F600}`, `\060`, `\0`, `\101`, `\x61`, `\{`, `\]`, `\ `, `\#`, `\&`)
	case 1:
		return g.one(`-`, `#`, ` `, `]`, `}`, `{`, `{,2}`, `{a}`, `{2`, `:`, `&`, `,`, `"`)
	case 2:
		return `\Q` + g.one("a.b", "*", "(", "|a", "\u00e9.") + `\E`
	default:
		l := g.letter()
		if l == "." {
			return `\.`
		}
		return l
	}
}

func (g *generator) named() string {
	return g.one(`\d`, `\D`, `\s`, `\S`, `\w`, `\W`, `\pL`, `\PL`, `\pN`, `\p{Lu}`, `\p{Ll}`,
		`\p{Nd}`, `\P{Nd}`, `\p{^Lu}`, `\p{Greek}`, `\P{Latin}`, `\p{Han}`, `\p{Zs}`, `\p{Any}`)
}

func (g *generator) class() string {
	var b strings.Builder
	b.WriteString("[")
	if g.chance(30) {
		b.WriteString("^")
	}
	if g.chance(10) {
		b.WriteString(g.one("]", "-", "]-a", "--a"))
	}
	for n := 1 + g.Intn(3); n > 0; n-- {
		switch g.Intn(7) {
		case 0:
			b.WriteString(g.named())
		case 1:
			b.WriteString(g.one("[:alpha:]", "[:^alpha:]", "[:digit:]", "[:space:]", "[:word:]",
				"[:^word:]", "[:upper:]", "[:lower:]", "[:^lower:]", "[:punct:]", "[:cntrl:]",
				"[:ascii:]", "[:^ascii:]", "[:alnum:]", "[:xdigit:]", "[:print:]", "[:graph:]",
				"[:blank:]", "[:a"))
		case 2:
			b.WriteString(g.one("a-c", "A-Z", "0-9", "a-z", "\u00e0-\u00ff", `\x00-\x7f`, `a-\x{17f}`,
				"+--", `\x{d7ff}-\x{e000}`, `\t-\r`, " -~"))
		case 3:
			b.WriteString(g.one(`\.`, `\]`, `\-`, `\n`, `\x41`, "[", "^", "$", ".", "*", "(", `\\`, "&&", "~~"))
		default:
			b.WriteString(g.one("a", "b", "k", "s", "K", "S", "0", "_", "\u00e9", "\u03bc"))
		}
	}
	if g.chance(10) {
		b.WriteString("-")
	}
	return b.String() + "]"
}

func (g *generator) repeat() string {
	r := g.one("*", "+", "?", "{2}", "{1,}", "{0,2}", "{1,3}", "{0}", "*", "+", "?", "{1}")
	if g.chance(25) {
		r += "?"
	}
	return r
}

func (g *generator) group(inner string) string {
	switch g.Intn(7) {
	case 0:
		return "(?:" + inner + ")"
	case 1:
		return "(?" + g.one("i", "s", "m", "U", "-s", "i-s", "im", "-i", "sU") + ":" + inner + ")"
	case 2:
		return "(" + g.one("?P<name>", "?P<a1>", "?<b>", "?P<0x>") + inner + ")"
	case 3:
		return "(?" + g.one("i", "s", "m", "U", "-s", "-i", "-U") + ")" + inner
	default:
		return "(" + inner + ")"
	}
}

// What RE2 has not, or what is broken: both sides have to refuse it.
func (g *generator) odd() string {
	return g.one(`(?=a)`, `(?!a)`, `(?<=a)`, `(?<!a)`, `(?>a)`, `(?|a)`, `(?#a)`, `(?R)`, `(?1)`, `(a)\1`,
		`(?P=a)`, `(?P>a)`, `(?C)`, `(?(1)a)`, `(*ACCEPT)`, `a++`, `a**`, `a*+`, `a{2}{3}`, `a{1001}`,
		`a{2,1}`, `(a{100}){11}`, `*`, `+a`, `|*`, `(`, `[a`, `[b-a]`, `[[:foo:]]`, `\p{Foo}`, `\C`, `\Z`,
		`\G`, `\K`, `\R`, `\X`, `\h`, `\e`, `\cA`, `\8`, `\k<a>`, `\g1`, `\x`, `\x{}`, `\x{110000}`, `\xg`,
		`\u0041`, `\N`, `(?x)a`, `(?i-)a`, `(?P<>a)`, `(?P<a-b>a)`, `(?P<c>a)(?P<c>b)`, `(?'a'b)`, `\Qa`,
		`a\`, `[\Z]`, `[a-\d]`, `\é`, `[]`, `[^]`, `{2}`, `(?`, `(?i`, `a{99999999999999999999}`, `\E`)
}

func (g *generator) pattern(depth int) string {
	if depth == 0 || g.chance(35) {
		switch g.Intn(9) {
		case 0:
			return g.class()
		case 1:
			return g.named()
		case 2:
			return "."
		case 3:
			return g.one("^", "$", `\b`, `\B`, `\A`, `\z`, ".*", ".+", ".*?", "")
		default:
			return g.literal()
		}
	}
	switch g.Intn(5) {
	case 0:
		return g.pattern(depth-1) + "|" + g.pattern(depth-1)
	case 1:
		return g.group(g.pattern(depth - 1))
	case 2:
		return g.group(g.pattern(depth-1)) + g.repeat()
	case 3:
		return g.class() + g.repeat() + g.pattern(depth-1)
	default:
		return g.pattern(depth-1) + g.pattern(depth-1)
	}
}

// Half of the texts are near what the pattern says: its own letters, in its order.
func (g *generator) textFor(pattern string) string {
	var b strings.Builder
	for _, c := range pattern {
		switch {
		case strings.ContainsRune(`()[]{}*+?|^$\:<>`, c):
		case g.chance(70):
			b.WriteRune(c)
			if g.chance(20) {
				b.WriteRune(c)
			}
		}
	}
	return b.String()
}

func (g *generator) patternCase() *patternCase {
	c := &patternCase{Pattern: g.pattern(4)}
	if g.chance(6) {
		c.Pattern += g.odd()
	}
	switch g.Intn(3) {
	case 0:
		c.Text = g.text(6)
	case 1:
		c.Text = g.textFor(c.Pattern)
	default:
		c.Text = g.text(2)
	}
	c.Text = strings.ReplaceAll(c.Text, "\x00", "")
	return c
}

// ---------------------------------------------------------------- rules

var names = []string{"namespace", "pod", "a", "b", "_x", "A1", "__meta_kubernetes_pod_label_app",
	"__meta_kubernetes_pod_label_tier", "__meta_kubernetes_namespace", "service_name", "__tmp"}

func (g *generator) name() string { return g.one(names...) }

func (g *generator) value() string {
	switch g.Intn(6) {
	case 0:
		return g.text(8)
	case 1:
		return g.one("", "-", "0", "true", "$1", "${1}", "a;b", "\u00e9t\u00e9", "\U0001f600", " ")
	default:
		return g.one("kube-system", "default", "web", "web-0", "db-1", "prod", "Prod", "TEAM_a", "1", "a.b.c")
	}
}

func (g *generator) simpleRegex() string {
	switch g.Intn(4) {
	case 0:
		return g.pattern(2)
	case 1:
		return g.one(".+", "", ".*", "(.*)-(.*)", "([^-]+)-?([0-9]*)", "(?i)prod", "web|db", "kube-.*",
			"(?P<first>[a-z]+)(?P<rest>.*)", "(a)|(b)", "(.+?)(.*)", "(?s)(.).*", "true")
	case 2:
		return g.one("__meta_kubernetes_pod_label_(.+)", "__meta_(.*)_(.*)", "__.*", "a|b", "(.)(.*)", "namespace|pod",
			"_(.*)", "(.*)_name")
	default:
		return g.one("(.*);(.*)", "([^;]*);([^;]*)", ".*web.*", "(.*)", "[a-z]+", "\\w+", "(\\w)\\w*")
	}
}

func (g *generator) replacement() string {
	var b strings.Builder
	for n := g.Intn(4); n >= 0; n-- {
		b.WriteString(g.one("$1", "${1}", "$2", "${2}", "$first", "${first}", "${rest}", "$$", "$", "${", "${1",
			"$0", "${0}", "$1x", "$01", "${01}", "$9", "${a-b}", "$}", "x", "-", "\u00e9", "$1\u00e9", "$1\u2192", "_",
			"${}", "$123456789012345678901234567890", "label_$1", "$1_$2"))
	}
	return b.String()
}

func (g *generator) target() string {
	if g.chance(75) {
		return g.one("a", "b", "service_name", "$1", "${1}_x", "x_$1", "$2", "${first}", "pod", "namespace")
	}
	return g.one("a", "b", "service_name", "$1", "${1}_x", "x_$1", "$2", "${first}", "a-b", "", "1a", "a$", "$$",
		"${1", "x${1}y$2", "pod", "namespace", "a.b", "a ", "${1}9", "9$1", "$1.", "_", "\u00e9", "${\u00e9}")
}

func (g *generator) rule() map[string]any {
	action := g.one("replace", "replace", "replace", "keep", "drop", "keepequal", "dropequal", "hashmod", "lowercase",
		"uppercase", "labelmap", "labelmap", "labeldrop", "labelkeep")
	rule := map[string]any{}
	if action != "replace" || g.chance(30) {
		rule["action"] = action
	}
	if g.chance(3) {
		rule["action"] = g.one("Replace", "KEEP", "LabelMap", "none", "", "replace ")
	}
	// usually what the action takes, now and then what it does not
	odd := func(usual bool) bool { return usual != g.chance(1) }
	byName := action == "labelmap" || action == "labeldrop" || action == "labelkeep"
	equal := action == "keepequal" || action == "dropequal"
	if odd(!byName) {
		sources := []string{}
		for n := g.Intn(4); n > 0; n-- {
			sources = append(sources, g.name())
		}
		if g.chance(1) {
			sources = append(sources, g.one("a-b", "", "9", "\u00e9"))
		}
		rule["source_labels"] = sources
	}
	if odd(g.chance(20) && !byName && !equal) {
		rule["separator"] = g.one(";", "", "-", "/", "::", "\u00e9", "\n")
	}
	if odd(!equal && (byName || g.chance(70))) {
		rule["regex"] = g.simpleRegex()
	}
	if odd(!byName && action != "keep" && action != "drop") {
		if action == "replace" || g.chance(10) {
			rule["target_label"] = g.target()
		} else {
			rule["target_label"] = g.name()
		}
	}
	if odd((action == "replace" || action == "labelmap") && g.chance(70)) {
		rule["replacement"] = g.replacement()
		if action == "labelmap" && g.chance(80) {
			rule["replacement"] = g.one("$1", "x_$1", "${1}_y", "${1}${2}", "a", "$2", "pod", "$1$1")
		}
	}
	if odd(action == "hashmod") {
		rule["modulus"] = []int64{0, 1, 2, 3, 7, 8, 1000, 1 << 31, 1<<62 + 7, 999983}[g.Intn(10)]
	}
	return rule
}

// All characters that have another case, and their neighbours.
func everyLetter() []*rulesCase {
	hasCase := func(c rune) bool { return unicode.ToLower(c) != c || unicode.ToUpper(c) != c }
	var cases []*rulesCase
	var text []rune
	add := func() {
		cases = append(cases, &rulesCase{
			Rules: []map[string]any{
				{"action": "lowercase", "source_labels": []string{"a"}, "target_label": "lower"},
				{"action": "uppercase", "source_labels": []string{"a"}, "target_label": "upper"},
			},
			Labels: map[string]string{"a": string(text)},
		})
		text = nil
	}
	for c := rune(1); c < unicode.MaxRune; c++ {
		if c >= 0xd7ff && c <= 0xe001 || !hasCase(c-1) && !hasCase(c) && !hasCase(c+1) {
			continue
		}
		if text = append(text, c); len(text) == 400 {
			add()
		}
	}
	add()
	return cases
}

func (g *generator) rulesCase() *rulesCase {
	c := &rulesCase{Labels: map[string]string{}}
	for n := 1 + g.Intn(5); n > 0; n-- {
		c.Rules = append(c.Rules, g.rule())
	}
	for n := g.Intn(9); n > 0; n-- {
		if value := g.value(); value != "" {
			c.Labels[g.name()] = value
		}
	}
	return c
}
