package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	pages "github.com/kubeparts/kubeparts/examples/kubelet/page"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
)

// podOf is a pod as people see it; nil if it has been forgotten meanwhile.
func (p *people) podOf(s podworker.PodState, used map[string]statsapi.PodStats) *pages.Pod {
	e, ok := p.pods.loop.Explain(s.UID)
	if !ok {
		return nil
	}
	out := &pages.Pod{
		UID: string(s.UID), Namespace: e.Namespace, Name: e.Name, Created: e.Seen,
		Deleting: e.Termination != nil && s.State < podworker.Finished, Why: "It is " + e.Words(),
		Plan: p.seen.plan(s.UID), Volumes: p.volumesOf(s.UID),
	}
	if stats, ok := used[string(s.UID)]; ok {
		if stats.CPU != nil {
			out.CPU = stats.CPU.UsageNanoCores
		}
		if stats.Memory != nil {
			out.Memory = cmp.Or(stats.Memory.WorkingSetBytes, stats.Memory.UsageBytes)
		}
	}
	pod := s.Pod
	if pod == nil { // an earlier agent's, whose spec nobody knows
		for _, c := range e.Containers {
			out.Containers = append(out.Containers, pages.Container{Name: c.Name, State: c.State, Reason: c.Reason, ExitCode: c.ExitCode, Since: c.Since})
		}
		return out
	}
	out.Source = pod.Annotations["kubernetes.io/config.source"]
	said, ok := p.k.statuses.Status(s.UID)
	if !ok {
		said = pod.Status
	}
	out.Phase, out.Reason, out.Message = string(said.Phase), said.Reason, said.Message
	out.QOS = string(cmp.Or(said.QOSClass, pod.Status.QOSClass))
	for _, ip := range said.PodIPs {
		out.IPs = append(out.IPs, ip.IP)
	}
	for _, c := range said.Conditions {
		out.Conditions = append(out.Conditions, pages.Condition{
			Type: string(c.Type), Status: string(c.Status), Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime.Time,
		})
	}
	out.Containers = p.containersOf(pod, &said)
	return out
}

// containersOf are a pod's containers, in the order in which they start.
func (p *people) containersOf(pod *v1.Pod, said *v1.PodStatus) (all []pages.Container) {
	now := time.Now()
	add := func(kind string, c *v1.Container, statuses []v1.ContainerStatus) {
		out := pages.Container{Name: c.Name, Kind: kind, Image: c.Image, State: "waiting", Probes: p.probesOf(pod.UID, c)}
		for i := range statuses {
			if s := &statuses[i]; s.Name == c.Name {
				fill(&out, s, now)
			}
		}
		all = append(all, out)
	}
	for i := range pod.Spec.InitContainers {
		c, kind := &pod.Spec.InitContainers[i], "init"
		if c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways {
			kind = "sidecar"
		}
		add(kind, c, said.InitContainerStatuses)
	}
	for i := range pod.Spec.Containers {
		add("", &pod.Spec.Containers[i], said.ContainerStatuses)
	}
	for i := range pod.Spec.EphemeralContainers {
		c := v1.Container(pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)
		add("ephemeral", &c, said.EphemeralContainerStatuses)
	}
	return all
}

// fill says how a container is, from its status.
func fill(c *pages.Container, s *v1.ContainerStatus, now time.Time) {
	c.Ready, c.Restarts, c.ID = s.Ready, s.RestartCount, s.ContainerID
	switch {
	case s.State.Running != nil:
		c.State, c.Since = "running", s.State.Running.StartedAt.Time
	case s.State.Terminated != nil:
		t := s.State.Terminated
		c.State, c.Reason, c.Message, c.ExitCode, c.Since = "exited", t.Reason, t.Message, t.ExitCode, t.FinishedAt.Time
	case s.State.Waiting != nil:
		c.Reason, c.Message = s.State.Waiting.Reason, s.State.Waiting.Message
	}
	if t := s.LastTerminationState.Terminated; t != nil {
		c.Last = fmt.Sprintf("exited with code %d", t.ExitCode)
		if t.Reason != "" {
			c.Last += " (" + t.Reason + ")"
		}
		if !t.FinishedAt.IsZero() {
			c.Last += fmt.Sprintf(" %v ago", now.Sub(t.FinishedAt.Time).Round(time.Second))
			if !t.StartedAt.IsZero() {
				c.Last += fmt.Sprintf(", after %v", t.FinishedAt.Sub(t.StartedAt.Time).Round(time.Second))
			}
		}
		if t.Message != "" {
			c.Last += ": " + t.Message
		}
	}
}

// probesOf are the probes of a container, with their last runs.
func (p *people) probesOf(uid types.UID, c *v1.Container) (all []pages.Probe) {
	for _, kind := range []prober.Kind{prober.Startup, prober.Readiness, prober.Liveness} {
		spec := kind.Of(c)
		if spec == nil {
			continue
		}
		out := pages.Probe{Kind: strings.ToLower(kind.String()), Asks: probeAsks(spec), Period: prober.TimingOf(spec).Period}
		for _, r := range p.k.probes.History(uid, c.Name, kind) {
			run := pages.Run{At: r.At, Took: r.Took, Output: r.Output}
			switch {
			case r.Err:
				run.Outcome = pages.Broken
			case r.Result == runtime.ProbeSuccess:
				run.Outcome = pages.Passed
			}
			out.Runs = append(out.Runs, run)
		}
		all = append(all, out)
	}
	return all
}

// probeAsks says what a probe does.
func probeAsks(p *v1.Probe) string {
	switch {
	case p.Exec != nil:
		return fmt.Sprintf("exec %q", p.Exec.Command)
	case p.HTTPGet != nil:
		return fmt.Sprintf("%s %s:%s%s", cmp.Or(string(p.HTTPGet.Scheme), "HTTP"), p.HTTPGet.Host, p.HTTPGet.Port.String(), p.HTTPGet.Path)
	case p.TCPSocket != nil:
		return fmt.Sprintf("TCP %s:%s", p.TCPSocket.Host, p.TCPSocket.Port.String())
	case p.GRPC != nil:
		return fmt.Sprintf("gRPC :%d %s", p.GRPC.Port, deref(p.GRPC.Service))
	}
	return ""
}
