package oracle

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	node "github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/sim/replay"
)

// A tappedNode is a node whose agents are recorded by a tap. It is the sink of the agents, and has the pods of the API.
type tappedNode struct {
	tap     *tap
	machine *machine
	pods    podsource.Memory

	mu      sync.Mutex
	objects map[types.UID]*v1.Pod
}

func (n *tappedNode) put(pod *v1.Pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.objects[pod.UID] = pod
	n.pods.Add(pod)
	n.tap.observe(context.Background(), pod, false)
}

func (n *tappedNode) UpdatePodStatus(_ context.Context, pod *v1.Pod, status v1.PodStatus) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	pod = n.objects[pod.UID].DeepCopy()
	pod.Status = status
	n.objects[pod.UID] = pod
	n.tap.observe(context.Background(), pod, false)
	return nil
}

func (n *tappedNode) DeletePod(context.Context, *v1.Pod) error { return nil }

// run runs an agent for a time, with state in dir, and records it.
func (n *tappedNode) run(t *testing.T, dir string, d time.Duration) {
	n.mu.Lock()
	for _, pod := range n.objects {
		n.pods.Add(pod)
	}
	n.mu.Unlock()
	process, err := n.tap.newProcess(nil)
	require.NoError(t, err)
	rt, images := process.services(n.machine, n.machine)
	engine, err := cri.New(cri.Config{Name: runtimeName, Runtime: rt, Images: images, Dirs: cri.Dirs{Root: dir + "/root", PodLogs: dir + "/logs"}})
	require.NoError(t, err)
	agent, err := node.New(node.Config{
		NodeName: nodeName, Runtime: engine, Sources: map[string]podsource.PodSource{podsource.APISource: &n.pods}, Sink: n,
		HostIPs: func() []string { return []string{"10.0.0.1"} }, Subsystems: node.Subsystems{Probes: prober.Handlers{}},
	})
	require.NoError(t, err)
	ctx, stop := context.WithTimeout(t.Context(), d)
	defer stop()
	recording, stopRecording := context.WithCancel(t.Context())
	recorded := make(chan error, 1)
	go func() { recorded <- process.recorder.Run(recording) }()
	require.NoError(t, agent.Run(ctx))
	stopRecording()
	require.NoError(t, <-recorded)
}

// The end of a process is no failure of the server of its connections.
func TestTheListenerOfAProcessFailsAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap, err := newTap(t.TempDir(), nodeName, runtimeName)
		require.NoError(t, err)
		p, err := tap.newProcess(nil)
		require.NoError(t, err)
		client, server := net.Pipe()
		require.True(t, p.add(server))
		conn, err := p.Accept()
		require.NoError(t, err)
		accepted := make(chan error, 1)
		go func() {
			_, err := p.Accept()
			accepted <- err
		}()
		require.NoError(t, errors.Join(conn.Close(), client.Close()))
		synctest.Wait()
		assert.False(t, p.add(server), "the process has ended")
		assert.Empty(t, accepted)
		require.NoError(t, p.Close())
		assert.ErrorIs(t, <-accepted, net.ErrClosed)
	})
}

// A process finds containers that run, that exited before and after the end of the process before it, and statuses.
func TestALaterProcessIsReplayed(t *testing.T) {
	dir := t.TempDir()
	onMachine(t, `
		0s add web main:c=run main:d=run
		0s add job policy=Never init:i=exit=0@2s main:c=exit=0@5s
		0s add late policy=Never main:c=exit=0@70s
		0s add idle main:c=run
	`, func(t *testing.T, m *machine, s Scenario) {
		tap, err := newTap(dir, nodeName, runtimeName)
		require.NoError(t, err)
		n := &tappedNode{tap: tap, machine: m, objects: map[types.UID]*v1.Pod{}}
		for _, step := range s {
			pod := step.pod()
			pod.UID = types.UID("uid-" + pod.Name)
			n.put(pod)
		}
		state := t.TempDir()
		n.run(t, state, time.Minute)
		time.Sleep(5 * time.Second)
		require.NoError(t, m.Exit("uid-web", "c", 1))
		m.crash("uid-idle")
		time.Sleep(10 * time.Second)
		n.run(t, state, 2*time.Minute)
		synctest.Wait()
	})
	for process, decisions := range map[int]int{1: 21, 2: 6} {
		recording, err := replay.Open(processDir(dir, process))
		require.NoError(t, err)
		result, err := replay.Run(t.Context(), recording, replay.Options{Decisions: true})
		require.NoError(t, err)
		for _, d := range result.Decisions.Differences {
			t.Log(process, d)
		}
		assert.Equal(t, decisions, result.Decisions.Recorded, "process %d", process)
		assert.Equal(t, result.Decisions.Recorded, result.Decisions.Equal, "process %d", process)
		assert.Equal(t, result.Decisions.Recorded, result.Decisions.Replayed, "process %d", process)
	}
}
