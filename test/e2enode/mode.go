package e2enode

import (
	"regexp"
	"strings"
)

// A mode is how the suite is started. Tests with some labels require a mode of their own.
type mode struct {
	name   string
	labels []string // tests with one of these are of this mode; empty: those of no other mode
	args   []string
}

// gates are the feature gates that are off by default and whose features the agent has.
var gates = []string{
	"AtomicWriteVolumeUserFields", "ContainerStopSignals", "EmptyDirVolumeMode", "GRPCContainerProbeTLS", "H2CContainerProbe",
	"PodLevelResourceManagers",
}

// gateLabels returns the labels of the tests of the gates.
func gateLabels() (labels []string) {
	for _, name := range gates {
		labels = append(labels, "FeatureGate:"+name)
	}
	return labels
}

// modes begin with that of most tests.
var modes = []mode{
	{name: "suite"},
	// A proxy of the suite, which injects faults, is between kubelet and runtime.
	{name: "criproxy", labels: []string{"Feature:CriProxy"}, args: []string{"--cri-proxy-enabled=true"}},
	// The kubelet has no API server.
	{name: "standalone", labels: []string{"Feature:StandaloneMode"}, args: []string{"--standalone-mode=true"}},
	// API server and kubelet have the gates enabled.
	{name: "gates", labels: gateLabels(), args: []string{"--feature-gates=" + strings.Join(gates, "=true,") + "=true"}},
}

// filter returns ginkgo's label filter: that of the mode and another one, which may be empty.
func (m mode) filter(labels string) string {
	var all []string
	if len(m.labels) > 0 {
		all = append(all, "("+strings.Join(m.labels, " || ")+")")
	} else {
		for _, other := range modes[1:] {
			for _, label := range other.labels {
				all = append(all, "!"+label)
			}
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
		for _, label := range m.labels {
			if strings.Contains(name, "["+label+"]") {
				return m
			}
		}
	}
	return modes[0]
}
