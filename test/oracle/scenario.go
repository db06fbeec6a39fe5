package oracle

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/sim"
)

// A Scenario is a sequence of steps in the order of their times, with a text of one line per step.
type Scenario []Step

// A Step is one line of a scenario: a step of package sim, with words for what only a real kubelet
// does.
//
//	0s add web policy=Never main:c=exit=0@5s hook:c=20s
//	2s fault PullImage kind=slow delay=10s for=30s
//	3s attach web/debug does=exit=0@1s
//	4s remove web/debug
//
// The calls of a fault are a method of the CRI, "cri" for all of them, or "api" for all requests to the
// API server. The uid of a step has no effect: the API server determines it.
type Step struct {
	sim.Step

	// Attach is true for a step that adds an ephemeral container with the step's Behavior.
	Attach bool

	// Clean are the containers of an added pod that exit with 0 on TERM.
	Clean []string
}

// attach is the word of a step with Attach. The words of the other steps are in sim.Change.
const attach = "attach"

// ParseScenario parses the text of a scenario, as sim.ParseLines does.
func ParseScenario(text string) (Scenario, error) {
	return sim.ParseLines(text, parseStep, func(s Step) time.Duration { return s.At })
}

func parseStep(line string) (s Step, err error) {
	words := strings.Fields(line)
	if len(words) > 1 && words[1] == attach {
		s.Attach, words[1] = true, string(sim.Change)
	}
	var rest []string
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		kind, container, _ := strings.Cut(key, ":")
		switch kind {
		case "clean":
			if container == "" || value != "" || slices.Contains(s.Clean, container) {
				return s, fmt.Errorf("%q: must be clean:CONTAINER, once", word)
			}
			s.Clean = append(s.Clean, container)
		default:
			rest = append(rest, word)
		}
	}
	if s.Step, err = sim.ParseStep(strings.Join(rest, " ")); err != nil {
		return s, err
	}
	return s, s.check()
}

// check returns an error for what a real kubelet cannot be made to do.
func (s Step) check() error {
	switch {
	case slices.Contains([]sim.Action{sim.Room, sim.Collect, sim.Evict}, s.Do):
		return fmt.Errorf("%s is not an action of a scenario", s.Do)
	case s.Do != sim.Add && len(s.Clean) > 0:
		return errors.New("clean describes an added pod")
	case s.Do == sim.Add && (s.Shape.Static || len(s.Shape.Claims) > 0):
		return errors.New("static pods and claims are not supported")
	case s.Do == sim.Fault && !slices.Contains([]sim.FaultKind{sim.Error, sim.Lost, sim.Slow, sim.Hung, sim.Stale}, s.Kind):
		return fmt.Errorf("a fault of kind %q is not supported", s.Kind)
	case s.Do == sim.Fault && s.Kind == sim.Stale && s.Calls == apiCalls:
		return errors.New("only lists of the CRI are stale")
	}
	for _, name := range s.Clean {
		if !slices.ContainsFunc(s.Shape.Containers, func(c sim.Container) bool { return c.Name == name }) {
			return fmt.Errorf("no container %q", name)
		}
	}
	return nil
}

// The calls of faults that are not methods of the CRI.
const (
	criCalls = "cri"
	apiCalls = "api"
)

// String returns the text of s.
func (s Step) String() string {
	text := s.Step.String()
	if s.Attach {
		text = strings.Replace(text, " "+string(sim.Change)+" ", " "+attach+" ", 1)
	}
	for _, name := range s.Clean {
		text += " clean:" + name
	}
	return text
}

// String returns the text of s, one line per step.
func (s Scenario) String() string {
	var b strings.Builder
	for _, step := range s {
		b.WriteString(step.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// Pods returns the number of pods that a scenario adds: lives of pods.
func (s Scenario) Pods() (n int) {
	for _, step := range s {
		if step.Do == sim.Add {
			n++
		}
	}
	return n
}

// End returns the time after which no step has an effect: that of the last one, or of the last fault.
func (s Scenario) End() (end time.Duration) {
	for _, step := range s {
		end = max(end, step.At+step.For+step.Down)
	}
	return end
}

// faultNames describes the faults of a scenario, for reports.
func (s Scenario) faultNames() (names []string) {
	for _, step := range s {
		switch step.Do {
		case sim.Fault:
			names = append(names, step.Calls+" "+string(step.Kind))
		case sim.Kill, sim.Reboot:
			names = append(names, string(step.Do)+" "+strconv.Itoa(step.Count))
		}
	}
	return names
}
