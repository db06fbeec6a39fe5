package main

import (
	"maps"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/admission"
)

// capacityOf returns what the machine has, for the node's status: what pods are
// held against, and the disk that dir is on.
func capacityOf(machine admission.Node, dir string) v1.ResourceList {
	list := maps.Clone(machine.Allocatable)
	if bytes, ok := diskBytes(dir); ok {
		list[v1.ResourceEphemeralStorage] = *resource.NewQuantity(bytes, resource.BinarySI)
	}
	return list
}
