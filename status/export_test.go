package status

import (
	"github.com/kubeparts/kubeparts/internal/podspec"
)

type (
	ConditionFacts = conditionFacts
	PhaseFacts     = phaseFacts
	PublishedPhase = publishedPhase
)

var (
	CheckTransition   = checkTransition
	Conditions        = computeConditions
	ContainerStatuses = containerStatuses
	Equal             = equal
	HasInitialized    = hasInitialized
	MustWithhold      = mustWithhold
	Phase             = computePhase
	QOSClass          = podspec.QOSClass
	Terminate         = terminatedStatus
	WithholdPhase     = withholdPhase
)
