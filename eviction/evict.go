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

// Reason is that of an evicted pod's status, of its event, and of a refusal by
// [Admit].
const Reason = "Evicted"

// The annotations of the event of an eviction (ev-53, F-15).
const (
	AnnotationContainers  = "offending_containers"
	AnnotationUsage       = "offending_containers_usage"
	AnnotationResource    = "starved_resource"
	AnnotationExplanation = "eviction.kubeparts.io/explanation"
)

const heldText = "a kill of it has failed, and is not tried again yet"

// An Eviction is the end of one pod, in the words of its status.
type Eviction struct {
	Pod *v1.Pod `json:"-"`

	// Signal is what metrics count it by.
	Signal string `json:"signal"`

	// Message of the status, of the event, and of the condition
	// DisruptionTarget, if it has one.
	Message string `json:"message"`

	// Annotations of the event; nil: none.
	Annotations map[string]string `json:"annotations,omitempty"`

	// GracePeriodSeconds to stop in.
	GracePeriodSeconds int64 `json:"gracePeriodSeconds"`

	// Disruption: the pod did nothing wrong, and its status has the condition
	// DisruptionTarget (ev-54, ev-50).
	Disruption bool `json:"disruption,omitempty"`

	// Refused is why it is not carried out; empty: it is.
	Refused string `json:"refused,omitempty"`

	// Explanation is why it is this pod. Nil for one that exceeded a limit of its
	// own: the message says all.
	Explanation *Explanation `json:"explanation,omitempty"`
}

// Ending is what the pod's status will say (ev-54).
func (e *Eviction) Ending() runtime.Termination {
	end := runtime.Termination{Failed: true, Reason: Reason, Message: e.Message}
	if e.Disruption {
		end.Disruption = e.Message
	}
	return end
}

// Event is what is told of it (ev-53).
func (e *Eviction) Event() runtime.Event {
	return runtime.Event{
		Object: runtime.PodRef(e.Pod), Type: v1.EventTypeWarning, Reason: Reason, Message: e.Message, Annotations: e.Annotations,
	}
}

func (in *Inputs) held(pod *v1.Pod) bool { return slices.Contains(in.Held, pod.UID) }

// Eviction returns how the pod at a place of the ranking would end.
func (p *Plan) Eviction(place int) Eviction {
	r := p.Ranking[place]
	e := Eviction{
		Pod: r.Pod, Signal: string(p.Chosen.Threshold.Signal), Disruption: true, Refused: r.Refused,
		GracePeriodSeconds: p.grace(r.Pod),
	}
	e.Message, e.Annotations = p.message(r.Pod)
	e.Explanation = p.explain(place)
	if text, err := e.Explanation.encode(); err == nil {
		e.Annotations[AnnotationExplanation] = text
	}
	return e
}

// grace is how long the pod has (ev-52).
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

// message words the status of an evicted pod (ev-55).
func (p *Plan) message(pod *v1.Pod) (string, map[string]string) {
	name := p.Chosen.Threshold.Signal.Resource()
	var b strings.Builder
	fmt.Fprintf(&b, "The node was low on resource: %v. ", name)
	for _, m := range p.low() {
		if m.Threshold.Signal.Resource() == name {
			fmt.Fprintf(&b, "Threshold quantity: %v, available: %v. ",
				m.Threshold.Value.quantity(m.Capacity), resource.NewQuantity(m.Available, resource.BinarySI))
			break
		}
	}
	var containers, usages []string
	if stats := p.statsOf(pod); stats != nil {
		for c := range podspec.Containers(pod) {
			used, ok := containerUsage(stats, c.Name, name)
			asked := c.Resources.Requests[name]
			if !ok || asked.CmpInt64(used) >= 0 {
				continue
			}
			usage := resource.NewQuantity(used, resource.BinarySI).String()
			fmt.Fprintf(&b, "Container %s was using %s, request is %s, has larger consumption of %v. ", c.Name, usage, asked.String(), name)
			containers, usages = append(containers, c.Name), append(usages, usage)
		}
	}
	return b.String(), map[string]string{
		AnnotationContainers: strings.Join(containers, ","),
		AnnotationUsage:      strings.Join(usages, ","),
		AnnotationResource:   string(name),
	}
}

// low returns the thresholds that a message may quote: the chosen one first.
func (p *Plan) low() []Met {
	return append([]Met{*p.Chosen}, p.Met...)
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

// containerUsage is what a container uses of memory, or of the disk for its layer
// and logs. Of other resources nothing is told by container.
func containerUsage(stats *statsapi.PodStats, container string, name v1.ResourceName) (int64, bool) {
	i := slices.IndexFunc(stats.Containers, func(c statsapi.ContainerStats) bool { return c.Name == container })
	if i < 0 {
		return 0, false
	}
	c := &stats.Containers[i]
	switch {
	case name == v1.ResourceMemory && c.Memory != nil && c.Memory.WorkingSetBytes != nil:
		return figureOf(c.Memory.WorkingSetBytes), true
	case name == v1.ResourceEphemeralStorage && c.Rootfs != nil && c.Rootfs.UsedBytes != nil && c.Logs != nil && c.Logs.UsedBytes != nil:
		return add(figureOf(c.Rootfs.UsedBytes), figureOf(c.Logs.UsedBytes)), true
	default:
		return 0, false
	}
}
