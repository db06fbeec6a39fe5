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

	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/allocation/admission"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

// nodeCPU is the allocatable CPU of a simulated node, in thousandths.
const nodeCPU = 4000

func cpuList(milli int64) v1.ResourceList {
	return v1.ResourceList{v1.ResourceCPU: *resource.NewMilliQuantity(milli, resource.DecimalSI)}
}

func (s Schedule) hasCPU() bool {
	return slices.ContainsFunc(s, func(step Step) bool {
		return slices.ContainsFunc(step.Shape.Containers, func(c Container) bool { return c.CPU > 0 })
	})
}

// newAllocation returns the allocation.Manager of an agent, with the checkpoints of the
// previous agent; nil if no pod requests resources.
func (r *run) newAllocation(a *Agent, table *podworker.Table) (*allocation.Manager, error) {
	if !r.cfg.Schedule.hasCPU() {
		return nil, nil
	}
	node := cpuList(nodeCPU)
	m, err := allocation.Open(allocation.Config{
		Dir: filepath.Join(r.dir, "allocation"), Node: allocation.NodeConstraints{Allocatable: node},
		Pods: table,
		Admit: func(_ context.Context, req allocation.Request) *runtime.Rejection {
			for _, failure := range admission.Fit(req.Pod, req.Others, admission.Node{Allocatable: node}) {
				return &failure.Rejection
			}
			r.note(Entry{Agent: a.agent, Kind: ResourcesAllocated, UID: req.Pod.UID, Object: req.Pod})
			return nil
		},
	})
	if err != nil {
		return nil, fmt.Errorf("sim: %w", err)
	}
	return m, nil
}

// resize sets the CPU request of a container of an API pod, as the resize subresource
// does. It returns nil if there is no such container or it has no CPU request.
func (s *store) resize(uid types.UID, container string, cpu int64) *v1.Pod {
	if _, static := s.get(uid); static {
		return nil
	}
	return s.update(uid, func(pod *v1.Pod) bool {
		i := slices.IndexFunc(pod.Spec.Containers, func(c v1.Container) bool { return c.Name == container })
		if i < 0 || cpu == 0 || milliCPU(&pod.Spec.Containers[i]) == 0 {
			return false
		}
		pod.Spec.Containers[i].Resources.Requests = cpuList(cpu)
		pod.Generation++
		return true
	})
}

// milliCPU returns the CPU request of a container, in thousandths.
func milliCPU(c *v1.Container) int64 { return c.Resources.Requests.Cpu().MilliValue() }

// cpuRequests returns the CPU requests of the containers of a pod as text.
func cpuRequests(pod *v1.Pod) string {
	var w []string
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; milliCPU(c) > 0 {
			w = append(w, fmt.Sprintf("%s:%d", c.Name, milliCPU(c)))
		}
	}
	return strings.Join(w, " ")
}

// podCPU returns the CPU request of a pod, in thousandths.
func podCPU(pod *v1.Pod) int64 {
	for _, f := range admission.Fit(pod, nil, admission.Node{Allocatable: cpuList(0)}) {
		if f.InsufficientResource != nil && f.InsufficientResource.Resource == v1.ResourceCPU {
			return f.InsufficientResource.Requested
		}
	}
	return 0
}

// resize sets the CPU of the running containers of a pod to their requests, and reports
// whether that of one changed.
func (c memoryClient) resize(ctx context.Context, pod *v1.Pod) (resized bool) {
	if c.agent.isDead() || cpuRequests(pod) == "" {
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
		cpu := milliCPU(&pod.Spec.Containers[spec])
		c.memory.mu.Lock()
		had, exists := c.memory.cpu[is.ID]
		c.memory.cpu[is.ID] = cpu
		c.memory.mu.Unlock()
		if had != cpu {
			c.agent.RecordResize(pod.UID, is.ID, cpu)
			resized = resized || exists
		}
	}
	return resized
}

// addResources adds the CPU of the running containers of a pod to their status.
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
