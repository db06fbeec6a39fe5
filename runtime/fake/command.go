package fake

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/runtime"
)

// A Command specifies the result of commands.
type Command struct {
	Prefix         string // the first arguments, joined by spaces; empty matches every command
	Stdout, Stderr string
	Echo           bool // the input is copied to the output first, until it ends
	ExitCode       int32
	Takes          time.Duration
	Fails          int // number of runs, from the first one on, that exit with 1 instead
}

// Command returns the index of the first of Commands that matches a command; -1 if none does.
func (b *Behavior) Command(cmd []string) int {
	line := strings.Join(cmd, " ") + " "
	return slices.IndexFunc(b.Commands, func(c Command) bool { return c.Prefix == "" || strings.HasPrefix(line, c.Prefix+" ") })
}

// Run runs a command, with streams that are not nil. earlier is how often it was run before. It
// returns the error of ctx if it is done first.
func (c Command) Run(ctx context.Context, s runtime.Streams, earlier int) (exitCode int32, err error) {
	if c.Takes > 0 {
		timer := time.NewTimer(c.Takes)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	if c.Echo {
		_, err = io.Copy(s.Stdout, s.Stdin)
	}
	if err == nil {
		_, err = io.WriteString(s.Stdout, c.Stdout)
	}
	if err == nil {
		_, err = io.WriteString(s.Stderr, c.Stderr)
	}
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case err != nil: // no reader: as after SIGPIPE
		return 128 + 13, nil
	case earlier < c.Fails:
		return 1, nil
	}
	return c.ExitCode, nil
}
