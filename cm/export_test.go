package cm

import v1 "k8s.io/api/core/v1"

type (
	ClassDemand = classDemand
	PodRequest  = podRequest
)

var (
	ReservedResources = reservedResources
	ErrCgroupV1       = errCgroupV1
)

func (p Policy) QOSLimits(d classDemand, allocatable v1.ResourceList) qosLimits {
	return p.qosLimits(d, allocatable)
}
