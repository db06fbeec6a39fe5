package containerstest

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/containers"
)

// of returns a running instance.
func (b *Backend) of(id string) (*instance, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := b.instances[id]
	if i == nil {
		return nil, fmt.Errorf("instance %q: %w", id, runtime.ErrNotFound)
	}
	if i.Phase != containers.Running {
		return nil, fmt.Errorf("instance %q does not run", id)
	}
	return i, nil
}

// inInstance runs f until it returns, ctx is done or the instance exits, which is the exit code 137.
func inInstance(ctx context.Context, i *instance, f func(context.Context) (int32, error)) (int32, error) {
	type result struct {
		code int32
		err  error
	}
	inside, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan result, 1)
	go func() {
		code, err := f(inside)
		done <- result{code, err}
	}()
	select {
	case r := <-done:
		return r.code, r.err
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-i.exited:
		return 137, nil
	}
}

// Exec implements containers.Execer.
func (b *Backend) Exec(ctx context.Context, id string, cmd []string, s runtime.Streams) (code int32, err error) {
	err = b.call(ctx, "Exec", id, func(ctx context.Context) error {
		i, err := b.of(id)
		if err != nil || i.behavior.Exec == nil {
			return err
		}
		code, err = inInstance(ctx, i, func(ctx context.Context) (int32, error) { return i.behavior.Exec(ctx, cmd, s) })
		return err
	})
	return code, err
}

// Attach implements containers.Attacher.
func (b *Backend) Attach(ctx context.Context, id string, s runtime.Streams) error {
	return b.call(ctx, "Attach", id, func(ctx context.Context) error {
		i, err := b.of(id)
		if err != nil {
			return err
		}
		_, err = inInstance(ctx, i, func(ctx context.Context) (int32, error) {
			if i.behavior.Attach == nil {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			return 0, i.behavior.Attach(ctx, s)
		})
		return err
	})
}

// ReadLog implements containers.LogReader: the output has the lines of Behavior.Logs.
func (b *Backend) ReadLog(ctx context.Context, id string, skip containers.LogOffset, s runtime.Streams) error {
	return b.call(ctx, "ReadLog", id, func(context.Context) error { // a lost response is one of a stream that ends
		b.mu.Lock()
		i := b.instances[id]
		b.mu.Unlock()
		if i == nil {
			return fmt.Errorf("instance %q: %w", id, runtime.ErrNotFound)
		}
		stdout, stderr := &tail{s.Stdout, skip.Stdout}, &tail{s.Stderr, skip.Stderr}
		out := i.behavior.Output()
		return out.Follow(ctx, i.StartedAt, i.exited, func() time.Time { return i.FinishedAt }, func(_ time.Time, text string, isErr bool) error {
			to := stdout
			if isErr {
				to = stderr
			}
			_, err := io.WriteString(to, text+"\n")
			return err
		})
	})
}

// A tail writes what follows the first bytes.
type tail struct {
	io.Writer
	skip int64
}

func (t *tail) Write(p []byte) (int, error) {
	n := min(t.skip, int64(len(p)))
	t.skip -= n
	if n == int64(len(p)) {
		return len(p), nil
	}
	_, err := t.Writer.Write(p[n:])
	return len(p), err
}

// Stats implements containers.StatsProvider: each instance uses a tenth of a CPU and 1 MiB.
func (b *Backend) Stats(ctx context.Context) (all map[string]containers.Stats, err error) {
	err = b.call(ctx, "Stats", "", func(ctx context.Context) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		all = map[string]containers.Stats{}
		for id, i := range b.instances {
			if i.Phase == containers.Running {
				all[id] = containers.Stats{CPU: time.Since(i.StartedAt) / 10, Memory: 1 << 20}
			}
		}
		return nil
	})
	return all, err
}

// Watch implements containers.Watcher.
func (b *Backend) Watch(ctx context.Context, changed func(record string)) error {
	changes := make(chan string, 4096)
	send := func(record string) {
		select {
		case changes <- record:
		default: // the reader is behind: it lists
		}
	}
	b.mu.Lock()
	if b.watchers == nil {
		b.watchers = map[*func(string)]struct{}{}
	}
	b.watchers[&send] = struct{}{}
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.watchers, &send)
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case record := <-changes:
			changed(record)
		}
	}
}

func (b *Backend) notify(record string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for send := range b.watchers {
		(*send)(record)
	}
}
