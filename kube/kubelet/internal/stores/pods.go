package stores

import (
	"context"
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/kube/internal/pause"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/shutdown"
)

// Pods are the pods of the node, as subsystems need them.
type Pods struct{ *podworker.Table }

// DesiredPod returns a desired pod; nil if there is none.
func (p Pods) DesiredPod(uid types.UID) *v1.Pod {
	pod, _ := p.Pod(uid)
	return pod
}

// Active returns the desired pods that have not terminated.
func (p Pods) Active() []*v1.Pod {
	return slices.DeleteFunc(p.Desired(), func(pod *v1.Pod) bool { return p.Terminated(pod.UID) })
}

// Leaving reports whether a pod is no longer desired and has not terminated.
func (p Pods) Leaving(uid types.UID) bool {
	s, known := p.State(uid)
	return known && s >= podworker.Stopping && s < podworker.Finished && p.DesiredPod(uid) == nil
}

// Terminated reports whether no container of a pod runs or will run.
func (p Pods) Terminated(uid types.UID) bool {
	s, known := p.State(uid)
	return known && s >= podworker.Cleaning
}

// Evict terminates a pod and returns when none of its containers runs.
func (p Pods) Evict(ctx context.Context, v eviction.Victim) error {
	_, err := p.KillAndWait(ctx, v.Pod.UID, podworker.KillOptions{
		GracePeriodSeconds: &v.GracePeriodSeconds, Evict: true, Termination: v.Termination(),
	})
	return err
}

// Kill terminates a pod for a shutdown. The termination continues if the caller stops waiting.
func (p Pods) Kill(ctx context.Context, k shutdown.Kill) error {
	_, err := p.KillAndWait(ctx, k.Pod.UID, podworker.KillOptions{
		GracePeriodSeconds: &k.GracePeriodSeconds, Termination: k.Termination(), Timeout: math.MaxInt64,
	})
	return err
}

// Cleaned reports whether nothing of a pod is left, including its volumes.
func (p Pods) Cleaned(uid types.UID) bool {
	s, known := p.State(uid)
	return !known || s == podworker.Finished
}

// AwaitCleaned blocks until Cleaned, or until ctx is done.
func (p Pods) AwaitCleaned(ctx context.Context, pod *v1.Pod) error {
	return Until(ctx, func() bool { return p.Cleaned(pod.UID) })
}

// Until polls a condition.
func Until(ctx context.Context, condition func() bool) error {
	for !condition() {
		if err := pause.For(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}
