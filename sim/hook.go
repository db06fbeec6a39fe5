package sim

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// hookCommand is the command of postStart hooks. Its argument is their duration.
const hookCommand = "hook"

// hookDuration returns the duration of a postStart hook; false if cmd is another command.
func hookDuration(cmd []string) (time.Duration, bool) {
	if len(cmd) != 2 || cmd[0] != hookCommand {
		return 0, false
	}
	d, err := time.ParseDuration(cmd[1])
	return d, err == nil
}

// HookDuration returns how long the postStart hook of a simulated container takes; zero if it has none.
func HookDuration(c *v1.Container) time.Duration {
	if c.Lifecycle == nil || c.Lifecycle.PostStart == nil || c.Lifecycle.PostStart.Exec == nil {
		return 0
	}
	d, _ := hookDuration(c.Lifecycle.PostStart.Exec.Command)
	return d
}

// IsHook reports whether cmd is the command of a postStart hook of a simulated container.
func IsHook(cmd []string) bool {
	_, ok := hookDuration(cmd)
	return ok
}

// Exec is the fake.Behavior.Exec of simulated containers: it runs postStart hooks. Other commands
// exit with 0 at once.
func Exec(ctx context.Context, cmd []string, _ runtime.Streams) (exitCode int32, err error) {
	took, _ := hookDuration(cmd)
	select {
	case <-time.After(took):
		return 0, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// withHooks adds postStart hooks to containers of one seed in four, as withProbes adds probes. The deadline of
// some of their pods passes less than a second after their sandbox has crashed, during the hook of a container
// that has not been observed.
func withHooks(seed uint64, s Schedule) Schedule {
	if seed%4 != 3 {
		return s
	}
	for i := range s {
		if s[i].Do != Add {
			continue
		}
		s[i].Shape.Containers = slices.Clone(s[i].Shape.Containers)
		for j := range s[i].Shape.Containers {
			c := &s[i].Shape.Containers[j]
			if roll := hash(seed, 15, 0, 0, string(s[i].podUID()), c.Name); c.Kind != Init && roll%3 == 0 {
				c.Hook = time.Duration(1+roll>>8%20) * time.Second
				if crash := s.next(i, Crash); crash > 0 && s[i].Shape.Deadline == 0 && roll>>16%2 == 0 {
					s[i].Shape.Deadline = int64((crash + time.Second - 1) / time.Second)
				}
			}
		}
	}
	return s
}

// next returns the time from the step that adds a pod to the next step of a kind for it; zero if there is none.
func (s Schedule) next(add int, kind Action) time.Duration {
	for _, step := range s[add+1:] {
		if step.podUID() == s[add].podUID() && step.Do == kind {
			return step.At - s[add].At
		}
	}
	return 0
}
