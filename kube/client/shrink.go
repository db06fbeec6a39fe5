package client

import (
	"errors"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// A size is how much of a status is said. A server, or the store behind it,
// takes a request of one or two megabytes; a status may be larger, with many
// containers, each with many mounts and a termination message.
type size int

const (
	full  size = iota
	short      // messages of 1 KiB
	terse      // messages of 80 bytes; no mounts, users or resources
	bare       // no messages, and no containers that are over and done with
)

// tooLarge reports whether err says that a request was too large: in the words
// of the API server (3 MiB), of its client of the store (2 MiB) or of that (1.5 MiB).
// The latter two have a code of 500, and no reason.
func tooLarge(err error) bool {
	if _, answered := errors.AsType[*apierrors.StatusError](err); !answered {
		return false
	}
	return apierrors.IsRequestEntityTooLargeError(err) ||
		strings.Contains(err.Error(), "request is too large") ||
		strings.Contains(err.Error(), "trying to send message larger than max") ||
		apierrors.IsInvalid(err) && strings.Contains(err.Error(), "Too long")
}

// of returns s in that size. It changes nothing of s.
func (z size) of(s *v1.PodStatus) v1.PodStatus {
	if z == full {
		return *s
	}
	out := *s.DeepCopy()
	limit := map[size]int{short: 1024, terse: 80, bare: 0}[z]
	out.Message = cut(out.Message, max(limit, 80))
	for i := range out.Conditions {
		out.Conditions[i].Message = cut(out.Conditions[i].Message, limit)
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
			state.Waiting.Message = cut(state.Waiting.Message, limit)
		}
		if state.Terminated != nil {
			state.Terminated.Message = cut(state.Terminated.Message, limit)
		}
	}
	if z >= terse {
		c.VolumeMounts, c.User, c.Resources, c.AllocatedResources, c.AllocatedResourcesStatus = nil, nil, nil, nil, nil
	}
	if z == bare {
		c.LastTerminationState = v1.ContainerState{}
	}
}
