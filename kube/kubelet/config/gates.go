package config

import (
	"fmt"
	"maps"
	"slices"
)

// gates are the feature gates of the kubelet with a feature that exists here (true), or
// does not (false), whatever their value.
var gates = map[string]bool{
	"CPUManagerPolicyAlphaOptions":           true,
	"CPUManagerPolicyBetaOptions":            true,
	"CPUManagerPolicyOptions":                true,
	"CRIListStreaming":                       false,
	"ContainerCheckpoint":                    true,
	"ContainerRestartRules":                  true,
	"ContainerStopSignals":                   true,
	"CustomCPUCFSQuotaPeriod":                true,
	"DisableCPUQuotaWithExclusiveCPUs":       true,
	"DisableNodeKubeProxyVersion":            true,
	"DynamicResourceAllocation":              false,
	"EnvFiles":                               true,
	"EventedPLEG":                            true,
	"GracefulNodeShutdown":                   true,
	"GracefulNodeShutdownBasedOnPodPriority": true,
	"ImageMaximumGCAge":                      true,
	"ImageVolume":                            true,
	"InPlacePodVerticalScaling":              true,
	"KubeletCgroupDriverFromCRI":             true,
	"KubeletCrashLoopBackOffMax":             true,
	"KubeletEnsureSecretPulledImages":        true,
	"KubeletFineGrainedAuthz":                true,
	"KubeletInUserNamespace":                 false,
	"KubeletPodResourcesGet":                 true,
	"KubeletPodResourcesDynamicResources":    false,
	"KubeletSeparateDiskGC":                  true,
	"KubeletTracing":                         false,
	"MemoryManager":                          true,
	"NodeLogQuery":                           true,
	"NodeSwap":                               true,
	"PodLevelResources":                      true,
	"PodLifecycleSleepAction":                true,
	"PodReadyToStartContainersCondition":     true,
	"RecursiveReadOnlyMounts":                true,
	"ReduceDefaultCrashLoopBackOffDecay":     false,
	"ResourceHealthStatus":                   true,
	"RotateKubeletServerCertificate":         true,
	"RuntimeClassInImageCriApi":              false,
	"SidecarContainers":                      true,
	"SupplementalGroupsPolicy":               true,
	"SystemdWatchdog":                        true,
	"TopologyManagerPolicyAlphaOptions":      true,
	"TopologyManagerPolicyBetaOptions":       true,
	"TopologyManagerPolicyOptions":           true,
	"UserNamespacesSupport":                  true,
	"WindowsGracefulNodeShutdown":            false,
	"WindowsHostNetwork":                     false,
}

// settableGates are the gates whose value has an effect.
var settableGates = []string{"MemoryQoS"}

// gateWarnings reports gates that are set to a value that has no effect.
func gateWarnings(set map[string]bool) (warnings []string) {
	for _, name := range slices.Sorted(maps.Keys(set)) {
		enabled, known := gates[name]
		switch {
		case slices.Contains(settableGates, name) || known && enabled == set[name]:
		case known && enabled:
			warnings = append(warnings, fmt.Sprintf("featureGates.%s has no effect: the feature is always enabled", name))
		case known:
			warnings = append(warnings, fmt.Sprintf("featureGates.%s has no effect: the feature is not implemented", name))
		default:
			warnings = append(warnings, fmt.Sprintf("featureGates.%s has no effect: unknown feature gate", name))
		}
	}
	return warnings
}
