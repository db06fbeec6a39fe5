package metrics

import "strings"

// reasons are the rejection reasons that are used as labels. Others are "Other", so that
// the number of series is bounded (rule adm-15).
var reasons = names(
	"InvalidNodeInfo", "PodOSSelectorNodeLabelDoesNotMatch", "PodOSNotSupported", "SupplementalGroupsPolicyNotSupported",
	"UnexpectedAdmissionError", "NodeAffinity", "NodeName", "NodePorts", "TaintToleration",
	"OutOfcpu", "OutOfmemory", "OutOfephemeral-storage", "OutOfpods",
	"AppArmor", "Evicted", "SysctlForbidden", "TopologyAffinityError", "NodeShutdown", "PodFeatureUnsupported", "NodeDeclaredFeaturesCheck",
	"NoContainers", "InitContainerRestartPolicyForbidden", "UnknownReason", "UnexpectedPredicateFailureType",
	"PodLevelResourcesNotSupported", "VolumeAttachmentLimitExceeded",
)

// rejection returns the label of a rejection reason.
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
