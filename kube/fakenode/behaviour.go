package fakenode

import (
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// Annotation and AnnotationPrefix name the annotations of a pod that say how its
// containers behave, as text ([ParseBehaviour]): the first for all of them, the
// other one, with the name of a container after it, for that one. An empty one
// counts as absent.
const (
	Annotation       = "kubeparts.dev/behave"
	AnnotationPrefix = "behave.kubeparts.dev/"
)

// A Behaviour is what a container does without being told. The zero value starts
// at once, is ready at once, runs until it is stopped, and stops as soon as it is
// asked to.
type Behaviour struct {
	// ReadyAfter is how long after its start it is ready, whether it declares a
	// readiness probe or not.
	ReadyAfter time.Duration

	// NeverReady: it runs, and is never ready.
	NeverReady bool

	// Flap, if above zero, is for how long it is ready, and then for how long it is
	// not, and so on. The first time begins after ReadyAfter.
	Flap time.Duration

	// Exits says that it exits by itself, with Code, ExitAfter its start. OOM has
	// its reason be OOMKilled.
	Exits     bool
	Code      int32
	ExitAfter time.Duration
	OOM       bool

	// Crashes, if above zero, is how many instances exit so; those after them run.
	Crashes int

	// StartDelay is how long each start takes, as if its image had to be pulled.
	StartDelay time.Duration

	// StopDelay is how long it takes to exit after TERM. Stubborn: it ignores TERM,
	// and is killed at the end of the pod's grace period.
	StopDelay time.Duration
	Stubborn  bool

	// NoImage: its image cannot be pulled (ErrImagePull, then ImagePullBackOff), for
	// good, or, if NoImageFor is above zero, for that time since the first try.
	NoImage    bool
	NoImageFor time.Duration

	// Fail, if not empty, is the reason for which it cannot be started
	// (CreateContainerError).
	Fail string

	// Evict has the node evict the pod EvictAfter the container's start.
	Evict      bool
	EvictAfter time.Duration
}

// String returns the text of b, which [ParseBehaviour] reads.
func (b Behaviour) String() string {
	var w []string
	add := func(is bool, format string, args ...any) {
		if is {
			w = append(w, fmt.Sprintf(format, args...))
		}
	}
	add(b.StartDelay > 0, "start=%v", b.StartDelay)
	add(b.NoImage && b.NoImageFor <= 0, "no-image")
	add(b.NoImage && b.NoImageFor > 0, "no-image=%v", b.NoImageFor)
	add(b.Fail != "", "fail=%s", b.Fail)
	add(b.ReadyAfter > 0, "ready=%v", b.ReadyAfter)
	add(b.NeverReady, "never-ready")
	add(b.Flap > 0, "flap=%v", b.Flap)
	add(b.Exits && !b.OOM, "exit=%d@%v", b.Code, b.ExitAfter)
	add(b.Exits && b.OOM, "oom@%v", b.ExitAfter)
	add(b.Crashes > 0, "crashes=%d", b.Crashes)
	add(b.StopDelay > 0, "stop=%v", b.StopDelay)
	add(b.Stubborn, "stubborn")
	add(b.Evict, "evict@%v", b.EvictAfter)
	if len(w) == 0 {
		return "run"
	}
	return strings.Join(w, ",")
}

// watched reports whether somebody has to look after an instance while it runs.
func (b Behaviour) watched() bool {
	return b.ReadyAfter > 0 || b.NeverReady || b.Flap > 0 || b.Evict
}

// ready reports whether a container that has run for age is ready, and in how long
// that changes by itself; zero: it does not.
func (b Behaviour) ready(age time.Duration) (ready bool, changes time.Duration) {
	switch {
	case b.NeverReady:
		return false, 0
	case age < b.ReadyAfter:
		return false, b.ReadyAfter - age
	case b.Flap <= 0:
		return true, 0
	}
	age -= b.ReadyAfter
	return age/b.Flap%2 == 0, b.Flap - age%b.Flap
}

// pulls is for how long a failed pull is one: after that it is a back-off.
const pulls = time.Second

// inRuntime is what of b the runtime does. since is how long ago it was tried first.
func (b Behaviour) inRuntime(c *v1.Container, since time.Duration) runtimetest.Behaviour {
	out := runtimetest.Behaviour{
		Crashes: b.Crashes, StartDelay: b.StartDelay, StopDelay: b.StopDelay, Stubborn: b.Stubborn,
	}
	if b.Exits {
		out.Exit = &runtimetest.Exit{After: b.ExitAfter, Code: b.Code}
		if b.OOM {
			out.Exit.Reason = "OOMKilled"
		}
	}
	switch {
	case b.NoImage && (b.NoImageFor <= 0 || since < b.NoImageFor) && since < pulls:
		out.Fail = &runtimetest.Failure{Reason: "ErrImagePull", Message: fmt.Sprintf("failed to pull image %q: not found", c.Image)}
	case b.NoImage && (b.NoImageFor <= 0 || since < b.NoImageFor):
		out.Fail = &runtimetest.Failure{Reason: "ImagePullBackOff", Message: fmt.Sprintf("Back-off pulling image %q", c.Image)}
	case b.Fail != "":
		out.Fail = &runtimetest.Failure{Reason: b.Fail, Message: "it was declared to fail"}
	}
	return out
}
