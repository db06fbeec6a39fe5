package metrics

import "strings"

// reasons are those of refused pods that are counted by their name. Others are
// "Other", so that nobody can make a new series by what he asks for (adm-15).
var reasons = names(
	"InvalidNodeInfo", "PodOSSelectorNodeLabelDoesNotMatch", "PodOSNotSupported", "SupplementalGroupsPolicyNotSupported",
	"UnexpectedAdmissionError", "NodeAffinity", "NodeName", "NodePorts", "TaintToleration",
	"OutOfcpu", "OutOfmemory", "OutOfephemeral-storage", "OutOfpods",
	"AppArmor", "Evicted", "SysctlForbidden", "TopologyAffinityError", "NodeShutdown", "PodFeatureUnsupported", "NodeDeclaredFeaturesCheck",
	"NoContainers", "InitContainerRestartPolicyForbidden", "UnknownReason", "UnexpectedPredicateFailureType",
	"PodLevelResourcesNotSupported", "VolumeAttachmentLimitExceeded",
)

// rejection is the reason that a refused pod is counted by.
func rejection(reason string) string {
	switch {
	case reasons[reason]:
		return reason
	case strings.HasPrefix(reason, "OutOf"):
		return "OutOfExtendedResources"
	default:
		return "Other"
	}
}

func names(of ...string) map[string]bool {
	set := map[string]bool{}
	for _, n := range of {
		set[n] = true
	}
	return set
}
