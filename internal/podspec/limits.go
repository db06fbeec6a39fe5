package podspec

import v1 "k8s.io/api/core/v1"

// Limits returns the limits of a container. CPU, memory and huge pages without a limit have the
// pod-level one (rule cm-33).
func Limits(pod *v1.Pod, c *v1.Container) v1.ResourceList {
	of := pod.Spec.Resources
	if of == nil || len(of.Limits) == 0 {
		return c.Resources.Limits
	}
	out := c.Resources.Limits.DeepCopy()
	for name, limit := range of.Limits {
		if Inherits(pod, c, name) {
			if out == nil {
				out = v1.ResourceList{}
			}
			out[name] = limit
		}
	}
	return out
}

// Inherits reports whether the limit of a container is the pod-level one, because it has none
// of its own (rule cm-33).
func Inherits(pod *v1.Pod, c *v1.Container, name v1.ResourceName) bool {
	if of := pod.Spec.Resources; of == nil {
		return false
	} else if _, ok := of.Limits[name]; !ok {
		return false
	}
	own, ok := c.Resources.Limits[name]
	return (!ok || own.IsZero()) && (name == v1.ResourceCPU || name == v1.ResourceMemory || IsHugePages(name))
}

// DeletePartial deletes the CPU and memory from total, the limits of the pod as a whole, if they are sums of only some
// of its containers: they would limit the others.
func DeletePartial(pod *v1.Pod, total v1.ResourceList) {
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		if !isLimited(pod, name) {
			delete(total, name)
		}
	}
}

// isLimited reports whether the pod as a whole has a limit: its own one, or the sum of its containers'
// if all of them have one. A limit of zero is none (rules cm-13, cm-14).
func isLimited(pod *v1.Pod, name v1.ResourceName) bool {
	if of := pod.Spec.Resources; of != nil {
		if q, ok := of.Limits[name]; ok && q.Sign() > 0 {
			return true
		}
	}
	for c := range Containers(pod) {
		if q, ok := c.Resources.Limits[name]; !ok || q.Sign() <= 0 {
			return false
		}
	}
	return true
}
