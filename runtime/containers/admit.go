package containers

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// tokenPath is where the API server mounts the default token of a service account.
const tokenPath = "/var/run/secrets/kubernetes.io/serviceaccount"

// admit returns why the backend cannot run the pod, or nil. It is a function of the pod and the
// configuration.
func (s *service) admit(pod *v1.Pod) *runtime.Rejection {
	why := needs{support: s.support, grouper: s.grouper != nil, execer: s.execer != nil}.of(&pod.Spec)
	if len(why) == 0 {
		return nil
	}
	return &runtime.Rejection{
		Reason:  "UnsupportedByBackend",
		Message: "The backend of this node does not support " + strings.Join(why, ", "),
	}
}

// needs compares pods to what a backend supports.
type needs struct {
	support         Support
	grouper, execer bool
}

// of returns what the pod needs and the backend does not support.
func (n needs) of(spec *v1.PodSpec) (why []string) {
	if !n.support.HostNamespaces && (spec.HostNetwork || spec.HostPID || spec.HostIPC) {
		why = append(why, "host namespaces")
	}
	if !n.grouper {
		if spec.ShareProcessNamespace != nil && *spec.ShareProcessNamespace {
			why = append(why, "a shared process namespace")
		}
		if !n.support.SeparateContainers && concurrent(spec) > 1 {
			why = append(why, "containers that share a network")
		}
	}
	for i := range spec.Volumes {
		if spec.Volumes[i].Image != nil {
			why = append(why, fmt.Sprintf("image volume %q", spec.Volumes[i].Name))
		}
	}
	for i := range spec.InitContainers {
		why = append(why, n.container(spec, &spec.InitContainers[i])...)
	}
	for i := range spec.Containers {
		why = append(why, n.container(spec, &spec.Containers[i])...)
	}
	return why
}

// concurrent returns the number of containers that run at the same time.
func concurrent(spec *v1.PodSpec) int {
	n := len(spec.Containers)
	for _, c := range spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways {
			n++
		}
	}
	return n
}

func (n needs) container(spec *v1.PodSpec, c *v1.Container) (why []string) {
	if !n.support.Mounts {
		for _, m := range c.VolumeMounts {
			if m.MountPath != tokenPath && !(n.support.Files && consistsOfFiles(spec, m.Name)) {
				why = append(why, fmt.Sprintf("volume %q in container %q", m.Name, c.Name))
			}
		}
	}
	if !n.support.Devices && len(c.VolumeDevices) > 0 {
		why = append(why, fmt.Sprintf("block devices in container %q", c.Name))
	}
	if !n.execer {
		for _, p := range []*v1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
			if p != nil && p.Exec != nil {
				why = append(why, fmt.Sprintf("the exec probe of container %q", c.Name))
			}
		}
		if l := c.Lifecycle; l != nil && (l.PostStart != nil && l.PostStart.Exec != nil || l.PreStop != nil && l.PreStop.Exec != nil) {
			why = append(why, fmt.Sprintf("the exec hook of container %q", c.Name))
		}
	}
	return why
}

// consistsOfFiles reports whether the content of a volume can be data.
func consistsOfFiles(spec *v1.PodSpec, volume string) bool {
	for _, v := range spec.Volumes {
		if v.Name == volume {
			return v.ConfigMap != nil || v.Secret != nil || v.DownwardAPI != nil || v.Projected != nil
		}
	}
	return false
}
