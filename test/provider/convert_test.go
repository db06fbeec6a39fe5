package provider_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/provider"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// Types of virtual-kubelet's package node/api, which does not build with k8s.io/apiserver
// 0.37: it imports k8s.io/apiserver/pkg/util/wsstream, which was moved.
type (
	termSize struct {
		Width  uint16
		Height uint16
	}

	attachIO interface {
		Stdin() io.Reader
		Stdout() io.WriteCloser
		Stderr() io.WriteCloser
		TTY() bool
		Resize() <-chan termSize
	}

	containerLogOpts struct {
		Tail         int
		LimitBytes   int
		Timestamps   bool
		Follow       bool
		Previous     bool
		SinceSeconds int
		SinceTime    time.Time
	}
)

// nodeProvider is nodeutil.Provider without statistics, with node.PodNotifier. Package
// nodeutil imports node/api.
type nodeProvider interface {
	node.PodLifecycleHandler
	node.PodNotifier
	GetContainerLogs(ctx context.Context, namespace, pod, container string, opts containerLogOpts) (io.ReadCloser, error)
	RunInContainer(ctx context.Context, namespace, pod, container string, cmd []string, attach attachIO) error
	AttachToContainer(ctx context.Context, namespace, pod, container string, attach attachIO) error
	PortForward(ctx context.Context, namespace, pod string, port int32, stream io.ReadWriteCloser) error
}

// full has the methods that a program adds to a Provider to make it a
// nodeutil.Provider.
type full struct{ *provider.Provider }

var (
	_ node.PodLifecycleHandler = (*provider.Provider)(nil)
	_ node.PodNotifier         = (*provider.Provider)(nil)
	_ nodeProvider             = full{}
)

func (f full) GetContainerLogs(ctx context.Context, namespace, pod, container string, opts containerLogOpts) (io.ReadCloser, error) {
	return f.Logs(ctx, namespace, pod, container, logOptions(opts))
}

func (f full) RunInContainer(ctx context.Context, namespace, pod, container string, cmd []string, attach attachIO) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return f.Exec(ctx, namespace, pod, container, cmd, streams(ctx, attach))
}

func (f full) AttachToContainer(ctx context.Context, namespace, pod, container string, attach attachIO) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return f.Attach(ctx, namespace, pod, container, streams(ctx, attach))
}

// logOptions converts options, in which zero means that an option is not set.
func logOptions(opts containerLogOpts) *v1.PodLogOptions {
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
func streams(ctx context.Context, from attachIO) runtime.Streams {
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
		go func() {
			for {
				select {
				case size := <-sizes:
					select {
					case to <- runtime.TerminalSize(size):
					case <-ctx.Done():
						return
					}
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	return s
}

// A call's streams, as virtual-kubelet's HTTP handler creates them.
type callIO struct{ out *strings.Builder }

func (callIO) Stdin() io.Reader         { return nil }
func (c callIO) Stdout() io.WriteCloser { return nopCloser{c.out} }
func (callIO) Stderr() io.WriteCloser   { return nil }
func (callIO) TTY() bool                { return false }
func (callIO) Resize() <-chan termSize  { return nil }

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func TestACommandRunsThroughVirtualKubeletsTypes(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.rt.Behave("web:1", runtimetest.Behavior{Exec: func(_ context.Context, cmd []string) (runtime.ExecResult, error) {
			return runtime.ExecResult{Stdout: []byte(strings.Join(cmd, " ")), ExitCode: int32(len(cmd) - 1)}, nil
		}})
		p, stop := c.start()
		defer stop()
		c.create("web", "web:1")
		c.after(time.Second, "web")
		out := new(strings.Builder)
		require.NoError(t, full{p}.RunInContainer(t.Context(), "default", "web", "app", []string{"date"}, callIO{out}))
		assert.Equal(t, "date", out.String())
		err := full{p}.RunInContainer(t.Context(), "default", "web", "app", []string{"test", "-e", "x"}, callIO{out})
		exit, ok := err.(interface{ ExitStatus() int })
		require.True(t, ok, "%v", err)
		assert.Equal(t, 2, exit.ExitStatus())
		_, err = full{p}.GetContainerLogs(t.Context(), "default", "web", "app", containerLogOpts{Tail: 10})
		assert.ErrorIs(t, err, runtime.ErrUnsupported, "the runtime in memory has no logs")
	})
}

// The copies of types that cannot be imported have the lines of virtual-kubelet's source.
func TestTheCopiedTypesAreThoseOfVirtualKubelet(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/virtual-kubelet/virtual-kubelet").Output()
	require.NoError(t, err)
	dir := filepath.Join(strings.TrimSpace(string(out)), "node")
	for name, source := range map[string]string{
		"termSize struct": "api/exec.go", "attachIO interface": "api/exec.go", "containerLogOpts struct": "api/logs.go",
		"nodeProvider interface": "nodeutil/provider.go",
	} {
		published := strings.NewReplacer("api.", "", "podName,", "pod,", "containerName ", "container ").Replace(read(t, filepath.Join(dir, source)))
		_, body, found := strings.Cut(read(t, "convert_test.go"), name)
		require.True(t, found, name)
		body, _, _ = strings.Cut(body, "}")
		for field := range strings.SplitSeq(body[strings.Index(body, "{")+1:], "\n") {
			if field = strings.TrimSpace(field); field != "" && field != "node.PodNotifier" {
				assert.Contains(t, strings.ToLower(published), strings.ToLower(field), name)
			}
		}
	}
}

// read returns the text of a file with each run of whitespace in a line replaced by
// one space.
func read(t *testing.T, path string) string {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return regexp.MustCompile(`[ \t]+`).ReplaceAllString(string(text), " ")
}
