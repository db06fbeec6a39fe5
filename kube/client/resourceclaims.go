package client

import (
	"context"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
)

// ResourceClaims reads ResourceClaims and deletes the ResourceSlices of a node. It implements
// the Claims and Slices of cm/dra. Safe for concurrent use.
type ResourceClaims struct {
	Client   kubernetes.Interface
	NodeName string
}

// GetClaim reads a claim from the API server, which permits it if a pod of the node refers to
// the claim. The error is NotFound, as of the API server, if it does not exist.
func (r ResourceClaims) GetClaim(ctx context.Context, namespace, name string) (*resourceapi.ResourceClaim, error) {
	return r.Client.ResourceV1().ResourceClaims(namespace).Get(ctx, name, metav1.GetOptions{})
}

// DeleteSlices deletes the ResourceSlices of the node that a driver has published; those of all
// drivers if driver is empty. Slices that belong to no node remain (rule dra-4).
func (r ResourceClaims) DeleteSlices(ctx context.Context, driver string) error {
	selector := fields.Set{resourceapi.ResourceSliceSelectorNodeName: r.NodeName}
	if driver != "" {
		selector[resourceapi.ResourceSliceSelectorDriver] = driver
	}
	err := r.Client.ResourceV1().ResourceSlices().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: selector.String()})
	if err != nil && !apierrors.IsNotFound(err) { // an API server before 1.34 has no such resource
		return fmt.Errorf("client: delete ResourceSlices of node %s: %w", r.NodeName, err)
	}
	return nil
}
