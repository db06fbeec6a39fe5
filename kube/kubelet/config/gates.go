package config

import (
	"fmt"
	"maps"
	"slices"
)

// gates are the feature gates of the kubelet with a feature that exists here (true), or
// does not (false), whatever their value.
var gates = map[string]bool{
	"AtomicWriteVolumeUserFields":                      true,
	"CPUManagerPolicyAlphaOptions":                     true,
	"CPUManagerPolicyBetaOptions":                      true,
	"CPUManagerPolicyOptions":                          true,
	"ClusterTrustBundleProjection":                     true,
	"ContainerCheckpoint":                              true,
	"ContainerRestartRules":                            true,
	"ContainerStopSignals":                             true,
	"CustomCPUCFSQuotaPeriod":                          true,
	"DRAConsumableCapacity":                            true,
	"DRAExtendedResource":                              true,
	"DRANodeAllocatableResources":                      false,
	"DRAOptionalNodeOperations":                        false,
	"DRAWorkloadResourceClaims":                        true,
	"DefaultPodSysctls":                                false,
	"DisableCPUQuotaWithExclusiveCPUs":                 true,
	"DisableNodeKubeProxyVersion":                      true,
	"DynamicResourceAllocation":                        true,
	"EmptyDirVolumeMode":                               true,
	"EnvFiles":                                         true,
	"EventedPLEG":                                      true,
	"ExtendWebSocketsToKubelet":                        true,
	"GRPCContainerProbeTLS":                            true,
	"GitRepoVolumeDriver":                              false,
	"GracefulNodeShutdown":                             true,
	"GracefulNodeShutdownBasedOnPodPriority":           true,
	"H2CContainerProbe":                                true,
	"HugepageAwareEviction":                            true,
	"ImageMaximumGCAge":                                true,
	"ImageVolume":                                      true,
	"ImageVolumeWithDigest":                            false,
	"InPlacePodLevelResourcesVerticalScaling":          true,
	"InPlacePodVerticalScaling":                        true,
	"InPlacePodVerticalScalingExclusiveCPUs":           false,
	"InPlacePodVerticalScalingExclusiveMemory":         false,
	"InPlacePodVerticalScalingInitContainers":          true,
	"InPlacePodVerticalScalingMemoryBackedVolumes":     false,
	"InPlacePodVerticalScalingSchedulerPreemption":     true,
	"KubeletAllocatedPodsEndpoint":                     false,
	"KubeletCgroupDriverFromCRI":                       true,
	"KubeletCrashLoopBackOffMax":                       true,
	"KubeletEnsureSecretPulledImages":                  true,
	"KubeletFineGrainedAuthz":                          true,
	"KubeletPSI":                                       true,
	"KubeletPodResourcesDynamicResources":              true,
	"KubeletPodResourcesGet":                           true,
	"KubeletPodResourcesListUseActivePods":             true,
	"KubeletSeparateDiskGC":                            true,
	"KubeletServiceAccountTokenForCredentialProviders": true,
	"KubeletTracing":                                   true,
	"MemoryManager":                                    true,
	"MutableCSINodeAllocatableCount":                   true,
	"NodeDeclaredFeatures":                             true,
	"NodeLogQuery":                                     true,
	"NodeSwap":                                         true,
	"PLEGOnDemandRelist":                               true,
	"PodAndContainerStatsFromCRI":                      false,
	"PodCertificateRequest":                            true,
	"PodLevelResourceManagers":                         false,
	"PodLevelResources":                                true,
	"PodLifecycleSleepAction":                          true,
	"PodLogsQuerySplitStreams":                         true,
	"PodReadyToStartContainersCondition":               true,
	"QOSReserved":                                      true,
	"RecoverVolumeExpansionFailure":                    true,
	"RecursiveReadOnlyMounts":                          true,
	"ReduceDefaultCrashLoopBackOffDecay":               false,
	"ReloadKubeletClientCAFile":                        true,
	"ReloadKubeletServerCertificateFile":               true,
	"ResourceHealthStatus":                             true,
	"ResourceHealthStatusMessage":                      true,
	"RestartAllContainersOnContainerExits":             true,
	"RotateKubeletServerCertificate":                   true,
	"RuntimeClassInImageCriApi":                        false,
	"SELinuxChangePolicy":                              true,
	"SELinuxMountReadWriteOncePod":                     true,
	"SidecarContainers":                                true,
	"SupplementalGroupsPolicy":                         true,
	"SystemdWatchdog":                                  true,
	"TaintTolerationComparisonOperators":               true,
	"TopologyManagerPolicyAlphaOptions":                true,
	"TopologyManagerPolicyBetaOptions":                 true,
	"TopologyManagerPolicyOptions":                     true,
	"UserNamespacesSupport":                            true,
	"WindowsGracefulNodeShutdown":                      false,
	"WindowsHostNetwork":                               false,
}

// settableGates are the gates whose value has an effect.
var settableGates = []string{"AllowDNSOnlyNodeCSR", "CRIListStreaming", "CSIVolumeHealth", "ComponentFlagz", "ComponentStatusz", "KubeletInUserNamespace", "LocalStorageCapacityIsolationFSQuotaMonitoring", "MemoryQoS", "PodsAPI", "SELinuxMount", "UserNamespacesHostNetworkSupport", "VolumeBindMountOptions"}

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
