package cri

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// A Streamer connects to the streaming server of a runtime, at a URL that the runtime
// returned for this stream; streaming.Client is an implementation. It must be safe for
// concurrent use and return when ctx is done. The methods have the semantics of the
// optional interfaces of package runtime with the same names.
type Streamer interface {
	Exec(ctx context.Context, u *url.URL, s runtime.Streams) (exitCode int32, err error)
	Attach(ctx context.Context, u *url.URL, s runtime.Streams) error
	PortForward(ctx context.Context, u *url.URL, port int32, conn io.ReadWriteCloser) error
}

// LocalStreams is an optional interface of Config.Runtime for a runtime in the same
// program, which serves streams without a server; process.Runtime implements it. Without it,
// Config.Calls.Streams is used. IDs have no prefix. Unsupported operations
// return an error that is errors.ErrUnsupported or has the gRPC code Unimplemented.
type LocalStreams interface {
	StreamExec(ctx context.Context, containerID string, cmd []string, s runtime.Streams) (exitCode int32, err error)
	StreamAttach(ctx context.Context, containerID string, s runtime.Streams) error
	StreamPortForward(ctx context.Context, sandboxID string, port int32, conn io.ReadWriteCloser) error
}

// errNoStreamer is the error of streams without a Streamer.
var errNoStreamer = fmt.Errorf("Config.Calls.Streams is nil: %w", runtime.ErrUnsupported)

// StreamExec implements [runtime.StreamExecer].
func (r *Runtime) StreamExec(ctx context.Context, containerID string, cmd []string, s runtime.Streams) (int32, error) {
	wrap := func(err error) error { return fmt.Errorf("cri: exec %q in container %s: %w", cmd, containerID, err) }
	if r.local != nil {
		code, err := r.local.StreamExec(r.quiet(ctx), runtimeID(containerID), cmd, s)
		if err != nil {
			return 0, wrap(classify(ctx, ctx, err))
		}
		return code, nil
	}
	if r.cfg.Calls.Streams == nil {
		return 0, wrap(errNoStreamer)
	}
	u, err := r.ExecURL(ctx, containerID, cmd, s.Options())
	if err != nil {
		return 0, err
	}
	code, err := r.cfg.Calls.Streams.Exec(ctx, u, s)
	if err != nil {
		return 0, wrap(err)
	}
	return code, nil
}

// Attach implements [runtime.Attacher].
func (r *Runtime) Attach(ctx context.Context, containerID string, s runtime.Streams) error {
	wrap := func(err error) error { return fmt.Errorf("cri: attach to container %s: %w", containerID, err) }
	if r.local != nil {
		if err := r.local.StreamAttach(r.quiet(ctx), runtimeID(containerID), s); err != nil {
			return wrap(classify(ctx, ctx, err))
		}
		return nil
	}
	if r.cfg.Calls.Streams == nil {
		return wrap(errNoStreamer)
	}
	u, err := r.AttachURL(ctx, containerID, s.Options())
	if err != nil {
		return err
	}
	if err := r.cfg.Calls.Streams.Attach(ctx, u, s); err != nil {
		return wrap(err)
	}
	return nil
}

// PortForward implements [runtime.PortForwarder].
func (r *Runtime) PortForward(ctx context.Context, uid types.UID, port int32, conn io.ReadWriteCloser) error {
	defer conn.Close()
	wrap := func(err error) error { return fmt.Errorf("cri: forward to port %d of pod %s: %w", port, uid, err) }
	if port < 1 || port > 65535 {
		return wrap(errors.New("invalid port"))
	}
	if r.local == nil && r.cfg.Calls.Streams == nil {
		return wrap(errNoStreamer)
	}
	sandbox, err := r.readySandbox(ctx, uid)
	if err != nil {
		return wrap(err)
	}
	if r.local != nil {
		if err := r.local.StreamPortForward(r.quiet(ctx), sandbox, port, conn); err != nil {
			return wrap(classify(ctx, ctx, err))
		}
		return nil
	}
	u, err := r.portForwardURL(ctx, sandbox, []int32{port})
	if err != nil {
		return wrap(err)
	}
	if err := r.cfg.Calls.Streams.PortForward(ctx, u, port, conn); err != nil {
		return wrap(err)
	}
	return nil
}

// ExecURL implements [runtime.StreamServer].
func (r *Runtime) ExecURL(ctx context.Context, containerID string, cmd []string, opts runtime.StreamOptions) (*url.URL, error) {
	answer, err := r.cfg.Runtime.Exec(r.quiet(ctx), &runtimeapi.ExecRequest{
		ContainerId: runtimeID(containerID), Cmd: cmd,
		Stdin: opts.Stdin, Stdout: opts.Stdout, Stderr: opts.Stderr && !opts.TTY, Tty: opts.TTY,
	})
	if err != nil {
		return nil, fmt.Errorf("cri: exec %q in container %s: %w", cmd, containerID, err)
	}
	return streamURL("exec", answer.GetUrl())
}

// AttachURL implements [runtime.StreamServer].
func (r *Runtime) AttachURL(ctx context.Context, containerID string, opts runtime.StreamOptions) (*url.URL, error) {
	answer, err := r.cfg.Runtime.Attach(r.quiet(ctx), &runtimeapi.AttachRequest{
		ContainerId: runtimeID(containerID),
		Stdin:       opts.Stdin, Stdout: opts.Stdout, Stderr: opts.Stderr && !opts.TTY, Tty: opts.TTY,
	})
	if err != nil {
		return nil, fmt.Errorf("cri: attach to container %s: %w", containerID, err)
	}
	return streamURL("attach", answer.GetUrl())
}

// PortForwardURL implements [runtime.StreamServer].
func (r *Runtime) PortForwardURL(ctx context.Context, uid types.UID, ports []int32) (*url.URL, error) {
	sandbox, err := r.readySandbox(ctx, uid)
	var u *url.URL
	if err == nil {
		u, err = r.portForwardURL(ctx, sandbox, ports)
	}
	if err != nil {
		return nil, fmt.Errorf("cri: forward to ports of pod %s: %w", uid, err)
	}
	return u, nil
}

func (r *Runtime) portForwardURL(ctx context.Context, sandbox string, ports []int32) (*url.URL, error) {
	answer, err := r.cfg.Runtime.PortForward(r.quiet(ctx), &runtimeapi.PortForwardRequest{PodSandboxId: sandbox, Port: ports})
	if err != nil {
		return nil, err
	}
	return streamURL("port-forward", answer.GetUrl())
}

// readySandbox returns the ID of the newest sandbox of a pod, which must be ready.
func (r *Runtime) readySandbox(ctx context.Context, uid types.UID) (string, error) {
	if uid == "" {
		return "", errors.New("no pod UID")
	}
	sandboxes, _, err := r.list(ctx, uid)
	if err != nil {
		return "", err
	}
	var best *runtimeapi.PodSandbox
	for _, s := range sandboxes {
		if best == nil || newestSandbox(s.Metadata.Attempt, best.Metadata.Attempt, nanos(s.CreatedAt), nanos(best.CreatedAt), s.Id, best.Id) < 0 {
			best = s
		}
	}
	switch {
	case best == nil:
		return "", fmt.Errorf("sandbox: %w", runtime.ErrNotFound)
	case best.State != runtimeapi.PodSandboxState_SANDBOX_READY:
		return "", fmt.Errorf("sandbox %s is not ready", best.Id)
	}
	return best.Id, nil
}

// streamURL parses the URL in a response. The URL contains a token, so it is not part of
// the error.
func streamURL(what, raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("cri: runtime returned no URL for %s", what)
	}
	return u, nil
}
