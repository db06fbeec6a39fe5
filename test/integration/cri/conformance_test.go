package cri_test

import (
	"context"
	"fmt"
	"os"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
	"github.com/kubeparts/kubeparts/runtime/cri/remote"
	"github.com/kubeparts/kubeparts/runtime/cri/streaming"
	"github.com/kubeparts/kubeparts/runtime/process"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

func TestMain(m *testing.M) {
	if code, ok := process.Supervise(); ok { // a container of the process runtime
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// shell returns a container that runs a script, on the host or in busybox.
func shell(image, script string) v1.Container {
	return v1.Container{Image: image, ImagePullPolicy: v1.PullIfNotPresent, Command: []string{"sh", "-c", script}}
}

// untilTERM is a command that runs until it receives SIGTERM.
const untilTERM = "trap 'exit 0' TERM; while true; do sleep 0.1; done"

// shellSuite is the conformance suite for runtimes that have a shell.
func shellSuite(image string) runtimetest.Suite {
	print := func(to string) func(text string, code int32) []string {
		return func(text string, code int32) []string {
			return []string{"sh", "-c", fmt.Sprintf("printf %%s '%s' >&%s; exit %d", text, to, code)}
		}
	}
	return runtimetest.Suite{
		Containers: runtimetest.Containers{
			Long:     shell(image, untilTERM),
			Exit:     func(code int32) v1.Container { return shell(image, fmt.Sprintf("sleep 0.2; exit %d", code)) },
			Stubborn: shell(image, "trap '' TERM; while true; do sleep 0.1; done"),
			Prints:   func(text string) v1.Container { return shell(image, "echo '"+text+"'; "+untilTERM) },
			Repeats:  shell(image, `while read line; do echo "$line"; done; `+untilTERM),
			Message: func(text string) v1.Container {
				return shell(image, "echo '"+text+"' > ${KUBEPARTS_TERMINATION_LOG:-/dev/termination-log}; sleep 0.2; exit 1")
			},
		},
		Commands: runtimetest.Commands{
			Print:    print("1"),
			PrintErr: print("2"),
			Block:    []string{"sleep", "100"},
			Echo:     []string{"cat"},
			Size:     []string{"sh", "-c", "for i in $(seq 300); do stty size || exit 1; sleep 0.1; done"},
		},
	}
}

// An agency stores the config of each engine that it opened, so that it can reopen
// the engine as a restarted agent would. It also counts their calls.
type agency struct{ configs, called sync.Map }

func (a *agency) open(t *testing.T, cfg cri.Config) runtime.Runtime {
	t.Helper()
	dir := t.TempDir()
	cfg.Dirs.Root, cfg.Dirs.PodLogs = dir+"/root", dir+"/logs"
	cfg.Containers.Backoff = plan.BackoffConfig{Initial: 500 * time.Millisecond} // ten seconds would be waited for
	count := new(atomic.Int64)
	cfg.Hooks.Called = func(cri.CallInfo) { count.Add(1) }
	rt, err := cri.New(cfg)
	require.NoError(t, err)
	a.configs.Store(rt, cfg)
	a.called.Store(rt, count)
	return rt
}

// calls returns the number of calls of one engine; reopened engines are not counted.
func (a *agency) calls(rt runtime.Runtime) int {
	count, ok := a.called.Load(rt)
	if !ok {
		return 0
	}
	return int(count.(*atomic.Int64).Load())
}

// loseSandbox stops a pod's sandboxes behind the engine's back, as crictl stopp does.
func (a *agency) loseSandbox(t *testing.T, rt runtime.Runtime, uid types.UID) error {
	t.Helper()
	cfg, ok := a.configs.Load(rt)
	require.True(t, ok)
	s, err := rt.PodStatus(t.Context(), uid)
	require.NoError(t, err)
	for _, sb := range s.Sandboxes {
		if err := cfg.(cri.Config).Runtime.StopPodSandbox(t.Context(), sb.ID); err != nil {
			return err
		}
	}
	return nil
}

// equip sets the backend of a suite.
func (a *agency) equip(s *runtimetest.Suite) {
	s.Backend = runtimetest.Backend{Reopen: a.reopen, LoseSandbox: a.loseSandbox, Calls: a.calls}
	s.Parallel = 8
}

func (a *agency) reopen(t *testing.T, rt runtime.Runtime) runtime.Runtime {
	t.Helper()
	cfg, ok := a.configs.Load(rt)
	require.True(t, ok)
	next, err := cri.New(cfg.(cri.Config))
	require.NoError(t, err)
	return next
}

var _ cri.LocalStreams = (*process.Runtime)(nil)

func TestProcessesKeepTheContract(t *testing.T) {
	if goruntime.GOOS == "windows" {
		t.Skip("the process runtime does not run on Windows")
	}
	suite := shellSuite("host")
	suite.Containers.OtherImage = "other-host"
	if testing.Short() {
		suite.Containers.Stubborn = v1.Container{}
	}
	var agents agency
	agents.equip(&suite)
	runtimetest.TestRuntime(t, func(t *testing.T) runtime.Runtime {
		p, err := process.Open(process.Config{Dir: t.TempDir()})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, p.Close(t.Context())) })
		return agents.open(t, cri.Config{Name: process.Name, Runtime: p, Images: p})
	}, suite)
}

func TestIntegrationContainerdKeepsTheContract(t *testing.T) {
	daemon := lab.Containerd(t, lab.ContainerdConfig{})
	suite := shellSuite(lab.Busybox)
	suite.Containers.OtherImage = lab.NewRegistry(t).PushBusybox("other:1")
	suite.Containers.Listens = func(port int32) v1.Container {
		return shell(lab.Busybox, fmt.Sprintf("while true; do echo hello | nc -l -p %d; done", port))
	}
	var agents agency
	agents.equip(&suite)
	runtimetest.TestRuntime(t, func(t *testing.T) runtime.Runtime {
		client, err := remote.Dial(t.Context(), daemon.Endpoint, remote.Config{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, client.Close(context.Background())) })
		return agents.open(t, cri.Config{Name: client.Name, Runtime: client.Runtime, Images: client.Images, Calls: cri.CallConfig{Streams: new(streaming.Client)}})
	}, suite)
}
