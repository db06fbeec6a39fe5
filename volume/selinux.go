package volume

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// An SELinuxMounter is a Plugin some of whose volumes take their label from a
// mount option, instead of having each file labelled (vol-13).
type SELinuxMounter interface {
	SupportsSELinuxMount(spec *Spec) bool
}

// seLinuxLabel returns the label that the volume is to be mounted with; "": none.
// It is an error if the containers that use it want different ones.
func (c *Config) seLinuxLabel(pod *v1.Pod, v *podVolume) (string, error) {
	mounter, ok := v.plugin.(SELinuxMounter)
	if c.SELinuxLabel == nil || !ok || v.spec.Block || !v.spec.hasAccessMode(v1.ReadWriteOncePod) || !mounter.SupportsSELinuxMount(v.spec) {
		return "", nil
	}
	if sc := pod.Spec.SecurityContext; sc != nil && sc.SELinuxChangePolicy != nil && *sc.SELinuxChangePolicy == v1.SELinuxChangePolicyRecursive {
		return "", nil // the runtime labels each file
	}
	label, have := "", false
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if !slices.ContainsFunc(list[i].VolumeMounts, func(m v1.VolumeMount) bool { _, ok := v.names[m.Name]; return ok }) {
				continue
			}
			of, err := c.SELinuxLabel(seLinuxOptions(pod, &list[i]))
			if err != nil {
				return "", fmt.Errorf("SELinux label of container %q: %w", list[i].Name, err)
			}
			if have && of != label {
				return "", fmt.Errorf("conflicting SELinux labels of volume %s: %q and %q", v.spec.Name(), label, of)
			}
			label, have = of, true
		}
	}
	return label, nil
}

// seLinuxOptions are the container's own, over its pod's.
func seLinuxOptions(pod *v1.Pod, c *v1.Container) *v1.SELinuxOptions {
	if sc := c.SecurityContext; sc != nil && sc.SELinuxOptions != nil {
		return sc.SELinuxOptions
	}
	if sc := pod.Spec.SecurityContext; sc != nil {
		return sc.SELinuxOptions
	}
	return nil
}

// quoteLabel makes one mount option of a label, which has commas in its levels.
func quoteLabel(label string) string { return `"` + label + `"` }
