package hollow

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/runtime/fake"
)

// Annotations of kwok with the usage of each container of a pod, which its ClusterResourceUsage
// usage-from-annotation reads.
const (
	annotationCPU    = "kwok.x-k8s.io/usage-cpu"
	annotationMemory = "kwok.x-k8s.io/usage-memory"
)

// withUsage returns a function that completes the behavior of behave, which may be nil, with the usage
// of the annotations. A behavior with usage of its own is not changed, and text that is no positive quantity is
// ignored; a quantity beyond the range of a behavior is an error of that.
func withUsage(behave func(*v1.Pod, *v1.Container) (fake.Behavior, bool)) func(*v1.Pod, *v1.Container) (fake.Behavior, bool) {
	return func(pod *v1.Pod, c *v1.Container) (b fake.Behavior, ok bool) {
		if behave != nil {
			b, ok = behave(pod, c)
		}
		cpu := complete(&b.CPU, pod.Annotations[annotationCPU])
		memory := complete(&b.Memory, pod.Annotations[annotationMemory])
		return b, ok || cpu || memory
	}
}

// complete sets constant usage in place of none. It returns false if the text is no positive quantity.
func complete(c *fake.Curve, text string) bool {
	q, err := resource.ParseQuantity(text)
	if err != nil || q.Sign() <= 0 || len(c.Points) > 0 {
		return false
	}
	c.Points = []fake.Point{{Value: q.AsApproximateFloat64()}}
	return true
}
