package config

import (
	"fmt"
	"maps"
	"slices"
)

// gates are the feature gates of the kubelet with a feature that exists here (true), or
// does not (false), whatever their value.
var gates = map[string]bool{
	"CPUManagerPolicyAlphaOptions":                 true,
	"CPUManagerPolicyBetaOptions":                  true,
	"CPUManagerPolicyOptions":                      true,
	"ContainerCheckpoint":                          true,
	"ContainerRestartRules":                        true,
	"ContainerStopSignals":                         true,
	"CustomCPUCFSQuotaPeriod":                      true,
	"DRANodeAllocatableResources":                  false,
	"DRAOptionalNodeOperations":                    false,
	"DisableCPUQuotaWithExclusiveCPUs":             true,
	"DisableNodeKubeProxyVersion":                  true,
	"DynamicResourceAllocation":                    true,
	"EnvFiles":                                     true,
	"EventedPLEG":                                  true,
	"ExtendWebSocketsToKubelet":                    true,
	"GracefulNodeShutdown":                         true,
	"GracefulNodeShutdownBasedOnPodPriority":       true,
	"HugepageAwareEviction":                        true,
	"ImageMaximumGCAge":                            true,
	"ImageVolume":                                  true,
	"InPlacePodLevelResourcesVerticalScaling":      true,
	"InPlacePodVerticalScaling":                    true,
	"InPlacePodVerticalScalingInitContainers":      true,
	"InPlacePodVerticalScalingMemoryBackedVolumes": false,
	"KubeletCgroupDriverFromCRI":                   true,
	"KubeletCrashLoopBackOffMax":                   true,
	"KubeletEnsureSecretPulledImages":              true,
	"KubeletFineGrainedAuthz":                      true,
	"KubeletInUserNamespace":                       false,
	"KubeletPodResourcesDynamicResources":          true,
	"KubeletPodResourcesGet":                       true,
	"KubeletSeparateDiskGC":                        true,
	"KubeletTracing":                               true,
	"MemoryManager":                                true,
	"NodeDeclaredFeatures":                         true,
	"NodeLogQuery":                                 true,
	"NodeSwap":                                     true,
	"PodLevelResources":                            true,
	"PodLifecycleSleepAction":                      true,
	"PodReadyToStartContainersCondition":           true,
	"RecursiveReadOnlyMounts":                      true,
	"ReduceDefaultCrashLoopBackOffDecay":           false,
	"ResourceHealthStatus":                         true,
	"RestartAllContainersOnContainerExits":         true,
	"RotateKubeletServerCertificate":               true,
	"RuntimeClassInImageCriApi":                    false,
	"SidecarContainers":                            true,
	"SupplementalGroupsPolicy":                     true,
	"SystemdWatchdog":                              true,
	"TopologyManagerPolicyAlphaOptions":            true,
	"TopologyManagerPolicyBetaOptions":             true,
	"TopologyManagerPolicyOptions":                 true,
	"UserNamespacesSupport":                        true,
	"WindowsGracefulNodeShutdown":                  false,
	"WindowsHostNetwork":                           false,
}

// settableGates are the gates whose value has an effect.
var settableGates = []string{"CRIListStreaming", "CSIVolumeHealth", "ComponentFlagz", "ComponentStatusz", "LocalStorageCapacityIsolationFSQuotaMonitoring", "MemoryQoS", "PodsAPI", "UserNamespacesHostNetworkSupport", "VolumeBindMountOptions"}

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
