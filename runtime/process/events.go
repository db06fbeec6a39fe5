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

	"github.com/kubeparts/kubeparts/internal/broadcast"
)

// eventsMax is the maximum number of queued events per reader. Beyond it the stream is terminated.
const eventsMax = 4096

// A queuedEvent is an event that was not sent yet.
type queuedEvent struct {
	at        int64
	sandboxID string
	subject   string // the container, or the sandbox itself
	kind      runtimeapi.ContainerEventType
	sandbox   *runtimeapi.PodSandboxStatus // as of the event: it may be removed before the event is sent
}

func (r *Runtime) publish(sandboxID string, kind runtimeapi.ContainerEventType, subject string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.publishLocked(sandboxID, kind, subject)
}

// publishLocked queues an event for each reader and does not block. The sandbox
// must still exist, also if its removal is published.
func (r *Runtime) publishLocked(sandboxID string, kind runtimeapi.ContainerEventType, subject string) {
	if !r.events.HasReaders() {
		return
	}
	h := queuedEvent{at: time.Now().UnixNano(), sandboxID: sandboxID, subject: subject, kind: kind}
	if s, ok := r.sandboxes[sandboxID]; ok {
		h.sandbox = s.status()
	}
	r.events.Send(h)
}

// GetContainerEvents sends an event for each sandbox and container that is
// created, started, stopped or deleted, until ctx is done, and then returns ctx's
// error. It returns Unavailable if the runtime is closed, and ResourceExhausted to a
// reader that is 4096 events behind. It does not close the channel. The callback, which may
// be nil, is called with nil (there is no stream) as soon as no further event can be missed.
//
// Exits are reported within milliseconds: the supervisors record them in one
// directory, which is watched. The exit of a container whose supervisor was
// killed is detected by the next inspection of the container. As with any CRI
// runtime, callers must relist from time to time.
//
// It uses one inotify instance (kqueue on macOS), independent of the number of
// containers.
func (r *Runtime) GetContainerEvents(ctx context.Context, containerEventsCh chan *runtimeapi.ContainerEventResponse, connectionEstablishedCallback func(runtimeapi.RuntimeService_GetContainerEventsClient)) error {
	exits, err := fsnotify.NewWatcher()
	if err == nil {
		defer exits.Close()
		err = exits.Add(r.dir.path("exits"))
	}
	if err != nil {
		return status.Errorf(codes.Internal, "process: watch exits: %v", err)
	}
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return errClosed
	}
	events := r.events.Open(eventsMax)
	r.mu.Unlock()
	defer events.Close()
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
			// The inspection publishes the change.
			if id := strings.TrimSuffix(filepath.Base(e.Name), ".json"); e.Has(fsnotify.Create) {
				r.refreshMatching(func(c *container) bool { return c.rec.ID == id })
			}
		case err := <-exits.Errors:
			// Events were lost: inspect all containers.
			r.log.Warn("Failed to watch exits; inspecting all containers", "err", fmt.Errorf("process: %w", err))
			r.refreshMatching(func(*container) bool { return true })
		case <-events.More():
			if err := r.send(ctx, events, containerEventsCh); err != nil {
				return err
			}
		}
	}
}

func (r *Runtime) refreshMatching(match func(*container) bool) {
	for _, c := range r.find(match) {
		r.refresh(c)
	}
}

// send sends the queued events.
func (r *Runtime) send(ctx context.Context, events *broadcast.Reader[queuedEvent], ch chan<- *runtimeapi.ContainerEventResponse) error {
	queue, late := events.Take()
	for _, h := range queue {
		select {
		case ch <- r.event(h):
		case <-ctx.Done():
			return ctx.Err()
		case <-r.ended:
			return errClosed
		}
	}
	if late {
		return status.Errorf(codes.ResourceExhausted, "process: reader of container events is more than %d events behind", eventsMax)
	}
	return nil
}

// event adds the current containers, whose state may be newer than the event; a
// later change has an event of its own.
func (r *Runtime) event(h queuedEvent) *runtimeapi.ContainerEventResponse {
	resp := &runtimeapi.ContainerEventResponse{
		ContainerId: h.subject, ContainerEventType: h.kind, CreatedAt: h.at, PodSandboxStatus: h.sandbox,
	}
	for _, c := range r.find(func(c *container) bool { return c.rec.SandboxID == h.sandboxID }) {
		resp.ContainersStatuses = append(resp.ContainersStatuses, c.status())
	}
	return resp
}
