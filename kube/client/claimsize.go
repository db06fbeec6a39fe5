package client

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// ClaimExpanded reports in the status of a claim that its file system has the given size
// and that no resize is pending (rule vol-16). claim is the claim as last read; it is not
// modified. It is a method of volume.Claims.
func (o *Objects) ClaimExpanded(ctx context.Context, claim *v1.PersistentVolumeClaim, size resource.Quantity) error {
	next := claim.DeepCopy()
	if next.Status.Capacity == nil {
		next.Status.Capacity = v1.ResourceList{}
	}
	next.Status.Capacity[v1.ResourceStorage] = size
	delete(next.Status.AllocatedResourceStatuses, v1.ResourceStorage)
	next.Status.Conditions = slices.DeleteFunc(next.Status.Conditions, func(c v1.PersistentVolumeClaimCondition) bool {
		switch c.Type {
		case v1.PersistentVolumeClaimResizing, v1.PersistentVolumeClaimFileSystemResizePending,
			v1.PersistentVolumeClaimControllerResizeError, v1.PersistentVolumeClaimNodeResizeError:
			return true
		}
		return false
	})
	// Precondition: the claim was not recreated.
	before, err := json.Marshal(v1.PersistentVolumeClaim{Status: claim.Status})
	if err != nil {
		return fmt.Errorf("client: create patch of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	after, err := json.Marshal(v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{UID: claim.UID}, Status: next.Status})
	if err != nil {
		return fmt.Errorf("client: create patch of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	data, err := strategicpatch.CreateTwoWayMergePatch(before, after, v1.PersistentVolumeClaim{})
	if err != nil {
		return fmt.Errorf("client: create patch of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	_, err = o.cfg.Client.CoreV1().PersistentVolumeClaims(claim.Namespace).
		Patch(ctx, claim.Name, types.StrategicMergePatchType, data, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("client: patch the status of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return nil
}
