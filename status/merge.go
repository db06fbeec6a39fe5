package status

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// Merge returns the status to write to a pod's record that contains theirs, when this node
// reports ours. Sinks whose records have several writers use it: [Compute] has merged ours with
// the status of the source, which may be outdated. It is a pure function, shares no memory with
// its arguments, and is idempotent.
//
//   - Conditions are taken from ours if the node owns them (see [Owned]), else from theirs.
//   - DisruptionTarget is taken from ours if the phase becomes terminal with it, else from theirs
//     (rule st-75).
//   - Resource claims and the nominated node are taken from theirs.
//   - A terminal phase in theirs is kept, with its reason and message; the observed generation and
//     restart counts do not decrease.
//   - A terminal pod is not ready (rule st-78).
func Merge(theirs, ours v1.PodStatus) v1.PodStatus {
	s := *ours.DeepCopy()
	theirs = *theirs.DeepCopy()
	s.NominatedNodeName = theirs.NominatedNodeName
	s.ResourceClaimStatuses = theirs.ResourceClaimStatuses
	s.ExtendedResourceClaimStatus = theirs.ExtendedResourceClaimStatus
	s.NodeAllocatableResourceClaimStatuses = theirs.NodeAllocatableResourceClaimStatuses
	s.ObservedGeneration = max(s.ObservedGeneration, theirs.ObservedGeneration)
	if Terminal(theirs.Phase) && s.Phase != theirs.Phase {
		s.Phase, s.Reason, s.Message = theirs.Phase, theirs.Reason, theirs.Message
	}
	for _, part := range []struct{ old, new []v1.ContainerStatus }{
		{theirs.InitContainerStatuses, s.InitContainerStatuses}, {theirs.ContainerStatuses, s.ContainerStatuses},
	} {
		for i := range part.new {
			if old := find(part.old, part.new[i].Name); old != nil {
				part.new[i].RestartCount = max(part.new[i].RestartCount, old.RestartCount)
			}
		}
	}
	s.Conditions = mergeConditions(theirs, s)
	return s
}

// mergeConditions returns the conditions of s and those of others in theirs, in
// the order in which Conditions has them (st-38).
func mergeConditions(theirs, s v1.PodStatus) []v1.PodCondition {
	ends := Terminal(s.Phase) && !Terminal(theirs.Phase)
	disrupted := Condition(theirs.Conditions, v1.DisruptionTarget)
	if c := Condition(s.Conditions, v1.DisruptionTarget); c != nil && ownDisruption(c) && ends {
		disrupted = c
	}
	var all, own []v1.PodCondition
	for _, c := range theirs.Conditions {
		if !Owned(c.Type) && c.Type != v1.DisruptionTarget {
			all = append(all, c)
		}
	}
	for _, c := range s.Conditions {
		switch {
		case c.Type == v1.PodResizePending || c.Type == v1.PodResizeInProgress:
			all = append(all, c)
		case Owned(c.Type):
			own = append(own, c)
		}
	}
	if disrupted != nil {
		all = append(all, *disrupted)
	}
	if Terminal(s.Phase) {
		own = unready(own, s.Phase)
	}
	return slices.Concat(all, own)
}

// unready takes readiness away from a pod that has ended (st-78).
func unready(conditions []v1.PodCondition, phase v1.PodPhase) []v1.PodCondition {
	for i := range conditions {
		c := &conditions[i]
		if (c.Type == v1.PodReady || c.Type == v1.ContainersReady) && c.Status == v1.ConditionTrue {
			c.Status, c.Message, c.Reason = v1.ConditionFalse, "", "PodCompleted"
			if phase == v1.PodFailed {
				c.Reason = "PodFailed"
			}
		}
	}
	return conditions
}
