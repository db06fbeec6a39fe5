package sim

import (
	"context"
	"slices"
	"time"

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

// withHooks adds postStart hooks to containers of one seed in four, as withProbes adds probes.
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
			}
		}
	}
	return s
}
