package fakenode

import (
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime/fake"
)

// Annotation and AnnotationPrefix are the names of annotations of a pod that specify the
// behavior of its containers, as text ([fake.ParseBehavior]): Annotation for all containers,
// and AnnotationPrefix followed by the name of a container for that one, which takes
// precedence. An empty value means "run".
const (
	Annotation       = "fakenode.kubeparts.io/behavior"
	AnnotationPrefix = "behavior.fakenode.kubeparts.io/"
)

// CheckBehavior returns an error if no container of a node can behave in this way: if a field is
// out of range, or is an option that the package documentation of runtime/fake does not list for
// this package.
func CheckBehavior(b fake.Behavior) error {
	return errors.Join(b.Check(), b.Only("start", "fail", "exit", "oom", "reason", "crashes", "stop", "stopCode", "ignoreTERM", "ready", "neverReady", "flap", "evict",
		"log", "http", "tcp", "memory", "cpu", "disk", "command"))
}

// behavior returns the behavior of a container: that of the annotation of the container or
// of the pod, of Config.Behave, of its name, or of its image, in this order. It returns an
// error that names an annotation that cannot be parsed, and then the zero behavior.
func (cfg *Config) behavior(pod *v1.Pod, c *v1.Container) (*fake.Behavior, error) {
	for _, key := range []string{AnnotationPrefix + c.Name, Annotation} {
		text, ok := pod.Annotations[key]
		if !ok {
			continue
		}
		b, err := fake.ParseBehavior(text)
		if err == nil {
			err = CheckBehavior(b)
		}
		if err != nil {
			return &zero, fmt.Errorf("annotation %s: %w", key, err)
		}
		return &b, nil
	}
	if cfg.Behave != nil {
		if b, ok := cfg.Behave(pod, c); ok {
			if err := CheckBehavior(b); err != nil {
				return &zero, fmt.Errorf("Config.Behave: %w", err)
			}
			return &b, nil
		}
	}
	for _, key := range []string{c.Name, c.Image} {
		if b := cfg.shared[key]; b != nil {
			return b, nil
		}
	}
	return &zero, nil
}

// zero is the default behavior.
var zero fake.Behavior

// needsTimer reports whether the state of a running instance changes with time.
func needsTimer(b *fake.Behavior) bool {
	return b.ReadyAfter > 0 || b.NeverReady || b.Flap > 0 || b.EvictAfter > 0
}

// pullDuration is the time after which a failed pull is reported as ImagePullBackOff.
const pullDuration = time.Second

// startedAt returns the behavior of a start, the given time since the first attempt: it does
// not fail after Failure.For, and a failed pull has the message and the reason of a node.
func startedAt(b *fake.Behavior, c *v1.Container, since time.Duration) *fake.Behavior {
	f := b.Fail
	if f == nil {
		return b
	}
	out := *b
	switch {
	case f.For > 0 && since >= f.For:
		out.Fail = nil
	case f.Reason != "ErrImagePull":
		return b
	case since < pullDuration:
		out.Fail = &fake.Failure{Reason: f.Reason, Message: fmt.Sprintf("failed to pull image %q: not found", c.Image)}
	default:
		out.Fail = &fake.Failure{Reason: "ImagePullBackOff", Message: fmt.Sprintf("Back-off pulling image %q", c.Image)}
	}
	return &out
}
