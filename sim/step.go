package sim

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A Schedule is all that happens to a node, in order of time. It is plain data:
// what is left of it when steps are taken out is a Schedule again.
type Schedule []Step

// A Step is one thing that happens at a time. Which fields count depends on Do.
// Its text is one line:
//
//	1.5s add web uid=web-1 policy=Always main:c=run
//	3.2s exit web/c code=3
//	4s fault SyncPod kind=lost percent=50 for=10s
//	9s kill calls=3 when=after down=2s
type Step struct {
	At time.Duration // since the start
	Do Action

	// Pod by its name, which is its UID as well unless UID says another one. A
	// step for a pod, or container, that is not there does nothing.
	Pod       string
	UID       types.UID
	Container string

	Shape Shape     // Add
	Does  Behaviour // Change: what the container does from then on
	Code  int32     // Exit
	CPU   int64     // Resize: thousandths
	Grace int64     // Delete, Evict: seconds; zero: the pod's own

	// Fault: what goes wrong, with which calls, for how long and how often.
	// Calls is the name of a method (SyncPod, UpdatePodStatus), "runtime" or
	// "sink" for all of them, "hints", "Probe" for the runs of probes, or
	// "SetUp" and "TearDown" of volumes.
	Calls   string
	Kind    FaultKind
	Percent int
	For     time.Duration
	Delay   time.Duration

	// Kill: the agent dies when it makes its Count-th call of the outside since
	// At (zero: at once), Before or after that call has its effect, and a new
	// one is started Down later. Room: Count is for how many pods.
	Count int
	After bool
	Down  time.Duration
}

// An Action is what a Step does.
type Action string

// The actions.
const (
	Add    Action = "add"    // the pod is wanted from now on; a manifest takes the place of one with its name
	Change Action = "change" // its container is to be another
	Resize Action = "resize" // its container requests another amount of CPU; not of a manifest
	Delete Action = "delete" // the API is asked to delete it: it gets a deletionTimestamp; a manifest goes
	Vanish Action = "vanish" // it goes from its source at once, as by a forced deletion

	Exit   Action = "exit"   // a container exits
	OOM    Action = "oom"    // a container is killed for its memory
	Hang   Action = "hang"   // a container ignores TERM from now on, and does not exit by itself
	Crash  Action = "crash"  // the sandbox is lost, and its containers with it
	Remove Action = "remove" // an operator removes all of the pod from the runtime
	Reboot Action = "reboot" // the machine is started again, Down later the agent: all that ran has died
	Fail   Action = "fail"   // while no agent runs, somebody else tells the API that the pod has failed
	Room   Action = "room"   // the node has room for Count pods from now on; zero: for any number

	Collect Action = "collect" // the agent removes all images that are not in use

	Evict Action = "evict" // the agent itself ends the pod, which counts as failed
	Fault Action = "fault" // calls go wrong for a while
	Kill  Action = "kill"  // the agent is killed, and started again
)

var actions = []Action{Add, Change, Resize, Delete, Vanish, Exit, OOM, Hang, Crash, Remove, Reboot, Fail, Room, Collect, Evict, Fault, Kill}

// A FaultKind is what goes wrong with a call.
type FaultKind string

// The kinds of faults.
const (
	Error FaultKind = "error" // it fails and does nothing
	Lost  FaultKind = "lost"  // it does what it should, and the answer is lost; hints don't come
	Slow  FaultKind = "slow"  // it takes Delay longer; hints come later
	Hung  FaultKind = "hung"  // it does not come back until it is given up
	Stale FaultKind = "stale" // a list of all there is shows what there was Delay ago

	// Of the sink alone:
	Conflict FaultKind = "conflict" // it fails, since somebody has changed the object: a label of it
	Missing  FaultKind = "missing"  // it fails if the API does not know the pod, where it should say nothing

	// Of probes alone:
	Sick FaultKind = "sick" // the probe fails, although the container is well
)

var faultKinds = []FaultKind{Error, Lost, Slow, Hung, Stale, Conflict, Missing, Sick}

// uid returns the UID of the step's pod.
func (s Step) uid() types.UID {
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
		key("does", s.Does.String())
	case Resize:
		key("cpu", strconv.FormatInt(s.CPU, 10))
	case Exit:
		key("code", strconv.Itoa(int(s.Code)))
	case Delete, Evict:
		if s.Grace > 0 {
			key("grace", strconv.FormatInt(s.Grace, 10))
		}
	}
	return strings.Join(w, " ")
}

// String returns the text of s, a line for each step.
func (s Schedule) String() string {
	var b strings.Builder
	for _, step := range s {
		b.WriteString(step.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// Parse reads the text of a Schedule: a line for each step, empty lines and
// those that begin with # left out. The steps are put in order of time. An error
// names the line.
func Parse(text string) (Schedule, error) {
	var out Schedule
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		step, err := ParseStep(line)
		if err != nil {
			return nil, fmt.Errorf("sim: line %d: %w", i+1, err)
		}
		out = append(out, step)
	}
	slices.SortStableFunc(out, func(a, b Step) int { return int(a.At - b.At) })
	return out, nil
}

// ParseStep reads the text of one Step.
func ParseStep(line string) (Step, error) {
	words := strings.Fields(line)
	if len(words) < 2 {
		return Step{}, fmt.Errorf("sim: step %q: it has no time and action", line)
	}
	var s Step
	var err error
	if s.At, err = time.ParseDuration(words[0]); err != nil || s.At < 0 {
		return Step{}, fmt.Errorf("sim: step %q: %q is no time since the start", line, words[0])
	}
	s.Do = Action(words[1])
	if !slices.Contains(actions, s.Do) {
		return Step{}, fmt.Errorf("sim: step %q: no such action", line)
	}
	words = words[2:]
	if s.Do != Kill && s.Do != Reboot && s.Do != Room && s.Do != Collect {
		if len(words) == 0 {
			return Step{}, fmt.Errorf("sim: step %q: it does not say whom it concerns", line)
		}
		if s.Do == Fault {
			s.Calls, s.Percent = words[0], 100
		} else {
			s.Pod, s.Container, _ = strings.Cut(words[0], "/")
		}
		words = words[1:]
	}
	for _, word := range words {
		if err := s.word(word); err != nil {
			return Step{}, fmt.Errorf("sim: step %q: %q: %w", line, word, err)
		}
	}
	return s, s.check(line)
}

func (s *Step) word(word string) (err error) {
	if s.Do == Add {
		if ok, err := s.Shape.word(word); ok {
			return err
		}
	}
	key, value, _ := strings.Cut(word, "=")
	switch key {
	case "uid":
		s.UID = types.UID(value)
	case "does":
		s.Does, err = ParseBehaviour(value)
	case "code":
		var n int64
		n, err = strconv.ParseInt(value, 10, 32)
		s.Code = int32(n)
	case "cpu":
		s.CPU, err = natural(value)
	case "grace":
		s.Grace, err = natural(value)
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
			err = errors.New(`neither "before" nor "after"`)
		}
	case "down":
		s.Down, err = time.ParseDuration(value)
	default:
		err = errors.New("unknown word")
	}
	return err
}

// check finds what a step lacks.
func (s Step) check(line string) error {
	fail := func(why string) error { return fmt.Errorf("sim: step %q: %s", line, why) }
	switch {
	case s.Do == Fault && !slices.Contains(faultKinds, s.Kind):
		return fail(fmt.Sprintf("no such kind of fault: %q", s.Kind))
	case s.Do == Fault && (s.Percent < 0 || s.Percent > 100):
		return fail("percent is not 0 … 100")
	case s.Do == Fault && s.Kind == Stale && s.Delay <= 0:
		return fail("it does not say how old lists are: delay")
	case s.For < 0 || s.Delay < 0 || s.Down < 0 || s.Count < 0:
		return fail("a number is negative")
	case s.Do == Add && len(s.Shape.Containers) == 0:
		return fail("the pod has no containers")
	case slices.Contains([]Action{Change, Resize, Exit, OOM, Hang}, s.Do) && s.Container == "":
		return fail("it names no container: pod/container")
	}
	return nil
}

// images returns what containers do, by the images of all steps.
func (s Schedule) images() map[string]Behaviour {
	out := map[string]Behaviour{}
	for _, step := range s {
		if step.Do == Change {
			out[step.Does.Image()] = step.Does
		}
		for _, c := range step.Shape.Containers {
			out[c.Does.Image()] = c.Does
		}
	}
	return out
}
