package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

// Claims returns claims and persistent volumes. The methods may be called concurrently.
type Claims interface {
	// PersistentVolumeClaim and PersistentVolume are called at each sync of a pod that
	// refers to a claim. They return an error if the object does not exist.
	PersistentVolumeClaim(ctx context.Context, namespace, name string) (*v1.PersistentVolumeClaim, error)
	PersistentVolume(ctx context.Context, name string) (*v1.PersistentVolume, error)

	// ClaimExpanded is called after the file system of a claim has been expanded to size, to
	// update the status of the claim. It may block. An error makes the expansion fail, and
	// it is retried.
	ClaimExpanded(ctx context.Context, claim *v1.PersistentVolumeClaim, size resource.Quantity) error
}

// A use is the way in which the containers of a pod use one of its volumes.
type use struct {
	volume *v1.Volume
	files  bool // it is in volumeMounts
	block  bool // it is in volumeDevices
}

// uses returns the volumes that a container of the pod uses, in the order of the spec. Other volumes
// are not mounted (rule vol-5).
func uses(pod *v1.Pod) []use {
	files, block := map[string]bool{}, map[string]bool{}
	add := func(mounts []v1.VolumeMount, devices []v1.VolumeDevice) {
		for _, m := range mounts {
			files[m.Name] = true
		}
		for _, d := range devices {
			block[d.Name] = true
		}
	}
	for c := range podspec.AllContainers(pod) {
		add(c.VolumeMounts, c.VolumeDevices)
	}
	var list []use
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if files[v.Name] || block[v.Name] {
			list = append(list, use{volume: v, files: files[v.Name], block: block[v.Name]})
		}
	}
	return list
}

// An errNotFetched means that the object could not be read, so its content is unknown.
type errNotFetched struct{ error }

func (e errNotFetched) Unwrap() error { return e.error }

// resolve returns the spec of a volume of the pod. For a volume with a claim it includes the claim and
// the persistent volume that it is bound to.
func resolve(ctx context.Context, claims Claims, pod *v1.Pod, u use) (*Spec, error) {
	var name string
	var readOnly bool
	switch v := u.volume; {
	case v.PersistentVolumeClaim != nil:
		name, readOnly = v.PersistentVolumeClaim.ClaimName, v.PersistentVolumeClaim.ReadOnly
	case v.Ephemeral != nil:
		name = pod.Name + "-" + v.Name
	case u.block:
		return nil, fmt.Errorf("volume %s has volumeMode %s, but is specified in volumeDevices", v.Name, v1.PersistentVolumeFilesystem)
	default:
		return &Spec{Volume: v}, nil
	}
	fail := func(err error) (*Spec, error) {
		return nil, fmt.Errorf("error processing PVC %s/%s: %w", pod.Namespace, name, err)
	}
	if claims == nil {
		return fail(errors.New("this node has no access to claims"))
	}
	claim, err := claims.PersistentVolumeClaim(ctx, pod.Namespace, name)
	if err != nil {
		return fail(errNotFetched{fmt.Errorf("failed to fetch PVC from API server: %w", err)})
	}
	if u.volume.Ephemeral != nil && !metav1.IsControlledBy(claim, pod) {
		return fail(fmt.Errorf("PVC %s/%s was not created for pod %s/%s (pod is not owner)", claim.Namespace, claim.Name, pod.Namespace, pod.Name))
	}
	switch {
	case claim.DeletionTimestamp != nil && !slices.Contains(claim.Finalizers, "kubernetes.io/pvc-protection"):
		return fail(errors.New("PVC is being deleted"))
	case claim.Status.Phase != v1.ClaimBound:
		return fail(errors.New("PVC is not bound"))
	case claim.Spec.VolumeName == "":
		return fail(errors.New("PVC has empty pvc.Spec.VolumeName"))
	}
	pv, err := claims.PersistentVolume(ctx, claim.Spec.VolumeName)
	if err != nil {
		return fail(errNotFetched{fmt.Errorf("failed to fetch PV %s from API server: %w", claim.Spec.VolumeName, err)})
	}
	if err := checkBound(pv, claim); err != nil {
		return fail(err)
	}
	spec := &Spec{Volume: u.volume, Claim: claim, PV: pv, ReadOnly: readOnly}
	if err := spec.setMode(u); err != nil {
		return nil, err
	}
	return spec, nil
}

// checkBound returns an error if pv is not bound to the claim.
func checkBound(pv *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) error {
	switch ref := pv.Spec.ClaimRef; {
	case ref == nil:
		return fmt.Errorf("found PV object %s but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim", pv.Name)
	case ref.UID != claim.UID:
		return fmt.Errorf("found PV object %s but its pv.Spec.ClaimRef.UID %s does not point to claim.UID %s", pv.Name, ref.UID, claim.UID)
	}
	return nil
}

// setMode sets s.Block. It returns an error if the containers use the volume in another mode.
func (s *Spec) setMode(u use) error {
	mode := v1.PersistentVolumeFilesystem
	if s.PV.Spec.VolumeMode != nil {
		mode = *s.PV.Spec.VolumeMode
	}
	switch {
	case u.files && mode != v1.PersistentVolumeFilesystem:
		return fmt.Errorf("volume %s has volumeMode %s, but is specified in volumeMounts", u.volume.Name, mode)
	case u.block && mode != v1.PersistentVolumeBlock:
		return fmt.Errorf("volume %s has volumeMode %s, but is specified in volumeDevices", u.volume.Name, mode)
	}
	s.Block = mode == v1.PersistentVolumeBlock
	return nil
}
