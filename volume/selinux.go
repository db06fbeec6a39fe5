package volume

import (
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

// An SELinuxMounter is a Plugin that mounts some of its volumes with an SELinux label,
// which the kernel then reports for each file. It finds the label in
// [Request.SELinuxLabel] and, as a mount option, in Request.MountOptions. The runtime labels the
// volumes of other plugins.
type SELinuxMounter interface {
	// SupportsSELinuxMount reports whether the volume can be mounted with any label,
	// independently of other volumes. It is called for persistent volumes, at each sync
	// of the pod. An error keeps the volume from being set up.
	SupportsSELinuxMount(ctx context.Context, spec *Spec) (bool, error)
}

// A seLinuxUse is the input from which the SELinux label of a mount is computed.
type seLinuxUse struct {
	enabled     bool // SELinux is on
	supported   bool // the plugin mounts this volume with a label
	block       bool
	accessModes []v1.PersistentVolumeAccessMode // nil: not a persistent volume
	onlyOnePod  bool                            // volumes of other modes than ReadWriteOncePod have no label
	policy      *v1.PodSELinuxChangePolicy
	containers  []*v1.SELinuxOptions // effective ones of each container that uses it
}

// label returns the SELinux label with which the volume is mounted; label computes it from the
// options of a container. Empty means that the mount has no label and the runtime labels the files
// if needed. It returns an error if the containers have different labels.
func (u seLinuxUse) label(label func(*v1.SELinuxOptions) (string, error)) (string, error) {
	switch {
	case !u.enabled || !u.supported || u.block:
		return "", nil
	case u.accessModes == nil:
		return "", nil
	case u.onlyOnePod && (len(u.accessModes) != 1 || u.accessModes[0] != v1.ReadWriteOncePod):
		return "", nil // pods with different labels may share other volumes
	case u.policy != nil && *u.policy == v1.SELinuxChangePolicyRecursive:
		return "", nil
	}
	common := ""
	for _, options := range u.containers {
		switch {
		case options == nil: // has no influence on the label
			continue
		case options.Level == "": // the runtime chooses the level
			return "", nil
		}
		of, err := label(options)
		switch {
		case err != nil:
			return "", fmt.Errorf("SELinux label of options %+v: %w", *options, err)
		case strings.IndexFunc(of, notInLabel) >= 0: // it would end the mount option
			return "", fmt.Errorf("SELinux label %q has characters that no label has", of)
		case common != "" && of != common:
			return "", fmt.Errorf("containers have different SELinux labels, %q and %q", common, of)
		}
		common = of
	}
	return common, nil
}

// notInLabel reports whether no SELinux label contains r.
func notInLabel(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_-.:,", r)
}

// seLinuxUse returns the use of a volume that the pod has under these names.
func (c *Config) seLinuxUse(pod *v1.Pod, w desiredVolume, names map[string]bool) seLinuxUse {
	u := seLinuxUse{enabled: c.SELinuxLabel != nil, supported: w.seLinuxMount, block: w.spec.Block, onlyOnePod: c.PersistentVolumes.SELinuxOnePodOnly}
	if w.spec.PV != nil {
		u.accessModes = w.spec.PV.Spec.AccessModes
	}
	if sc := pod.Spec.SecurityContext; sc != nil {
		u.policy = sc.SELinuxChangePolicy
	}
	for c := range podspec.Containers(pod) {
		if slices.ContainsFunc(c.VolumeMounts, func(m v1.VolumeMount) bool { _, ok := names[m.Name]; return ok }) {
			u.containers = append(u.containers, seLinuxOptions(pod, c))
		}
	}
	return u
}

// seLinuxOptions returns the container's own options, else those of its pod.
func seLinuxOptions(pod *v1.Pod, c *v1.Container) *v1.SELinuxOptions {
	if sc := c.SecurityContext; sc != nil && sc.SELinuxOptions != nil {
		return sc.SELinuxOptions
	}
	if sc := pod.Spec.SecurityContext; sc != nil {
		return sc.SELinuxOptions
	}
	return nil
}

// seLinuxMountOption returns the mount option for a label. The quotes keep the commas of
// its level from separating options.
func seLinuxMountOption(label string) string { return `context="` + label + `"` }
