//go:build mutants

package mutants_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/remote"
	"github.com/kubeparts/kubeparts/runtime/cri/streaming"
	"github.com/kubeparts/kubeparts/sim/record"
)

// A scenario provokes the defect of a mutant.
type scenario struct {
	invariant string // that the replay must violate
	do        func(n *node)
}

// Containers of scenarios.
const (
	ignoresTerm = "trap '' TERM; while true; do sleep 1; done"
	untilTerm   = "trap 'exit 0' TERM; while true; do sleep 0.1; done"
)

// scenarios are by the name of the mutant.
var scenarios = map[string]scenario{
	"exit-code-made-up": {"exit-codes-correct", func(n *node) {
		n.start()
		n.add(pod("job", v1.RestartPolicyNever, container("main", "sleep 1")))
		time.Sleep(6 * time.Second)
	}},
	"deleted-early": {"deleted-after-cleanup", func(n *node) {
		n.start()
		p := pod("web", v1.RestartPolicyAlways, container("main", ignoresTerm))
		n.add(p)
		time.Sleep(4 * time.Second)
		n.delete(p, 5)
		time.Sleep(10 * time.Second)
	}},
	"phase-back": {"terminal-means-stopped", func(n *node) {
		n.start()
		p := pod("web", v1.RestartPolicyAlways, container("main", ignoresTerm))
		p.Spec.ActiveDeadlineSeconds, p.Spec.TerminationGracePeriodSeconds = new(int64(4)), new(int64(5))
		n.add(p)
		time.Sleep(16 * time.Second)
	}},
	"orphan-lives": {"finally-cleaned-up", func(n *node) {
		n.startUnrecorded()
		n.add(pod("web", v1.RestartPolicyAlways, container("main", untilTerm)))
		time.Sleep(4 * time.Second)
		n.stop()
		n.api = newAPI()
		n.api.source.Set()
		n.start()
		time.Sleep(8 * time.Second)
	}},
	"uid-not-checked": {"finally-cleaned-up", func(n *node) {
		n.startUnrecorded()
		n.add(pod("web", v1.RestartPolicyAlways, container("main", untilTerm)))
		time.Sleep(4 * time.Second)
		n.stop()
		n.api = newAPI()
		p := pod("web", v1.RestartPolicyAlways, container("main", untilTerm))
		p.UID = "another-uid"
		n.add(p)
		n.start()
		time.Sleep(8 * time.Second)
	}},
	"grace-grows": {"grace-period-never-extended", func(n *node) {
		n.start()
		p := pod("web", v1.RestartPolicyAlways, container("main", ignoresTerm))
		n.add(p)
		time.Sleep(4 * time.Second)
		for _, grace := range []int64{6, 20, 10} {
			n.delete(p, grace)
			time.Sleep(time.Second)
		}
		time.Sleep(12 * time.Second)
	}},
	"events-twice": {"events-in-order", func(n *node) {
		n.start()
		n.add(pod("web", v1.RestartPolicyAlways, container("main", untilTerm)))
		time.Sleep(5 * time.Second)
	}},
	"cri-policy-ignored": {"restart-policy", func(n *node) {
		n.start()
		n.add(pod("job", v1.RestartPolicyOnFailure, container("main", "sleep 1"), container("side", untilTerm)))
		time.Sleep(10 * time.Second)
	}},
	"cri-sidecars-first": {"sidecars-stop-last", func(n *node) {
		n.start()
		p := pod("web", v1.RestartPolicyAlways, container("main", "trap 'sleep 3; exit 0' TERM; while true; do sleep 0.1; done"))
		sidecar := container("proxy", untilTerm)
		sidecar.RestartPolicy = new(v1.ContainerRestartPolicyAlways)
		p.Spec.InitContainers = []v1.Container{sidecar}
		n.add(p)
		time.Sleep(6 * time.Second)
		n.delete(p, 20)
		time.Sleep(8 * time.Second)
	}},
	"init-again": {"restart-policy", func(n *node) {
		n.start()
		p := pod("web", v1.RestartPolicyAlways, container("main", "sleep 2; exit 1"))
		p.Spec.InitContainers = []v1.Container{container("setup", "true")}
		n.add(p)
		time.Sleep(12 * time.Second)
	}},
	"init-not-awaited": {"init-order", func(n *node) {
		n.start()
		p := pod("web", v1.RestartPolicyAlways, container("main", untilTerm))
		p.Spec.InitContainers = []v1.Container{container("first", "sleep 3"), container("second", "sleep 1")}
		n.add(p)
		time.Sleep(10 * time.Second)
	}},
	"cri-backoff-forgotten": {"back-off", func(n *node) {
		n.startUnrecorded()
		n.add(pod("crash", v1.RestartPolicyAlways, container("main", "sleep 1; exit 1")))
		time.Sleep(17 * time.Second) // exits after 1, 3 and 14 seconds
		n.stop()
		n.start()
		time.Sleep(8 * time.Second)
	}},
	"agent-result-lost": {"unhealthy-restarted", func(n *node) {
		n.start()
		c := container("main", untilTerm)
		c.LivenessProbe = &v1.Probe{ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"false"}}}, InitialDelaySeconds: 12, PeriodSeconds: 2, TimeoutSeconds: 1, FailureThreshold: 1, SuccessThreshold: 1}
		p := pod("web", v1.RestartPolicyAlways, c)
		p.Spec.TerminationGracePeriodSeconds = new(int64(2))
		n.add(p)
		time.Sleep(20 * time.Second)
	}},
	"cri-exit-lost": {"finally-running", exitWhileDown},
}

// exitWhileDown stops a container while no agent runs.
func exitWhileDown(n *node) {
	n.startUnrecorded()
	n.add(pod("web", v1.RestartPolicyAlways, container("main", untilTerm)))
	time.Sleep(4 * time.Second)
	n.stop()
	list, err := n.client.Runtime.ListContainers(n.t.Context(), &runtimeapi.ContainerFilter{})
	require.NoError(n.t, err)
	require.Len(n.t, list, 1)
	require.NoError(n.t, n.client.Runtime.StopContainer(n.t.Context(), list[0].Id, 1))
	n.start()
	time.Sleep(8 * time.Second)
}

// A node runs agents, one after the other, on a containerd.
type node struct {
	t      *testing.T
	dir    string // of the recording
	state  string
	daemon *lab.Daemon
	client *remote.Client
	api    *api
	stop   func()
}

// runScenario records a scenario into dir.
func runScenario(t *testing.T, s scenario, dir string) {
	t.Helper()
	daemon := lab.Containerd(t, lab.ContainerdConfig{})
	client, err := remote.Dial(t.Context(), daemon.Endpoint, remote.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close(context.Background())) })
	state, err := os.MkdirTemp("", "scenario")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(state) })
	n := &node{t: t, dir: dir, state: state, daemon: daemon, client: client, api: newAPI()}
	s.do(n)
	n.stop()
}

// start starts an agent that is recorded.
func (n *node) start() { n.run(true) }

// startUnrecorded starts an agent that is not recorded, before the one that is.
func (n *node) startUnrecorded() { n.run(false) }

func (n *node) run(recorded bool) {
	n.t.Helper()
	cfg := cri.Config{
		Name: n.client.Name, Runtime: n.client.Runtime, Images: n.client.Images,
		Dirs:  cri.Dirs{Root: filepath.Join(n.state, "root"), PodLogs: filepath.Join(n.state, "logs")},
		Calls: cri.CallConfig{Streams: new(streaming.Client)},
	}
	agentConfig := agent.Config{
		NodeName: "node-1", Sources: map[string]podsource.PodSource{podsource.APISource: &n.api.source}, Sink: n.api,
		HostIPs: func() []string { return []string{"10.0.0.1"} },
	}
	recordingEnded, stopRecording := make(chan error, 1), func() {}
	var r *record.Recorder
	if recorded {
		var err error
		r, err = record.New(record.Config{Dir: n.dir, Node: "node-1", Versions: map[string]string{n.client.Name: n.daemon.Version}})
		require.NoError(n.t, err)
		cfg.Runtime, cfg.Images = r.RuntimeService(cfg.Runtime), r.ImageService(cfg.Images)
	}
	rt, err := cri.New(cfg)
	require.NoError(n.t, err)
	agentConfig.Runtime = rt
	agentConfig.Subsystems.Probes = prober.Handlers{Exec: prober.Exec{Runtime: rt}}
	if recorded {
		r.Agent(&agentConfig)
		var ctx context.Context
		ctx, stopRecording = context.WithCancel(context.Background())
		go func() { recordingEnded <- r.Run(ctx) }()
	} else {
		recordingEnded <- nil
	}
	a, err := agent.New(agentConfig)
	require.NoError(n.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	n.stop = func() {
		stopRecording() // first: what the end of the agent cancels is not of the scenario
		require.NoError(n.t, <-recordingEnded)
		cancel()
		require.NoError(n.t, <-ended)
	}
}

func (n *node) add(p *v1.Pod) {
	n.api.mu.Lock()
	n.api.pods[p.UID] = p
	n.api.mu.Unlock()
	n.api.source.Add(p)
}

// delete requests the deletion of a pod.
func (n *node) delete(p *v1.Pod, grace int64) {
	n.api.update(p.UID, func(p *v1.Pod) {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.Now()), &grace
	})
}

// An api has the pods of the node, with the statuses that agents wrote.
type api struct {
	source podsource.Memory
	mu     sync.Mutex
	pods   map[types.UID]*v1.Pod
}

func newAPI() *api { return &api{pods: map[types.UID]*v1.Pod{}} }

// update changes a pod, if it exists, and delivers it.
func (a *api) update(uid types.UID, change func(*v1.Pod)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := a.pods[uid]; p != nil {
		p = p.DeepCopy()
		change(p)
		a.pods[uid] = p
		a.source.Add(p)
	}
}

func (a *api) UpdatePodStatus(_ context.Context, pod *v1.Pod, written v1.PodStatus) error {
	a.update(pod.UID, func(p *v1.Pod) { p.Status = *written.DeepCopy() })
	return nil
}

func (a *api) DeletePod(_ context.Context, pod *v1.Pod) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.pods, pod.UID)
	a.source.Remove(pod.UID)
	return nil
}

func pod(name string, policy v1.RestartPolicy, containers ...v1.Container) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(fmt.Sprintf("%s-uid", name)), CreationTimestamp: metav1.Now()},
		Spec:       v1.PodSpec{Containers: containers, RestartPolicy: policy, TerminationGracePeriodSeconds: new(int64(30)), DNSPolicy: v1.DNSDefault},
	}
}

func container(name, script string) v1.Container {
	return v1.Container{
		Name: name, Image: lab.Busybox, ImagePullPolicy: v1.PullIfNotPresent, Command: []string{"sh", "-c", script},
		TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: v1.TerminationMessageReadFile,
	}
}
