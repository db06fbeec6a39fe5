package fakecri_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
	"github.com/kubeparts/kubeparts/runtime/cri/remote"
	"github.com/kubeparts/kubeparts/runtime/cri/serve"
	"github.com/kubeparts/kubeparts/runtime/cri/streaming"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

var _ cri.LocalStreams = (*fakecri.Runtime)(nil)

// image returns a container with the behavior of its image. The name is fully
// qualified, as runtimes report images by such names.
func image(name string) v1.Container {
	return v1.Container{Image: "fake.test/" + name + ":1", ImagePullPolicy: v1.PullIfNotPresent}
}

// shellOf implements the commands "print <text> <code>", "print-err <text> <code>",
// "block", "echo" and "size".
func shellOf(ctx context.Context, cmd []string, s runtime.Streams) (int32, error) {
	out := s.Stdout
	switch cmd[0] {
	case "block":
		<-ctx.Done()
		return 0, ctx.Err()
	case "echo":
		_, err := io.Copy(s.Stdout, s.Stdin)
		return 0, err
	case "size":
		for {
			select {
			case <-ctx.Done():
				return 0, ctx.Err()
			case size := <-s.Resize:
				if _, err := fmt.Fprintln(s.Stdout, size.Height, size.Width); err != nil {
					return 0, err
				}
			}
		}
	case "print-err":
		out = s.Stderr
	}
	code, err := strconv.ParseInt(cmd[2], 10, 32)
	if err != nil {
		return 0, err
	}
	_, err = io.WriteString(out, cmd[1])
	return int32(code), err
}

// cast returns the behaviors of the suite's containers, by image.
func cast() map[string]fake.Behavior {
	images := map[string]fake.Behavior{
		"fake.test/stubborn:1": {IgnoreTERM: true},
		"fake.test/long:1":     {Exec: shellOf},
		"fake.test/other:1":    {Exec: shellOf},
		"fake.test/prints:1":   {Logs: []fake.LogLine{{After: time.Millisecond, Text: "hello, log"}}},
		"fake.test/reports:1":  {Exit: &fake.Exit{After: 200 * time.Millisecond, Code: 1, Message: "out of luck"}},
		"fake.test/greets:1": {Forward: func(_ context.Context, port int32, conn io.ReadWriteCloser) error {
			if port != 18573 {
				return errors.New("connection refused")
			}
			_, err := io.WriteString(conn, "hello\n")
			return err
		}},
	}
	for code := range int32(43) {
		images[fmt.Sprintf("fake.test/exit-%d:1", code)] = fake.Behavior{Exit: &fake.Exit{After: 200 * time.Millisecond, Code: code}}
	}
	return images
}

// An engine stores its config, so that it can be reopened as a restarted agent would,
// and counts its calls.
type engine struct {
	*cri.Runtime
	fake   *fakecri.Runtime
	cfg    cri.Config
	called *atomic.Int64
}

// over returns the engine over the services of cfg, which fake provides.
func over(t *testing.T, fake *fakecri.Runtime, cfg cri.Config) *engine {
	t.Helper()
	dir, called := t.TempDir(), new(atomic.Int64)
	cfg.Dirs.Root, cfg.Dirs.PodLogs = dir+"/root", dir+"/logs"
	cfg.Hooks.Called = func(cri.CallInfo) { called.Add(1) }
	rt, err := cri.New(cfg)
	require.NoError(t, err)
	return &engine{rt, fake, cfg, called}
}

func newFakeOf(t *testing.T) *fakecri.Runtime {
	t.Helper()
	fake, err := fakecri.New(fakecri.Config{Behaviors: fake.Behaviors{Images: cast()}, WriteLogs: true, PodCheckpoints: true})
	require.NoError(t, err)
	return fake
}

// suiteOf returns the suite with everything that the fake supports.
func suiteOf() runtimetest.Suite {
	return runtimetest.Suite{
		Containers: runtimetest.Containers{
			Long:       image("long"),
			OtherImage: image("other").Image,
			Exit:       func(code int32) v1.Container { return image(fmt.Sprintf("exit-%d", code)) },
			Stubborn:   image("stubborn"),
			Repeats:    image("long"),
			Prints:     func(string) v1.Container { return image("prints") },
			Message:    func(string) v1.Container { return image("reports") },
			Listens:    func(int32) v1.Container { return image("greets") },
		},
		Commands: runtimetest.Commands{
			Print:    func(text string, code int32) []string { return []string{"print", text, fmt.Sprint(code)} },
			PrintErr: func(text string, code int32) []string { return []string{"print-err", text, fmt.Sprint(code)} },
			Block:    []string{"block"},
			Echo:     []string{"echo"},
			Size:     []string{"size"},
		},
		Backend: runtimetest.Backend{
			Reopen: func(t *testing.T, rt runtime.Runtime) runtime.Runtime {
				was := rt.(*engine)
				next, err := cri.New(was.cfg)
				require.NoError(t, err)
				return &engine{next, was.fake, was.cfg, was.called}
			},
			LoseSandbox: func(_ *testing.T, rt runtime.Runtime, uid types.UID) error {
				return rt.(*engine).fake.KillSandbox(string(uid))
			},
			Calls: func(rt runtime.Runtime) int { return int(rt.(*engine).called.Load()) },
		},
		Gaps: map[string]string{
			"AttachReachesTheMainProcess": "input from attached clients is discarded: there is no program",
		},
	}
}

// The engine of package cri over this runtime keeps the contract of a runtime,
// in virtual time.
func TestTheEngineOverItKeepsTheContract(t *testing.T) {
	suite := suiteOf()
	suite.Within, suite.Parallel = synctest.Test, 4
	runtimetest.TestRuntime(t, func(t *testing.T) runtime.Runtime {
		fake := newFakeOf(t)
		return over(t, fake, cri.Config{Name: "fakecri", Runtime: fake, Images: fake})
	}, suite)
}

// The same over a socket in real time, as other programs use the fake. Checks that take
// whole grace periods are left out, and so is the known gap, which fails only after a
// timeout.
func TestTheEngineOverItsSocketKeepsTheContract(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds of real time")
	}
	suite := suiteOf()
	suite.Containers.Stubborn, suite.Containers.Repeats, suite.Gaps, suite.Parallel = v1.Container{}, v1.Container{}, nil, 16
	runtimetest.TestRuntime(t, func(t *testing.T) runtime.Runtime {
		fake := newFakeOf(t)
		listener, err := serve.Listen(t.Context(), filepath.Join(t.TempDir(), "s"))
		require.NoError(t, err)
		server, err := serve.New(serve.Config{Listener: listener, Runtime: fake, Images: fake, Streams: fake})
		require.NoError(t, err)
		ctx, stop := context.WithCancel(context.WithoutCancel(t.Context())) // until the pods are cleaned up
		ended := make(chan error, 1)
		go func() { ended <- server.Run(ctx) }()
		t.Cleanup(func() {
			stop()
			assert.NoError(t, <-ended)
		})
		client, err := remote.Dial(t.Context(), listener.Addr().String(), remote.Config{})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, client.Close(ctx)) })
		return over(t, fake, cri.Config{
			Name: client.Name, Runtime: client.Runtime, Images: client.Images, Calls: cri.CallConfig{Streams: new(streaming.Client)},
			Containers: cri.ContainerConfig{Backoff: plan.BackoffConfig{Initial: 200 * time.Millisecond}},
		})
	}, suite)
}
