package podenv

import (
	"fmt"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

// ResourceFieldValue returns the value of a resourceFieldRef: a request or limit of a container,
// divided by the divisor and rounded up (rule pe-8). The container is own if the reference does not
// name one. It reads only Pod and Allocatable of in.
func ResourceFieldValue(in Inputs, own *v1.Container, ref *v1.ResourceFieldSelector) (string, error) {
	c, regular := own, true
	if ref.ContainerName != "" {
		if c, regular = findContainer(in.Pod, ref.ContainerName); c == nil {
			return "", fmt.Errorf("resourceFieldRef: container %s not found", ref.ContainerName)
		}
	}
	kind, rest, _ := strings.Cut(ref.Resource, ".")
	name := v1.ResourceName(rest)
	list := c.Resources.Limits
	switch {
	case kind != "requests" && kind != "limits", !isFieldResource(name):
		return "", fmt.Errorf("resourceFieldRef: unsupported resource: %v", ref.Resource)
	case kind == "requests":
		list = c.Resources.Requests
	}
	q := list[name]
	if kind == "limits" && q.IsZero() && regular {
		q = defaultLimit(in, name)
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

// isFieldResource reports whether a resourceFieldRef supports the resource.
func isFieldResource(name v1.ResourceName) bool {
	switch name {
	case v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage:
		return true
	}
	return podspec.IsHugePages(name)
}

// defaultLimit returns the limit of a container that sets none: the pod-level limit, else the
// allocatable amount of the node. Huge pages have no default, because a container without a limit
// cannot use any.
func defaultLimit(in Inputs, name v1.ResourceName) resource.Quantity {
	if podspec.IsHugePages(name) {
		return resource.Quantity{}
	}
	if of := in.Pod.Spec.Resources; of != nil {
		if q, ok := of.Limits[name]; ok && !q.IsZero() {
			return q
		}
	}
	return in.Allocatable[name]
}

// ceilDiv returns a/b rounded up. A divisor below 1, which a small quantity is rounded to, counts
// as 1.
func ceilDiv(a, b int64) int64 {
	b = max(b, 1)
	n := a / b
	if a%b > 0 {
		n++
	}
	return n
}

// findContainer returns a container by name, and whether it is a regular one. An init container has
// default limits only in its own environment, not if it is referenced by name.
func findContainer(pod *v1.Pod, name string) (c *v1.Container, regular bool) {
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
