package status

import "github.com/kubeparts/kubeparts/internal/qos"

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
	QOSClass          = qos.Class
	Terminate         = terminatedStatus
	WithholdPhase     = withholdPhase
)
