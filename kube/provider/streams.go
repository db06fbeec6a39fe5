package provider

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/kube/internal/podlog"
	"github.com/kubeparts/kubeparts/runtime"
)

// An ExitError is the error of Exec if the command terminated with an exit code other than
// zero. virtual-kubelet recognizes it by its methods, which are those of ExitError of
// k8s.io/utils/exec, and reports the code to the client.
type ExitError struct{ Code int32 }

// Error implements error.
func (e ExitError) Error() string {
	return fmt.Sprintf("command terminated with exit code %d", e.Code)
}

// String returns the message of the error.
func (e ExitError) String() string { return e.Error() }

// Exited reports that the command terminated by itself.
func (ExitError) Exited() bool { return true }

// ExitStatus returns the exit code.
func (e ExitError) ExitStatus() int { return int(e.Code) }

// Exec runs a command in a running container until it terminates or ctx is done. It
// returns an ExitError if the exit code is not zero, a NotFound error if the pod or the
// container does not exist, and an error that is runtime.ErrUnsupported if Runtime is not
// a runtime.StreamExecer.
func (p *Provider) Exec(ctx context.Context, namespace, pod, container string, cmd []string, s runtime.Streams) error {
	execer, ok := runtime.As[runtime.StreamExecer](p.cfg.Runtime)
	if !ok {
		return fmt.Errorf("provider: exec: %w", runtime.ErrUnsupported)
	}
	id, err := p.running(namespace, pod, container)
	if err != nil {
		return err
	}
	code, err := execer.StreamExec(ctx, id, cmd, s)
	if err != nil {
		return fmt.Errorf("provider: exec: %w", err)
	}
	if code != 0 {
		return ExitError{Code: code}
	}
	return nil
}

// Attach connects s to the main process of a running container until it terminates or ctx
// is done. Its errors are those of Exec; it requires a runtime.Attacher.
func (p *Provider) Attach(ctx context.Context, namespace, pod, container string, s runtime.Streams) error {
	attacher, ok := runtime.As[runtime.Attacher](p.cfg.Runtime)
	if !ok {
		return fmt.Errorf("provider: attach: %w", runtime.ErrUnsupported)
	}
	id, err := p.running(namespace, pod, container)
	if err != nil {
		return err
	}
	if err := attacher.Attach(ctx, id, s); err != nil {
		return fmt.Errorf("provider: attach: %w", err)
	}
	return nil
}

// PortForward copies between conn and a port of a pod until either side is closed or ctx is
// done, and closes conn. It requires a runtime.PortForwarder.
func (p *Provider) PortForward(ctx context.Context, namespace, pod string, port int32, conn io.ReadWriteCloser) error {
	forwarder, ok := runtime.As[runtime.PortForwarder](p.cfg.Runtime)
	if !ok {
		_ = conn.Close()
		return fmt.Errorf("provider: port-forward: %w", runtime.ErrUnsupported)
	}
	found, err := p.find(namespace, pod)
	if err != nil {
		_ = conn.Close()
		return err
	}
	if err := forwarder.PortForward(ctx, found.UID, port, conn); err != nil {
		return fmt.Errorf("provider: port-forward: %w", err)
	}
	return nil
}

// running returns the ID of a running container.
func (p *Provider) running(namespace, pod, container string) (string, error) {
	found, err := p.find(namespace, pod)
	if err != nil {
		return "", err
	}
	status, err := statusOf(found, container)
	if err != nil {
		return "", err
	}
	if status.State.Running == nil {
		return "", fmt.Errorf("provider: container %q of pod %s/%s is not running", container, namespace, pod)
	}
	return status.ContainerID, nil
}

// statusOf returns the status of a container of pod, or a NotFound error.
func statusOf(pod *v1.Pod, container string) (*v1.ContainerStatus, error) {
	all := slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses, pod.Status.EphemeralContainerStatuses)
	if i := slices.IndexFunc(all, func(c v1.ContainerStatus) bool { return c.Name == container }); i >= 0 {
		return &all[i], nil
	}
	return nil, notFound{fmt.Sprintf("container %q of pod %s/%s", container, pod.Namespace, pod.Name)}
}

// Logs returns the log of a container from the files that the runtime writes, including
// rotated ones. Nil options mean the whole log. The caller must close the result, which
// ends a follow, as does ctx. An error after the beginning is returned by Read. Logs
// returns a NotFound error if the pod or the container does not exist, and an error that
// is runtime.ErrUnsupported if the runtime has no log files (runtime.LogReader).
func (p *Provider) Logs(ctx context.Context, namespace, pod, container string, opts *v1.PodLogOptions) (io.ReadCloser, error) {
	paths, ok := runtime.As[runtime.LogReader](p.cfg.Runtime)
	if !ok {
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

// mayWrite reports whether a container has not terminated. A runtime that cannot be asked
// does not end a follow.
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
