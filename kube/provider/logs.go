package provider

import (
	"context"
	"fmt"
	"io"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/kube/internal/podlog"
	"github.com/kubeparts/kubeparts/runtime"
)

// A LogStreamer is a Runtime that returns the logs of its containers, for a backend whose
// logs are not files on this host. A Provider prefers it to runtime.LogReader.
type LogStreamer interface {
	// ContainerLog returns the log of an instance of a container. opts is valid and not nil;
	// Container and Previous have been applied. An option that the backend does not have must
	// result in an error, not be ignored. Closing the result, or the end of ctx, ends a follow.
	ContainerLog(ctx context.Context, containerID string, opts *v1.PodLogOptions) (io.ReadCloser, error)
}

// Logs returns the log of a container: what a LogStreamer returns, or else the content of
// the files that a runtime.LogReader names, including rotated ones. Nil options mean the
// whole log. The caller must close the result, which ends a follow, as does ctx. An error
// after the beginning is returned by Read. Logs returns a NotFound error if the pod or the
// container does not exist, and an error that is runtime.ErrUnsupported if the runtime is
// neither.
func (p *Provider) Logs(ctx context.Context, namespace, pod, container string, opts *v1.PodLogOptions) (io.ReadCloser, error) {
	streamer, _ := compose.As[LogStreamer](p.cfg.Runtime)
	paths, ok := compose.As[runtime.LogReader](p.cfg.Runtime)
	if !ok && streamer == nil {
		return nil, fmt.Errorf("provider: logs: %w", runtime.ErrUnsupported)
	}
	if opts == nil {
		opts = &v1.PodLogOptions{}
	}
	if !podlog.Valid(opts) {
		return nil, fmt.Errorf("provider: logs: invalid options: %v", opts)
	}
	found, err := p.find(namespace, pod)
	if err != nil {
		return nil, err
	}
	if _, err := statusOf(found, container); err != nil {
		return nil, err
	}
	id, err := podlog.ContainerID(pod, &found.Status, container, opts.Previous)
	if err != nil {
		return nil, fmt.Errorf("provider: logs: %w", err)
	}
	if streamer != nil {
		return streamer.ContainerLog(ctx, id, opts)
	}
	path, err := paths.LogPath(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("provider: logs: %w", err)
	}
	req := podlog.Request(opts, time.Now())
	req.Path = path
	req.Running = func(ctx context.Context) (bool, error) { return p.mayWrite(ctx, found.UID, id) }
	ctx, cancel := context.WithCancel(ctx)
	r, w := io.Pipe()
	go func() {
		defer cancel()
		_ = w.CloseWithError(p.logs.Read(ctx, req, w)) // always nil
	}()
	return &logStream{PipeReader: r, cancel: cancel}, nil
}

// mayWrite reports whether a container has not terminated. An error of the runtime does not
// end a follow.
func (p *Provider) mayWrite(ctx context.Context, uid types.UID, id string) (bool, error) {
	status, err := p.cfg.Runtime.PodStatus(ctx, uid)
	if err != nil {
		return true, ctx.Err()
	}
	for _, c := range status.Containers {
		if c.ID == id {
			return c.State != runtime.ContainerExited, nil
		}
	}
	return false, nil
}

// A logStream ends the reading of a log when it is closed.
type logStream struct {
	*io.PipeReader
	cancel context.CancelFunc
}

// Close implements io.Closer.
func (s *logStream) Close() error {
	s.cancel()
	return s.PipeReader.Close()
}
