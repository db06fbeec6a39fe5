package provider_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/kube/provider"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// A streaming runtime has logs, and echoes its input.
type streaming struct {
	*runtimetest.Runtime
	log string
}

func (s streaming) LogPath(context.Context, string) (string, error) { return s.log, nil }

func (s streaming) Attach(_ context.Context, id string, streams runtime.Streams) error {
	_, err := io.Copy(streams.Stdout, streams.Stdin)
	return err
}

func (s streaming) PortForward(_ context.Context, uid types.UID, port int32, conn io.ReadWriteCloser) error {
	defer conn.Close()
	_, err := io.WriteString(conn, string(uid))
	return err
}

type connection struct {
	bytes.Buffer
	closed bool
}

func (c *connection) Close() error {
	c.closed = true
	return nil
}

// serving starts a Provider in real time and waits until the pod web is running.
func serving(t *testing.T, rt runtime.Runtime) *provider.Provider {
	p, err := provider.New(provider.Config{Runtime: rt})
	require.NoError(t, err)
	running := make(chan struct{}, 100)
	p.NotifyPods(t.Context(), func(pod *v1.Pod) {
		if pod.Status.Phase == v1.PodRunning {
			running <- struct{}{}
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-done)
	})
	require.NoError(t, p.CreatePod(ctx, web("a")))
	select {
	case <-running:
	case <-time.After(time.Minute):
		t.Fatal("the pod is not running")
	}
	return p
}

func TestStreamsOfAContainer(t *testing.T) {
	rt := streaming{Runtime: new(runtimetest.Runtime)}
	rt.Behave("web:1", fake.Behavior{Exec: func(_ context.Context, cmd []string, s runtime.Streams) (int32, error) {
		if cmd[0] == "false" {
			return 7, nil
		}
		_, err := io.WriteString(s.Stdout, cmd[1])
		return 0, err
	}})
	p := serving(t, rt)
	var out bytes.Buffer
	require.NoError(t, p.Exec(t.Context(), "default", "web", "app", []string{"echo", "hello"}, runtime.Streams{Stdout: &out}))
	assert.Equal(t, "hello", out.String())
	err := p.Exec(t.Context(), "default", "web", "app", []string{"false"}, runtime.Streams{})
	exit, ok := err.(interface {
		Exited() bool
		ExitStatus() int
	})
	require.True(t, ok, "%v", err)
	assert.True(t, exit.Exited())
	assert.Equal(t, 7, exit.ExitStatus())
	assert.EqualError(t, err, "command terminated with exit code 7")

	out.Reset()
	require.NoError(t, p.Attach(t.Context(), "default", "web", "app", runtime.Streams{Stdin: bytes.NewBufferString("typed"), Stdout: &out}))
	assert.Equal(t, "typed", out.String())

	conn := new(connection)
	require.NoError(t, p.PortForward(t.Context(), "default", "web", 80, conn))
	assert.Equal(t, "a", conn.String())
	assert.True(t, conn.closed)

	for _, err := range []error{
		p.Exec(t.Context(), "default", "other", "app", []string{"true"}, runtime.Streams{}),
		p.Exec(t.Context(), "default", "web", "other", []string{"true"}, runtime.Streams{}),
		p.Attach(t.Context(), "default", "other", "app", runtime.Streams{}),
		p.PortForward(t.Context(), "default", "other", 80, conn),
	} {
		assert.True(t, isNotFound(err), "%v", err)
	}
}

// A simple runtime is an Execer, and returns its logs itself.
type simple struct {
	runtime.Runtime
	runtime.Execer
}

func (simple) Unwrap() any { return nil }

func (s simple) ContainerLog(_ context.Context, id string, opts *v1.PodLogOptions) (io.ReadCloser, error) {
	if opts.Follow {
		return nil, errors.New("logs cannot be followed")
	}
	return io.NopCloser(bytes.NewBufferString("log of " + id)), nil
}

func TestARuntimeMayRunCommandsWithoutStreamsAndReturnItsLogs(t *testing.T) {
	rt := new(runtimetest.Runtime)
	rt.Behave("web:1", fake.Behavior{Exec: func(_ context.Context, cmd []string, s runtime.Streams) (int32, error) {
		_, err := io.WriteString(s.Stdout, cmd[0])
		_, err2 := io.WriteString(s.Stderr, "warning")
		return int32(len(cmd) - 1), errors.Join(err, err2)
	}})
	p := serving(t, simple{struct{ runtime.Runtime }{rt}, rt})
	var out, errs bytes.Buffer
	require.NoError(t, p.Exec(t.Context(), "default", "web", "app", []string{"date"}, runtime.Streams{Stdout: &out, Stderr: &errs}))
	assert.Equal(t, "date", out.String())
	assert.Equal(t, "warning", errs.String())
	assert.Equal(t, provider.ExitError{Code: 1}, p.Exec(t.Context(), "default", "web", "app", []string{"date", "-x"}, runtime.Streams{}))
	for _, s := range []runtime.Streams{{Stdin: &out}, {TTY: true}} {
		assert.ErrorIs(t, p.Exec(t.Context(), "default", "web", "app", []string{"sh"}, s), runtime.ErrUnsupported)
	}

	log, err := p.Logs(t.Context(), "default", "web", "app", nil)
	require.NoError(t, err)
	text, err := io.ReadAll(log)
	require.NoError(t, errors.Join(err, log.Close()))
	assert.Contains(t, string(text), "log of memory://app-")
	_, err = p.Logs(t.Context(), "default", "web", "app", &v1.PodLogOptions{Follow: true})
	assert.EqualError(t, err, "logs cannot be followed")
}

func TestLogsOfAContainer(t *testing.T) {
	log := filepath.Join(t.TempDir(), "0.log")
	line := func(text string) string { return "2026-01-02T03:04:05Z stdout F " + text + "\n" }
	require.NoError(t, os.WriteFile(log, []byte(line("one")+line("two")), 0o600))
	p := serving(t, streaming{Runtime: new(runtimetest.Runtime), log: log})
	read := func(opts *v1.PodLogOptions) string {
		logs, err := p.Logs(t.Context(), "default", "web", "app", opts)
		require.NoError(t, err)
		defer logs.Close()
		text, err := io.ReadAll(logs)
		require.NoError(t, err)
		return string(text)
	}
	assert.Equal(t, "one\ntwo\n", read(nil))
	assert.Equal(t, "two\n", read(&v1.PodLogOptions{TailLines: new(int64(1))}))

	follow, err := p.Logs(t.Context(), "default", "web", "app", &v1.PodLogOptions{Follow: true, TailLines: new(int64(1))})
	require.NoError(t, err)
	text := make([]byte, len("two\n"))
	_, err = io.ReadFull(follow, text)
	require.NoError(t, err)
	assert.Equal(t, "two\n", string(text))
	f, err := os.OpenFile(log, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(line("three"))
	require.NoError(t, errors.Join(err, f.Close()))
	text = make([]byte, len("three\n"))
	_, err = io.ReadFull(follow, text)
	require.NoError(t, err)
	assert.Equal(t, "three\n", string(text))
	require.NoError(t, follow.Close())

	_, err = p.Logs(t.Context(), "default", "web", "app", &v1.PodLogOptions{TailLines: new(int64(-1))})
	assert.ErrorContains(t, err, "invalid options")
	_, err = p.Logs(t.Context(), "default", "web", "app", &v1.PodLogOptions{Previous: true})
	assert.ErrorContains(t, err, `previous terminated container "app" in pod "web" not found`)
	for _, container := range []string{"app", "other"} {
		pod := map[string]string{"app": "other", "other": "web"}[container]
		_, err = p.Logs(t.Context(), "default", pod, container, nil)
		assert.True(t, isNotFound(err), "%v", err)
	}
	require.NoError(t, os.Remove(log))
	logs, err := p.Logs(t.Context(), "default", "web", "app", nil)
	require.NoError(t, err)
	_, err = io.ReadAll(logs)
	assert.ErrorIs(t, err, os.ErrNotExist)
}

func TestMissingRuntimeFeaturesAreUnsupported(t *testing.T) {
	p, err := provider.New(provider.Config{Runtime: plain{new(runtimetest.Runtime)}})
	require.NoError(t, err)
	conn := new(connection)
	_, logs := p.Logs(t.Context(), "default", "web", "app", nil)
	for _, err := range []error{
		logs,
		p.Exec(t.Context(), "default", "web", "app", nil, runtime.Streams{}),
		p.Attach(t.Context(), "default", "web", "app", runtime.Streams{}),
		p.PortForward(t.Context(), "default", "web", 80, conn),
	} {
		assert.ErrorIs(t, err, runtime.ErrUnsupported)
	}
	assert.True(t, conn.closed)
}
