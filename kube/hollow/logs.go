package hollow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/logread"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// Read implements LogReader of package kube/server: it writes the lines that the behavior of a
// container prints. They are computed, not stored.
func (r served) Read(ctx context.Context, req logread.Request, w io.Writer) error {
	i, ok := r.Instance(req.Path)
	if !ok {
		return fmt.Errorf("hollow: log of container %s: %w", req.Path, runtime.ErrNotFound)
	}
	if req.Limit != nil {
		w = &limited{w: w, left: *req.Limit}
	}
	if _, err := w.Write(nil); err != nil {
		return err
	}
	err := r.follow(ctx, i, req, func(at time.Time, text string, _ bool) error {
		line := text + "\n"
		if req.Timestamps {
			line = at.UTC().Format(logread.TimeFormat) + " " + line
		}
		_, err := io.WriteString(w, line)
		return err
	})
	if errors.Is(err, errLimit) {
		return nil
	}
	return err
}

// follow calls emit with the lines that the request selects, and with Follow those that are
// printed later, until the container exits. It returns the error of emit or ctx.
func (r served) follow(ctx context.Context, i runtimetest.Instance, req logread.Request, emit func(at time.Time, text string, stderr bool) error) error {
	if i.Status.StartedAt.IsZero() {
		return nil
	}
	end, exited := time.Now(), i.Exited
	finished := func() time.Time {
		i, _ := r.Instance(i.Status.ID)
		return i.Status.FinishedAt // zero if it was removed
	}
	switch {
	case i.Status.State == runtime.ContainerExited:
		end = i.Status.FinishedAt
	case !req.Follow:
		now := make(chan struct{})
		close(now)
		exited, finished = now, func() time.Time { return end }
	}
	o := begin(i, req, end)
	return o.Follow(ctx, i.Status.StartedAt, exited, finished, func(at time.Time, text string, stderr bool) error {
		if !selected(req, stderr) {
			return nil
		}
		return emit(at, text, stderr)
	})
}

func selected(req logread.Request, stderr bool) bool {
	return req.Stream == logread.All || (req.Stream == logread.Stderr) == stderr
}

// begin returns the output from the first line that the request selects.
func begin(i runtimetest.Instance, req logread.Request, end time.Time) fake.Output {
	o := i.Behavior.Output()
	if since := req.Since.Sub(i.Status.StartedAt); since > 0 {
		o.Skip(since - 1) // a line at this time is selected
	}
	if req.Tail == nil {
		return o
	}
	// The output of a container may be of years: the last lines are looked for in a time before
	// the end that doubles until it contains them.
	age := end.Sub(i.Status.StartedAt)
	for window := time.Second; ; window *= 2 {
		tail := o
		if from := age - window; from > 0 {
			tail.Skip(from)
		}
		if found := count(tail, req, age); found >= *req.Tail || window >= age {
			return drop(tail, req, found-*req.Tail)
		}
	}
}

// count returns the number of selected lines until an age.
func count(o fake.Output, req logread.Request, age time.Duration) (n int64) {
	for at, ok := o.Next(); ok && at <= age; at, ok = o.Next() {
		if _, stderr := o.Print(); selected(req, stderr) {
			n++
		}
	}
	return n
}

// drop returns o after n selected lines.
func drop(o fake.Output, req logread.Request, n int64) fake.Output {
	for n > 0 {
		if _, stderr := o.Print(); selected(req, stderr) {
			n--
		}
	}
	return o
}

var errLimit = errors.New("limit reached")

// limited writes a number of bytes, and then returns errLimit.
type limited struct {
	w    io.Writer
	left int64
}

func (l *limited) Write(p []byte) (int, error) {
	if int64(len(p)) <= l.left {
		l.left -= int64(len(p))
		return l.w.Write(p)
	}
	n, err := l.w.Write(p[:l.left])
	if l.left = 0; err == nil {
		err = errLimit
	}
	return n, err
}
