package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/compose"
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
// a runtime.StreamExecer. A runtime.Execer is sufficient for a command without input and
// terminal; its output is written when the command has terminated.
func (p *Provider) Exec(ctx context.Context, namespace, pod, container string, cmd []string, s runtime.Streams) error {
	execer, ok := compose.As[runtime.StreamExecer](p.cfg.Runtime)
	if simple, found := compose.As[runtime.Execer](p.cfg.Runtime); !ok && found && s.Stdin == nil && !s.TTY {
		execer, ok = afterwards{simple}, true
	}
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

// An afterwards is an Execer as a StreamExecer without input and terminal.
type afterwards struct{ runtime.Execer }

// StreamExec implements runtime.StreamExecer.
func (e afterwards) StreamExec(ctx context.Context, id string, cmd []string, s runtime.Streams) (int32, error) {
	res, err := e.Exec(ctx, id, cmd, 0)
	if err != nil {
		return 0, err
	}
	return res.ExitCode, errors.Join(write(s.Stdout, res.Stdout), write(s.Stderr, res.Stderr))
}

// write writes text to w; nil discards it.
func write(w io.Writer, text []byte) error {
	if w == nil {
		return nil
	}
	_, err := w.Write(text)
	return err
}

// Attach connects s to the main process of a running container until it terminates or ctx
// is done. It returns the errors of Exec, and requires a runtime.Attacher.
func (p *Provider) Attach(ctx context.Context, namespace, pod, container string, s runtime.Streams) error {
	attacher, ok := compose.As[runtime.Attacher](p.cfg.Runtime)
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
	forwarder, ok := compose.As[runtime.PortForwarder](p.cfg.Runtime)
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
