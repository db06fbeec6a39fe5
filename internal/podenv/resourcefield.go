package podenv

import (
	"fmt"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// resourceField returns the value of a resourceFieldRef: a request or limit of a
// container, divided and rounded up (pe-8). A limit of CPU, memory or ephemeral
// storage that is not set is what the node has; anything else is 0.
func resourceField(f Facts, own *v1.Container, ref *v1.ResourceFieldSelector) (string, error) {
	c := own
	if ref.ContainerName != "" {
		if c = find(f.Pod, ref.ContainerName); c == nil {
			return "", fmt.Errorf("resourceFieldRef: container %s not found", ref.ContainerName)
		}
	}
	kind, name, ok := strings.Cut(ref.Resource, ".")
	list := c.Resources.Limits
	if kind == "requests" {
		list = c.Resources.Requests
	} else if kind != "limits" {
		ok = false
	}
	if !ok {
		return "", fmt.Errorf("resourceFieldRef: unsupported resource: %v", ref.Resource)
	}
	divisor := ref.Divisor
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	q := list[v1.ResourceName(name)]
	if kind == "limits" && q.IsZero() {
		switch v1.ResourceName(name) {
		case v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage:
			q = f.Allocatable[v1.ResourceName(name)]
		}
	}
	if name == string(v1.ResourceCPU) {
		return strconv.FormatInt(ceilDiv(q.MilliValue(), divisor.MilliValue()), 10), nil
	}
	return strconv.FormatInt(ceilDiv(q.Value(), divisor.Value()), 10), nil
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

func find(pod *v1.Pod, name string) *v1.Container {
	for _, list := range [][]v1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}
