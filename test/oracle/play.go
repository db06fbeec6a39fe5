package oracle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	criserve "github.com/kubeparts/kubeparts/runtime/cri/serve"
	"github.com/kubeparts/kubeparts/sim"
)

// The times of a run.
const (
	readyTimeout  = 3 * time.Minute   // until the node is ready
	settleTimeout = 110 * time.Second // after the last step: longer than a sync after an error, and than a resync
	calm          = 12 * time.Second  // without anything left to do: the pods have settled
	endTimeout    = 75 * time.Second  // for the deletion of the remaining pods
	stallBound    = 2 * time.Second   // of a sleep of 100 ms: the machine is too slow
)

// A player carries out a scenario.
type player struct {
	recorder *recorder
	machine  *machine
	cluster  *cluster
	agent    *agent
	tap      *tap // nil: the kubelet is not recorded
	restarts sync.WaitGroup
}

// play runs a scenario with a kubelet, and returns what was recorded.
func play(ctx context.Context, t testing.TB, s Scenario, o playOptions, dir string) (_ *Recording, err error) {
	r := newRecorder()
	p := &player{recorder: r}
	if p.machine, err = newMachine(s, o.seed, r); err != nil {
		return nil, err
	}
	if o.record != "" {
		if p.tap, err = newTap(o.record, nodeName, runtimeName); err != nil {
			return nil, err
		}
	}
	socket := filepath.Join(dir, "cri.sock")
	stopServing, err := p.serve(ctx, socket)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stopServing()) }()
	if p.cluster, err = newCluster(t, o.api, dir, r); err != nil {
		return nil, err
	}
	p.cluster.tap = p.tap
	if err := p.cluster.watch(ctx); err != nil {
		return nil, err
	}
	if p.agent, err = newAgent(o.kubelet, dir, p.cluster.kubeconfig, socket, o.verbosity, r); err != nil {
		return nil, err
	}
	if err := p.agent.start(); err != nil {
		return nil, err
	}
	t.Cleanup(p.agent.end)
	version, err := p.nodeReady(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w; its log:\n%s", err, p.agent.log(3000))
	}
	stalls, stop := context.WithCancel(ctx)
	defer stop()
	go p.watchClock(stalls)
	r.mu.Lock()
	r.start, r.records = time.Now(), nil
	r.mu.Unlock()
	r.add(Record{Agent: &Agent{1, "started"}})
	if err := p.run(ctx, s); err != nil {
		return nil, err
	}
	run := &Recording{Kubelet: version, API: o.api, Scenario: s.String(), Records: r.all(), Lists: r.lists}
	if p.agent.failure() != "" || o.keepLog {
		run.Log = p.agent.log(200_000)
	}
	return run, ctx.Err()
}

// serve serves the runtime at a socket until stop is called.
func (p *player) serve(ctx context.Context, socket string) (stop func() error, err error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	config := criserve.Config{Listener: listener, Runtime: p.machine, Images: p.machine, Streams: p.machine}
	run := func(ctx context.Context) error { return p.tap.serve(ctx, listener, config) }
	if p.tap == nil {
		server, err := criserve.New(config)
		if err != nil {
			return nil, err
		}
		run = server.Run
	}
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- run(serving) }()
	return func() error { cancel(); return <-ended }, nil
}

// nodeReady waits until the node is ready, and returns the version of its kubelet.
func (p *player) nodeReady(ctx context.Context) (version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		node, err := p.cluster.client.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
		if err == nil {
			for _, c := range node.Status.Conditions {
				if c.Type == v1.NodeReady && c.Status == v1.ConditionTrue {
					return node.Status.NodeInfo.KubeletVersion, nil
				}
			}
		}
		if how := p.agent.failure(); how != "" {
			return "", errors.New(how)
		}
		if sleep(ctx, 100*time.Millisecond); ctx.Err() != nil {
			return "", fmt.Errorf("the node is not ready: %w", ctx.Err())
		}
	}
}

// watchClock records if the machine is too slow to check latencies.
func (p *player) watchClock(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		sleep(ctx, 100*time.Millisecond)
		if time.Since(began) > stallBound {
			p.recorder.mark(markStalled)
		}
	}
}

// run carries out the steps, and waits until the pods have settled and the remaining ones have been deleted.
func (p *player) run(ctx context.Context, s Scenario) error {
	for _, step := range s {
		sleep(ctx, time.Until(p.recorder.start.Add(step.At)))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		text := step.String()
		p.recorder.add(Record{Step: &text})
		if err := p.do(ctx, step); err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
	}
	p.restarts.Wait()
	sleep(ctx, time.Until(p.recorder.start.Add(s.End())))
	p.recorder.mark(markQuiet)
	p.await(ctx, settleTimeout, calm, p.settled)
	p.recorder.mark(markSettled)
	for _, pod := range p.cluster.all() {
		if err := p.delete(ctx, pod.Name, nil); err != nil {
			return err
		}
	}
	p.await(ctx, endTimeout, 0, func() bool { return len(p.cluster.all()) == 0 })
	p.recorder.mark(markEnded)
	return nil
}

// await waits until check has returned true for a while, or for a timeout.
func (p *player) await(ctx context.Context, timeout, while time.Duration, check func() bool) {
	last := time.Now() // that check returned false
	for end := time.Now().Add(timeout); time.Now().Before(end) && ctx.Err() == nil; sleep(ctx, 200*time.Millisecond) {
		if !check() {
			last = time.Now()
		} else if time.Since(last) >= while {
			return
		}
	}
}

// settled reports whether nothing remains to be done for any pod, except for restarts after a back-off.
func (p *player) settled() bool {
	running := map[types.UID]int{}
	for _, c := range p.machine.Containers("") {
		if c.State == fakecri.Running {
			running[types.UID(c.Pod)]++
		}
	}
	for _, pod := range p.cluster.all() {
		if !podSettled(pod, running[pod.UID]) {
			return false
		}
		delete(running, pod.UID)
	}
	return len(running) == 0
}

// podSettled reports whether nothing remains to be done for a pod with that number of running containers.
func podSettled(pod *v1.Pod, running int) bool {
	if pod.DeletionTimestamp != nil {
		return false
	}
	if terminal(pod.Status.Phase) {
		return running == 0
	}
	if pod.Spec.ActiveDeadlineSeconds != nil || becomesSick(pod) || pod.Status.ObservedGeneration != pod.Generation {
		return false
	}
	backOff := false
	for _, c := range pod.Status.InitContainerStatuses {
		backOff = backOff || c.State.Waiting != nil && c.State.Waiting.Reason == "CrashLoopBackOff"
	}
	if pod.Status.Phase == v1.PodPending {
		return backOff
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Waiting != nil && c.State.Waiting.Reason != "CrashLoopBackOff" || c.State.Terminated != nil && running == 0 || c.State.Running != nil && running == 0 {
			return false
		}
	}
	return pod.Status.Phase == v1.PodRunning
}

func terminal(phase v1.PodPhase) bool { return phase == v1.PodSucceeded || phase == v1.PodFailed }

// do carries out a step. A step for a pod or container that does not exist has no effect.
func (p *player) do(ctx context.Context, s Step) error {
	pods := p.cluster.client.CoreV1().Pods(metav1.NamespaceDefault)
	uid := p.cluster.uid(s.Pod)
	switch s.Do {
	case sim.Add:
		pod, err := pods.Create(ctx, s.pod(), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		} else if err != nil {
			return err
		}
		p.machine.setClean(pod.UID, s.Clean)
	case sim.Change:
		return p.change(ctx, s)
	case sim.Resize:
		patch := fmt.Sprintf(`{"spec":{"containers":[{"name":%q,"resources":{"requests":{"cpu":"%dm"}}}]}}`, s.Container, s.CPU)
		_, err := pods.Patch(ctx, s.Pod, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "resize")
		return ignoreRefused(err)
	case sim.Delete:
		var grace *int64
		if s.Grace > 0 {
			grace = &s.Grace
		}
		return p.delete(ctx, s.Pod, grace)
	case sim.Vanish:
		return p.delete(ctx, s.Pod, new(int64(0)))
	case sim.Exit:
		_ = p.machine.Exit(string(uid), s.Container, s.Code) // it may not run
	case sim.OOM:
		_ = p.machine.OOM(string(uid), s.Container)
	case sim.Hang:
		_ = p.machine.Hang(string(uid), s.Container)
	case sim.Crash:
		if uid != "" {
			p.machine.crash(uid)
		}
	case sim.Remove:
		if uid != "" {
			p.machine.remove(ctx, uid, s.Container)
		}
	case sim.Fail:
		patch := `{"status":{"phase":"Failed","reason":"Lost","message":"marked by another client"}}`
		_, err := pods.Patch(ctx, s.Pod, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		return ignoreRefused(err)
	case sim.Fault:
		p.fail(s)
	case sim.Reboot:
		p.agent.kill()
		p.machine.Reboot()
		p.restartIn(s.Down)
	case sim.Kill:
		if s.Count == 0 {
			p.agent.kill()
			p.restartIn(s.Down)
			return nil
		}
		p.restarts.Add(1)
		killed := sync.OnceFunc(func() {
			p.agent.kill()
			p.restartIn(s.Down)
			p.restarts.Done()
		})
		p.machine.onCall(s.Count, func() bool {
			if s.After {
				time.AfterFunc(20*time.Millisecond, killed) // the call has had its effect
			} else {
				killed()
			}
			return s.After
		})
		time.AfterFunc(5*time.Second, killed) // it may make no such call
	}
	return nil
}

// fail begins a fault.
func (p *player) fail(s Step) {
	switch {
	case s.Calls == apiCalls:
		p.cluster.fail(s)
	case s.Calls == criCalls && s.Kind == sim.Error && s.Percent == 100:
		p.machine.Down()
		time.AfterFunc(s.For, p.machine.Up)
	default:
		p.machine.fail(s)
	}
}

// restartIn starts the kubelet after a time.
func (p *player) restartIn(d time.Duration) {
	p.restarts.Add(1)
	time.AfterFunc(d, func() {
		defer p.restarts.Done()
		if err := p.agent.start(); err != nil {
			p.recorder.add(Record{Agent: &Agent{0, "exited"}})
		}
	})
}

// change changes the image of a container, or adds an ephemeral one.
func (p *player) change(ctx context.Context, s Step) error {
	pods := p.cluster.client.CoreV1().Pods(metav1.NamespaceDefault)
	pod, err := pods.Get(ctx, s.Pod, metav1.GetOptions{})
	if err != nil {
		return ignoreRefused(err)
	}
	var patch map[string]any
	sub := []string{}
	container := map[string]any{"name": s.Container, "image": sim.Image(s.Behavior)}
	switch {
	case s.Attach:
		patch, sub = map[string]any{"ephemeralContainers": []v1.EphemeralContainer{s.ephemeral()}}, []string{"ephemeralcontainers"}
	case hasContainer(pod.Spec.InitContainers, s.Container):
		patch = map[string]any{"initContainers": []any{container}}
	default:
		patch = map[string]any{"containers": []any{container}}
	}
	data, err := json.Marshal(map[string]any{"spec": patch})
	if err != nil {
		return err
	}
	_, err = pods.Patch(ctx, s.Pod, types.StrategicMergePatchType, data, metav1.PatchOptions{}, sub...)
	return ignoreRefused(err)
}

func hasContainer(list []v1.Container, name string) bool {
	for _, c := range list {
		if c.Name == name {
			return true
		}
	}
	return false
}

// delete requests the deletion of a pod. If grace is nil, the pod's grace period applies.
func (p *player) delete(ctx context.Context, name string, grace *int64) error {
	err := p.cluster.client.CoreV1().Pods(metav1.NamespaceDefault).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: grace})
	return ignoreRefused(err)
}

// ignoreRefused returns nil for errors of requests about a pod that does not exist any more, or that does not
// permit the change.
func ignoreRefused(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
