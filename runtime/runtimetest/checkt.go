package runtimetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/internal/pause"
	"github.com/kubeparts/kubeparts/runtime"
)

// A checkT is the testing.T of one check: the test, the runtime, and helpers for both.
type checkT struct {
	*testing.T
	rt    runtime.Runtime
	suite Suite

	notApplicable bool
	isGap         bool
	gap           string // reason for which the check is expected to fail; empty if it is not

	mu       sync.Mutex
	failures []string // recorded if gap is set
}

// namespace of the suite's pods.
const namespace = "runtimetest"

// named returns c under another name, with the defaults that SyncRequest.Pod
// requires.
func named(name string, c v1.Container) v1.Container {
	c = *c.DeepCopy()
	c.Name = name
	if c.ImagePullPolicy == "" {
		c.ImagePullPolicy = v1.PullIfNotPresent
	}
	if c.TerminationMessagePath == "" {
		c.TerminationMessagePath = v1.TerminationMessagePathDefault
	}
	if c.TerminationMessagePolicy == "" {
		c.TerminationMessagePolicy = v1.TerminationMessageReadFile
	}
	return c
}

// pod returns a new pod, which is cleaned up at the end of the check.
func (t *checkT) pod(policy v1.RestartPolicy, containers ...v1.Container) *v1.Pod {
	t.Helper()
	id := strings.ToLower(rand.Text()[:10])
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod-" + id, Namespace: namespace, UID: types.UID("runtimetest-" + id)},
		Spec: v1.PodSpec{
			RestartPolicy:                 policy,
			DNSPolicy:                     v1.DNSDefault,
			EnableServiceLinks:            new(false),
			SecurityContext:               &v1.PodSecurityContext{},
			TerminationGracePeriodSeconds: new(int64(2)), // for containers that get SIGTERM before they handle it
			Containers:                    containers,
		},
	}
	if t.suite.Adjust != nil {
		t.suite.Adjust(pod)
	}
	uid := pod.UID // a check may modify the pod
	t.Cleanup(func() { t.clean(uid) })
	return pod
}

// clean kills the pod and, if possible, removes it.
func (t *checkT) clean(uid types.UID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), t.suite.Timing.Timeout)
	defer cancel()
	if err := t.rt.KillPod(ctx, runtime.KillRequest{UID: uid, GracePeriodSeconds: new(int64(0))}); err != nil {
		t.Logf("clean up: %v", err)
	}
	if gc, ok := compose.As[runtime.GarbageCollector](t.rt); ok {
		policy := runtime.GCPolicy{MaxPerContainer: -1, Keep: func(u types.UID) bool { return u != uid }}
		if err := gc.CollectGarbage(ctx, policy); err != nil {
			t.Logf("clean up: %v", err)
		}
	}
}

// sync calls SyncPod, which must succeed except for back-offs.
func (t *checkT) sync(pod *v1.Pod) runtime.SyncResult {
	t.Helper()
	res, err := t.rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
	if err != nil && res.RetryAt.IsZero() {
		t.Fatalf("SyncPod: %v", err)
	}
	return res
}

// recovers calls SyncPod until it succeeds.
func (t *checkT) recovers(pod *v1.Pod) {
	t.Helper()
	for begun := time.Now(); ; t.pause(t.suite.Timing.PollInterval) {
		_, err := t.rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
		if err == nil {
			return
		}
		if time.Since(begun) > t.suite.Timing.Timeout {
			t.Fatalf("SyncPod: %v", err)
		}
	}
}

// look returns the status of the pod, without error.
func (t *checkT) look(uid types.UID) *runtime.PodStatus {
	t.Helper()
	status, err := t.rt.PodStatus(t.Context(), uid)
	if err != nil {
		t.Fatalf("PodStatus: %v", err)
	}
	if status == nil {
		t.Fatal("PodStatus: neither a status nor an error")
	}
	return status
}

// listed returns the pod in the list, or nil.
func (t *checkT) listed(uid types.UID) *runtime.Pod {
	t.Helper()
	pods, err := t.rt.Pods(t.Context())
	if err != nil {
		t.Fatalf("Pods: %v", err)
	}
	if i := slices.IndexFunc(pods, func(p *runtime.Pod) bool { return p.UID == uid }); i >= 0 {
		return pods[i]
	}
	return nil
}

// kill stops the pod with this grace period, or its own if nil, and returns how long that
// took.
func (t *checkT) kill(pod *v1.Pod, grace *int64) time.Duration {
	t.Helper()
	begun := time.Now()
	if err := t.rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod, GracePeriodSeconds: grace}); err != nil {
		t.Fatalf("KillPod: %v", err)
	}
	return time.Since(begun)
}

// stopped fails t for each container or sandbox that runs after KillPod has returned nil.
func (t *checkT) stopped(s *runtime.PodStatus) {
	t.Helper()
	for _, sb := range s.Sandboxes {
		if sb.State == runtime.SandboxReady {
			t.Errorf("KillPod returned nil while sandbox %s (attempt %d) is ready: an agent would treat the pod as orphaned and kill it again; the pod is\n%s",
				sb.ID, sb.Attempt, describe(s))
		}
	}
	for _, c := range s.Containers {
		if c.State == runtime.ContainerRunning {
			t.Errorf("KillPod returned nil while container %s (%s) runs; the pod is\n%s", c.Name, c.ID, describe(s))
		}
	}
}

// up syncs the pod until all its regular containers run.
func (t *checkT) up(pod *v1.Pod) *runtime.PodStatus {
	t.Helper()
	return t.syncUntil(pod, "all its containers run", func(s *runtime.PodStatus) bool {
		return !slices.ContainsFunc(pod.Spec.Containers, func(c v1.Container) bool {
			return !in(s, c.Name, runtime.ContainerRunning)
		})
	})
}

// syncUntil calls SyncPod with the current status, as an agent does, until the function
// returns true. SyncPod must succeed except for back-offs.
func (t *checkT) syncUntil(pod *v1.Pod, what string, ok func(*runtime.PodStatus) bool) *runtime.PodStatus {
	t.Helper()
	return t.until(pod.UID, what, ok, func(s *runtime.PodStatus) {
		t.Helper()
		res, err := t.rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod, Status: s})
		if err != nil && res.RetryAt.IsZero() {
			t.Fatalf("SyncPod: %v", err)
		}
	})
}

// await inspects the pod until the function returns true.
func (t *checkT) await(uid types.UID, what string, ok func(*runtime.PodStatus) bool) *runtime.PodStatus {
	t.Helper()
	return t.until(uid, what, ok, func(*runtime.PodStatus) {})
}

func (t *checkT) until(uid types.UID, what string, ok func(*runtime.PodStatus) bool, meanwhile func(*runtime.PodStatus)) *runtime.PodStatus {
	t.Helper()
	deadline := time.Now().Add(t.suite.Timing.Timeout)
	for {
		s := t.look(uid)
		if ok(s) {
			return s
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %v the condition is not met: %s; the pod is\n%s", t.suite.Timing.Timeout, what, describe(s))
		}
		meanwhile(s)
		t.pause(t.suite.Timing.PollInterval)
	}
}

func (t *checkT) pause(d time.Duration) {
	t.Helper()
	if err := pause.For(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

// container returns the newest instance of the named container, which must exist.
func (t *checkT) container(s *runtime.PodStatus, name string) *runtime.ContainerStatus {
	t.Helper()
	c := s.Container(name)
	if c == nil {
		t.Fatalf("container %s does not exist; the pod is\n%s", name, describe(s))
	}
	return c
}

// in reports whether the newest instance of the named container is in state.
func in(s *runtime.PodStatus, name string, state runtime.ContainerState) bool {
	c := s.Container(name)
	return c != nil && c.State == state
}

func exited(name string) func(*runtime.PodStatus) bool {
	return func(s *runtime.PodStatus) bool { return in(s, name, runtime.ContainerExited) }
}

// instances returns all instances of a container, newest first.
func instances(s *runtime.PodStatus, name string) []runtime.ContainerStatus {
	var out []runtime.ContainerStatus
	for _, c := range s.Containers {
		if c.Name == name {
			out = append(out, c)
		}
	}
	return out
}

// describe returns the state of a pod for messages.
func describe(s *runtime.PodStatus) string {
	var b strings.Builder
	for _, sb := range s.Sandboxes {
		fmt.Fprintf(&b, "\tsandbox %s, attempt %d: %v\n", sb.ID, sb.Attempt, sb.State)
	}
	const most = 20
	for i, c := range s.Containers {
		if i == most {
			fmt.Fprintf(&b, "\tand %d older ones\n", len(s.Containers)-i)
			break
		}
		fmt.Fprintf(&b, "\tcontainer %s %s, restart %d: %v", c.Name, c.ID, c.RestartCount, c.State)
		if c.State == runtime.ContainerExited {
			fmt.Fprintf(&b, " with %d (%s %s)", c.ExitCode, c.Reason, c.Message)
		}
		b.WriteString("\n")
	}
	if b.Len() == 0 {
		return "\tnothing"
	}
	return strings.TrimRight(b.String(), "\n")
}

// ended reports whether err is the error of a context.
func ended(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
