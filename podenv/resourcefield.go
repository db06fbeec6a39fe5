package podenv

import (
	"fmt"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

// ResourceFieldValue returns the value of a resourceFieldRef: a request or limit of a
// container, own if the reference names none, divided and rounded up (pe-8).
func ResourceFieldValue(f Facts, own *v1.Container, ref *v1.ResourceFieldSelector) (string, error) {
	c, regular := own, true
	if ref.ContainerName != "" {
		if c, regular = find(f.Pod, ref.ContainerName); c == nil {
			return "", fmt.Errorf("resourceFieldRef: container %s not found", ref.ContainerName)
		}
	}
	kind, rest, _ := strings.Cut(ref.Resource, ".")
	name := v1.ResourceName(rest)
	list := c.Resources.Limits
	switch {
	case kind != "requests" && kind != "limits", !readable(name):
		return "", fmt.Errorf("resourceFieldRef: unsupported resource: %v", ref.Resource)
	case kind == "requests":
		list = c.Resources.Requests
	}
	q := list[name]
	if kind == "limits" && q.IsZero() && regular {
		q = defaultLimit(f, name)
	}
	divisor := ref.Divisor
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	if name == v1.ResourceCPU {
		return strconv.FormatInt(ceilDiv(q.MilliValue(), divisor.MilliValue()), 10), nil
	}
	return strconv.FormatInt(ceilDiv(q.Value(), divisor.Value()), 10), nil
}

// readable reports whether a container may read how much it has of a resource.
func readable(name v1.ResourceName) bool {
	switch name {
	case v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage:
		return true
	}
	return podspec.IsHugePages(name)
}

// defaultLimit is the limit of a container that sets none: what the pod as a
// whole may have, or else what the node has for pods. Huge pages have none: who
// doesn't ask for them gets none.
func defaultLimit(f Facts, name v1.ResourceName) resource.Quantity {
	if podspec.IsHugePages(name) {
		return resource.Quantity{}
	}
	if of := f.Pod.Spec.Resources; of != nil {
		if q, ok := of.Limits[name]; ok && !q.IsZero() {
			return q
		}
	}
	return f.Allocatable[name]
}

// ceilDiv returns a/b rounded up; a quantity too small to count as a divisor is
// taken for 1.
func ceilDiv(a, b int64) int64 {
	b = max(b, 1)
	n := a / b
	if a%b > 0 {
		n++
	}
	return n
}

// find returns the container of that name, and whether it is a regular one. Init
// containers that are looked up by name have no defaults, unlike those that ask
// for their own.
func find(pod *v1.Pod, name string) (c *v1.Container, regular bool) {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == name {
			return &pod.Spec.Containers[i], true
		}
	}
	for i := range pod.Spec.InitContainers {
		if pod.Spec.InitContainers[i].Name == name {
			return &pod.Spec.InitContainers[i], false
		}
	}
	return nil, false
}
