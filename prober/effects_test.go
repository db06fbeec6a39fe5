package prober_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
)

func TestEvents(t *testing.T) { // prober-29 … prober-33
	for _, tc := range []struct {
		name   string
		answer answer
		runs   int
		want   string // "": none
	}{
		{"success", success, 1, ""},
		{"failure (prober-31)", failure, 1, "0s Warning Unhealthy spec.containers{web} Liveness probe failed: no"},
		{"failure with a body", answer{Outcome: prober.Outcome{Result: runtime.ProbeFailure, Output: "HTTP probe failed with statuscode: 503", Detail: " no database\n"}}, 1,
			"0s Warning Unhealthy spec.containers{web} Liveness probe failed: HTTP probe failed with statuscode: 503: no database"},
		{"failure with a long body", answer{Outcome: prober.Outcome{Result: runtime.ProbeFailure, Detail: strings.Repeat("x", 1023) + "ééé"}}, 1,
			"0s Warning Unhealthy spec.containers{web} Liveness probe failed: " + strings.Repeat("x", 1023)},
		{"warning (prober-32)", answer{Outcome: prober.Outcome{Result: runtime.ProbeSuccess, Warning: true, Output: "Probe terminated redirects, Response body: x"}}, 1,
			"0s Warning ProbeWarning spec.containers{web} Liveness probe warning: Probe terminated redirects, Response body: x"},
		{"error (prober-29, prober-30)", answer{err: errors.New("boom")}, 3,
			"0s Warning Unhealthy spec.containers{web} Liveness probe errored and resulted in unknown state: boom"},
		{"panic (prober-10)", answer{calls: func() { panic("boom") }}, 3,
			"0s Warning Unhealthy spec.containers{web} Liveness probe errored and resulted in unknown state: probe handler panicked: boom"},
		{"no result", answer{}, 3,
			"0s Warning Unhealthy spec.containers{web} Liveness probe errored and resulted in unknown state: probe handler returned no result"},
		{"a handler that only minds its context", answer{takes: time.Hour}, 1,
			"6s Warning Unhealthy spec.containers{web} Liveness probe failed: timed out after 1s: context deadline exceeded"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNode(t)
				m, stop := n.manager(prober.Config{})
				defer stop()
				n.say("web", tc.answer)
				n.starts("u", "web", "1")
				p := pod("u", container("web", "L", func(p *v1.Probe) { p.FailureThreshold = 1 }))
				m.Add(p)
				time.Sleep(8 * time.Second)
				assert.Len(t, n.take(&n.runs), tc.runs, "an error is tried again at once, a failure is not (prober-29)")
				events := n.take(&n.events)
				if tc.want == "" {
					assert.Empty(t, events)
				} else {
					assert.Equal(t, []string{tc.want}, events)
				}
				failed := strings.Contains(tc.want, "probe failed")
				assert.Equal(t, failed, m.Results(p).Liveness["1"] == runtime.ProbeFailure, "an error has no effect (prober-21)")
				history := m.History("u", "web", prober.Liveness)
				require.Len(t, history, 1)
				if _, text, ok := strings.Cut(tc.want, "failed: "); ok {
					assert.Equal(t, text, history[0].Output)
				}
				assert.Equal(t, tc.runs == 3, history[0].Err)

				require.Len(t, n.ran, 1) // prober-26, prober-27: the data of metrics
				assert.Equal(t, "web Liveness", n.ran[0].Container+" "+n.ran[0].Kind.String())
				assert.Equal(t, history[0].Result, n.ran[0].Result)
				assert.Equal(t, tc.runs == 3, n.ran[0].Err != nil)
				assert.Equal(t, history[0].Duration, n.ran[0].Duration)
			})
		})
	}
}

func TestTheLastRunsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for keep, want := range map[int][]string{0: {"30s", "40s", "50s", "1m0s", "1m10s"}, 2: {"1m0s", "1m10s"}, -1: nil} {
			n := newNode(t)
			m, stop := n.manager(prober.Config{History: keep})
			n.starts("u", "web", "1")
			m.Add(pod("u", container("web", "R", nil)))
			time.Sleep(75 * time.Second)
			var at []string
			for _, r := range m.History("u", "web", prober.Readiness) {
				at = append(at, r.At.Sub(n.began).String())
				assert.Equal(t, runtime.ProbeSuccess, r.Result)
			}
			assert.Equal(t, want, at)
			assert.Empty(t, m.History("u", "web", prober.Liveness))
			assert.Empty(t, m.History("v", "web", prober.Readiness))
			stop()
		}
	})
}

func TestAProbeWithoutAHandler(t *testing.T) { // prober-28, prober-33
	ctx := t.Context()
	p := pod("u", container("web", "", nil))
	target := prober.Target{Pod: p, Container: &p.Spec.Containers[0], ContainerID: "1"}
	o, err := prober.Handlers{}.Probe(ctx, target)
	require.NoError(t, err)
	assert.Equal(t, runtime.ProbeSuccess, o.Result, "there is no probe (prober-28)")

	target.Probe = &v1.Probe{}
	_, err = prober.Handlers{}.Probe(ctx, target)
	assert.EqualError(t, err, "missing probe handler for pod-u_default(u):web")
	target.Probe.TCPSocket = &v1.TCPSocketAction{}
	_, err = prober.Handlers{}.Probe(ctx, target)
	assert.EqualError(t, err, "missing probe handler for pod-u_default(u):web: no handler for tcpSocket")
	target.Probe.Exec = &v1.ExecAction{}
	_, err = prober.Handlers{}.Probe(ctx, target)
	assert.EqualError(t, err, "more than one probe handler for pod-u_default(u):web: [exec tcpSocket]")
}

func TestWhichChangesMatter(t *testing.T) { // prober-64, prober-65
	for kind, want := range map[prober.Kind][3]bool{
		prober.Liveness: {false, false, true}, prober.Readiness: {true, true, true}, prober.Startup: {true, true, true},
	} {
		for i, r := range []runtime.ProbeResult{runtime.ProbeUnknown, runtime.ProbeSuccess, runtime.ProbeFailure} {
			assert.Equal(t, want[i], prober.Change{Kind: kind, Result: r}.NeedsSync(), "%v %v", kind, r)
		}
	}
}

// prober-61, prober-62, prober-63: a follower that blocks delays no other, gets the
// last result, and its queue does not grow.
func TestAFollowerThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		m, stop := n.manager(prober.Config{})
		defer stop()
		n.starts("u", "web", "1")
		m.Add(pod("u", container("web", "R", func(p *v1.Probe) { p.FailureThreshold = 1 })))
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		go func() { // it changes its mind at each run
			time.Sleep(5 * time.Second)
			for i := 0; ctx.Err() == nil; i++ {
				n.say("web", []answer{failure, success}[i%2])
				time.Sleep(10 * time.Second)
			}
		}()
		var reported []runtime.ProbeResult
		gate, done := make(chan struct{}), make(chan error)
		go func() {
			done <- m.Follow(ctx, func(c prober.Change) {
				<-gate
				reported = append(reported, c.Result)
			})
		}()
		time.Sleep(305 * time.Second)
		assert.Len(t, n.take(&n.runs), 31)
		assert.GreaterOrEqual(t, len(n.take(&n.changes)), 29, "the other one got each")
		want := shown(m, pod("u"))
		close(gate)
		synctest.Wait()
		require.Len(t, reported, 2, "the first, and the last")
		assert.Contains(t, want, "readiness="+reported[1].String())
		cancel()
		require.NoError(t, <-done)
		assert.EqualError(t, m.Follow(t.Context(), nil), "prober: Follow: handle is nil")
		time.Sleep(10 * time.Second)
	})
}

func TestTermination(t *testing.T) { // prober-18, prober-74, prober-75
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		m, stop := n.manager(prober.Config{})
		defer stop()
		n.starts("u", "web", "1")
		p := pod("u", container("web", "SRL", nil))
		m.Add(p)
		time.Sleep(5 * time.Second)
		p = p.DeepCopy()
		p.DeletionTimestamp = new(metav1.Now())
		n.say("web", failure)
		m.Add(p)
		assert.Equal(t, "1 startup=success, web startup=success readiness=success", shown(m, p), "liveness ends with success")
		time.Sleep(30 * time.Second)
		for _, r := range n.take(&n.runs) {
			assert.NotContains(t, strings.TrimPrefix(r, "0s web Liveness"), "Liveness", "it is not probed any more")
		}
		assert.Contains(t, shown(m, p), "readiness=failure", "readiness is still probed")
		m.StopLiveness(p)
		assert.Equal(t, []string{"web Readiness"}, m.Workers())
		m.Remove("u")
		time.Sleep(time.Minute)
		assert.Empty(t, n.take(&n.runs))
		assert.Empty(t, m.Containers("u"))
	})
}

func TestAContainerThatIsGoneIsNotProbed(t *testing.T) { // prober-13
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		m, stop := n.manager(prober.Config{})
		defer stop()
		n.starts("u", "web", "1")
		m.Add(pod("u", container("web", "R", nil)))
		time.Sleep(5 * time.Second)
		n.vanishes("u")
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"0s web Readiness 1"}, n.take(&n.runs), "its removal was not reported")
		n.starts("u", "web", "2")
		time.Sleep(10 * time.Second)
		assert.NotEmpty(t, n.take(&n.runs), "nor that there is another: it is noticed in ten seconds")
	})
}

func TestAnObsoleteRunIsCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		m, stop := n.manager(prober.Config{Limits: prober.Limits{Parallel: 1}})
		defer stop()
		n.say("web", answer{Outcome: failure.Outcome, takes: 2 * time.Second})
		n.starts("u", "web", "1")
		p := pod("u", container("web", "L", func(p *v1.Probe) { p.FailureThreshold = 1 }))
		m.Add(p)
		time.Sleep(time.Second)
		n.exits("u", "web", "1", 1)
		n.starts("u", "web", "2")
		m.Inspect("u")
		time.Sleep(time.Second)
		assert.Equal(t, []string{"0s web Liveness 1", "1s web Liveness 2"}, n.take(&n.runs), "the new one is probed at once")
		assert.Empty(t, n.take(&n.events))
		m.Remove("u")
		time.Sleep(time.Minute)
		assert.Empty(t, n.take(&n.events), "the pod was removed")
		assert.Zero(t, n.flying)
	})
}

// prober-16, prober-17: a container that is restarted, under whatever policy, is
// probed again; one that has terminated is not.
func TestContainersThatExit(t *testing.T) {
	always := v1.ContainerRestartPolicyAlways
	for _, tc := range []struct {
		name    string
		pod     v1.RestartPolicy
		sidecar bool
		code    int32
		ends    bool
	}{
		{"Always", v1.RestartPolicyAlways, false, 0, false},
		{"OnFailure, failed", v1.RestartPolicyOnFailure, false, 1, false},
		{"OnFailure, done", v1.RestartPolicyOnFailure, false, 0, true},
		{"Never", v1.RestartPolicyNever, false, 1, true},
		{"a sidecar of a pod that Never restarts (prober-17)", v1.RestartPolicyNever, true, 1, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNode(t)
				m, stop := n.manager(prober.Config{})
				defer stop()
				p := pod("u", container("web", "L", nil))
				if tc.sidecar {
					p = pod("u")
					p.Spec.InitContainers = []v1.Container{container("web", "L", nil)}
					p.Spec.InitContainers[0].RestartPolicy = &always
				}
				p.Spec.RestartPolicy = tc.pod
				n.starts("u", "web", "1")
				m.Add(p)
				time.Sleep(5 * time.Second)
				n.exits("u", "web", "1", tc.code)
				m.Inspect("u")
				synctest.Wait()
				assert.Equal(t, tc.ends, len(n.take(&n.removed)) == 1, "its series go (prober-9)")
				_, known := m.Results(p).Liveness["1"]
				assert.Equal(t, tc.ends, !known, "and its result (prober-9)")
				n.take(&n.runs)
				n.starts("u", "web", "2")
				m.Inspect("u")
				time.Sleep(15 * time.Second)
				assert.Len(t, n.take(&n.runs), 2, "if it is started, it is probed")
			})
		})
	}
}

func TestSpecChangesOfARunningPodTakeEffect(t *testing.T) { // prober-5
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		m, stop := n.manager(prober.Config{})
		defer stop()
		n.say("web", failure)
		n.starts("u", "web", "1")
		m.Add(pod("u", container("web", "L", func(p *v1.Probe) { p.PeriodSeconds = 60 })))
		time.Sleep(70 * time.Second)
		assert.Equal(t, []string{"0s web Liveness 1", "1m0s web Liveness 1"}, n.take(&n.runs))
		p := pod("u", container("web", "L", func(p *v1.Probe) { p.PeriodSeconds = 5 }))
		m.Add(p)
		time.Sleep(6 * time.Second)
		assert.Equal(t, []string{"1m15s web Liveness 1"}, n.take(&n.runs))
		assert.Equal(t, runtime.ProbeFailure, m.Results(p).Liveness["1"], "the third failure in a row: counters are kept")

		p = pod("u", container("web", "R", nil))
		m.Add(p)
		time.Sleep(6 * time.Second)
		assert.Equal(t, []string{"1m16s web Readiness 1"}, n.take(&n.runs))
		assert.Equal(t, "web startup=unknown readiness=failure", shown(m, p))
		m.Add(pod("u", container("web", "", nil)))
		assert.Empty(t, m.Workers())
		assert.Len(t, n.take(&n.removed), 2)
	})
}

func TestALateFollowerGetsTheCurrentResults(t *testing.T) { // prober-61
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		m, stop := n.manager(prober.Config{})
		defer stop()
		n.starts("u", "web", "1")
		m.Add(pod("u", container("web", "SL", nil)))
		time.Sleep(5 * time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		var reported []prober.Change
		done := make(chan error)
		go func() { done <- m.Follow(ctx, func(c prober.Change) { reported = append(reported, c) }) }()
		synctest.Wait()
		assert.Equal(t, []prober.Change{
			{UID: "u", Container: "web", ContainerID: "1", Kind: prober.Startup, Result: runtime.ProbeSuccess},
			{UID: "u", Container: "web", ContainerID: "1", Kind: prober.Liveness, Result: runtime.ProbeSuccess},
		}, reported)
		cancel()
		require.NoError(t, <-done)
	})
}

// The instance that runs is probed, even if a newer one was created.
func TestTheRunningInstanceIsProbed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		m, stop := n.manager(prober.Config{})
		defer stop()
		n.starts("u", "web", "1")
		n.set("u", runtime.ContainerStatus{ID: "2", Name: "web", State: runtime.ContainerCreated})
		m.Add(pod("u", container("web", "R", nil)))
		assert.Equal(t, []string{"0s web Readiness 1"}, n.take(&n.runs))
	})
}

// A start may be slow, and inspected meanwhile. That must not suspend liveness probes.
func TestAnInstanceThatHasNotStartedHasNotFailed(t *testing.T) { // prober-14, prober-16
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		m, stop := n.manager(prober.Config{})
		defer stop()
		p := pod("u", container("web", "RL", nil))
		n.say("web", failure) // so that no success is from a run
		n.set("u", runtime.ContainerStatus{Name: "web", ID: "1", State: runtime.ContainerCreated})
		m.Add(p)
		m.Inspect("u")
		assert.Equal(t, "web startup=unknown readiness=unknown", shown(m, p))
		n.starts("u", "web", "1")
		m.Inspect("u")
		assert.Equal(t, "1 liveness=success, web startup=unknown readiness=failure", shown(m, p))
		n.exits("u", "web", "1", 3)
		m.Inspect("u")
		assert.Equal(t, "1 liveness=failure, web startup=unknown readiness=failure", shown(m, p))
		n.set("u", runtime.ContainerStatus{Name: "web", ID: "2", State: runtime.ContainerCreated})
		m.Inspect("u")
		assert.NotContains(t, shown(m, p), "2 liveness")
		n.set("u", runtime.ContainerStatus{Name: "web", ID: "2", State: runtime.ContainerRunning, Starting: true})
		m.Inspect("u")
		assert.NotContains(t, shown(m, p), "2 liveness", "its postStart hook runs")
		n.starts("u", "web", "2")
		m.Inspect("u")
		assert.Contains(t, shown(m, p), "2 liveness=success")
	})
}

func TestRunIsCalledOnceAndWaitsForItsRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Bool
		m, err := prober.New(prober.Config{Handlers: prober.Handlers{TCPSocket: handler(func(ctx context.Context, _ prober.Target) (prober.Outcome, error) {
			<-ctx.Done()
			time.Sleep(time.Second)
			ended.Store(true)
			return prober.Outcome{}, ctx.Err()
		})}})
		require.NoError(t, err)
		p := pod("u", container("web", "R", nil))
		p.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "web", ContainerID: "1", State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}}
		m.Add(p) // its own status counts
		assert.Empty(t, m.Containers("u")["web"])
		stop := run(t, m)
		assert.EqualError(t, m.Run(t.Context()), "prober: Manager.Run was called before")
		time.Sleep(time.Second)
		assert.False(t, ended.Load())
		stop()
		assert.True(t, ended.Load())
	})
}

// handler is a Handler from a function.
type handler func(context.Context, prober.Target) (prober.Outcome, error)

func (h handler) Probe(ctx context.Context, t prober.Target) (prober.Outcome, error) {
	return h(ctx, t)
}

// Without a runtime, the status of the pod is used: prober-12, prober-13.
func TestResultsFromThePodsStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var targets []string
		h := handler(func(_ context.Context, t prober.Target) (prober.Outcome, error) {
			targets = append(targets, t.Container.Name+" "+t.ContainerID+" "+t.PodIP)
			return success.Outcome, nil
		})
		m, err := prober.New(prober.Config{Handlers: prober.Handlers{TCPSocket: h}, HostIPs: func() []string { return []string{"192.0.2.1"} }})
		require.NoError(t, err)
		defer run(t, m)()
		sidecar := container("side", "R", nil)
		sidecar.RestartPolicy = new(v1.ContainerRestartPolicyAlways)
		p := pod("u")
		p.Spec.InitContainers = []v1.Container{sidecar}
		p.Status.PodIP = "10.0.0.9"
		p.Status.InitContainerStatuses = []v1.ContainerStatus{{Name: "side", ContainerID: "1", Ready: true, State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}}
		m.Add(p)
		synctest.Wait()
		assert.Equal(t, []string{"side 1 10.0.0.9"}, targets)
		assert.Equal(t, "side startup=unknown readiness=success", shown(m, p))

		p = p.DeepCopy()
		p.Spec.HostNetwork = true
		p.Status.InitContainerStatuses[0].State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 1}}
		m.Add(p)
		assert.Equal(t, "side startup=unknown readiness=failure", shown(m, p), "prober-16")
		p = p.DeepCopy()
		p.Status.InitContainerStatuses[0].State = v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.Now()}}
		p.Status.InitContainerStatuses[0].ContainerID = "2"
		m.Add(p)
		synctest.Wait()
		assert.Equal(t, []string{"side 1 10.0.0.9", "side 2 192.0.2.1"}, targets)
		p = p.DeepCopy()
		p.Status.Phase = v1.PodFailed
		m.Add(p)
		assert.Equal(t, "side startup=unknown readiness=unknown", shown(m, p), "prober-12")
	})
}

func TestInvalidConfigs(t *testing.T) {
	for want, cfg := range map[string]prober.Config{
		"prober: Config.Limits.Parallel is negative":                {Limits: prober.Limits{Parallel: -1}},
		"prober: Config.Limits.ExecParallel is negative":            {Limits: prober.Limits{ExecParallel: -1}},
		"prober: Config.Limits.ExecPerSecond is negative":           {Limits: prober.Limits{ExecPerSecond: -1}},
		"prober: Config.Schedule.Jitter is more than half a period": {Schedule: prober.Schedule{Jitter: 0.6}},
	} {
		_, err := prober.New(cfg)
		assert.EqualError(t, err, want)
	}
}
