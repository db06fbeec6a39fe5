package statuspage

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/agent/statuspage/internal/page"
	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
)

// pod returns the state of a pod; nil if the agent has removed it meanwhile.
func (h *Handler) pod(s podworker.PodState, usage map[string]statsapi.PodStats) *page.Pod {
	e, ok := h.cfg.Agent.Snapshot(s.UID)
	if !ok {
		return nil
	}
	out := &page.Pod{
		UID: string(s.UID), Namespace: e.Namespace, Name: e.Name, Created: e.Added,
		Deleting: e.Termination != nil && s.State < podworker.Finished, Why: describe(e), Err: e.Err,
		Plan: h.cfg.History.lastPlan(s.UID), Volumes: h.volumes(s.UID),
	}
	if stats, ok := usage[string(s.UID)]; ok {
		if stats.CPU != nil {
			out.CPU = stats.CPU.UsageNanoCores
		}
		if stats.Memory != nil {
			out.Memory = cmp.Or(stats.Memory.WorkingSetBytes, stats.Memory.UsageBytes)
		}
	}
	pod := s.Pod
	observed, err := h.cfg.Agent.PLEG().Get(s.UID)
	if err != nil {
		observed = new(runtime.PodStatus)
	}
	if pod == nil { // only the runtime lists it: its spec is not known
		out.Containers = observedContainers(observed)
		return out
	}
	out.Source = pod.Annotations["kubernetes.io/config.source"]
	status, ok := h.cfg.Agent.Status().Status(s.UID)
	if !ok {
		status = pod.Status
	}
	out.Phase, out.Reason, out.Message = string(status.Phase), status.Reason, status.Message
	// An agent that was restarted has the pod for a shorter time than it runs.
	switch {
	case status.StartTime != nil:
		out.Created = status.StartTime.Time
	case !pod.CreationTimestamp.IsZero():
		out.Created = pod.CreationTimestamp.Time
	}
	out.QOS = string(cmp.Or(status.QOSClass, pod.Status.QOSClass))
	for _, ip := range status.PodIPs {
		out.IPs = append(out.IPs, ip.IP)
	}
	for _, c := range status.Conditions {
		out.Conditions = append(out.Conditions, page.Condition{
			Type: string(c.Type), Status: string(c.Status), Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime.Time,
		})
	}
	out.Containers = h.containers(pod, &status)
	for i := range out.Containers {
		if c := observed.Container(out.Containers[i].Name); c != nil {
			out.Containers[i].LogPath = c.LogPath
		}
	}
	return out
}

// observedContainers returns the newest instance of each container, by name.
func observedContainers(status *runtime.PodStatus) (all []page.Container) {
	newest := map[string]*runtime.ContainerStatus{}
	for i := range status.Containers {
		c := &status.Containers[i]
		if n := newest[c.Name]; n == nil || c.CreatedAt.After(n.CreatedAt) {
			newest[c.Name] = c
		}
	}
	for _, name := range slices.Sorted(maps.Keys(newest)) {
		c := newest[name]
		out := page.Container{Name: name, State: c.State.String(), Since: c.StartedAt, LogPath: c.LogPath}
		if c.State == runtime.ContainerExited {
			out.Since, out.ExitCode, out.Reason = c.FinishedAt, c.ExitCode, c.Reason
		}
		all = append(all, out)
	}
	return all
}

// containers returns the containers of a pod in the order in which they start.
func (h *Handler) containers(pod *v1.Pod, status *v1.PodStatus) (all []page.Container) {
	now := time.Now()
	add := func(kind string, c *v1.Container, statuses []v1.ContainerStatus) {
		out := page.Container{Name: c.Name, Kind: kind, Image: c.Image, State: "waiting", Probes: h.probes(pod.UID, c)}
		for i := range statuses {
			if s := &statuses[i]; s.Name == c.Name {
				setState(&out, s, now)
			}
		}
		all = append(all, out)
	}
	for i := range pod.Spec.InitContainers {
		c, kind := &pod.Spec.InitContainers[i], "init"
		if podspec.IsSidecar(c) {
			kind = "sidecar"
		}
		add(kind, c, status.InitContainerStatuses)
	}
	for i := range pod.Spec.Containers {
		add("", &pod.Spec.Containers[i], status.ContainerStatuses)
	}
	for i := range pod.Spec.EphemeralContainers {
		c := v1.Container(pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)
		add("ephemeral", &c, status.EphemeralContainerStatuses)
	}
	return all
}

// setState sets the fields of c that follow from the status of the container.
func setState(c *page.Container, s *v1.ContainerStatus, now time.Time) {
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

// probes returns the probes of a container with their last attempts.
func (h *Handler) probes(uid types.UID, c *v1.Container) (all []page.Probe) {
	m := h.cfg.Agent.Prober()
	if m == nil {
		return nil
	}
	for _, kind := range []prober.Kind{prober.Startup, prober.Readiness, prober.Liveness} {
		spec := kind.Probe(c)
		if spec == nil {
			continue
		}
		out := page.Probe{Kind: strings.ToLower(kind.String()), Asks: probeTarget(spec), Period: probePeriod(spec)}
		for _, r := range m.History(uid, c.Name, kind) {
			run := page.Run{At: r.At, Took: r.Duration, Output: r.Output}
			switch {
			case r.Err:
				run.Outcome = page.Broken
			case r.Result == runtime.ProbeSuccess:
				run.Outcome = page.Passed
			}
			out.Runs = append(out.Runs, run)
		}
		all = append(all, out)
	}
	return all
}

// probeTarget describes the action of a probe.
func probeTarget(p *v1.Probe) string {
	switch {
	case p.Exec != nil:
		return fmt.Sprintf("exec %q", p.Exec.Command)
	case p.HTTPGet != nil:
		return fmt.Sprintf("%s %s:%s%s", cmp.Or(string(p.HTTPGet.Scheme), "HTTP"), p.HTTPGet.Host, p.HTTPGet.Port.String(), p.HTTPGet.Path)
	case p.TCPSocket != nil:
		return fmt.Sprintf("TCP %s:%s", p.TCPSocket.Host, p.TCPSocket.Port.String())
	case p.GRPC != nil:
		service := ""
		if p.GRPC.Service != nil {
			service = *p.GRPC.Service
		}
		return fmt.Sprintf("gRPC :%d %s", p.GRPC.Port, service)
	}
	return ""
}

// volumes returns the volumes of a pod.
func (h *Handler) volumes(uid types.UID) (all []page.Volume) {
	if h.cfg.Volumes == nil {
		return nil
	}
	used := map[string]*uint64{} // by the pod's name of the volume
	ephemeral, persistent := h.cfg.Volumes.VolumeStats(uid)
	for _, s := range slices.Concat(ephemeral, persistent) {
		used[s.Name] = s.UsedBytes
	}
	for _, held := range h.cfg.Volumes.Volumes(uid) {
		v := page.Volume{
			Name: cmp.Or(strings.Join(held.Names, ", "), held.Place.Name), Kind: held.Place.Plugin[strings.LastIndexByte(held.Place.Plugin, '/')+1:],
			State: held.State, Path: held.Path, Doing: held.Operation, Err: held.Err, RetryAt: held.RetryAt, Since: held.Since,
		}
		if !held.Desired {
			v.State += ", to be removed"
		}
		for _, name := range held.Names {
			if v.Used == nil {
				v.Used = used[name]
			}
		}
		all = append(all, v)
	}
	return all
}

// probePeriod returns the period of a probe, by default that of the API.
func probePeriod(p *v1.Probe) time.Duration {
	return time.Duration(cmp.Or(max(p.PeriodSeconds, 0), 10)) * time.Second
}
