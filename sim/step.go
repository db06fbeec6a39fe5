package sim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime/fake"
)

// A Schedule is the sequence of steps that are applied to a node, in order of time. It
// is plain data: a Schedule without some of its steps is a Schedule too.
type Schedule []Step

// A Step is one action at a time. Do determines which fields are used. Its text is one
// line:
//
//	1.5s add web uid=web-1 policy=Always main:c=run
//	3.2s exit web/c code=3
//	4s fault SyncPod kind=lost percent=50 for=10s
//	9s kill calls=3 when=after down=2s
type Step struct {
	At time.Duration // since the start
	Do Action

	// Pod is the name of the pod, and also its UID if UID is empty. A step for a pod or
	// container that does not exist has no effect.
	Pod       string
	UID       types.UID
	Container string

	Shape    Shape         // Add
	Behavior fake.Behavior // Change: the new behavior of the container
	Code     int32         // Exit
	CPU      int64         // Resize: thousandths of a CPU
	Grace    int64         // Delete, Evict: seconds; zero: the pod's own
	From     string        // Restore: the name of the pod whose last complete checkpoint is used

	// Fault: for the duration For, calls of Calls fail as Kind with a probability of
	// Percent; Delay is used by Slow and Stale. Calls is the name of a method (SyncPod,
	// UpdatePodStatus), "runtime" or "sink" for all their methods, "hints" for the
	// events of the runtime, "source" for the lists of desired pods, "Probe" for the
	// attempts of probes, "SetUp" and "TearDown" of volumes, "GetClaim" for reads of
	// claims, or "NodePrepareResources", "NodeUnprepareResources", and "driver" for both.
	Calls   string
	Kind    FaultKind
	Percent int
	For     time.Duration
	Delay   time.Duration

	// Kill: the agent is killed when it makes its Count-th call to the outside since At
	// (zero: at once), after that call has had its effect if After is true, otherwise
	// before, and a new agent is started Down later. Reboot: Down as well. Room: Count
	// is the maximum number of pods.
	Count int
	After bool
	Down  time.Duration
}

// An Action is the kind of a Step.
type Action string

// The actions.
const (
	Add    Action = "add"    // the pod is added to its source; a manifest replaces one with its name
	Change Action = "change" // the image of a container changes
	Resize Action = "resize" // the CPU request of a container changes; not of a static pod
	Delete Action = "delete" // the pod is deleted through the API and gets a deletionTimestamp; a manifest is removed
	Vanish Action = "vanish" // the pod is removed from its source at once, as by a forced deletion

	Exit   Action = "exit"   // a container exits
	OOM    Action = "oom"    // a container is killed because of its memory
	Hang   Action = "hang"   // a container ignores TERM from now on, and does not exit by itself
	Crash  Action = "crash"  // the sandbox and all containers of the pod stop
	Remove Action = "remove" // an operator removes the sandboxes and containers of the pod from the runtime
	Reboot Action = "reboot" // all containers stop and the agent is killed; the next one starts Down later
	Fail   Action = "fail"   // another client sets the phase of the pod to Failed; only while no agent runs
	Room   Action = "room"   // the node admits at most Count pods from now on; zero: no limit

	Collect Action = "collect" // the agent removes all unused images

	// Of pods of the API without claims, on a Machine whose runtime is a runtime.PodCheckpointer:
	Checkpoint Action = "checkpoint" // the agent makes a checkpoint of the pod
	Restore    Action = "restore"    // a pod is added that is restored from a checkpoint, if there is one that is complete

	Evict Action = "evict" // the agent evicts the pod
	Fault Action = "fault" // calls fail for a while
	Kill  Action = "kill"  // the agent is killed and started again
)

var actions = []Action{Add, Change, Resize, Delete, Vanish, Exit, OOM, Hang, Crash, Remove, Reboot, Fail, Room, Collect, Checkpoint, Restore, Evict, Fault, Kill}

// A FaultKind is the effect of a fault on a call.
type FaultKind string

// The kinds of faults.
const (
	Error FaultKind = "error" // the call fails without effect
	Lost  FaultKind = "lost"  // the call has its effect and its response is lost; an event is dropped
	Slow  FaultKind = "slow"  // the call or event is late by Delay
	Hung  FaultKind = "hung"  // the call blocks until its context is done, for 121 seconds at most
	Stale FaultKind = "stale" // a list of all pods returns the state of Delay ago

	// Only of the sink:
	Conflict FaultKind = "conflict" // the call fails because another client has changed a label of the object
	Missing  FaultKind = "missing"  // the call fails if the pod does not exist, where it should succeed

	// Only of probes:
	Sick FaultKind = "sick" // the probe fails although the container is healthy

	// Only of "driver":
	Away FaultKind = "away" // the drivers restart: they are not registered; Percent has no effect
	Lie  FaultKind = "lie"  // the call succeeds without effect, with a result for another claim
)

var faultKinds = []FaultKind{Error, Lost, Slow, Hung, Stale, Conflict, Missing, Sick, Away, Lie}

// podUID returns the UID of the step's pod.
func (s Step) podUID() types.UID {
	if s.UID != "" {
		return s.UID
	}
	return types.UID(s.Pod)
}

// String returns the text of s.
func (s Step) String() string {
	w := []string{s.At.String(), string(s.Do)}
	key := func(name, value string) { w = append(w, name+"="+value) }
	switch s.Do {
	case Fault:
		w = append(w, s.Calls)
		key("kind", string(s.Kind))
		if s.Percent != 100 {
			key("percent", strconv.Itoa(s.Percent))
		}
		key("for", s.For.String())
		if s.Delay > 0 {
			key("delay", s.Delay.String())
		}
		return strings.Join(w, " ")
	case Kill:
		if s.Count > 0 {
			key("calls", strconv.Itoa(s.Count))
			if s.After {
				key("when", "after")
			}
		}
		key("down", s.Down.String())
		return strings.Join(w, " ")
	case Reboot:
		key("down", s.Down.String())
		return strings.Join(w, " ")
	case Room:
		key("pods", strconv.Itoa(s.Count))
		return strings.Join(w, " ")
	case Collect:
		return strings.Join(w, " ")
	}
	pod := s.Pod
	if s.Container != "" {
		pod += "/" + s.Container
	}
	w = append(w, pod)
	if s.UID != "" && string(s.UID) != s.Pod {
		key("uid", string(s.UID))
	}
	switch s.Do {
	case Add:
		if shape := s.Shape.String(); shape != "" {
			w = append(w, shape)
		}
	case Change:
		key("does", s.Behavior.String())
	case Resize:
		key("cpu", strconv.FormatInt(s.CPU, 10))
	case Restore:
		key("from", s.From)
	case Exit:
		key("code", strconv.Itoa(int(s.Code)))
	case Delete, Evict:
		if s.Grace > 0 {
			key("grace", strconv.FormatInt(s.Grace, 10))
		}
	}
	return strings.Join(w, " ")
}

// String returns the text of s, one line per step.
func (s Schedule) String() string {
	var b strings.Builder
	for _, step := range s {
		b.WriteString(step.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// Parse parses the text of a Schedule, as [ParseLines] does. The steps are sorted by time.
func Parse(text string) (Schedule, error) {
	return ParseLines(text, ParseStep, func(s Step) time.Duration { return s.At })
}

// ParseLines parses each line of a text and sorts the results by their times. Empty lines and lines that
// begin with # are ignored. An error contains the number of the line.
func ParseLines[T any](text string, parse func(line string) (T, error), at func(T) time.Duration) (out []T, err error) {
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		v, err := parse(line)
		if err != nil {
			return nil, fmt.Errorf("sim: line %d: %w", i+1, err)
		}
		out = append(out, v)
	}
	slices.SortStableFunc(out, func(a, b T) int { return cmp.Compare(at(a), at(b)) })
	return out, nil
}

// ParseStep parses the text of one Step.
func ParseStep(line string) (Step, error) {
	words := strings.Fields(line)
	if len(words) < 2 {
		return Step{}, fmt.Errorf("sim: step %q: no time and action", line)
	}
	var s Step
	var err error
	if s.At, err = time.ParseDuration(words[0]); err != nil || s.At < 0 {
		return Step{}, fmt.Errorf("sim: step %q: invalid time since the start %q", line, words[0])
	}
	s.Do = Action(words[1])
	if !slices.Contains(actions, s.Do) {
		return Step{}, fmt.Errorf("sim: step %q: no such action", line)
	}
	words = words[2:]
	if s.Do != Kill && s.Do != Reboot && s.Do != Room && s.Do != Collect {
		if len(words) == 0 {
			return Step{}, fmt.Errorf("sim: step %q: no pod or calls", line)
		}
		if s.Do == Fault {
			s.Calls, s.Percent = words[0], 100
		} else {
			s.Pod, s.Container, _ = strings.Cut(words[0], "/")
		}
		words = words[1:]
	}
	for _, word := range words {
		if err := s.parseWord(word); err != nil {
			return Step{}, fmt.Errorf("sim: step %q: %q: %w", line, word, err)
		}
	}
	return s, s.validate(line)
}

func (s *Step) parseWord(word string) (err error) {
	if s.Do == Add {
		if ok, err := s.Shape.parseWord(word); ok {
			return err
		}
	}
	key, value, _ := strings.Cut(word, "=")
	switch key {
	case "uid":
		s.UID = types.UID(value)
	case "from":
		s.From = value
	case "does":
		s.Behavior, err = parseBehavior(value)
	case "code":
		var n int64
		n, err = strconv.ParseInt(value, 10, 32)
		s.Code = int32(n)
	case "cpu":
		s.CPU, err = parseNatural(value)
	case "grace":
		s.Grace, err = parseNatural(value)
	case "kind":
		s.Kind = FaultKind(value)
	case "percent":
		s.Percent, err = strconv.Atoi(value)
	case "for":
		s.For, err = time.ParseDuration(value)
	case "delay":
		s.Delay, err = time.ParseDuration(value)
	case "calls", "pods":
		s.Count, err = strconv.Atoi(value)
	case "when":
		s.After = value == "after"
		if !s.After && value != "before" {
			err = errors.New(`must be "before" or "after"`)
		}
	case "down":
		s.Down, err = time.ParseDuration(value)
	default:
		err = errors.New("unknown word")
	}
	return err
}

// validate returns an error if a field of the step is missing or out of range.
func (s Step) validate(line string) error {
	fail := func(why string) error { return fmt.Errorf("sim: step %q: %s", line, why) }
	switch {
	case s.Do == Fault && !slices.Contains(faultKinds, s.Kind):
		return fail(fmt.Sprintf("no such kind of fault: %q", s.Kind))
	case s.Do == Fault && (s.Percent < 0 || s.Percent > 100):
		return fail("percent is not between 0 and 100")
	case s.Do == Fault && s.Kind == Stale && s.Delay <= 0:
		return fail("no delay: the age of stale lists")
	case s.For < 0 || s.Delay < 0 || s.Down < 0 || s.Count < 0:
		return fail("a number is negative")
	case s.Do == Add && s.Shape.Static && len(s.Shape.Claims) > 0:
		return fail("a static pod has no claims")
	case s.Do == Add && len(s.Shape.Containers) == 0:
		return fail("the pod has no containers")
	case s.Do == Restore && s.From == "":
		return fail("no from: the pod of the checkpoint")
	case slices.Contains([]Action{Change, Resize, Exit, OOM, Hang}, s.Do) && s.Container == "":
		return fail("no container: must be pod/container")
	}
	return nil
}

// images returns the behavior of the containers of all steps, by image.
func (s Schedule) images() map[string]fake.Behavior {
	out := map[string]fake.Behavior{}
	for _, step := range s {
		if step.Do == Change {
			out[Image(step.Behavior)] = step.Behavior
		}
		for _, c := range step.Shape.Containers {
			out[Image(c.Behavior)] = c.Behavior
		}
	}
	return out
}
