package credentials

import (
	"context"
	"sync"
)

// flights lets callers that ask the same at the same time share one run of a
// plugin. The zero value is ready.
//
// The run belongs to no caller: one whose context ends leaves, and the others
// get the answer. The last one that leaves ends the run, and waits until it has
// ended.
type flights struct {
	// mu guards running and the waiting of each flight.
	mu      sync.Mutex
	running map[string]*flight
}

type flight struct {
	waiting int
	cancel  context.CancelFunc
	done    chan struct{} // closed when entries and err are set

	entries []entry
	err     error
}

// do returns what run returns, or ctx's error if that ends first.
func (fs *flights) do(ctx context.Context, key string, run func(context.Context) ([]entry, error)) ([]entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	fs.mu.Lock()
	f, ok := fs.running[key]
	if !ok {
		own, cancel := context.WithCancel(context.WithoutCancel(ctx))
		f = &flight{cancel: cancel, done: make(chan struct{})}
		if fs.running == nil {
			fs.running = map[string]*flight{}
		}
		fs.running[key] = f
		go func() {
			defer close(f.done)
			defer cancel()
			f.entries, f.err = run(own)
			fs.mu.Lock()
			defer fs.mu.Unlock()
			fs.endLocked(key, f)
		}()
	}
	f.waiting++
	fs.mu.Unlock()

	select {
	case <-f.done:
		return f.entries, f.err
	case <-ctx.Done():
	}
	fs.mu.Lock()
	f.waiting--
	last := f.waiting == 0
	if last {
		fs.endLocked(key, f) // who comes now begins anew
	}
	fs.mu.Unlock()
	if last {
		f.cancel()
		<-f.done
	}
	return nil, ctx.Err()
}

// endLocked lets no more callers join f.
func (fs *flights) endLocked(key string, f *flight) {
	if fs.running[key] == f {
		delete(fs.running, key)
	}
}
