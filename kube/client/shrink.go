package client

import (
	"errors"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// A size is the amount of a status that is written. API servers and their stores accept
// requests of one to three megabytes; a status with many containers, mounts and termination
// messages can be larger.
type size int

const (
	full  size = iota
	short      // messages of 1 KiB
	terse      // messages of 80 bytes; no mounts, users or resources
	bare       // no messages, and no last termination states
)

// tooLarge reports whether a request was rejected because of its size: by the API server (3
// MiB), its etcd client (2 MiB) or etcd (1.5 MiB). The latter two errors have code 500 and
// no reason, and are recognized by their texts.
func tooLarge(err error) bool {
	if _, ok := errors.AsType[*apierrors.StatusError](err); !ok {
		return false
	}
	return apierrors.IsRequestEntityTooLargeError(err) ||
		strings.Contains(err.Error(), "request is too large") ||
		strings.Contains(err.Error(), "trying to send message larger than max") ||
		apierrors.IsInvalid(err) && strings.Contains(err.Error(), "Too long")
}

// of returns s in this size. It does not modify s.
func (z size) of(s *v1.PodStatus) v1.PodStatus {
	if z == full {
		return *s
	}
	out := *s.DeepCopy()
	limit := map[size]int{short: 1024, terse: 80, bare: 0}[z]
	out.Message = truncate(out.Message, max(limit, 80))
	for i := range out.Conditions {
		out.Conditions[i].Message = truncate(out.Conditions[i].Message, limit)
	}
	for _, list := range [][]v1.ContainerStatus{out.InitContainerStatuses, out.ContainerStatuses, out.EphemeralContainerStatuses} {
		for i := range list {
			z.container(&list[i], limit)
		}
	}
	return out
}

func (z size) container(c *v1.ContainerStatus, limit int) {
	for _, state := range []*v1.ContainerState{&c.State, &c.LastTerminationState} {
		if state.Waiting != nil {
			state.Waiting.Message = truncate(state.Waiting.Message, limit)
		}
		if state.Terminated != nil {
			state.Terminated.Message = truncate(state.Terminated.Message, limit)
		}
	}
	if z >= terse {
		c.VolumeMounts, c.User, c.Resources, c.AllocatedResources, c.AllocatedResourcesStatus = nil, nil, nil, nil, nil
	}
	if z == bare {
		c.LastTerminationState = v1.ContainerState{}
	}
}
