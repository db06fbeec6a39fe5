package runtimetest

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// listerRequirements are the requirements of [runtime.Lister].
var listerRequirements = []requirement{
	{
		name:     "UnknownPodHasEmptyStatus",
		text:     "A pod that the runtime does not have is not an error: PodStatus has its UID, no name, no sandboxes and no containers, and Pods does not list it.",
		contract: "Lister.PodStatus",
		cause:    "the backend's not-found error is returned instead of an empty status",
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways)
			s := t.look(pod.UID)
			if s.UID != pod.UID {
				t.Errorf("PodStatus of %s has UID %q", pod.UID, s.UID)
			}
			if s.Name != "" || s.Namespace != "" || s.Pod() != nil || len(s.IPs) > 0 {
				t.Errorf("PodStatus of a pod that never existed is %+v", *s)
			}
			if p := t.listed(pod.UID); p != nil {
				t.Errorf("Pods lists a pod that never existed: %+v", *p)
			}
		},
	},
	{
		name:     "PodsAndPodStatusAgree",
		text:     "Pods and PodStatus agree: a list contains what PodStatus.Pod returns.",
		contract: "Lister, PodStatus.Pod",
		cause:    "the list omits exited containers, or has other attempts and times than the inspection",
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyNever, named("long", t.suite.Containers.Long), named("short", t.suite.Containers.Exit(1)))
			t.sync(pod)
			t.await(pod.UID, "short has exited", exited("short"))
			want, got := t.look(pod.UID).Pod(), t.listed(pod.UID)
			if got == nil {
				t.Fatal("Pods does not list a pod that runs")
			}
			if got.Name != pod.Name || got.Namespace != pod.Namespace {
				t.Errorf("Pods lists the pod as %s/%s; it is %s/%s", got.Namespace, got.Name, pod.Namespace, pod.Name)
			}
			if !reflect.DeepEqual(inUTC(got), inUTC(want)) {
				t.Errorf("Pods lists\n\t%+v\nPodStatus returns\n\t%+v", *got, *want)
			}
		},
	},
	{
		name:     "ListsAreSortedNewestFirst",
		text:     "Pods are sorted newest first, and so are a pod's sandboxes and containers.",
		contract: "Lister.Pods, Pod.Sandboxes, Pod.Containers, PodStatus",
		cause:    "the backend's result is returned unsorted, or sorted by name",
		check: func(t *checkT) {
			older := t.pod(v1.RestartPolicyAlways, named("flappy", t.suite.Containers.Exit(1)))
			t.syncUntil(older, "flappy was restarted", func(s *runtime.PodStatus) bool { return len(instances(s, "flappy")) > 1 })
			t.pause(t.suite.Timing.PollInterval)
			newer := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Containers.Long))
			t.sync(newer)

			pods, err := t.rt.Pods(t.Context())
			if err != nil {
				t.Fatalf("Pods: %v", err)
			}
			place := func(pod *v1.Pod) int {
				return slices.IndexFunc(pods, func(p *runtime.Pod) bool { return p.UID == pod.UID })
			}
			if place(newer) < 0 || place(newer) > place(older) {
				t.Errorf("Pods lists the newer pod at %d, the older one at %d", place(newer), place(older))
			}
			for i := 1; i < len(pods); i++ {
				if pods[i].CreatedAt.After(pods[i-1].CreatedAt) {
					t.Errorf("Pods lists %s, created at %v, before %s of %v", pods[i-1].UID, pods[i-1].CreatedAt, pods[i].UID, pods[i].CreatedAt)
				}
			}
			s := t.look(older.UID)
			for i := 1; i < len(s.Containers); i++ {
				a, b := s.Containers[i-1], s.Containers[i]
				if b.CreatedAt.After(a.CreatedAt) || b.RestartCount > a.RestartCount {
					t.Errorf("an older instance comes before a newer one:\n%s", describe(s))
				}
			}
			for i := 1; i < len(s.Sandboxes); i++ {
				if s.Sandboxes[i].Attempt > s.Sandboxes[i-1].Attempt {
					t.Errorf("an older sandbox comes before a newer one:\n%s", describe(s))
				}
			}
		},
	},
	{
		name:     "ObservedAtPrecedesRead",
		text:     "ObservedAt is taken before the first read, and the result comes from the runtime, not from a cache: it is a time between the call and its return, and changes before the call are in the result.",
		contract: "Lister, PodStatus.ObservedAt",
		cause:    "the time is taken after the read, or the result comes from a cache",
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Containers.Long))
			for _, act := range []struct {
				do      func()
				running bool
			}{
				{func() {}, false},
				{func() { t.sync(pod) }, true},
				{func() { t.kill(pod, nil) }, false},
			} {
				act.do()
				// Round drops the monotonic reading, which the time of
				// a runtime may not have.
				before := time.Now().Round(0)
				s := t.look(pod.UID)
				after := time.Now().Round(0)
				if s.ObservedAt.Before(before) || s.ObservedAt.After(after) {
					t.Errorf("ObservedAt is %v; the call took from %v to %v", s.ObservedAt, before, after)
				}
				if in(s, "long", runtime.ContainerRunning) != act.running {
					t.Errorf("the status does not contain a change made before the call; the pod is\n%s", describe(s))
				}
			}
		},
	},
	{
		name:     "CallerOwnsResult",
		text:     "The caller owns the results of Pods and PodStatus: modifying them has no effect on the runtime.",
		contract: "Lister: the caller owns the result",
		cause:    "a cached result is returned without a copy",
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Containers.Long))
			t.up(pod)
			result, brief := t.look(pod.UID), t.listed(pod.UID)
			if brief == nil {
				t.Fatal("Pods does not list a pod that runs")
			}
			// As text: if results share memory, a kept result is modified as well.
			was, wasListed := format(result), fmt.Sprintf("%+v", *brief)
			for i := range result.IPs {
				result.IPs[i] = "modified"
			}
			for i := range result.Sandboxes {
				for j := range result.Sandboxes[i].IPs {
					result.Sandboxes[i].IPs[j] = "modified"
				}
				result.Sandboxes[i].ID = "modified"
			}
			for i := range result.Containers {
				result.Containers[i] = runtime.ContainerStatus{Name: "modified"}
			}
			*brief = runtime.Pod{UID: pod.UID, Sandboxes: brief.Sandboxes, Containers: append(brief.Containers, runtime.Container{})}
			clear(brief.Sandboxes)
			clear(brief.Containers)

			if is := format(t.look(pod.UID)); is != was {
				t.Errorf("PodStatus was\n\t%s\nand after its result was modified it is\n\t%s", was, is)
			}
			again := t.listed(pod.UID)
			if again == nil || fmt.Sprintf("%+v", *again) != wasListed {
				t.Errorf("Pods listed\n\t%s\nand after its result was modified it lists\n\t%+v", wasListed, again)
			}
		},
	},
	{
		name:     "StateSurvivesAgentRestart",
		text:     "The state comes from the runtime, not from memory of earlier calls: after a restart of the caller it is the same, and the next SyncPod does nothing.",
		contract: "Lister: results come from the runtime, not from memory of earlier calls",
		cause:    "the mapping of pods to the backend's objects is kept only in memory, not in labels or files",
		needs:    []string{"Backend.Reopen"},
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyNever, named("long", t.suite.Containers.Long), named("short", t.suite.Containers.Exit(3)))
			t.sync(pod)
			want := t.await(pod.UID, "short has exited", exited("short"))
			t.rt = t.suite.Backend.Reopen(t.T, t.rt)
			got := t.look(pod.UID)
			if !reflect.DeepEqual(inUTC(got.Pod()), inUTC(want.Pod())) {
				t.Errorf("the pod was\n%s\nand after a restart is\n%s", describe(want), describe(got))
			}
			if c := t.container(got, "short"); c.ExitCode != 3 {
				t.Errorf("the exit code is lost; the pod is\n%s", describe(got))
			}
			if res := t.sync(pod); len(res.Actions) > 0 {
				t.Errorf("the first SyncPod after a restart did %+v", res.Actions)
			}
		},
	},
}

// format returns s without its time.
func format(s *runtime.PodStatus) string {
	timeless := *s
	timeless.ObservedAt = time.Time{}
	return fmt.Sprintf("%+v", timeless)
}

// inUTC returns a copy that reflect.DeepEqual can compare: times in UTC without
// monotonic readings, and nil for empty lists.
func inUTC(p *runtime.Pod) *runtime.Pod {
	if p == nil {
		return nil
	}
	out := *p
	out.CreatedAt = p.CreatedAt.Round(0).UTC()
	out.Sandboxes = append([]runtime.Sandbox(nil), p.Sandboxes...)
	for i := range out.Sandboxes {
		out.Sandboxes[i].CreatedAt = out.Sandboxes[i].CreatedAt.Round(0).UTC()
	}
	out.Containers = append([]runtime.Container(nil), p.Containers...)
	for i := range out.Containers {
		out.Containers[i].CreatedAt = out.Containers[i].CreatedAt.Round(0).UTC()
	}
	return &out
}
