package emptydir

import (
	"errors"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

// Size returns the size limit in bytes of a tmpfs of the pod: the least of the node's allocatable memory,
// the pod's memory limit and sizeLimit, as far as they are set. Zero means the kernel's limit, which is
// half of the memory.
func Size(pod *v1.Pod, sizeLimit *resource.Quantity, allocatable v1.ResourceList) int64 {
	size := allocatable.Memory().Value()
	for _, bound := range []int64{memoryLimit(pod), valueOf(sizeLimit)} {
		if bound > 0 && (size <= 0 || bound < size) {
			size = bound
		}
	}
	return max(size, 0)
}

// memoryLimit returns the memory limit of the pod: its own, or that of all containers if each has one.
// Of init containers, which run one after another, the largest counts; sidecars are added to all that
// follow. Zero means no limit.
func memoryLimit(pod *v1.Pod) int64 {
	if of := pod.Spec.Resources; of != nil {
		if q := of.Limits.Memory(); !q.IsZero() {
			return q.Value()
		}
	}
	var sum, sidecars, most int64
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		limit := c.Resources.Limits.Memory().Value()
		if limit == 0 {
			return 0
		}
		if podspec.IsSidecar(c) {
			sidecars += limit
			most = max(most, sidecars)
			continue
		}
		most = max(most, sidecars+limit)
	}
	for i := range pod.Spec.Containers {
		limit := pod.Spec.Containers[i].Resources.Limits.Memory().Value()
		if limit == 0 {
			return 0
		}
		sum += limit
	}
	return max(sum+sidecars, most) + pod.Spec.Overhead.Memory().Value()
}

// PageSize returns the page size of the medium HugePages or HugePages-<size>. It returns an error unless
// a container or the pod as a whole requests huge pages of this size. For HugePages all of them must
// request the same size.
func PageSize(pod *v1.Pod, medium v1.StorageMedium) (resource.Quantity, error) {
	found, err := pageSizes(nil, pod.Spec.Resources, "pod")
	for c := range podspec.Containers(pod) {
		if err == nil {
			found, err = pageSizes(found, &c.Resources, "container "+c.Name)
		}
	}
	if err != nil {
		return resource.Quantity{}, err
	}
	var page resource.Quantity
	if size, ok := strings.CutPrefix(string(medium), string(v1.StorageMediumHugePagesPrefix)); ok {
		want, err := resource.ParseQuantity(size)
		if err != nil {
			return page, fmt.Errorf("medium %s: %w", medium, err)
		}
		for _, q := range found {
			if q.Cmp(want) == 0 {
				return want, nil
			}
		}
	} else {
		for _, q := range found {
			if !page.IsZero() && page.Cmp(q) != 0 {
				return page, fmt.Errorf("medium: %s can't be used if container requests multiple huge page sizes", medium)
			}
			page = q
		}
	}
	if page.IsZero() {
		return page, fmt.Errorf("medium %s: hugePages storage requested, but there is no resource request for huge pages", medium)
	}
	return page, nil
}

var errMedium = errors.New("unknown storage medium")

func valueOf(q *resource.Quantity) int64 {
	if q == nil {
		return 0
	}
	return q.Value()
}

// pageSizes adds the sizes of the huge pages that are requested. of may be nil.
func pageSizes(found []resource.Quantity, of *v1.ResourceRequirements, who string) ([]resource.Quantity, error) {
	if of == nil {
		return found, nil
	}
	for name := range of.Requests {
		size, ok := strings.CutPrefix(string(name), v1.ResourceHugePagesPrefix)
		if !ok {
			continue
		}
		q, err := resource.ParseQuantity(size)
		if err != nil {
			return nil, fmt.Errorf("%s requests %s: %w", who, name, err)
		}
		found = append(found, q)
	}
	return found, nil
}
