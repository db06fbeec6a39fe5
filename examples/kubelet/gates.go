package main

import (
	"fmt"
	"maps"
	"slices"
)

// gates are the feature gates of a kubelet that this agent knows about, and whether what
// they stand for is there. Only those in choices can be set.
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

// choices are the gates that can be set, and where that is read.
var choices = map[string]string{"MemoryQoS": "cgroups.go"}

// gateWarnings are about gates that are set to what this agent is not.
func gateWarnings(set map[string]bool) (warnings []string) {
	for _, name := range slices.Sorted(maps.Keys(set)) {
		is, known := gates[name]
		_, choice := choices[name]
		switch {
		case choice || known && is == set[name]:
		case known && is:
			warnings = append(warnings, fmt.Sprintf("featureGates.%s changes nothing: what it stands for is always there", name))
		case known:
			warnings = append(warnings, fmt.Sprintf("featureGates.%s changes nothing: what it stands for is not there", name))
		default:
			warnings = append(warnings, fmt.Sprintf("featureGates.%s changes nothing: nobody here asks for it", name))
		}
	}
	return warnings
}
