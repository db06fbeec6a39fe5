package status

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// Merge returns what a pod's record is to say when this node has ours to say and
// the record says theirs now (st-74 … st-78). It is what a sink writes whose
// records others write too: [Compute] has done the same with what the source had
// of theirs, which may have grown old meanwhile. It is a pure function, shares
// nothing with its arguments, and merging its result again changes nothing.
//
//   - Conditions are the node's if it owns them (st-36), else theirs.
//   - DisruptionTarget is the node's if the phase turns terminal with it, else
//     theirs (st-75).
//   - Claims of resources and the nominated node are theirs (st-76).
//   - A terminal phase of theirs stays, with its reason and message (st-33,
//     inv-7), and neither a generation nor a restart count goes back.
//   - A pod that has ended is not ready (st-78, inv-8).
//
// That a terminal phase is not said too soon (st-77) is for [Hold] to see to; a
// [Manager] does.
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
	if c := Condition(s.Conditions, v1.DisruptionTarget); c != nil && disruptedHere(c) && ends {
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
