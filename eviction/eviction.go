package eviction

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// reasonEvicted is the reason of an evicted pod's status, of its event, and of a rejection by
// Policy.Admit.
const reasonEvicted = "Evicted"

// annotationExplanation is the event annotation with the [Explanation] as JSON.
const annotationExplanation = "eviction.kubeparts.io/explanation"

// The kubelet's annotations of the event.
const (
	annotationContainers = "offending_containers"
	annotationUsage      = "offending_containers_usage"
	annotationPod        = "offending_pod"
	annotationPodUsage   = "offending_pod_usage"
	annotationResource   = "starved_resource"
)

// A Victim is a pod and how it is evicted.
type Victim struct {
	Pod *v1.Pod `json:"-"`

	// Signal is the label of the eviction metrics: a [Signal], or the kind of the limit
	// that the pod exceeded.
	Signal string `json:"signal"`

	// Message of the pod status, of the event, and of the condition DisruptionTarget if
	// the pod has it.
	Message string `json:"message"`

	// Annotations of the event. May be nil.
	Annotations map[string]string `json:"annotations,omitempty"`

	// GracePeriodSeconds is the grace period of the pod.
	GracePeriodSeconds int64 `json:"gracePeriodSeconds"`

	// Disruption is true if the pod is evicted for the node's resources and not for a
	// limit of its own. Its status then has the condition DisruptionTarget.
	Disruption bool `json:"disruption,omitempty"`

	// Exempt is the reason why the pod is not evicted. Empty if it is.
	Exempt string `json:"exempt,omitempty"`

	// Explanation is the reason why this pod is evicted. Nil if the pod exceeded a limit
	// of its own, which Message describes.
	Explanation *Explanation `json:"explanation,omitempty"`
}

// Termination returns the reason and message of the pod's final status.
func (v *Victim) Termination() runtime.Termination {
	end := runtime.Termination{Failed: true, Reason: reasonEvicted, Message: v.Message}
	if v.Disruption {
		end.Disruption = v.Message
	}
	return end
}

// Event returns the event of the eviction.
func (v *Victim) Event() runtime.Event {
	return runtime.Event{
		Object: runtime.PodRef(v.Pod), Type: v1.EventTypeWarning, Reason: reasonEvicted, Message: v.Message, Annotations: v.Annotations,
	}
}

// Victim returns how the pod at an index of the ranking is evicted. Chosen must not be nil.
func (p *Plan) Victim(i int) Victim {
	c := p.Ranking[i]
	v := Victim{
		Pod: c.Pod, Signal: string(p.Chosen.Threshold.Signal), Disruption: true, Exempt: c.Exempt,
		GracePeriodSeconds: p.grace(c.Pod),
	}
	v.Message, v.Annotations = p.message(c.Pod)
	v.Explanation = p.explain(i)
	if text, err := v.Explanation.encode(); err == nil {
		v.Annotations[annotationExplanation] = text
	}
	return v
}

// grace returns the grace period of the pod in seconds.
func (p *Plan) grace(pod *v1.Pod) int64 {
	if p.Chosen.Threshold.Hard() {
		return immediateGrace
	}
	n := p.in.Policy.MaxPodGracePeriod
	if own := pod.Spec.TerminationGracePeriodSeconds; own != nil && !p.in.Policy.OverwriteGrace {
		n = min(n, *own)
	}
	return n
}

// message returns the message and the kubelet's annotations of an eviction (rule ev-55).
func (p *Plan) message(pod *v1.Pod) (string, map[string]string) {
	name := p.Chosen.Threshold.Signal.Resource()
	var b strings.Builder
	fmt.Fprintf(&b, "The node was low on resource: %v. ", name)
	for _, m := range p.quotable() {
		if m.Threshold.Signal.Resource() == name {
			fmt.Fprintf(&b, "Threshold quantity: %v, available: %v. ",
				m.Threshold.Value.quantity(m.Capacity), resource.NewQuantity(m.Available, resource.BinarySI))
			break
		}
	}
	var containers, usages []string
	annotations := map[string]string{annotationResource: string(name)}
	if stats := p.statsOf(pod); stats != nil {
		if of := pod.Spec.Resources; of != nil && name == v1.ResourceMemory && stats.Memory != nil {
			if requested, ok := of.Requests[name]; ok { // whether it is exceeded or not, as with the kubelet
				usage := resource.NewQuantity(amount(stats.Memory.WorkingSetBytes), resource.BinarySI).String()
				fmt.Fprintf(&b, "Pod %s was using %s, request is %s, has larger consumption of %v. ", pod.Name, usage, requested.String(), name)
				annotations[annotationPod], annotations[annotationPodUsage] = pod.Name, usage
			}
		}
		for c := range podspec.Containers(pod) {
			used, ok := containerUsage(stats, c.Name, name)
			requested := c.Resources.Requests[name]
			if !ok || requested.CmpInt64(used) >= 0 {
				continue
			}
			usage := resource.NewQuantity(used, resource.BinarySI).String()
			fmt.Fprintf(&b, "Container %s was using %s, request is %s, has larger consumption of %v. ", c.Name, usage, requested.String(), name)
			containers, usages = append(containers, c.Name), append(usages, usage)
		}
	}
	annotations[annotationContainers], annotations[annotationUsage] = strings.Join(containers, ","), strings.Join(usages, ",")
	return b.String(), annotations
}

// quotable returns the thresholds that a message may quote, the chosen one first.
func (p *Plan) quotable() []MetThreshold {
	return append([]MetThreshold{*p.Chosen}, p.Met...)
}

func (p *Plan) statsOf(pod *v1.Pod) *statsapi.PodStats {
	if p.in.Summary == nil {
		return nil
	}
	for i := range p.in.Summary.Pods {
		if p.in.Summary.Pods[i].PodRef.UID == string(pod.UID) {
			return &p.in.Summary.Pods[i]
		}
	}
	return nil
}

// containerUsage returns a container's usage of memory, or of disk space for its writable
// layer and logs. Other resources are not measured per container.
func containerUsage(stats *statsapi.PodStats, container string, name v1.ResourceName) (int64, bool) {
	i := slices.IndexFunc(stats.Containers, func(c statsapi.ContainerStats) bool { return c.Name == container })
	if i < 0 {
		return 0, false
	}
	c := &stats.Containers[i]
	switch {
	case name == v1.ResourceMemory && c.Memory != nil && c.Memory.WorkingSetBytes != nil:
		return amount(c.Memory.WorkingSetBytes), true
	case name == v1.ResourceEphemeralStorage && c.Rootfs != nil && c.Rootfs.UsedBytes != nil && c.Logs != nil && c.Logs.UsedBytes != nil:
		return add(amount(c.Rootfs.UsedBytes), amount(c.Logs.UsedBytes)), true
	default:
		return 0, false
	}
}
