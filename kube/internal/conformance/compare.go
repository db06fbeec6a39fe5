package conformance

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// A Difference is one field in which a response differs from the recorded one.
type Difference struct {
	Scenario, Call string

	// Path is "request", "code", "header/NAME" or "body/FIELD/...", where "/" in a key is
	// "~1".
	Path string

	Want, Got string // in JSON; "absent" if the field does not exist
}

const absent = "absent"

// ID names the difference, without the values.
func (d Difference) ID() string { return d.Scenario + "/" + d.Call + " @ " + d.Path }

func (d Difference) String() string {
	return fmt.Sprintf("%s\n\twant %s\n\tgot  %s", d.ID(), d.Want, d.Got)
}

// Compare returns the differences between the recorded responses and got, in order. If the
// codes differ, the bodies are not compared.
func Compare(s *Scenario, got []*Answer) []Difference {
	var out []Difference
	for i, call := range s.Calls {
		add := func(path, want, got string) {
			out = append(out, Difference{s.Name, call.Name, path, want, got})
		}
		want := call.Answer
		switch {
		case want == nil:
			add("request", absent, "not recorded")
		case got[i] == nil:
			add("request", "sent", "not sent")
		case want.Code != got[i].Code:
			add("code", fmt.Sprintf("%d %s", want.Code, render(message(want))), fmt.Sprintf("%d %s", got[i].Code, render(message(got[i]))))
		default:
			for _, key := range comparedHeaders {
				if a, b := want.Headers[key], got[i].Headers[key]; a != b {
					add("header/"+key, a, b)
				}
			}
			compare("body", want.Body, got[i].Body, add)
		}
	}
	return out
}

// message returns the message of a Status, if the response is one.
func message(a *Answer) any {
	if fields, ok := a.Body.(map[string]any); ok && fields["kind"] == "Status" {
		return fields["message"]
	}
	return nil
}

func compare(path string, want, got any, add func(path, want, got string)) {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			break
		}
		keys := maps.Clone(w)
		maps.Copy(keys, g)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			path := path + "/" + strings.ReplaceAll(key, "/", "~1")
			a, inWant := w[key]
			b, inGot := g[key]
			switch {
			case !inGot:
				add(path, render(a), absent)
			case !inWant:
				add(path, absent, render(b))
			default:
				compare(path, a, b, add)
			}
		}
		return
	case []any:
		g, ok := got.([]any)
		if !ok || len(w) != len(g) {
			break
		}
		for i := range w {
			compare(fmt.Sprintf("%s/%d", path, i), w[i], g[i], add)
		}
		return
	default:
		if want == got {
			return
		}
	}
	add(path, render(want), render(got))
}

// A Rule is a line of the list of known differences: a pattern of calls and one of paths, as
// in path.Match, where a call is "scenario/name" and a path that ends with "/**" includes
// all fields below.
type Rule struct {
	Reason, Call, Path string
}

// ParseRules parses the list of known differences. A line "== reason" starts a section, and
// each other line is "scenario/name @ path". Lines that start with "#" are comments.
func ParseRules(text string) ([]Rule, error) {
	var rules []Rule
	reason := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if after, ok := strings.CutPrefix(line, "== "); ok {
			reason = after
			continue
		}
		call, at, ok := strings.Cut(line, " @ ")
		if !ok || reason == "" {
			return nil, fmt.Errorf("known differences: line %q must be \"scenario/call @ path\" below a line \"== reason\"", line)
		}
		for _, pattern := range []string{call, at} {
			if _, err := path.Match(pattern, ""); err != nil {
				return nil, fmt.Errorf("known differences: line %q: %w", line, err)
			}
		}
		rules = append(rules, Rule{reason, call, at})
	}
	return rules, nil
}

func (r Rule) String() string { return r.Call + " @ " + r.Path }

// Matches reports whether the rule includes the difference.
func (r Rule) Matches(d Difference) bool {
	call, _ := path.Match(r.Call, d.Scenario+"/"+d.Call)
	if !call {
		return false
	}
	if prefix, ok := strings.CutSuffix(r.Path, "/**"); ok {
		n := strings.Count(prefix, "/") + 1
		parts := strings.Split(d.Path, "/")
		if len(parts) < n {
			return false
		}
		matched, _ := path.Match(prefix, strings.Join(parts[:n], "/"))
		return matched
	}
	matched, _ := path.Match(r.Path, d.Path)
	return matched
}

// Explain returns the reason of each difference, or "" for those that no rule includes, and
// the rules that include no difference. The first rule that matches is the reason.
func Explain(rules []Rule, differences []Difference) (reasons []string, stale []Rule) {
	used := map[Rule]bool{}
	for _, d := range differences {
		reason := ""
		for _, rule := range rules {
			if rule.Matches(d) {
				used[rule] = true
				if reason == "" {
					reason = rule.Reason
				}
			}
		}
		reasons = append(reasons, reason)
	}
	for _, rule := range rules {
		if !used[rule] {
			stale = append(stale, rule)
		}
	}
	return reasons, stale
}
