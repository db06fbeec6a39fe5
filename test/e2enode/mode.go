package e2enode

import (
	"regexp"
	"strings"
)

// A mode is how the suite is started. Tests with some labels require a mode of their own.
type mode struct {
	name  string
	label string // of its tests; empty: those of no other mode
	args  []string
}

// modes begin with that of most tests.
var modes = []mode{
	{name: "suite"},
	// A proxy of the suite, which injects faults, is between kubelet and runtime.
	{name: "criproxy", label: "Feature:CriProxy", args: []string{"--cri-proxy-enabled=true"}},
	// The kubelet has no API server.
	{name: "standalone", label: "Feature:StandaloneMode", args: []string{"--standalone-mode=true"}},
}

// filter returns ginkgo's label filter: that of the mode and another one, which may be empty.
func (m mode) filter(labels string) string {
	var all []string
	if m.label != "" {
		all = append(all, m.label)
	} else {
		for _, other := range modes[1:] {
			all = append(all, "!"+other.label)
		}
	}
	if labels != "" {
		all = append(all, "("+labels+")")
	}
	return strings.Join(all, " && ")
}

// title precedes the names of tests where ginkgo matches patterns.
const title = "E2eNode Suite"

// modesOf returns the modes that the selected tests require. Without names of tests, before the
// first run, it returns all.
func modesOf(names []string, focus *regexp.Regexp) []mode {
	var required []mode
	for _, m := range modes {
		for _, name := range names {
			if focus.MatchString(title+" "+name) && modeOf(name).name == m.name {
				required = append(required, m)
				break
			}
		}
	}
	if len(names) == 0 {
		return modes
	}
	return required
}

// modeOf returns the mode that a test requires. Its labels are in its name.
func modeOf(name string) mode {
	for _, m := range modes[1:] {
		if strings.Contains(name, "["+m.label+"]") {
			return m
		}
	}
	return modes[0]
}
