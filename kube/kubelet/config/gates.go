package config

import (
	"fmt"
	"maps"
	"slices"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"
)

// gates are the feature gates of the kubelet with a feature that exists here (true), or
// does not (false), whatever their value.
var gates = map[string]bool{
	"AtomicWriteVolumeUserFields":                      true,
	"CPUManagerPolicyAlphaOptions":                     true,
	"CPUManagerPolicyBetaOptions":                      true,
	"CPUManagerPolicyOptions":                          true,
	"ChangeContainerStatusOnKubeletRestart":            false,
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
	"KubeletRegistrationGetOnExistsOnly":               false,
	"KubeletSeparateDiskGC":                            true,
	"KubeletServiceAccountTokenForCredentialProviders": true,
	"KubeletTracing":                                   true,
	"MutableCSINodeAllocatableCount":                   true,
	"NodeDeclaredFeatures":                             true,
	"NodeLogQuery":                                     true,
	"NodeSwap":                                         true,
	"PLEGOnDemandRelist":                               true,
	"PodCertificateRequest":                            true,
	"PodLevelResources":                                true,
	"PodLogsQuerySplitStreams":                         true,
	"PodObservedGenerationTracking":                    true,
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
	"SupplementalGroupsPolicy":                         true,
	"SystemdWatchdog":                                  true,
	"TaintTolerationComparisonOperators":               true,
	"TopologyManagerPolicyAlphaOptions":                true,
	"TopologyManagerPolicyBetaOptions":                 true,
	"TopologyManagerPolicyOptions":                     true,
	"UserNamespacesSupport":                            true,
	"WindowsCPUAndMemoryAffinity":                      false,
	"WindowsGracefulNodeShutdown":                      false,
	"WindowsHostNetwork":                               false,
}

// settableGates are the gates whose value has an effect.
var settableGates = []string{"AllowDNSOnlyNodeCSR", "CRIListStreaming", "CSIVolumeHealth", "ComponentFlagz", "ComponentStatusz", "KubeletInUserNamespace", "LocalStorageCapacityIsolationFSQuotaMonitoring", "MemoryQoS", "PodAndContainerStatsFromCRI", "PodLevelResourceManagers", "PodsAPI", "SELinuxMount", "UserNamespacesHostNetworkSupport", "VolumeBindMountOptions"}

// A gateSpec describes a feature gate of Kubernetes.
type gateSpec struct {
	enabled bool   // by default
	locked  bool   // to the default
	stage   string // "alpha", "beta" or "deprecated"; empty: stable
}

// allGates are the gates that set those of a stage that are not set themselves.
var allGates = map[string]string{"AllAlpha": "alpha", "AllBeta": "beta"}

// enabled reports whether a gate is enabled in a kubelet.
func enabled(set map[string]bool, name string) bool {
	if value, ok := set[name]; ok {
		return value
	}
	spec, _ := specOf(name)
	for all, stage := range allGates {
		if value, ok := set[all]; ok && stage == spec.stage {
			return value
		}
	}
	return spec.enabled
}

// Enabled reports whether cfg enables a feature gate of Kubernetes, with the default of this
// release.
func Enabled(cfg *kubeletconfig.KubeletConfiguration, gate string) bool {
	return enabled(cfg.FeatureGates, gate)
}

// checkGates returns the errors of a kubelet about gates that it does not have, that are
// locked, and that depend on gates that are disabled.
func checkGates(set map[string]bool) (errs []error) {
	for _, name := range slices.Sorted(maps.Keys(set)) {
		spec, known := specOf(name)
		switch {
		case allGates[name] != "":
		case !known:
			errs = append(errs, fmt.Errorf("unrecognized feature gate: %s", name))
		case spec.locked && set[name] != spec.enabled:
			errs = append(errs, fmt.Errorf("cannot set feature gate %v to %v, feature is locked to %v", name, set[name], spec.enabled))
		}
	}
	if len(errs) > 0 {
		return errs
	}
	for _, name := range slices.Sorted(maps.Keys(gateDependencies)) {
		if !enabled(set, name) {
			continue
		}
		disabled := slices.DeleteFunc(slices.Clone(gateDependencies[name]), func(other string) bool { return enabled(set, other) })
		if len(disabled) > 0 {
			errs = append(errs, fmt.Errorf("%s is enabled, but depends on features that are disabled: %v", name, disabled))
		}
	}
	return errs
}

// gateWarnings reports gates that are set to a value that has no effect. Gates that only other
// programs of Kubernetes read have none in a kubelet either.
func gateWarnings(set map[string]bool) (warnings []string) {
	for _, name := range slices.Sorted(maps.Keys(set)) {
		implemented, known := gates[name]
		_, removed := removedGates[name]
		_, current := kubernetesGates[name]
		switch {
		case removed && !current:
			warnings = append(warnings, fmt.Sprintf("featureGates.%s has no effect: Kubernetes has removed the gate", name))
		case !known || implemented == set[name]:
		case implemented:
			warnings = append(warnings, fmt.Sprintf("featureGates.%s has no effect: the feature is always enabled", name))
		default:
			warnings = append(warnings, fmt.Sprintf("featureGates.%s has no effect: the feature is not implemented", name))
		}
	}
	return warnings
}
