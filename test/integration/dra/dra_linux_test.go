package dra_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"
	"k8s.io/utils/cpuset"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/cm/dra"
	"github.com/kubeparts/kubeparts/cm/dra/dratest"
	"github.com/kubeparts/kubeparts/cm/dra/registry"
	"github.com/kubeparts/kubeparts/cm/managers"
	"github.com/kubeparts/kubeparts/cm/state"
	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podsource/manifest"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/remote"
	"github.com/kubeparts/kubeparts/status"
	"github.com/kubeparts/kubeparts/volume/csi/register"
)

const driverName = "test.example.com"

// Variables of the process that is the agent.
const (
	agentDirVariable      = "KUBEPARTS_DRA_AGENT_DIR"
	agentEndpointVariable = "KUBEPARTS_DRA_AGENT_ENDPOINT"
)

// The pod prints the variable and the device that CDI injects, and then waits.
func podWithClaim(uid types.UID) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: string(uid), UID: uid}}
	p.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "gpu", ResourceClaimName: new("gpu")}}
	p.Spec.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Claims: []v1.ResourceClaim{{Name: "gpu"}}}}}
	p.Spec.HostNetwork = true
	p.Spec.TerminationGracePeriodSeconds = new(int64(1))
	p.Spec.Containers[0].Image = lab.Busybox
	p.Spec.Containers[0].Command = []string{"sh", "-c", "echo CLAIM=$CLAIM > /out; test -c /dev/dra-null && echo device >> /out; cat /out; sleep 3600"}
	return manifest.Default(p)
}

// files is the API server of an agent: the pod is desired while the file "pod" exists, which
// contains its UID.
type files struct{ dir string }

func (f files) uid() types.UID {
	text, _ := os.ReadFile(filepath.Join(f.dir, "pod"))
	return types.UID(text)
}

func (f files) Run(ctx context.Context, set func([]*v1.Pod)) error {
	for ctx.Err() == nil {
		var pods []*v1.Pod
		if uid := f.uid(); uid != "" {
			pods = append(pods, podWithClaim(uid))
		}
		set(pods)
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

func (f files) GetClaim(context.Context, string, string) (*resourceapi.ResourceClaim, error) {
	c := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "gpu", UID: "uid-gpu"}}
	result := resourceapi.DeviceRequestAllocationResult{Request: "r", Driver: driverName, Pool: "pool", Device: "gpu"}
	c.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{result}}}
	c.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: string(f.uid()), UID: f.uid()}}
	return c, nil
}

// TestIntegrationAgentProcess is the agent that TestIntegrationAnAgentThatIsKilled starts and
// kills.
func TestIntegrationAgentProcess(t *testing.T) {
	dir := os.Getenv(agentDirVariable)
	if dir == "" {
		t.Skip("it is the process of another test")
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	client, err := remote.Dial(t.Context(), os.Getenv(agentEndpointVariable), remote.Config{})
	require.NoError(t, err)
	plugins, err := registry.New(registry.Config{Logger: logger})
	require.NoError(t, err)
	manager, err := dra.New(dra.Config{Claims: files{dir}, Plugins: plugins, Store: state.File(filepath.Join(dir, dra.StateFile)), Logger: logger})
	require.NoError(t, err)
	watcher, err := register.New(register.Config{
		Dir: filepath.Join(dir, "registry"), Handlers: map[string]register.Handler{register.DRAPlugin: plugins}, Logger: logger,
	})
	require.NoError(t, err)
	machine, err := topology.NewMachine([]topology.CPU{{ID: 0}}, []topology.Node{{ID: 0}}, cpuset.New())
	require.NoError(t, err)
	joint, err := topology.NewManager(topology.Config{Machine: machine})
	require.NoError(t, err)
	resources, err := managers.New(managers.Config{Topology: joint, Claims: manager})
	require.NoError(t, err)
	rt, err := cri.New(cri.Config{
		Name: client.Name, Runtime: client.Runtime, Images: client.Images, Dirs: cri.Dirs{Root: dir + "/root", PodLogs: dir + "/logs"},
		Providers: cri.Providers{Managers: resources}, Logger: logger,
	})
	require.NoError(t, err)
	a, err := agent.New(agent.Config{
		Runtime: rt, Sources: map[string]podsource.PodSource{podsource.APISource: files{dir}}, Sink: new(status.MemorySink),
		Subsystems: agent.Subsystems{Claims: manager}, Logger: logger,
	})
	require.NoError(t, err)
	var wg sync.WaitGroup
	for _, run := range []func(context.Context) error{plugins.Run, manager.Run, watcher.Run, a.Run} {
		wg.Go(func() { assert.NoError(t, run(t.Context())) })
	}
	wg.Wait() // until it is killed
}

// A killedAgent is the agent in a process that the test kills.
type killedAgent struct {
	dir, endpoint string

	mu  sync.Mutex // guards the field below
	cmd *exec.Cmd
}

func (k *killedAgent) start(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(k.dir, "agent.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	defer log.Close()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestIntegrationAgentProcess$", "-test.timeout", "10m")
	cmd.Env = append(os.Environ(), agentDirVariable+"="+k.dir, agentEndpointVariable+"="+k.endpoint)
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	k.mu.Lock()
	k.cmd = cmd
	k.mu.Unlock()
}

// kill kills the process with SIGKILL and waits for its end.
func (k *killedAgent) kill() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cmd != nil {
		_ = k.cmd.Process.Kill()
		_ = k.cmd.Wait()
		k.cmd = nil
	}
}

// dra-1, dra-2, dra-11: a pod gets a variable and a device from CDI on a real containerd,
// and the agent is killed at each step of its life.
func TestIntegrationAnAgentThatIsKilled(t *testing.T) {
	lab.Need(t, "containerd")
	daemon := lab.Containerd(t, lab.ContainerdConfig{})
	if strings.HasPrefix(strings.TrimPrefix(daemon.Version, "v"), "1.") {
		t.Skipf("containerd %s does not inject CDI devices: want 2.x", daemon.Version)
	}
	dir, err := os.MkdirTemp("", "dra")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	k := &killedAgent{dir: dir, endpoint: daemon.Endpoint}
	t.Cleanup(k.kill)

	// killAt is the step at which the agent is killed, once.
	var mu sync.Mutex
	killAt := ""
	reached := make(chan struct{}, 1)
	at := func(step string) {
		mu.Lock()
		defer mu.Unlock()
		if step == killAt {
			killAt = ""
			k.kill()
			reached <- struct{}{}
		}
	}
	driver := &dratest.Driver{
		Name: driverName, Dir: dir, RegistryDir: filepath.Join(dir, "registry"), CDIDir: "/var/run/cdi",
		Edits:  `{"env":["CLAIM=gpu"],"deviceNodes":[{"path":"/dev/dra-null","hostPath":"/dev/null","type":"c","major":1,"minor":3}]}`,
		Called: func(method string) { at("begin of " + method) },
	}
	driver.OnPrepare = func(_ context.Context, c *drav1.Claim) ([]*drav1.Device, error) {
		time.AfterFunc(time.Millisecond, func() { at("after NodePrepareResources") })
		time.AfterFunc(50*time.Millisecond, func() { at("creation of the sandbox") })
		time.AfterFunc(200*time.Millisecond, func() { at("creation of the container") })
		return []*drav1.Device{driver.Device(c)}, nil
	}
	require.NoError(t, driver.Start())
	t.Cleanup(driver.Stop)
	t.Cleanup(func() { _ = os.Remove("/var/run/cdi/dratest-uid-gpu.json") })
	specification := func() bool { _, err := os.Stat("/var/run/cdi/dratest-uid-gpu.json"); return err == nil }

	desired := filepath.Join(dir, "pod")
	output := func() string {
		names, _ := filepath.Glob(filepath.Join(dir, "logs", "*", "c", "*.log"))
		var all string
		for _, name := range names {
			text, _ := os.ReadFile(name)
			all += string(text)
		}
		return all
	}
	for i, step := range []string{
		"none", "begin of NodePrepareResources", "after NodePrepareResources", "creation of the sandbox", "creation of the container",
		"while it runs", "while it stops", "begin of NodeUnprepareResources", "after NodeUnprepareResources",
	} {
		t.Run(step, func(t *testing.T) {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, "logs")))
			before := len(driver.Calls())
			mu.Lock()
			killAt = step
			mu.Unlock()
			k.start(t)
			restarted := make(chan struct{})
			go func() {
				defer close(restarted)
				if step == "none" {
					return
				}
				select {
				case <-reached:
					k.start(t)
				case <-time.After(2 * time.Minute):
				}
			}()
			require.NoError(t, os.WriteFile(desired+".tmp", fmt.Appendf(nil, "dra-pod-%d", i), 0o600))
			require.NoError(t, os.Rename(desired+".tmp", desired))
			if !assert.Eventually(t, func() bool { return strings.Contains(output(), "device") }, 2*time.Minute, 20*time.Millisecond) {
				log, _ := os.ReadFile(filepath.Join(dir, "agent.log"))
				t.Fatalf("the pod has not started:\n%s", log)
			}
			assert.Contains(t, output(), "CLAIM=gpu")
			assert.Equal(t, []string{"uid-gpu"}, driver.Prepared())
			at("while it runs")
			require.NoError(t, os.Remove(desired))
			if step == "while it stops" {
				time.Sleep(100 * time.Millisecond)
				at(step)
			}
			if step == "after NodeUnprepareResources" {
				require.Eventually(t, func() bool { return len(driver.Prepared()) == 0 }, time.Minute, time.Millisecond)
				at(step)
			}
			<-restarted
			require.Eventually(t, func() bool { return len(driver.Prepared()) == 0 && checkpointIsEmpty(dir) }, 4*time.Minute, 20*time.Millisecond,
				"removed pods are collected each minute")
			assert.False(t, specification())
			counts := map[string]int{}
			for _, c := range driver.Calls()[before:] {
				counts[c.Method]++
			}
			t.Logf("%v", counts)
			for _, method := range []string{"NodePrepareResources", "NodeUnprepareResources"} {
				assert.GreaterOrEqual(t, counts[method], 1)
				assert.LessOrEqual(t, counts[method], 3, "%s", method)
			}
			k.kill()
		})
	}
}

// checkpointIsEmpty reports whether the agent's checkpoint has no claim.
func checkpointIsEmpty(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, dra.StateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	var file struct{ Data string }
	return err == nil && json.Unmarshal(text, &file) == nil && strings.Contains(file.Data, `"ClaimInfoStateList":[]`)
}
