package virtualkubelet

import (
	"context"
	"io"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// GetContainerLogs implements nodeutil.Provider; see provider.Provider.Logs.
func (p *Provider) GetContainerLogs(ctx context.Context, namespace, pod, container string, opts api.ContainerLogOpts) (io.ReadCloser, error) {
	return p.Logs(ctx, namespace, pod, container, logOptions(opts))
}

// RunInContainer implements nodeutil.Provider; see provider.Provider.Exec.
func (p *Provider) RunInContainer(ctx context.Context, namespace, pod, container string, cmd []string, attach api.AttachIO) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return p.Exec(ctx, namespace, pod, container, cmd, streams(ctx, attach))
}

// AttachToContainer implements nodeutil.Provider; see provider.Provider.Attach.
func (p *Provider) AttachToContainer(ctx context.Context, namespace, pod, container string, attach api.AttachIO) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return p.Attach(ctx, namespace, pod, container, streams(ctx, attach))
}

// logOptions converts options, in which zero means that an option is not set.
func logOptions(opts api.ContainerLogOpts) *v1.PodLogOptions {
	positive := func(n int) *int64 {
		if n <= 0 {
			return nil
		}
		return new(int64(n))
	}
	out := &v1.PodLogOptions{
		Follow: opts.Follow, Previous: opts.Previous, Timestamps: opts.Timestamps,
		TailLines: positive(opts.Tail), LimitBytes: positive(opts.LimitBytes), SinceSeconds: positive(opts.SinceSeconds),
	}
	if !opts.SinceTime.IsZero() {
		out.SinceTime = new(metav1.NewTime(opts.SinceTime))
	}
	return out
}

// streams converts streams; sizes are passed on until ctx is done.
func streams(ctx context.Context, from api.AttachIO) runtime.Streams {
	s := runtime.Streams{Stdin: from.Stdin(), TTY: from.TTY()}
	if out := from.Stdout(); out != nil { // an interface that holds nil would not be nil
		s.Stdout = out
	}
	if out := from.Stderr(); out != nil {
		s.Stderr = out
	}
	if sizes := from.Resize(); sizes != nil {
		to := make(chan runtime.TerminalSize)
		s.Resize = to
		go resize(ctx, sizes, to)
	}
	return s
}

// resize passes sizes on until ctx is done or from is closed.
func resize(ctx context.Context, from <-chan api.TermSize, to chan<- runtime.TerminalSize) {
	for {
		select {
		case size, ok := <-from:
			if !ok {
				return
			}
			select {
			case to <- runtime.TerminalSize(size):
			case <-ctx.Done():
				return
			}
		case <-ctx.Done():
			return
		}
	}
}
