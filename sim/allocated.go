package sim

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/admission"
	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

// nodeCPU is what a simulated node has for its pods, in thousandths.
const nodeCPU = 4000

func cpuList(milli int64) v1.ResourceList {
	return v1.ResourceList{v1.ResourceCPU: *resource.NewMilliQuantity(milli, resource.DecimalSI)}
}

func (s Schedule) hasCPU() bool {
	return slices.ContainsFunc(s, func(step Step) bool {
		return slices.ContainsFunc(step.Shape.Containers, func(c Container) bool { return c.CPU > 0 })
	})
}

// newAllocation returns the allocation.Manager of an agent, with the records of the
// one before it; nil if no pod requests resources.
func (r *run) newAllocation(a *Agent, inbox *podworker.Inbox) (*allocation.Manager, error) {
	if !r.cfg.Schedule.hasCPU() {
		return nil, nil
	}
	node := cpuList(nodeCPU)
	m, err := allocation.Open(allocation.Config{
		Dir: filepath.Join(r.dir, "allocation"), Node: allocation.NodeConstraints{Allocatable: node},
		SourcesReady: inbox.Synced, Changed: inbox.PodChanged,
		Admit: func(_ context.Context, req allocation.Request) *runtime.Rejection {
			for _, failure := range admission.Fit(req.Pod, req.Others, admission.Node{Allocatable: node}) {
				return &failure.Rejection
			}
			if !a.ended() { // else nothing comes of it
				r.note(Entry{Agent: a.agent, Kind: Granted, UID: req.Pod.UID, Object: req.Pod})
			}
			return nil
		},
	})
	if err != nil {
		return nil, fmt.Errorf("sim: %w", err)
	}
	return m, nil
}

// resize gives the container of a pod of the API another request, as the resize
// subresource does. Nil: there is none, or it requests nothing.
func (s *store) resize(uid types.UID, container string, cpu int64) *v1.Pod {
	if _, static := s.get(uid); static {
		return nil
	}
	return s.change(uid, func(pod *v1.Pod) bool {
		i := slices.IndexFunc(pod.Spec.Containers, func(c v1.Container) bool { return c.Name == container })
		if i < 0 || cpu == 0 || milli(&pod.Spec.Containers[i]) == 0 {
			return false
		}
		pod.Spec.Containers[i].Resources.Requests = cpuList(cpu)
		pod.Generation++
		return true
	})
}

// milli returns what CPU a container requests.
func milli(c *v1.Container) int64 { return c.Resources.Requests.Cpu().MilliValue() }

// cpuOf returns what CPU the containers of a pod request, as text.
func cpuOf(pod *v1.Pod) string {
	var w []string
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; milli(c) > 0 {
			w = append(w, fmt.Sprintf("%s:%d", c.Name, milli(c)))
		}
	}
	return strings.Join(w, " ")
}

// total returns what CPU a pod requests of the node.
func total(pod *v1.Pod) int64 {
	for _, f := range admission.Fit(pod, nil, admission.Node{Allocatable: cpuList(0)}) {
		if f.InsufficientResource != nil && f.InsufficientResource.Resource == v1.ResourceCPU {
			return f.InsufficientResource.Requested
		}
	}
	return 0
}

// resize gives the running containers of a pod the CPU that it requests, and reports
// whether one had another amount.
func (c memoryClient) resize(ctx context.Context, pod *v1.Pod) (resized bool) {
	if c.agent.isDead() || cpuOf(pod) == "" {
		return false
	}
	observed, err := c.rt.PodStatus(ctx, pod.UID)
	if err != nil {
		return false
	}
	for i := range observed.Containers {
		is := &observed.Containers[i]
		spec := slices.IndexFunc(pod.Spec.Containers, func(c v1.Container) bool { return c.Name == is.Name })
		if is.State != runtime.ContainerRunning || spec < 0 {
			continue
		}
		cpu := milli(&pod.Spec.Containers[spec])
		c.memory.mu.Lock()
		had, known := c.memory.cpu[is.ID]
		c.memory.cpu[is.ID] = cpu
		c.memory.mu.Unlock()
		if had != cpu {
			c.agent.Resized(pod.UID, is.ID, cpu)
			resized = resized || known
		}
	}
	return resized
}

// addResources adds what CPU the running containers of a pod have to their status.
func (m *memory) addResources(observed *runtime.PodStatus) {
	if observed == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range observed.Containers {
		if cpu := m.cpu[observed.Containers[i].ID]; cpu > 0 {
			observed.Containers[i].Resources = &v1.ResourceRequirements{Requests: cpuList(cpu)}
		}
	}
}
