package process

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A watcher is one GetContainerEvents under way. Runtime.mu guards queue.
type watcher struct {
	queue []happening
	more  chan struct{} // of one element: the queue is not empty
}

// A happening is an event that is not yet told.
type happening struct {
	at        int64
	sandboxID string
	subject   string // the container, or the sandbox itself
	kind      runtimeapi.ContainerEventType
	sandbox   *runtimeapi.PodSandboxStatus // as it was then: it can be gone when this is told
}

func (r *Runtime) publish(sandboxID string, kind runtimeapi.ContainerEventType, subject string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.publishLocked(sandboxID, kind, subject)
}

// publishLocked never waits: a slow watcher's queue grows instead. The sandbox
// is still there, also when its removal is what is published.
func (r *Runtime) publishLocked(sandboxID string, kind runtimeapi.ContainerEventType, subject string) {
	if len(r.watchers) == 0 {
		return
	}
	h := happening{at: time.Now().UnixNano(), sandboxID: sandboxID, subject: subject, kind: kind}
	if s, ok := r.sandboxes[sandboxID]; ok {
		h.sandbox = s.status()
	}
	for w := range r.watchers {
		w.queue = append(w.queue, h)
		select {
		case w.more <- struct{}{}:
		default:
		}
	}
}

// GetContainerEvents sends an event for each sandbox and container that is
// created, started, stopped or deleted from now on, until ctx ends, and then
// returns ctx's error. It returns Unavailable when the runtime is closed. It
// does not close the channel. The callback, which can be nil, is called with
// nil (there is no stream) once no event can be missed any more.
//
// An exit is told within milliseconds: the supervisors record exits in one
// directory, which is watched. The one exception is a supervisor that was
// itself killed: that is found by the next call that looks at its container.
// So events are hints, as with any CRI runtime, and a relist now and then
// remains necessary.
//
// It costs one inotify instance (a kqueue on macOS) however many containers
// there are.
func (r *Runtime) GetContainerEvents(ctx context.Context, containerEventsCh chan *runtimeapi.ContainerEventResponse, connectionEstablishedCallback func(runtimeapi.RuntimeService_GetContainerEventsClient)) error {
	exits, err := fsnotify.NewWatcher()
	if err == nil {
		defer exits.Close()
		err = exits.Add(r.dir.path("exits"))
	}
	if err != nil {
		return status.Errorf(codes.Internal, "process: watch exits: %v", err)
	}
	w := &watcher{more: make(chan struct{}, 1)}
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return errClosed
	}
	r.watchers[w] = struct{}{}
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		delete(r.watchers, w)
		r.mu.Unlock()
	}()
	if connectionEstablishedCallback != nil {
		connectionEstablishedCallback(nil)
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.ended:
			return errClosed
		case e := <-exits.Events:
			// Looking is what publishes. Who looked first does not matter.
			if id := strings.TrimSuffix(filepath.Base(e.Name), ".json"); e.Has(fsnotify.Create) {
				r.lookAt(func(c *container) bool { return c.rec.ID == id })
			}
		case err := <-exits.Errors:
			// Events were lost: look at everything.
			r.log.Warn("watch exits", "err", fmt.Errorf("process: %w", err))
			r.lookAt(func(*container) bool { return true })
		case <-w.more:
			if err := r.tell(ctx, w, containerEventsCh); err != nil {
				return err
			}
		}
	}
}

func (r *Runtime) lookAt(match func(*container) bool) {
	for _, c := range r.find(match) {
		r.look(c)
	}
}

// tell sends what is queued.
func (r *Runtime) tell(ctx context.Context, w *watcher, ch chan<- *runtimeapi.ContainerEventResponse) error {
	r.mu.Lock()
	queue := w.queue
	w.queue = nil
	r.mu.Unlock()
	for _, h := range queue {
		select {
		case ch <- r.event(h):
		case <-ctx.Done():
			return ctx.Err()
		case <-r.ended:
			return errClosed
		}
	}
	return nil
}

// event adds the containers as they are now, which can be later than at the
// event: what follows is told by an event of its own.
func (r *Runtime) event(h happening) *runtimeapi.ContainerEventResponse {
	resp := &runtimeapi.ContainerEventResponse{
		ContainerId: h.subject, ContainerEventType: h.kind, CreatedAt: h.at, PodSandboxStatus: h.sandbox,
	}
	for _, c := range r.find(func(c *container) bool { return c.rec.SandboxID == h.sandboxID }) {
		resp.ContainersStatuses = append(resp.ContainersStatuses, c.status())
	}
	return resp
}
