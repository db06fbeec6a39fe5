// Package claim finds the persistent volume behind a pod's entry.
//
// # What it decides
//
// [Resolve] follows a persistentVolumeClaim, or a generic ephemeral volume, to its
// PersistentVolume, and refuses what isn't bound, isn't the pod's, or is of the wrong
// mode (vol-6 … vol-8).
//
// # Usage
//
//	spec, err := claim.Resolve(ctx, objects, pod, &pod.Spec.Volumes[i])
//
// # Concurrency
//
// Resolve may be called from many goroutines.
//
// # Guarantees and limits
//
//   - The claim and the volume are asked for each time: what was read before they were
//     bound is of no use.
//   - In-tree sources that Kubernetes has migrated to CSI are not translated (vol-9).
//
// # Differences from the kubelet
//
// None known in what is said; a claim with no bound volume is never waited for here, but
// by who calls.
//
// # Testing
//
// Each rule is a line in a table, by number, with the kubelet's text.
package claim

import (
	"context"
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/volume"
)

// protection keeps a claim that is being deleted for as long as pods use it.
const protection = "kubernetes.io/pvc-protection"

// Name returns the name of the claim that a volume of the pod leads to, and whether it
// leads to one: a generic ephemeral volume has its own, "<pod>-<volume>" (vol-7).
func Name(pod *v1.Pod, v *v1.Volume) (string, bool) {
	switch {
	case v.PersistentVolumeClaim != nil:
		return v.PersistentVolumeClaim.ClaimName, true
	case v.Ephemeral != nil:
		return pod.Name + "-" + v.Name, true
	}
	return "", false
}

// Resolve returns the spec of one of the pod's volumes, with the claim and the
// persistent volume that it leads to, if it does. Errors are in the kubelet's words
// (vol-6). Without claims such volumes are errors.
func Resolve(ctx context.Context, claims volume.Claims, pod *v1.Pod, v *v1.Volume) (*volume.Spec, error) {
	name, ok := Name(pod, v)
	if !ok {
		return &volume.Spec{Volume: v}, nil
	}
	failed := func(err error) error {
		return fmt.Errorf("error processing PVC %s/%s: %w", pod.Namespace, name, err)
	}
	if claims == nil {
		return nil, failed(errors.New("failed to fetch PVC from API server: no kubeClient defined"))
	}
	pvc, err := claims.PersistentVolumeClaim(ctx, pod.Namespace, name)
	if err != nil {
		return nil, failed(fmt.Errorf("failed to fetch PVC from API server: %w", err))
	}
	if err := bound(pvc); err != nil {
		return nil, failed(err)
	}
	if v.Ephemeral != nil && (pvc.Namespace != pod.Namespace || !metav1.IsControlledBy(pvc, pod)) {
		return nil, fmt.Errorf("PVC %s/%s was not created for pod %s/%s (pod is not owner)", pvc.Namespace, pvc.Name, pod.Namespace, pod.Name)
	}
	pv, err := claims.PersistentVolume(ctx, pvc.Spec.VolumeName)
	if err != nil {
		return nil, failed(fmt.Errorf("failed to fetch PV %s from API server: %w", pvc.Spec.VolumeName, err))
	}
	if err := belongs(pv, pvc); err != nil {
		return nil, failed(err)
	}
	mode := v1.PersistentVolumeFilesystem
	if pv.Spec.VolumeMode != nil {
		mode = *pv.Spec.VolumeMode
	}
	if err := usable(pod, v.Name, mode); err != nil {
		return nil, err
	}
	return &volume.Spec{
		Volume: v, Claim: pvc, PV: pv, Block: mode == v1.PersistentVolumeBlock,
		ReadOnly: v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ReadOnly,
	}, nil
}

// bound tells why a claim can't be used, or returns nil.
func bound(pvc *v1.PersistentVolumeClaim) error {
	switch {
	case pvc.DeletionTimestamp != nil && !slices.Contains(pvc.Finalizers, protection):
		return errors.New("PVC is being deleted")
	case pvc.Status.Phase != v1.ClaimBound:
		return errors.New("PVC is not bound")
	case pvc.Spec.VolumeName == "":
		return errors.New("PVC has empty pvc.Spec.VolumeName")
	}
	return nil
}

// belongs tells why a volume isn't the claim's, or returns nil.
func belongs(pv *v1.PersistentVolume, pvc *v1.PersistentVolumeClaim) error {
	ref := pv.Spec.ClaimRef
	switch {
	case ref == nil:
		return fmt.Errorf("found PV object %s but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim", pv.Name)
	case ref.UID != pvc.UID:
		return fmt.Errorf("found PV object %s but its pv.Spec.ClaimRef.UID %s does not point to claim.UID %s", pv.Name, ref.UID, pvc.UID)
	}
	return nil
}

// usable tells whether the pod's containers use the volume as what it is (vol-8).
func usable(pod *v1.Pod, name string, mode v1.PersistentVolumeMode) error {
	check := func(mounts []v1.VolumeMount, devices []v1.VolumeDevice) error {
		if mode != v1.PersistentVolumeFilesystem && slices.ContainsFunc(mounts, func(m v1.VolumeMount) bool { return m.Name == name }) {
			return fmt.Errorf("volume %s has volumeMode %s, but is specified in volumeMounts", name, mode)
		}
		if mode != v1.PersistentVolumeBlock && slices.ContainsFunc(devices, func(d v1.VolumeDevice) bool { return d.Name == name }) {
			return fmt.Errorf("volume %s has volumeMode %s, but is specified in volumeDevices", name, mode)
		}
		return nil
	}
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if err := check(list[i].VolumeMounts, list[i].VolumeDevices); err != nil {
				return err
			}
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		c := &pod.Spec.EphemeralContainers[i]
		if err := check(c.VolumeMounts, c.VolumeDevices); err != nil {
			return err
		}
	}
	return nil
}
