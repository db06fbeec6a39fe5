package fakenode

import (
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// Annotation and AnnotationPrefix are the names of annotations of a pod that specify the
// behavior of its containers, as text ([ParseBehavior]): Annotation for all containers, and
// AnnotationPrefix followed by the name of a container for that one, which takes
// precedence. An empty value means "run".
const (
	Annotation       = "fakenode.kubeparts.io/behavior"
	AnnotationPrefix = "behavior.fakenode.kubeparts.io/"
)

// A Behavior is the behavior of a container. A container with the zero value starts
// immediately, is ready when it has started, runs until it is stopped, and exits on SIGTERM.
type Behavior struct {
	// ReadyAfter is the time from the start until the container is ready, with or without a
	// readiness probe.
	ReadyAfter time.Duration

	// NeverReady is set for a container that runs, but is never ready.
	NeverReady bool

	// Flap, if positive, is the time for which the container is alternately ready and not
	// ready, beginning with ready after ReadyAfter.
	Flap time.Duration

	// Exit specifies how the container exits. Nil: it runs until it is stopped.
	Exit *Exit

	// StartDelay is the duration of each start, as if the image had to be pulled.
	StartDelay time.Duration

	// StopDelay is the time between SIGTERM and the exit.
	StopDelay time.Duration

	// IgnoreTERM is set for a container that ignores SIGTERM: it is killed at the end of
	// the grace period of the pod.
	IgnoreTERM bool

	// NoImage makes image pulls fail (ErrImagePull, then ImagePullBackOff): always, or, if
	// NoImageFor is positive, for that time since the first attempt.
	NoImage    bool
	NoImageFor time.Duration

	// Fail, if not empty, is the reason for which the container cannot be started, such as
	// CreateContainerError.
	Fail string

	// Evict evicts the pod EvictAfter the start of the container.
	Evict      bool
	EvictAfter time.Duration
}

// An Exit specifies that a container exits.
type Exit struct {
	// Code is the exit code, from 0 to 255.
	Code int32

	// After is the time from the start until the exit.
	After time.Duration

	// OOM reports the reason OOMKilled.
	OOM bool

	// Crashes, if positive, is the number of instances that exit; those after them run.
	Crashes int
}

// String returns the text of b, which [ParseBehavior] parses.
func (b Behavior) String() string {
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
	if e := b.Exit; e != nil {
		add(!e.OOM, "exit=%d@%v", e.Code, e.After)
		add(e.OOM, "oom@%v", e.After)
		add(e.Crashes > 0, "crashes=%d", e.Crashes)
	}
	add(b.StopDelay > 0, "stop=%v", b.StopDelay)
	add(b.IgnoreTERM, "stubborn")
	add(b.Evict, "evict@%v", b.EvictAfter)
	if len(w) == 0 {
		return "run"
	}
	return strings.Join(w, ",")
}

// needsTimer reports whether the state of a running instance changes with time.
func (b Behavior) needsTimer() bool {
	return b.ReadyAfter > 0 || b.NeverReady || b.Flap > 0 || b.Evict
}

// ready reports whether a container that has run for age is ready, and the time until that
// changes; zero if it does not change.
func (b Behavior) ready(age time.Duration) (ready bool, changesIn time.Duration) {
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

// pullDuration is the time after which a failed pull is reported as ImagePullBackOff.
const pullDuration = time.Second

// forRuntime returns the part of b that the runtime implements. since is the time since
// the first attempt to start the container.
func (b Behavior) forRuntime(c *v1.Container, since time.Duration) runtimetest.Behavior {
	out := runtimetest.Behavior{
		StartDelay: b.StartDelay, StopDelay: b.StopDelay, Stubborn: b.IgnoreTERM,
	}
	if e := b.Exit; e != nil {
		out.Crashes = e.Crashes
		out.Exit = &runtimetest.Exit{After: e.After, Code: e.Code}
		if e.OOM {
			out.Exit.Reason = "OOMKilled"
		}
	}
	switch {
	case b.NoImage && (b.NoImageFor <= 0 || since < b.NoImageFor) && since < pullDuration:
		out.Fail = &runtimetest.Failure{Reason: "ErrImagePull", Message: fmt.Sprintf("failed to pull image %q: not found", c.Image)}
	case b.NoImage && (b.NoImageFor <= 0 || since < b.NoImageFor):
		out.Fail = &runtimetest.Failure{Reason: "ImagePullBackOff", Message: fmt.Sprintf("Back-off pulling image %q", c.Image)}
	case b.Fail != "":
		out.Fail = &runtimetest.Failure{Reason: b.Fail, Message: "failure specified by its behavior"}
	}
	return out
}
